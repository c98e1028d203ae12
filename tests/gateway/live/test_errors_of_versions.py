"""Errors in the format of a version over sockets: those of the gateway and of services."""

import pytest

from tests.gateway.kit import Program, StartGateway
from tests.gateway.live.conftest import House
from tests.gateway.live.raw import Answer, answer, ask, get

SHAPE = (
    'errors: { body: { error: { code: "{code}", text: "{detail}", http: "{status}" },'
    ' id: "{request_id}", use: "{supportedVersions}" } }'
)
NUMBERS = (
    'body: { errors: [ { code: "{code}", message: "{detail}" } ],'
    ' fields: [ { name: "{field}", at: "{pointer}" } ] },'
    " codes: { method_not_allowed: 4050, conversion_failed: 5020, default: 5000 },"
    ' details: { unconvertible_request: "Refused: {reason}." },'
    " statuses: { unsupported_media_type: 200, version_retired: 404 },"
    " headers: { cache-control: { method_not_allowed: no-cache, default: null }, X-Power: Perl 5 }"
)
RULES = f"""
services: {{ told: {{ targets: ["http://${{TOLD}}"] }} }}
apis:
  a:
    endpoints: [ {{ path: "/v{{version}}/a", version: {{ in: path }}, methods: [GET, POST] }} ]
    versions:
      "1": {{ lifecycle: {{ sunset: 2020-01-01 }}, {SHAPE} }}
      "2": {{ via: "3", {SHAPE} }}
      "3": {{ service: told }}
      "5": {{ via: "3", errors: {{ {NUMBERS} }} }}
      "4": {{ via: "3", errors: {{ content_type: application/problem+json }} }}
    conversions:
      - {{ between: ["1", "2"], changes: [] }}
      - {{ between: ["2", "3"], changes: [ rename: {{ field: a, to: b }} ] }}
      - between: ["2", "3"]
        statuses: [422]
        status: {{ newer: 422, older: 200 }}
      - {{ between: ["3", "4"], changes: [] }}
      - {{ between: ["4", "5"], changes: [ rename: {{ field: c, to: d }} ] }}
"""


@pytest.fixture(scope="module")
def program(module_gateway: StartGateway, shared_house: House) -> Program:
    return module_gateway(RULES, TOLD=shared_house.told)


def refusal(got: Answer) -> tuple[int, str]:
    assert got.one("Content-Type") == b"application/json"
    assert got.one("Cache-Control") == b"no-store"
    error = got.json["error"]
    assert error["http"] == got.status
    assert error["text"]
    return got.status, error["code"]


def test_a_retired_version_is_refused_in_its_own_error_format(program: Program) -> None:
    got = get(program, "/v1/a", "X-Request-Id: an-id")
    assert refusal(got) == (410, "version_retired")
    assert (got.json["id"], got.json["use"]) == ("an-id", ["2", "3", "4", "5"])
    assert list(got.json) == ["error", "id", "use"]
    assert ask(program, "HEAD", "/v1/a").status == 410
    assert refusal(ask(program, "DELETE", "/v1/a")) == (405, "method_not_allowed")


def test_failed_conversions_have_the_error_format_of_the_version(
    program: Program, house: House
) -> None:
    house.service.answer = answer(b"{no JSON")
    got = get(program, "/v2/a")
    assert refusal(got) == (502, "conversion_failed")
    assert "use" not in got.json  # the fault is not about a version
    lines = "Content-Type: application/json", "Content-Length: 1"
    assert refusal(ask(program, "POST", "/v2/a", *lines, body=b"{")) == (
        400,
        "unconvertible_request",
    )


def test_gateway_error_codes_have_the_numbers_of_the_version(
    program: Program, house: House
) -> None:
    house.service.answer = answer(b"{no JSON")
    for method, status, code in (("GET", 502, 5020), ("PUT", 405, 4050)):
        got = ask(program, method, "/v5/a")
        assert got.status == status
        (error,) = got.json["errors"]
        assert (error["code"], list(error)) == (code, ["code", "message"])
        assert got.all("Cache-Control") == ([b"no-cache"] if code == 4050 else [])
        assert got.one("X-Power") == b"Perl 5"
    assert got.one("Allow") == b"GET, HEAD, POST, OPTIONS"
    got = ask(program, "POST", "/v5/a", "Content-Type: text/plain", "Content-Length: 1", body=b"x")
    assert (got.status, got.json["errors"][0]["code"]) == (200, 5000)  # one of `statuses`


def test_the_refused_field_is_named_in_the_error_format(program: Program) -> None:
    lines = "Content-Type: application/json", "Content-Length: 13"
    got = ask(program, "POST", "/v5/a", *lines, body=b'{"n": {"m":1}')
    assert got.json["errors"][0]["message"].startswith("The request does not fit")
    assert [*got.json] == ["errors"]
    got = ask(program, "POST", "/v5/a", *lines, body=b'{"c":2,"d":1}')
    assert got.json == {
        "errors": [{"code": 5000, "message": "Refused: already exists, and /c would become it."}],
        "fields": [{"name": "d", "at": "/d"}],
    }


def test_errors_before_a_version_is_known_are_problem_details(program: Program) -> None:
    for target in ("/v9/a", "/nowhere"):
        got = get(program, target)
        assert (got.status, got.one("Content-Type")) == (404, b"application/problem+json")
    assert get(program, "/v3/a", "Expect: magic").one("Content-Type") == b"application/problem+json"


