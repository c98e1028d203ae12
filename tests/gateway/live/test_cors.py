"""CORS over sockets: the gateway's own responses, and header names that conversions change."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.gateway.kit import Program, start_program
from tests.gateway.live.conftest import House
from tests.gateway.live.raw import answer, ask, get, parse_answer, send

APP = "https://app.test"
ORIGIN = f"Origin: {APP}"
RULES = f"""
services: {{ told: {{ targets: ["http://${{TOLD}}"] }}, gone: {{ targets: ["http://${{GONE}}"] }} }}
cors: {{ origins: [{APP}], credentials: true }}
apis:
  a:
    endpoints:
      - {{ path: "/v{{version}}/a", version: {{ in: path }}, max_body: 10 }}
      - {{ path: "/v{{version}}/pay", version: {{ in: path }} }}
      - {{ path: "/v{{version}}/read", version: {{ in: path }}, methods: [GET] }}
    versions:
      "1": {{ lifecycle: {{ sunset: 2020-01-01 }} }}
      "2": {{ via: "3" }}
      "3": {{ service: told }}
      "4": {{ service: gone }}
    conversions:
      - {{ between: ["1", "2"], changes: [] }}
      - between: ["2", "3"]
        operations: [ {{ older: POST /v2/pay, newer: POST /v3/payments }} ]
      - {{ between: ["2", "3"], headers: [ rename: {{ field: X-By, to: X-From }} ] }}
      - between: ["2", "3"]
        operations: [ POST /v3/payments ]
        on: requests
        changes: [ to_header: {{ field: key, header: Idempotency-Key }} ]
      - between: ["2", "3"]
        on: responses
        changes: [ to_header: {{ field: total, header: X-Total, type: number }} ]
      - between: ["2", "3"]
        on: requests
        changes: [ rename: {{ field: a, to: b }} ]
      - {{ between: ["3", "4"], changes: [] }}
