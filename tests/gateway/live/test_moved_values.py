"""Values that are in the body of one version and in the header, path or query of another."""

from urllib.parse import unquote

import pytest

from tests.gateway.live.conftest import House
from tests.gateway.live.raw import answer, ask, get

JSON = "Content-Type: application/json"


def test_a_total_and_a_cursor_move_to_header_fields(house: House) -> None:
    house.service.answer = answer(b'{"data":[{"a":1}],"total":12,"next":"b&"}', "X-Sum: 3")
    got = get(house.gateway, "/moved/v1/items?size=2&cursor=a")
    assert house.service.last.line == b"GET /moved/3/items?size=2&after=a HTTP/1.1"
    assert (got.status, got.body) == (200, b'[{"a":1}]')
    assert got.one("X-Count") == b"12"
    assert got.one("X-Total") == b"3"
    assert got.one("Link") == b'</moved/v1/items?size=2&cursor=b%26>; rel="next"'
    house.service.answer = answer(b'{"data":[],"total":12,"next":null}')
    got = get(house.gateway, "/moved/v1/items")
    assert (got.body, got.all("Link")) == (b"[]", [])


def test_moved_values_are_missing_in_head_and_error_responses(house: House) -> None:
    head = b"HTTP/1.1 200 OK\r\nX-Sum: 3\r\nX-Size: 2\r\nContent-Length: 40\r\n\r\n"
    house.service.answer = head
    got = ask(house.gateway, "HEAD", "/moved/v1/items")
    assert (got.status, got.one("X-Total")) == (200, b"3")
    assert (got.all("X-Count"), got.all("X-Size"), got.body) == ([], [], b"")
    house.service.answer = head.replace(b"X-Size: 2", b"X-Size: two")
    assert ask(house.gateway, "HEAD", "/moved/v1/items").status == 502  # the same status as for GET
    house.service.answer = b"HTTP/1.1 304 Not Modified\r\nX-Sum: 3\r\nVary: Accept\r\n\r\n"
    got = get(house.gateway, "/moved/v1/items", 'If-None-Match: "a"')
    assert (got.status, got.one("X-Total"), got.all("X-Count")) == (304, b"3", [])
    assert "accept" in got.members("Vary")
    house.service.answer = answer(b'{"total":1}', status="404 Not Found")
    got = get(house.gateway, "/moved/v1/items")
    assert (got.status, got.body, got.all("X-Count")) == (404, b'{"total":1}', [])


@pytest.mark.parametrize(
    ("body", "target", "fields", "sent"),
    [
        (b'{"x":1,"dryRun":true}', "?after=b&dry_run=true", (), b'{"x":1}'),
        (b'{"x":1}', "?after=b", ("Idempotency-Key: k1",), b'{"x":1,"key":"k1"}'),
        (b"", "?after=b", ("Idempotency-Key: k1",), b'{"key":"k1"}'),
        (b"", "?after=b", (), b""),
    ],
)
def test_values_move_between_path_query_header_and_body(
    house: House, body: bytes, target: str, fields: tuple[str, ...], sent: bytes
) -> None:
    house.service.answer = answer(b'{"x":1}', "Location: /moved/3/items/7", status="201 Created")
    typed = (JSON, *fields) if body else fields
    got = ask(house.gateway, "POST", "/moved/v1/items?cursor=b", *typed, body=body)
    assert house.service.last.line == f"POST /moved/3/items{target} HTTP/1.1".encode()
    assert house.service.last.body == sent
    assert house.service.last.all("Idempotency-Key") == []
    assert house.service.last.all("Content-Type") == ([b"application/json"] if sent else [])
    assert (got.status, got.body, got.all("Location")) == (201, b'{"x":1,"id":7}', [])


@pytest.mark.parametrize(("method", "body"), [("GET", b""), ("PUT", b'{"a":1}')])
def test_a_parameter_becomes_a_header_field(house: House, method: str, body: bytes) -> None:
    house.service.answer = answer(b'{"data":[]}')
    for query, left, key in (("?api_key=k&x=1", "?x=1", [b"k"]), ("?x=1", "?x=1", [])):
        ask(house.gateway, method, f"/moved/v1/items{query}", *([JSON] if body else []), body=body)
        assert house.service.last.line == f"{method} /moved/3/items{left} HTTP/1.1".encode()
        assert house.service.last.all("X-Key") == key
        assert house.service.last.body == body


