"""Values of collected fields that come from the path of the request, over sockets."""

import json
from typing import Any

import pytest

from tests.gateway.kit import Program, StartGateway
from tests.gateway.live.conftest import House
from tests.gateway.live.raw import answer, ask, get

# The newer version has the customer in each card, the older one once.
RULES = """\
services: {{ s: {{ targets: ["http://127.0.0.1:{port}"] }} }}
apis:
  shop:
    endpoints:
      - {{ path: "/v{{version}}/customers/{{owner}}/cards", version: {{ in: path }} }}
      - {{ path: "/v{{version}}/clients/{{rest*}}", version: {{ in: path }} }}
    versions: {{ "1": {{ via: "2" }}, "2": {{ service: s }} }}
    conversions:
      - between: ["1", "2"]
        paths: ["/v{{version}}/customers/{{owner}}/cards"]
        changes:
          - collect: {{ field: "data[].customer", into: customer, keep: false, capture: owner }}
      - between: ["1", "2"]
        operations:
          - newer: "/v{{version}}/clients/{{id}}/cards"
            older: "/v{{version}}/clients/{{id}}/sources"
        changes:
          - collect:
              {{ field: "data[].client", into: client, keep: false, capture: id, type: number }}
"""


@pytest.fixture
def program(configured: StartGateway, house: House) -> Program:
    return configured(RULES.format(port=house.service.port))


@pytest.mark.parametrize(
    ("path", "body", "received"),
    [
        ("customers/cus_%2F1/cards", {"data": []}, {"data": [], "customer": "cus_/1"}),
        (
            "customers/cus_1/cards",
            {"data": [{"customer": "cus_2"}]},
            {"data": [{}], "customer": "cus_2"},
        ),
        ("clients/7/sources", {"data": []}, {"data": [], "client": 7}),
        ("clients/7/sources", {"client": None, "data": []}, {"client": None, "data": []}),
    ],
)
def test_an_empty_list_gets_the_value_of_the_path(
    program: Program, house: House, path: str, body: Any, received: Any
) -> None:
    house.service.answer = answer(json.dumps(body).encode())
    got = get(program, f"/v1/{path}")
    assert (got.status, got.json) == (200, received)
    field = "Content-Type: application/json"
    assert ask(program, "POST", f"/v1/{path}", field, body=got.body).status == 200
    assert house.service.last.json == {"data": body["data"]}


def test_a_value_of_the_path_that_is_not_a_number_is_refused(
    program: Program, house: House
) -> None:
    house.service.answer = answer(b'{"data":[]}')
    got = get(program, "/v1/clients/x/sources")
    assert got.refusal() == (502, "conversion_failed")
    assert "'id' is not a number" in got.problem["detail"]
