"""A refusal of the response to an unsafe method has the outcome of the service's action."""

import json

import pytest

from tests.gateway.kit import StartGateway
from tests.gateway.live.conftest import House
from tests.gateway.live.raw import answer, ask

RULES = """\
services: {{ s: {{ targets: ["http://127.0.0.1:{port}"] }} }}
limits: {{ convert: 2000, elements: 100 }}
apis:
  shop:
    endpoints:
      - path: "/v{{version}}/orders"
        upstream_path: /orders
        version: {{ in: path }}
      - path: "/v{{version}}/orders/{{id}}"
        upstream_path: "/orders/{{id}}"
        version: {{ in: path }}
    versions:
      "1": {{ via: "2"{errors} }}
      "2": {{ service: s }}
    conversions:
      - between: ["1", "2"]
        on: responses
        unfit: refuse
        changes:
          - map: {{ field: state, values: {{ OPEN: open }} }}
          - python: {{ field: name, up: "copy:copy", down: "json:loads" }}
          - python: {{ field: wait, up: "copy:copy", down: "time:sleep", timeout: 0.05 }}
        headers: [ {{ type: {{ field: X-Count, newer: text, older: number }} }} ]
"""
LOCATION, TAG = "Location: /orders/7", 'ETag: "abc"'
BODIES = {
    "unfit": b'{"state": "HELD"}',
    "malformed": b"{no",
    "function": b'{"name": "x"}',
    "timeout": b'{"wait": 3}',
    "size": json.dumps({"name": "7" * 3000}).encode(),
    "elements": json.dumps({"list": list(range(500))}).encode(),
    "header": b"{}",
    "coding": b"no gzip",
    "cut": b"{",
}
LINES = {"header": "X-Count: many", "coding": "Content-Encoding: gzip", "cut": "Content-Length: 9"}


@pytest.mark.parametrize("reason", [*BODIES])
def test_a_refusal_after_an_unsafe_method_has_the_status_and_the_place_of_the_result(
    reloaded: StartGateway, house: House, reason: str
) -> None:
    program = reloaded(RULES.format(port=house.service.port, errors=""))
    lines = [LOCATION, TAG, LINES.get(reason, "X-Other: 1")]
    lines += ["Connection: close"] if reason == "cut" else []
    house.service.answer = answer(BODIES[reason], *lines, status="201 Created")
    got = ask(program, "POST", "/v1/orders", "Content-Type: application/json", body=b"{}")
    assert (got.status, got.json["serviceStatus"]) == (502, 201)
    assert got.one("Location") == b"/v1/orders/7"
    tag = got.one("ETag")
    assert tag.removeprefix(b"W/").startswith(b'"abc.')
    asked = len(house.service.asked)
    ask(program, "DELETE", "/v1/orders", f"If-Match: {tag.decode()}")
    assert house.service.asked[asked].one("If-Match") == b'"abc"'
    safe = ask(program, "GET", "/v1/orders")
    assert safe.status == 502
    assert "serviceStatus" not in safe.json
    assert safe.all("Location") == safe.all("ETag") == []


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_the_refusal_of_an_error_of_the_service_has_its_status(
    reloaded: StartGateway, house: House, method: str
) -> None:
    rules = RULES.format(port=house.service.port, errors="")
    program = reloaded(rules.replace("on: responses", "statuses: [409]"))
    house.service.answer = answer(BODIES["unfit"], status="409 Conflict")
    got = ask(program, method, "/v1/orders", "Content-Type: application/json", body=b"{}")
    assert (got.status, got.json["serviceStatus"]) == (502, 409)
    assert got.all("Location") == []


def test_an_own_error_format_can_show_the_status_of_the_service(
    reloaded: StartGateway, house: House
) -> None:
    errors = ', errors: { body: { was: "{serviceStatus}", code: "{code}" } }'
    program = reloaded(RULES.format(port=house.service.port, errors=errors))
    house.service.answer = answer(BODIES["unfit"], LOCATION, status="202 Accepted")
    got = ask(program, "PUT", "/v1/orders", "Content-Type: application/json", body=b"{}")
    assert got.json == {"was": 202, "code": "conversion_failed"}
    assert got.one("Location") == b"/v1/orders/7"
    house.service.answer = answer(b"{}", status="200 OK")
    assert ask(program, "PUT", "/v1/orders", body=b"{}").json == {}
