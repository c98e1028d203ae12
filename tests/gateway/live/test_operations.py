"""Operations that differ between versions, over sockets: method, path, query and status."""

import json

import pytest

from tests.gateway.kit import StartGateway
from tests.gateway.live.conftest import House
from tests.gateway.live.raw import answer, ask, chunked, get

JSON = "Content-Type: application/json"


@pytest.mark.parametrize(
    ("asked", "arrives"),
    [
        ("POST /hotel/v1/booking/create", "POST /bookings"),
        ("HEAD /hotel/v1/booking/find?id=7", "HEAD /hotel/bookings/7"),
        (
            "GET /hotel/v1/booking/find?a=1&id=a%2Fb+c&with=x",
            "GET /hotel/bookings/a%2Fb%20c?a=1&expand=x",
        ),
        ("GET /hotel/v1/booking/find?id=7&id=8", "GET /booking/find?id=7&id=8"),
        ("POST /hotel/v1/booking/7/cancel", "DELETE /hotel/bookings/7"),
        ("POST /hotel/v1/rpc?id=7&do=drop", "DELETE /hotel/bookings/7/rooms"),
        ("GET /hotel/v1/booking/stats?x=1", "GET /booking/stats?x=1"),
        ("GET /hotel/v3/bookings/7", "GET /bookings/7"),
        ("POST /hotel/v4/stays/7", "PUT /hotel/bookings/7"),
    ],
)
def test_an_operation_of_the_old_version_reaches_its_new_path(
    house: House, asked: str, arrives: str
) -> None:
    method, _, target = asked.partition(" ")
    assert ask(house.gateway, method, target).status < 300
    assert house.service.last.line == f"{arrives} HTTP/1.1".encode()


def test_a_moved_operation_is_converted_with_its_status(house: House) -> None:
    house.service.answer = answer(b'{"guest_name":"Ada"}', status="201 Created")
    got = ask(house.gateway, "POST", "/hotel/v1/booking/create", JSON, body=b'{"name":"Ada"}')
    assert (got.status, got.body) == (200, b'{"name":"Ada"}')
    assert got.line == b"HTTP/1.1 200 OK"
    assert house.service.last.body == b'{"guest_name":"Ada"}'
    assert ask(house.gateway, "POST", "/hotel/v2/bookings", JSON, body=b"{}").status == 201


def test_statuses_of_moved_operations_are_converted_with_their_bodies(house: House) -> None:
    house.service.answer = answer(b'{"guest_name":"too long"}', status="422 Unprocessable Entity")
    got = ask(house.gateway, "POST", "/hotel/v1/booking/create", JSON, body=b"{}")
    assert (got.status, got.body) == (400, b'{"guest":"too long"}')
    house.service.answer = answer(b'{"guest_name":"Ada"}')
    got = ask(house.gateway, "POST", "/hotel/v4/stays/7", JSON, body=b'{"who":"Ada"}')
    assert (got.status, got.body) == (202, b'{"who":"Ada"}')
    assert house.service.last.body == b'{"guest_name":"Ada"}'


def test_moved_operations_create_and_remove_response_bodies(house: House) -> None:
    house.service.answer = b"HTTP/1.1 204 No Content\r\n\r\n"
    got = ask(house.gateway, "POST", "/hotel/v1/booking/7/cancel")
    assert (got.status, got.json) == (200, {"result": "cancelled"})
    assert got.one("Content-Type") == b"application/json"
    got = ask(house.gateway, "POST", "/hotel/v1/booking/7/end")
    assert (got.status, got.json) == (200, {"result": "ended"})
    assert got.one("Content-Type") == b"application/json; charset=utf-8"
    assert ask(house.gateway, "DELETE", "/hotel/v2/bookings/7").status == 204
    house.service.answer = answer(b'{"x":1}')
    got = ask(house.gateway, "POST", "/hotel/v1/rpc?do=drop&id=7")
    assert (got.status, got.body, got.all("Content-Type")) == (204, b"", [])