def test_a_response_without_a_body_gets_a_body_from_moved_values(house: House) -> None:
    house.service.answer = answer(b"", "Location: http://x/moved/3/items/7", status="201 Created")
    got = ask(house.gateway, "POST", "/moved/v1/items", JSON, body=b"{}")
    assert (got.status, got.body) == (201, b'{"id":7}')
    assert got.one("Content-Type") == b"application/json"
    house.service.answer = answer(b"", status="201 Created")
    got = ask(house.gateway, "POST", "/moved/v1/items", JSON, body=b"{}")
    assert (got.status, got.body) == (201, b"")


def test_a_moved_value_of_the_wrong_type_is_refused(house: House) -> None:
    got = ask(house.gateway, "POST", "/moved/v1/items", JSON, body=b'{"dryRun":1}')
    assert got.refusal() == (400, "unconvertible_request")
    assert got.problem["detail"] == (
        "The request does not fit this version: /dryRun: expected a boolean, found a number."
    )
    house.service.answer = answer(b"{}", "Location: /elsewhere", status="201 Created")
    got = ask(house.gateway, "POST", "/moved/v1/items", JSON, body=b"{}")
    assert got.refusal() == (502, "conversion_failed")


def test_streams_keep_their_header_fields_unchanged(house: House) -> None:
    lines = b'{"a":1,"dryRun":true}\n{"key":"x"}\n'
    house.service.answer = answer(b"{}")
    ask(
        house.gateway,
        "POST",
        "/moved/v1/items?cursor=b",
        "Content-Type: application/x-ndjson",
        "Idempotency-Key: k1",
        body=lines.splitlines(keepends=True)[0],
    )
    assert house.service.last.line == b"POST /moved/3/items?after=b HTTP/1.1"
    assert house.service.last.one("Idempotency-Key") == b"k1"
    assert house.service.last.body == b'{"a":1,"key":"k1"}\n'


def test_a_python_function_gets_the_message(house: House) -> None:
    house.service.answer = answer(b'{"x":1}', "X-A: 1", status="202 Accepted")
    got = ask(house.gateway, "PUT", "/moved/v1/items?cursor=b", JSON, body=b"{}")
    assert got.json["seen"] == ["PUT /moved/v{version}/{rest*}", {"cursor": ["b"]}, 202, "1"]


def test_a_python_function_for_a_parameter_gets_the_message(house: House) -> None:
    house.service.answer = answer(b"", "X-By: it", "X-A: 3", status="202 Accepted")
    got = ask(house.gateway, "DELETE", "/moved/v1/items?by=me&a=1", "X-By: you", "X-A: 7")
    asked = "up DELETE /moved/v{version}/{rest*} /moved/v1/items None 1 7 {}"
    target = unquote(house.service.last.line.decode())
    assert target == f"DELETE /moved/3/items?by=me {asked}&a=1 HTTP/1.1"
    assert house.service.last.one("X-By") == f"you {asked}".encode()
    told = "it down DELETE /moved/v{version}/{rest*} /moved/v1/items 202 1 3 {}"
    assert got.one("X-By") == told.encode()


@pytest.mark.parametrize(
    "text", ["%0d%0aX-Evil:%201", "%0d%0a%0d%0aGET%20/", "%0a", "%00", "%c4%8d"]
)
def test_a_function_result_cannot_inject_a_header_field(house: House, text: str) -> None:
    """A query can contain characters that are invalid in a header field."""
    refused = ask(house.gateway, "DELETE", f"/moved/v1/items?a={text}", "X-By: you")
    assert refused.refusal() == (400, "unconvertible_request")
    assert house.service.asked == []
    house.service.answer = answer(b"", "X-By: it", status="202 Accepted")
    refused = ask(house.gateway, "DELETE", f"/moved/v1/items?a={text}")
    assert refused.refusal() == (502, "conversion_failed")
    assert refused.all("X-Evil") == []


def test_a_body_is_created_from_a_moved_value_but_not_from_a_default(house: House) -> None:
    house.service.answer = answer(b"", status="201 Created")
    ask(house.gateway, "PATCH", "/moved/v1/items", body=b"")
    assert (house.service.last.body, house.service.last.all("Content-Type")) == (b"", [])
    ask(house.gateway, "PATCH", "/moved/v1/items?x=1", "Idempotency-Key: k1", body=b"")
    assert house.service.last.body == b'{"channel":"web","key":"k1"}'
