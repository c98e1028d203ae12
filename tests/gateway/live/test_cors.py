"""CORS over sockets: the gateway's own responses, and header names that conversions change."""

from collections.abc import Iterator

import pytest

from tests.gateway.kit import Program, StartGateway
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
def program(module_gateway: StartGateway, shared_house: House) -> Program:
    return module_gateway(RULES, TOLD=shared_house.told, GONE="127.0.0.1:1")


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
    """Earlier, its connection was reset without a response, since it has no readable Origin."""
    assert parse_answer(send(program, sent)).status == status


def test_an_incomplete_head_is_408_where_cors_is_configured(program: Program) -> None:
    """Earlier, the refusal itself failed, so the connection stayed open."""
    program.reload(f"limits: {{ header_seconds: 1 }}\n{RULES}")
    assert parse_answer(send(program, b"GET / HTTP/1.1\r\n")).status == 408


ADMIN = "https://admin.test"
API_RULES = f"""
services: {{ told: {{ targets: ["http://${{TOLD}}"] }}, gone: {{ targets: ["http://${{GONE}}"] }} }}
cors: {{ origins: [{APP}] }}
clients: {{ by: [ {{ api_key: {{ header: X-Key, keys: {{ acme: sesame }} }} }} ] }}
apis:
  guarded:
    cors: {{ origins: [{ADMIN}] }}
    access: {{ by: [api_key] }}
    service: told
    endpoints: [ {{ path: /guarded }} ]
  own:
    cors:
      origins: [{ADMIN}]
      credentials: true
      methods: [GET, PUT]
      headers: [X-By, X-From]
      exposed: [X-From, ETag]
      max_age: 600
    version_header: X-Version
    endpoints:
      - {{ path: "/v{{version}}/o", version: {{ in: path }} }}
      - {{ path: /o, version: {{ in: header, name: X-V }}, methods: [GET] }}
    versions:
      "1": {{ service: told, lifecycle: {{ sunset: 2020-01-01 }} }}
      "2": {{ via: "3" }}
      "3": {{ service: told, lifecycle: {{ deprecated: 2020-01-01 }} }}
      "4": {{ service: gone }}
      "5": {{ service: told, brownout: {{ percent: 100 }} }}
    conversions:
      - {{ between: ["1", "2"], changes: [] }}
      - {{ between: ["2", "3"], headers: [ rename: {{ field: X-By, to: X-From }} ] }}
      - {{ between: ["3", "4"], changes: [] }}
      - {{ between: ["4", "5"], changes: [] }}
  open:
    cors: {{ origins: ["*"], exposed: ["*"] }}
    service: told
    endpoints: [ {{ path: /open }} ]
  others:
    service: told
    endpoints: [ {{ path: /others, methods: [GET] }} ]
"""
FROM_SERVICE = (
    f"{ALLOWED}: https://old.test",
    "Access-Control-Allow-Credentials: true",
    "access-control-expose-headers: X-Old",
    "X-From: me",
    "Vary: Accept",
)


@pytest.fixture
def by_api(program: Program, house: House) -> Iterator[Program]:
    program.reload(API_RULES)
    house.service.answer = answer(b"{}", *FROM_SERVICE)
    yield program
    program.reload(RULES)


@pytest.mark.parametrize("path", ["/v2/o", "/v3/o"])
def test_cors_of_an_api_replaces_the_cors_fields_of_a_service(by_api: Program, path: str) -> None:
    got = get(by_api, path, f"Origin: {ADMIN}")
    assert (got.status, got.one(ALLOWED)) == (200, ADMIN.encode())
    assert got.one("Access-Control-Allow-Credentials") == b"true"
    names = got.members("Access-Control-Expose-Headers")
    assert {"x-from", "etag", "x-version", "x-request-id"} <= {*names}
    assert "x-old" not in names
    assert ("deprecation" in names) == (path == "/v3/o")
    assert got.members("Vary") == ["accept", "origin"]


@pytest.mark.parametrize(
    "lines",
    [
        (),
        (f"Origin: {APP}",),
        ("Origin: null",),
        ("Origin: https://ADMIN.test",),
        (f"Origin: {ADMIN}:443",),
        (f"Origin: {ADMIN}.evil.test",),
        (f"Origin: {ADMIN}", f"Origin: {ADMIN}"),
        (f"Origin: {ADMIN}, {APP}",),
    ],
)
@pytest.mark.parametrize("path", ["/v3/o", "/v1/o"])
def test_an_origin_that_the_api_does_not_list_gets_no_cors_fields(
    by_api: Program, path: str, lines: tuple[str, ...]
) -> None:
    got = get(by_api, path, *lines)
    names = [name.decode().lower() for name, _ in got.fields]
    assert [name for name in names if name.startswith("access-control-")] == []
    assert "origin" in got.members("Vary")