def test_a_put_converted_to_patch_changes_only_its_own_fields(house: House) -> None:
    house.service.answer = answer(b'{"guest_name":"Ada","channel":"desk"}')
    got = ask(house.gateway, "PUT", "/hotel/v1/booking/7", JSON, body=b'{"name":"Ada"}')
    assert got.json == {"name": "Ada"}
    assert house.service.last.body == b'{"guest_name":"Ada"}'


NONE: tuple[str, ...] = ()


@pytest.mark.parametrize(
    ("asked", "fields", "sent", "arrives", "body"),
    [
        ("POST 1/booking/7/close", NONE, b"", "POST bookings/7/closings", b'{"reason":"none"}'),
        (
            "POST 1/booking/7/close",
            ("Content-Length: 0", "Content-Type: text/plain", "Idempotency-Key: k"),
            b"",
            "POST bookings/7/closings",
            b'{"reason":"none","key":"k"}',
        ),
        (
            "POST 1/booking/7/close",
            ("Transfer-Encoding: chunked",),
            chunked(),
            "POST bookings/7/closings",
            b'{"reason":"none"}',
        ),
        (
            "POST 1/booking/7/close",
            (JSON,),
            b'{"reason":"rain"}',
            "POST bookings/7/closings",
            b'{"reason":"rain"}',
        ),
        # A created body has all fields, even in a patch.
        ("PUT 1/booking/7/open", NONE, b"", "PATCH bookings/7/state", b'{"guest_name":"nobody"}'),
        (
            "PUT 1/booking/7/open",
            ("Transfer-Encoding: chunked",),
            chunked(),
            "PATCH bookings/7/state",
            b'{"guest_name":"nobody"}',
        ),
        ("POST 1/booking/7/clear", (JSON,), b'{"all":true}', "DELETE bookings/7/notes", b""),
        (
            "POST 1/booking/7/clear",
            (JSON,),
            b'{"all":true,"x":1}',
            "DELETE bookings/7/notes",
            b'{"x":1}',
        ),
        ("POST 4/stays/7/endings", (JSON,), b'{"reason":"x"}', "POST bookings/7/end", b""),
    ],
)
def test_a_body_that_only_one_version_has_is_added_or_removed(
    house: House, asked: str, fields: tuple[str, ...], sent: bytes, arrives: str, body: bytes
) -> None:
    method, _, path = asked.partition(" ")
    assert ask(house.gateway, method, f"/hotel/v{path}", *fields, body=sent).status == 200
    method, _, path = arrives.partition(" ")
    got = house.service.last
    assert got.line == f"{method} /hotel/{path} HTTP/1.1".encode()
    assert got.body == body
    assert got.all("Content-Type") == ([b"application/json"] if body else [])
    assert got.all("Content-Length") == ([b"%d" % len(body)] if body else [])
    assert got.all("Transfer-Encoding") == []
    assert got.all("Idempotency-Key") == []


def test_a_created_body_has_matching_header_fields(house: House) -> None:
    ask(house.gateway, "PUT", "/hotel/v1/booking/7/open", "X-From: Ada", "Expect: 100-continue")
    assert house.service.last.one("X-By") == b"Ada"
    assert house.service.last.body == b'{"guest_name":"nobody"}'


def test_an_operation_that_the_service_version_lacks_is_refused(house: House) -> None:
    got = ask(house.gateway, "POST", "/hotel/v1/booking/fax")
    problem = json.loads(got.body)
    assert (got.status, problem["code"]) == (410, "NO_FAX")
    assert problem["detail"] == "There is no fax machine any more."
    assert get(house.gateway, "/hotel/v4/stays").refusal() == (404, "operation_missing")
    assert get(house.gateway, "/hotel/v1/offers").refusal() == (404, "operation_missing")
    assert get(house.gateway, "/hotel/v2/offers").status == 200
    house.service.answer = answer(b'{"guest_name":"x","name":"y"}')
    got = get(house.gateway, "/hotel/v1/booking/stats")
    assert got.body == b'{"guest_name":"x","name":"y"}'