@pytest.mark.parametrize(
    ("target", "sent", "got"),
    [
        ("/v2/a", "application/problem+json", b"application/json"),
        ("/v4/a", "application/json; charset=utf-8", b"application/problem+json"),
        ("/v4/a", "text/html", b"text/html"),
        ("/v3/a", "application/problem+json", b"application/problem+json"),
    ],
)
def test_errors_of_services_keep_their_media_type_unless_they_are_converted(
    program: Program, house: House, target: str, sent: str, got: bytes
) -> None:
    house.service.answer = answer(b'{"a":1}', status="409 Taken", content_type=sent)
    assert get(program, target).one("Content-Type") == got
    house.service.answer = answer(b'{"a":1}', content_type="application/json")
    assert get(program, target).one("Content-Type") == b"application/json"


def test_an_error_status_can_become_a_success_status(program: Program, house: House) -> None:
    problem = answer(b'{"x":1}', status="422 No", content_type="application/problem+json")
    house.service.answer = problem
    got = get(program, "/v2/a")
    assert (got.status, got.one("Content-Type")) == (200, b"application/json")
    got = get(program, "/v4/a")
    assert (got.status, got.one("Content-Type")) == (422, b"application/problem+json")


OF_API = """
services: {{ told: {{ targets: ["http://127.0.0.1:{port}"] }} }}
clients: {{ by: [ {{ api_key: {{ header: X-Key, keys: {{ acme: {key} }} }} }} ] }}
apis:
  shop:
    access: {{}}
    errors:
      body: {{ error: {{ type: "{{code}}", message: "{{detail}}" }} }}
      codes: {{ version_unknown: 41, not_found: 40, default: 4 }}
      statuses: {{ version_missing: 422 }}
      headers: {{ X-Shop: "yes" }}
    endpoints:
      - {{ path: "/shop/orders", version: {{ in: header, name: V }}, methods: [GET] }}
      - {{ path: "/v{{version}}/orders", version: {{ in: path }} }}
      - {{ path: "/common/a/orders", version: {{ in: header, name: V }} }}
    versions:
      "1": {{ via: "2" }}
      "2": {{ service: told, errors: {{ body: {{ own: "{{code}}" }} }} }}
    conversions: [ {{ between: ["1", "2"], changes: [] }} ]
{other}
"""
OTHER = """
  news: { service: told, endpoints: [ { path: "/news/{id}" }, { path: "/common/b" } ] }
"""


@pytest.mark.parametrize(
    ("method", "target", "line", "status", "type_"),
    [
        ("GET", "/shop/orders", "V: 9", 400, 41),
        ("GET", "/shop/orders", "A: b", 422, 4),
        ("GET", "/shop/orders", "V: !", 400, 4),
        ("GET", "/v9/orders", "A: b", 404, 41),
        ("POST", "/shop/orders", "A: b", 405, 4),
        ("GET", "/shop/orders", "V: 1", 401, 4),
        ("GET", "/shop/orders", "V: 2", 401, None),
        ("GET", "/shop/nothing", "A: b", 404, 40),
        ("GET", "/shop", "A: b", 404, 40),
        ("GET", "/v1/orders/7", "A: b", 404, 40),
        ("GET", "/common/a", "A: b", 404, 40),
        ("GET", "/common", "A: b", 404, ""),
        ("GET", "/news/1/2", "A: b", 404, ""),
        ("GET", "/nowhere", "A: b", 404, ""),
    ],
)
def test_errors_before_a_version_is_known_have_the_format_of_the_api(
    reloaded: StartGateway,
    house: House,
    method: str,
    target: str,
    line: str,
    status: int,
    type_: int | str | None,
) -> None:
    """`type_` is empty for a problem detail, and None for the format of version 2."""
    given = {"port": house.service.port, "key": "k" * 32}
    program = reloaded(OF_API.format(other=OTHER, **given))
    got = ask(program, method, target, line)
    assert got.status == status
    if type_ == "":
        assert got.one("Content-Type") == b"application/problem+json"
    elif type_ is None:
        assert [*got.json] == ["own"]
    else:
        assert got.one("Content-Type") == b"application/json"
        assert got.json["error"]["type"] == type_
        assert got.one("X-Shop") == b"yes"
        head = ask(program, "HEAD", target, line) if method == "GET" else got
        assert (head.status, head.one("X-Shop")) == (status, b"yes")
        assert method != "GET" or head.body == b""


def test_the_only_api_of_a_file_has_its_format_for_every_error(
    reloaded: StartGateway, house: House
) -> None:
    program = reloaded(OF_API.format(other="", port=house.service.port, key="k" * 32))
    assert get(program, "/nowhere").json["error"]["type"] == 40
    malformed = get(program, "/shop/orders", "Content-Length: x")
    assert (malformed.status, malformed.json["error"]["type"]) == (400, 4)


def test_an_api_without_versions_has_its_own_error_format(
    reloaded: StartGateway, house: House
) -> None:
    errors = '{ body: { own: "{code}" }, codes: { method_not_allowed: 5, default: 6 } }'
    program = reloaded(
        f"services: {{ told: {{ targets: ['http://127.0.0.1:{house.service.port}'] }} }}\n"
        f"apis: {{ a: {{ service: told, errors: {errors}, endpoints: [ {{ path: /a,"
        " methods: [GET] } ] } }"
    )
    assert ask(program, "DELETE", "/a").json == {"own": 5}
    assert get(program, "/b").json == {"own": 6}
