"""Bodies, and parts of them, that no change of a conversion names, over sockets."""

import json

import pytest

from tests.gateway.kit import StartGateway
from tests.gateway.live.conftest import House
from tests.gateway.live.raw import answer, ask

RULES = """
services: {{ told: {{ targets: ["http://127.0.0.1:{port}"] }} }}
apis:
  a:
    endpoints: [ {{ path: "/v{{version}}/a", version: {{ in: path }} }},
                 {{ path: "/v{{version}}/cased", version: {{ in: path }} }} ]
    versions: {{ "1": {{ via: "2" }}, "2": {{ service: told }} }}
    conversions:
      - between: ["1", "2"]
        paths: ["/v{{version}}/a"]
        changes: [ {{ rename: {{ field: total, to: amount }} }},
                   {{ rename: {{ field: "lines[].sum", to: "lines[].cost" }} }} ]
      - between: ["1", "2"]
        paths: ["/v{{version}}/cased"]
        changes: [ {{ key_case: {{ newer: camel, older: snake }} }} ]
"""
JSON = "Content-Type: application/json"


@pytest.mark.parametrize("path", ["/v1/a", "/v1/cased"])
@pytest.mark.parametrize(
    "body", [b"null", b"true", b"5", b"-0", b"1.50", b'"ok"', b"[1,2,3]", b"[null]", b"[[],[1]]"]
)
def test_a_body_without_objects_passes_both_ways(
    reloaded: StartGateway, house: House, path: str, body: bytes
) -> None:
    """FastAPI answers null to a DELETE, for example."""
    program = reloaded(RULES.format(port=house.service.port))
    house.service.answer = answer(body)
    for method in ("DELETE", "GET"):
        got = ask(program, method, path)
        assert (got.status, got.body) == (200, body)
    assert ask(program, "POST", path, JSON, body=body).status == 200
    assert house.service.last.body == body


def test_the_objects_of_a_mixed_array_are_converted(reloaded: StartGateway, house: House) -> None:
    program = reloaded(RULES.format(port=house.service.port))
    house.service.answer = answer(b'[{"total":1},2,null,["x",{"total":3}]]')
    got = ask(program, "POST", "/v1/a", JSON, body=b'[1,{"amount":1}]')
    assert json.loads(got.body) == [{"amount": 1}, 2, None, ["x", {"amount": 3}]]
    assert house.service.last.body == b'[1,{"total":1}]'


def test_a_named_field_that_does_not_fit_is_refused(reloaded: StartGateway, house: House) -> None:
    program = reloaded(RULES.format(port=house.service.port))
    asked = len(house.service.asked)
    got = ask(program, "POST", "/v1/a", JSON, body=b'{"lines":5}')
    assert got.refusal() == (400, "unconvertible_request")
    assert len(house.service.asked) == asked