@pytest.mark.parametrize(
    ("path", "status"),
    [("/v1/o", 410), ("/v5/o", 503), ("/v9/o", 404), ("/v4/o", 502), ("/o", 400)],
)
def test_an_origin_of_the_api_can_read_errors_of_the_gateway(
    by_api: Program, path: str, status: int
) -> None:
    got = get(by_api, path, f"Origin: {ADMIN}")
    assert (got.status, got.one(ALLOWED)) == (status, ADMIN.encode())
    assert got.one("Access-Control-Allow-Credentials") == b"true"
    assert "x-request-id" in got.members("Access-Control-Expose-Headers")
    assert got.members("Vary").count("origin") == 1


@pytest.mark.parametrize("path", ["/o", "/v1/o", "/v3/o", "/v9/o", "/v5/o"])
def test_the_gateway_answers_preflights_of_an_api_with_cors(
    by_api: Program, house: House, path: str
) -> None:
    method = "Access-Control-Request-Method: DELETE"
    names = "Access-Control-Request-Headers: x-from,x-evil"
    got = ask(by_api, "OPTIONS", path, f"Origin: {ADMIN}", method, names)
    assert (got.status, got.body, len(house.service.asked)) == (204, b"", 0)
    assert got.one(ALLOWED) == ADMIN.encode()
    assert got.one("Access-Control-Allow-Credentials") == b"true"
    assert got.one("Access-Control-Allow-Methods") == b"GET, PUT"
    assert got.one("Access-Control-Allow-Headers") == b"X-By, X-From"
    assert got.one("Access-Control-Max-Age") == b"600"
    assert "origin" in got.members("Vary")
    foreign = ask(by_api, "OPTIONS", path, f"Origin: {APP}", method, names)
    assert (foreign.status, len(house.service.asked)) == (204, 0)
    assert not any(name.lower().startswith(b"access-control-") for name, _ in foreign.fields)


def test_access_refuses_no_preflight_and_scripts_can_read_a_401(by_api: Program) -> None:
    method = "Access-Control-Request-Method: GET"
    assert ask(by_api, "OPTIONS", "/guarded", f"Origin: {ADMIN}", method).status == 204
    refused = get(by_api, "/guarded", f"Origin: {ADMIN}")
    assert (refused.status, refused.one(ALLOWED)) == (401, ADMIN.encode())
    assert "www-authenticate" in refused.members("Access-Control-Expose-Headers")
    assert get(by_api, "/guarded", f"Origin: {ADMIN}", "X-Key: sesame").status == 200


def test_an_api_for_all_origins_allows_what_a_preflight_requests(
    by_api: Program, house: House
) -> None:
    method = "Access-Control-Request-Method: PATCH"
    names = "Access-Control-Request-Headers: x-any"
    got = ask(by_api, "OPTIONS", "/open", "Origin: null", method, names)
    assert (got.one(ALLOWED), len(house.service.asked)) == (b"*", 0)
    assert got.one("Access-Control-Allow-Methods") == b"PATCH"
    assert got.one("Access-Control-Allow-Headers") == b"x-any"
    assert got.all("Access-Control-Max-Age") == []
    got = get(by_api, "/open", "Origin: null")
    assert (got.one(ALLOWED), got.members("Vary")) == (b"*", ["accept"])
    assert got.members("Access-Control-Expose-Headers") == ["x-from", "x-request-id"]


def test_options_without_the_fields_of_a_preflight_reaches_the_service(
    by_api: Program, house: House
) -> None:
    got = ask(by_api, "OPTIONS", "/v3/o", f"Origin: {ADMIN}")
    assert (got.status, len(house.service.asked)) == (200, 1)
    assert got.one(ALLOWED) == ADMIN.encode()


def test_cors_at_the_top_applies_to_apis_without_their_own(by_api: Program, house: House) -> None:
    assert get(by_api, "/others", ORIGIN).one(ALLOWED) == b"https://old.test"
    refused = ask(by_api, "PUT", "/others", ORIGIN)
    assert (refused.status, refused.one(ALLOWED)) == (405, APP.encode())
    unknown = get(by_api, "/nowhere", f"Origin: {ADMIN}")
    assert (unknown.status, unknown.all(ALLOWED)) == (404, [])
