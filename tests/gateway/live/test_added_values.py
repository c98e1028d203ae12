"""Values that the gateway adds to lists in queries and forms, over sockets."""

import json

import pytest

from tests.gateway.kit import Program, StartGateway
from tests.gateway.live.conftest import House
from tests.gateway.live.raw import answer, ask, get

# The newer version returns the customer's id unless the request expands it.
RULES = """\
services: {{ s: {{ targets: ["http://127.0.0.1:{port}"] }} }}
apis:
  shop:
    endpoints: [ {{ path: "/v{{version}}/charges", version: {{ in: path }} }} ]
    versions: {{ "1": {{ via: "2" }}, "2": {{ service: s }} }}
    conversions:
      - between: ["1", "2"]
        methods: [GET]
        query: [ {{ add_value: {{ field: "expand[]", value: data.customer }} }} ]
      - between: ["1", "2"]
        methods: [POST]
        on: requests
        changes:
          - add_value: {{ field: "expand[]", value: customer }}
            when: {{ field: kind, is_not: draft }}
"""
FORM = "Content-Type: application/x-www-form-urlencoded"


@pytest.fixture
def program(configured: StartGateway, house: House) -> Program:
    return configured(RULES.format(port=house.service.port))


@pytest.mark.parametrize(
    ("query", "arrives"),
    [
        ("", "?expand%5B%5D=data.customer"),
        ("?expand[0]=data.invoice", "?expand[0]=data.invoice&expand[1]=data.customer"),
        ("?expand[]=data.customer&limit=3", "?expand[]=data.customer&limit=3"),
    ],
)
def test_the_query_of_an_older_client_expands_the_object(
    program: Program, house: House, query: str, arrives: str
) -> None:
    body = json.dumps({"data": [{"customer": {"id": "cus_1"}}]}).encode()
    house.service.answer = answer(body, f'Link: </v2/charges{arrives}&page=2>; rel="next"')
    got = get(program, f"/v1/charges{query}")
    assert (got.status, got.body) == (200, body)
    assert house.service.last.line == f"GET /v2/charges{arrives} HTTP/1.1".encode()
    assert b"data.customer" not in got.one("Link")
    assert get(program, f"/v2/charges{query}").status == 200
    assert house.service.last.line == f"GET /v2/charges{query} HTTP/1.1".encode()


@pytest.mark.parametrize(
    ("form", "arrives"),
    [
        ("amount=5", "amount=5&expand%5B%5D=customer"),
        ("kind=draft", "kind=draft"),
        ("", "expand%5B%5D=customer"),
    ],
)
def test_the_form_of_an_older_client_expands_the_object(
    program: Program, house: House, form: str, arrives: str
) -> None:
    assert ask(program, "POST", "/v1/charges", FORM, body=form.encode()).status == 200
    assert house.service.last.body.decode() == arrives
    assert house.service.last.line == b"POST /v2/charges HTTP/1.1"