"""
ALLOWED = "Access-Control-Allow-Origin"


@pytest.fixture(scope="module")
def program(shared_house: House, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    """Start a gateway whose own responses one origin may read."""
    folder = tmp_path_factory.mktemp("cors")
    config = folder / "gateway.yaml"
    config.write_text(RULES)
    told = f"127.0.0.1:{shared_house.service.port}"
    with ExitStack() as stack:
        program = start_program(stack, folder, "gateway", TOLD=told, GONE="127.0.0.1:1")
        program.config = config
        yield program


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ("GET /v1/a", 410),
        ("GET /v9/a", 404),
        ("GET /nowhere", 404),
        ("PUT /v2/read", 405),
        ("POST /v2/a", 413),
        ("POST /v2/pay", 400),
        ("GET /v4/a", 502),
    ],
)
def test_a_script_can_read_a_refusal(program: Program, asked: str, status: int) -> None:
    body = b"{12345678901" if asked.startswith("POST") else None
    got = ask(program, *asked.split(), ORIGIN, "Content-Type: application/json", body=body)
    assert got.status == status
    assert got.one(ALLOWED) == APP.encode()
    assert got.one("Access-Control-Allow-Credentials") == b"true"
    assert "x-request-id" in got.members("Access-Control-Expose-Headers")
    assert "origin" in got.members("Vary")


@pytest.mark.parametrize("lines", [(), ("Origin: https://evil.test",), ("Origin: null",)])
def test_a_foreign_origin_cannot_read_the_refusal_of_a_retired_version(
    program: Program, lines: tuple[str, ...]
) -> None:
    got = get(program, "/v1/a", *lines)
    assert (got.status, got.all(ALLOWED)) == (410, [])
    assert "origin" in got.members("Vary")


@pytest.mark.parametrize("path", ["/v1/a", "/v4/a", "/nowhere", "/v2/read"])
def test_the_preflight_of_a_refused_request_is_allowed(program: Program, path: str) -> None:
    """Without an allowed preflight, the script could not read the refusal of its request."""
    named = "Access-Control-Request-Headers: x-api-version"
    asked = ORIGIN, "Access-Control-Request-Method: PUT", named
    got = ask(program, "OPTIONS", path, *asked)
    assert (got.status, got.body) == (204, b"")
    assert (got.one(ALLOWED), got.one("Access-Control-Allow-Methods")) == (APP.encode(), b"PUT")
    assert got.one("Access-Control-Allow-Headers") == b"x-api-version"
    refused = ask(program, "OPTIONS", path, "Origin: https://evil.test", *asked[1:])
    assert refused.all(ALLOWED) == []


def test_cors_fields_of_the_service_are_forwarded(program: Program, house: House) -> None:
    assert get(program, "/v3/a", ORIGIN).all(ALLOWED) == []
    house.service.answer = answer(b"{}", f"{ALLOWED}: *")
    assert get(program, "/v3/a", ORIGIN).all(ALLOWED) == [b"*"]


def test_header_names_of_a_preflight_are_converted(program: Program, house: House) -> None:
    house.service.answer = (
        b"HTTP/1.1 204 No Content\r\nAccess-Control-Allow-Origin: *\r\n"
        b"Access-Control-Allow-Methods: POST\r\nAccess-Control-Allow-Headers: X-By, X-Any\r\n\r\n"
    )
    got = ask(
        *(program, "OPTIONS", "/v2/pay", ORIGIN, "Access-Control-Request-Method: POST"),
        "Access-Control-Request-Headers: idempotency-key,x-any,x-from",
    )
    assert house.service.last.line == b"OPTIONS /v3/payments HTTP/1.1"
    assert house.service.last.one("Access-Control-Request-Headers") == b"x-any,x-by"
    assert got.one("Access-Control-Allow-Methods") == b"POST"
    names = got.members("Access-Control-Allow-Headers")
    assert sorted(names) == ["idempotency-key", "x-any", "x-from"]


def test_a_preflight_with_too_many_header_names_stays_at_the_gateway(
    program: Program, house: House
) -> None:
    lines = [f"Access-Control-Request-Headers: {',x' * 63}"] * 2
    asked = ORIGIN, "Access-Control-Request-Method: POST", *lines
    assert ask(program, "OPTIONS", "/v2/pay", *asked).status == 200
    got = ask(program, "OPTIONS", "/v2/pay", *asked, "Access-Control-Request-Headers: x")
    # The preflight succeeds, so that the script can read the refusal of the request itself.
    assert (got.status, len(house.service.asked)) == (204, 1)
    # Without a conversion, the header names are forwarded unparsed.
    assert ask(program, "OPTIONS", "/v3/pay", *asked, lines[0]).status == 200


def test_a_preflight_allows_header_names_that_the_gateway_reads_itself(
    program: Program, house: House
) -> None:
    house.service.answer = b"HTTP/1.1 204 No Content\r\nAccess-Control-Allow-Origin: *\r\n\r\n"
    method = "Access-Control-Request-Method: POST"
    asked = "Access-Control-Request-Headers: idempotency-key"
    got = ask(program, "OPTIONS", "/v2/pay", ORIGIN, method, asked)
    assert house.service.last.all("Access-Control-Request-Headers") == []
    assert got.members("Access-Control-Allow-Headers") == ["idempotency-key"]
    got = ask(program, "OPTIONS", "/v3/pay", ORIGIN, method, asked)
    assert house.service.last.one("Access-Control-Request-Headers") == b"idempotency-key"
    assert got.all("Access-Control-Allow-Headers") == []


def test_exposed_header_names_are_converted(program: Program, house: House) -> None:
    exposed = "Access-Control-Expose-Headers: X-By, X-Any"
    house.service.answer = answer(b'{"total":5}', f"{ALLOWED}: *", exposed, "X-By: me")
    got = get(program, "/v2/a", ORIGIN)
    assert (got.one("X-Total"), got.one("X-From")) == (b"5", b"me")
    names = got.members("Access-Control-Expose-Headers")
    assert sorted(names) == ["x-any", "x-from", "x-total"]
    house.service.answer = answer(b'{"total":5}', exposed)
    assert get(program, "/v2/a").members("Access-Control-Expose-Headers") == ["x-by", "x-any"]


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET /v2/a HTTP/1.1\r\nHost: a\r\nBad field: 1\r\n\r\n", 400),
        (b"GET /%b HTTP/1.1\r\nHost: a\r\n\r\n" % (b"a" * 9000), 414),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: %b\r\n\r\n" % (b"a" * 70_000), 431),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: %b\r\n\r\n" % (b"a" * 90_000), 431),
    ],
)
def test_an_unreadable_request_is_refused_where_cors_is_configured(
    program: Program, sent: bytes, status: int
) -> None:
    """Before, its connection was reset without a response, since it has no readable Origin."""
    assert parse_answer(send(program, sent)).status == status


def test_an_incomplete_head_is_408_where_cors_is_configured(program: Program) -> None:
    """Before, the refusal itself failed, so the connection stayed open."""
    program.reload(f"limits: {{ header_seconds: 1 }}\n{RULES}")
    assert parse_answer(send(program, b"GET / HTTP/1.1\r\n")).status == 408
