"""Values of responses that a change cannot convert: refused, kept or omitted, and counted."""

import json
from typing import Any

import pytest

from tests.gateway.kit import StartGateway, wait_for
from tests.gateway.live.bounds import metric
from tests.gateway.live.conftest import House
from tests.gateway.live.raw import answer, ask, get

RULES = """\
services: {{ s: {{ targets: ["http://127.0.0.1:{port}"] }} }}
apis:
  shop:
    endpoints: [ {{ path: "/v{{version}}/orders", version: {{ in: path }} }} ]
    versions: {{ "1": {{ via: "2" }}, "2": {{ service: s }} }}
    groups:
      order: [ {{ map: {{ field: state, values: {{ OPEN: open }} }} }} ]
    conversions: [ {{ between: ["1", "2"], {conversion} }} ]
"""
ORDERS = [{"id": 1, "state": "OPEN"}, {"id": 2, "state": "HELD"}, {"id": 3}]
STATE = 'map: { field: "items[].state", values: { OPEN: open } }'
TAGS = 'map: { field: "tags[]", values: { new: n } }'
SIZE = "multiply: { field: size, by: 10 }"
GROUP = 'use: { group: order, at: ["items[]"] }'


@pytest.mark.parametrize(
    ("conversion", "sent", "received"),
    [
        (
            f"unfit: keep, changes: [ {{ {STATE} }} ]",
            {"items": ORDERS},
            {"items": [{"id": 1, "state": "open"}, {"id": 2, "state": "HELD"}, {"id": 3}]},
        ),
        (
            f"changes: [ {{ {STATE}, unfit: omit }} ]",
            {"items": ORDERS},
            {"items": [{"id": 1, "state": "open"}, {"id": 2}, {"id": 3}]},
        ),
        (
            f"changes: [ {{ {GROUP}, unfit: omit }} ]",
            {"items": ORDERS, "total": 3},
            {"items": [{"id": 1, "state": "open"}, {"id": 3}], "total": 3},
        ),
        (
            f"changes: [ {{ {TAGS}, unfit: {{ responses: omit }} }} ]",
            {"tags": ["new", "old", "new"]},
            {"tags": ["n", "n"]},
        ),
    ],
)
def test_one_unfit_value_does_not_cost_a_whole_response(
    reloaded: StartGateway, house: House, conversion: str, sent: Any, received: Any
) -> None:
    program = reloaded(RULES.format(port=house.service.port, conversion=conversion))
    house.service.answer = answer(json.dumps(sent).encode())
    got = get(program, "/v1/orders")
    assert (got.status, got.json) == (200, received)
    change = "apis.shop.conversions[0].changes[0]"
    result = "keep" if "keep" in conversion else "omit"
    labels = f'api="shop",change="{change}",message="response",result="{result}",version="1"'
    series = f"gateway_unfit_values_total{{{labels}}}"
    assert wait_for(lambda: metric(program, series)) == 1

    def logged() -> list[str]:
        return [one["unfit"] for one in program.log("request") if "unfit" in one]

    (line,) = wait_for(logged)
    assert line.startswith(f"{change}: ")


def test_a_value_is_refused_unless_the_choice_includes_responses(
    reloaded: StartGateway, house: House
) -> None:
    conversion = f"unfit: {{ requests: keep }}, changes: [ {{ {STATE} }} ]"
    program = reloaded(RULES.format(port=house.service.port, conversion=conversion))
    house.service.answer = answer(json.dumps({"items": ORDERS}).encode())
    got = get(program, "/v1/orders")
    assert (got.status, got.json["code"]) == (502, "conversion_failed")


def test_an_unfit_value_of_a_request_is_omitted(reloaded: StartGateway, house: House) -> None:
    conversion = f"unfit: omit, changes: [ {{ {STATE} }} ], query: [ {{ {SIZE} }} ]"
    program = reloaded(RULES.format(port=house.service.port, conversion=conversion))
    house.service.answer = answer(b"{}")
    body = json.dumps({"items": [{"id": 1, "state": "odd"}]}).encode()
    line = "Content-Type: application/json"
    assert ask(program, "POST", "/v1/orders?size=x&page=1", line, body=body).status == 200
    assert json.loads(house.service.last.body) == {"items": [{"id": 1}]}
    assert house.service.last.line == b"POST /v2/orders?page=1 HTTP/1.1"