@pytest.mark.parametrize(
    ("written", "arrives"),
    [
        ("/hotel/bookings/7", "/hotel/v1/booking/find?id=7"),
        ("/hotel/bookings/7?expand=x", "/hotel/v1/booking/find?id=7&with=x"),
        ("/hotel/bookings/7/rooms?x", "/hotel/v1/rpc?do=drop&id=7&x"),
        ("/other", "/hotel/v1/other"),
    ],
)
def test_location_has_the_operation_path_of_the_client(
    house: House, written: str, arrives: str
) -> None:
    house.service.answer = answer(b"{}", f"Location: {written}", status="201 Created")
    got = ask(house.gateway, "POST", "/hotel/v1/booking/create", JSON, body=b"{}")
    assert got.one("Location") == arrives.encode()


def test_the_methods_of_a_405_are_those_of_the_version(house: House) -> None:
    house.service.answer = answer(b"", "Allow: GET, PATCH", status="405 Method Not Allowed")
    got = ask(house.gateway, "PUT", "/hotel/v1/booking/7", JSON, body=b"{}")
    assert (got.status, got.members("Allow")) == (405, ["put"])
    house.service.answer = answer(b"", "Allow: PATCH,OPTIONS,GET", status="405 Method Not Allowed")
    got = ask(house.gateway, "PUT", "/hotel/v1/booking/7", JSON, body=b"{}")
    assert got.one("Allow") == b"PUT, OPTIONS"


@pytest.mark.parametrize(
    ("asked", "status", "allow"),
    [
        ("GET /hotel/v1/booking/7/cancel", 405, [b"POST"]),
        ("HEAD /hotel/v1/booking/7/cancel", 405, [b"POST"]),
        ("DELETE /hotel/v4/stays/7/endings", 405, [b"POST"]),
        # It is unknown whether the service still has a booking under the older path.
        ("GET /hotel/v1/booking/7", 404, []),
        ("POST /hotel/v1/booking/7/cancel", 404, []),  # a booking with this number does not exist
        ("GET /hotel/v1/booking/stats/none", 404, []),
        ("GET /hotel/v3/booking/7/cancel", 404, []),
    ],
)
def test_a_method_that_the_version_lacks_is_refused(
    house: House, asked: str, status: int, allow: list[bytes]
) -> None:
    """The service would respond with 404, since the operation has another path there."""
    house.service.answer = answer(b"{}", status="404 Not Found")
    got = ask(house.gateway, *asked.split())
    assert (got.status, got.all("Allow")) == (status, allow)
    if status == 405 and not asked.startswith("HEAD"):
        assert got.refusal() == (405, "method_not_allowed")


@pytest.mark.parametrize(
    ("asked", "status", "allow"),
    [
        ("GET /lodge/v1/book", 405, b"POST, OPTIONS"),  # the endpoint does not list PUT
        ("GET /lodge/v1/fax", 405, b"OPTIONS"),
        # The newer version refuses all operations of this path.
        ("GET /lodge/v1/rooms/7", 405, b"POST, OPTIONS"),
        ("PUT /lodge/v1/book", 405, b"GET, HEAD, POST, OPTIONS"),
        ("OPTIONS /lodge/v1/book", 204, b"GET, HEAD, POST, OPTIONS"),
    ],
)
def test_allow_includes_options_if_the_gateway_answers_it(
    house: House, asked: str, status: int, allow: bytes
) -> None:
    """Allow lists the methods of the resource for that client (RFC 9110, section 10.2.1)."""
    house.service.answer = answer(b"{}", status="404 Not Found")
    got = ask(house.gateway, *asked.split())
    assert (got.status, got.one("Allow")) == (status, allow)


@pytest.mark.parametrize("allowed", ["DELETE, GET", "DELETE"])
def test_a_preflight_uses_the_method_of_the_converted_operation(house: House, allowed: str) -> None:
    named = f"Access-Control-Allow-Methods: {allowed}"
    house.service.answer = f"HTTP/1.1 204 No Content\r\n{named}\r\n\r\n".encode()
    asked = "Access-Control-Request-Method: POST"
    got = ask(house.gateway, "OPTIONS", "/hotel/v1/booking/7/cancel", asked)
    assert (got.status, got.members("Access-Control-Allow-Methods")) == (204, ["post"])
    assert house.service.last.line == b"OPTIONS /hotel/bookings/7 HTTP/1.1"
    assert house.service.last.one("Access-Control-Request-Method") == b"DELETE"


