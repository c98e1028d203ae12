"""Requests that do not fit their version are forwarded to the service, over sockets."""

import gzip

import pytest

from tests.gateway.kit import Program, StartGateway
from tests.gateway.live.conftest import House
from tests.gateway.live.raw import answer, ask, get

RULES = """
services: {{ told: {{ targets: ["http://127.0.0.1:{port}"] }} }}
apis:
  a:
    endpoints: [ {{ path: "/v{{version}}/a", version: {{ in: path }} }} ]
    versions: {{ "1": {{ via: "2" }}, "2": {{ service: told }} }}
    conversions:
      - between: ["1", "2"]
        statuses: [422]
        status: {{ newer: 422, older: 400 }}
        changes: [ {{ rename: {{ field: place, to: field }} }},
                   {{ map: {{ field: place, values: {{ size: sum }} }} }} ]
        on: errors
      - between: ["1", "2"]
        unfit: {{ requests: keep }}
        malformed: keep
        changes: [ {{ rename: {{ field: size, to: sum }} }},
                   {{ type: {{ field: size, newer: number, older: text }} }} ]
        query: [ {{ rename: {{ field: after, to: since }} }},
                 {{ time: {{ field: after, newer: rfc3339, older: unix }} }} ]
"""
JSON = "Content-Type: application/json"


@pytest.fixture
def program(configured: StartGateway, house: House) -> Program:
    return configured(RULES.format(port=house.service.port))


@pytest.mark.parametrize(
    ("sent", "line", "arrives"),
    [
        (b'{"sum":"7"}', JSON, b'{"size":7}'),
        (b'{"sum":"x"}', JSON, b'{"size":"x"}'),
        (b'"x"', JSON, b'"x"'),
        (b"{broken", JSON, b"{broken"),
        (b'{"sum":"\xff"}', JSON, b'{"sum":"\xff"}'),
        (b"<a/>", "Content-Type: application/xml", b"<a/>"),
    ],
)
def test_a_body_that_changes_do_not_fit_is_forwarded_to_the_service(
    program: Program, house: House, sent: bytes, line: str, arrives: bytes
) -> None:
    house.service.answer = answer(b'{"place":"size"}', status="422 Unprocessable Content")
    got = ask(program, "POST", "/v1/a", line, body=sent)
    assert house.service.last.body == arrives
    assert (got.status, got.body) == (400, b'{"field":"sum"}')


def test_a_forwarded_body_keeps_its_coding(program: Program, house: House) -> None:
    sent = gzip.compress(b"<a/>")
    ask(program, "POST", "/v1/a", "Content-Type: text/xml", "Content-Encoding: gzip", body=sent)
    assert house.service.last.body == sent
    assert house.service.last.all("Content-Encoding") == [b"gzip"]


def test_query_parameters_that_fit_are_renamed(program: Program, house: House) -> None:
    house.service.answer = answer(b"{}")
    assert get(program, "/v1/a?since=x&b=1").status == 200
    assert house.service.last.line == b"GET /v2/a?after=x&b=1 HTTP/1.1"


@pytest.mark.parametrize(
    ("sent", "lines", "code"),
    [
        (b'{"sum":"1","size":2}', [JSON], "unconvertible_request"),
        (b'{"sum":"1","sum":"2"}', [JSON], "unconvertible_request"),
        (gzip.compress(b"{broken"), [JSON, "Content-Encoding: gzip"], "unconvertible_request"),
    ],
    ids=["two places", "a key twice", "coded"],
)
def test_a_request_that_a_service_could_misread_is_refused(
    program: Program, house: House, sent: bytes, lines: list[str], code: str
) -> None:
    got = ask(program, "POST", "/v1/a", *lines, body=sent)
    assert (got.status, got.json["code"]) == (400, code)


def test_a_response_that_changes_do_not_fit_is_502(program: Program, house: House) -> None:
    house.service.answer = answer(b'{"size":"x"}')
    assert get(program, "/v1/a").json["code"] == "conversion_failed"


@pytest.mark.parametrize("line", [JSON, "Content-Type: text/plain"])
def test_header_fields_and_query_of_a_non_json_body_are_converted(
    reloaded: StartGateway, house: House, line: str
) -> None:
    first = "{ rename: { field: size, to: sum } }"
    moved = "{ to_query: { field: kind, parameter: kind } }"
    rules = RULES.format(port=house.service.port).replace(first, f"{moved}, {first}")
    rules += "        headers: [ { rename: { field: X-New, to: X-Old } } ]\n"
    program = reloaded(rules)
    house.service.answer = answer(b"{}")
    assert ask(program, "POST", "/v1/a?since=x", line, "X-Old: 1", body=b"{broken").status == 200
    assert house.service.last.line == b"POST /v2/a?after=x HTTP/1.1"
    assert house.service.last.body == b"{broken"
    assert house.service.last.one("X-New") == b"1"