def test_a_preflight_for_any_method_is_forwarded(house: House) -> None:
    house.service.answer = b"HTTP/1.1 204 No Content\r\nAccess-Control-Allow-Methods: *\r\n\r\n"
    got = ask(house.gateway, "OPTIONS", "/hotel/v1/booking/7")
    assert got.one("Access-Control-Allow-Methods") == b"*"
    assert house.service.last.line == b"OPTIONS /hotel/bookings/7 HTTP/1.1"


@pytest.mark.parametrize("to_query", ["", ", { to_query: { field: id, parameter: id } }"])
@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_a_created_body_is_a_form_if_header_changes_set_this_type(
    reloaded: StartGateway, house: House, method: str, to_query: str
) -> None:
    program = reloaded(CREATED.format(port=house.service.port, method=method, to_query=to_query))
    ask(program, method, "/v1/next?id=7&x=1")
    query, field = ("?x=1", b"&id=7") if to_query else ("?id=7&x=1", b"")
    assert house.service.last.line == f"POST /v2/previews{query} HTTP/1.1".encode()
    assert house.service.last.all("Content-Type") == [b"application/x-www-form-urlencoded"]
    assert house.service.last.body == b"draft=yes" + field


CREATED = """
services: {{ s: {{ targets: ["http://127.0.0.1:{port}"] }} }}
apis:
  a:
    endpoints: [ {{ path: "/v{{version}}/{{rest*}}", version: {{ in: path }} }} ]
    versions: {{ "1": {{ via: "2" }}, "2": {{ service: s }} }}
    conversions:
      - between: ["1", "2"]
        operations:
          - newer: "POST /v{{version}}/previews"
            older: "{method} /v{{version}}/next"
            request_body: newer
        headers:
          - default: {{ field: Content-Type, value: application/x-www-form-urlencoded, keep: true }}
        changes: [ {{ default: {{ field: draft, value: "yes" }} }}{to_query} ]
"""


@pytest.mark.parametrize("moved", ["", ", { to_header: { field: id, header: X-Id } }"])
def test_a_response_body_is_dropped_if_an_intermediate_version_has_none(
    reloaded: StartGateway, house: House, moved: str
) -> None:
    program = reloaded(EMPTIED.format(port=house.service.port, moved=moved))
    new = "X-New: 1"
    house.service.answer = answer(b'{"title":"Dune","id":7}', new, status="201 Created")
    got = ask(program, "POST", "/v2/things", JSON, body=b"{}")
    assert (got.status, got.body, got.one("X-Mid")) == (204, b"", b"1")
    got = ask(program, "POST", "/v1/things", JSON, body=b"{}")
    assert (got.status, got.json, got.one("X-Old")) == (200, {"ok": True}, b"1")
    got = ask(program, "PUT", "/v1/things", JSON, body=b"{}")
    assert (got.status, got.body, got.one("X-Old")) == (200, b"", b"1")
    assert got.all("Content-Type") == []
    got = ask(program, "HEAD", "/v1/things")
    assert got.status == 201


EMPTIED = """
services: {{ s: {{ targets: ["http://127.0.0.1:{port}"] }} }}
apis:
  a:
    endpoints: [ {{ path: "/v{{version}}/things", version: {{ in: path }} }} ]
    versions: {{ "1": {{ via: "3" }}, "2": {{ via: "3" }}, "3": {{ service: s }} }}
    conversions:
      - between: ["2", "3"]
        methods: [POST, PUT]
        status: {{ newer: 201, older: 204 }}
        changes: [ {{ rename: {{ field: title, to: name }} }}{moved} ]
        headers: [ {{ rename: {{ field: X-New, to: X-Mid }} }} ]
      - between: ["1", "2"]
        methods: [POST, PUT]
        status: {{ newer: 204, older: 200 }}
        headers: [ {{ rename: {{ field: X-Mid, to: X-Old }} }} ]
      - between: ["1", "2"]
        methods: [POST]
        on: responses
        changes: [ {{ remove: {{ field: ok, value: true }} }} ]
"""
