"""Every kind of change over sockets: the messages it applies to, and the others."""

import pytest

from tests.gateway.kit import wait_for
from tests.gateway.live.conftest import House
from tests.gateway.live.raw import answer, ask, get

JSON = "Content-Type: application/json"
NEW = (
    b'{"id":12345678901234567890,"state":"PAID","items":[{"amount":1250,"n":1.0},{"amount":-5}],'
    b'"note":"NO \\u00e9","contacts":["a@b"],"x":[ 1e5 ]}'
)
OLD = (
    b'{"id":12345678901234567890,"state":"done","items":[{"price":"12.50","n":1.0},'
    b'{"price":"-0.05"}],"note":"no \xc3\xa9","contact":{"mail":"a@b"},"x":[ 1e5 ]}'
)


def test_a_response_is_converted_by_all_steps_down_to_its_version(house: House) -> None:
    house.service.answer = answer(NEW)
    assert get(house.gateway, "/shop/v1/orders/7").body == OLD
    assert house.service.last.line == b"GET /shop/v3/orders/7?size=20 HTTP/1.1"
    assert get(house.gateway, "/shop/v2/orders").json["contact"] == {"mail": "a@b"}
    assert get(house.gateway, "/shop/v3/orders").body == NEW


def test_a_request_is_converted_by_all_steps_up_to_the_service(house: House) -> None:
    body = OLD.replace(b"12.50", b"12.5")
    assert ask(house.gateway, "PATCH", "/shop/v1/orders/7", JSON, body=body).status == 200
    arrived = house.service.last
    assert arrived.line == b"PATCH /shop/v3/orders/7 HTTP/1.1"
    # The step from 2 to 3 has changes for responses only.
    assert arrived.json == {
        "id": 12345678901234567890,
        "state": "PAID",
        "items": [{"amount": 1250, "n": 1.0}, {"amount": -5}],
        "note": "NO É",
        "contact": {"mail": "a@b"},
        "x": [1e5],
    }
    assert b'"x":[ 1e5 ]' in arrived.body


def test_errors_are_converted_by_their_own_changes(house: House) -> None:
    body = b'{"error":{"detail":"no"},"state":"PAID"}'
    house.service.answer = answer(body, status="404 Not Found")
    got = get(house.gateway, "/shop/v1/orders/7")
    assert (got.status, got.body) == (404, b'{"message":"no","state":"PAID"}')
    house.service.answer = answer(body, status="503 Service Unavailable")
    assert get(house.gateway, "/shop/v1/orders/7").body == body


@pytest.mark.parametrize(
    ("query", "arrives"),
    [
        ("", "?size=20"),
        ("?p=2&q=%41+b", "?page=2&q=%41+b&size=20"),
        ("?sort=asc&size=1&&sort=%64esc", "?sort=ascending&size=1&&sort=descending"),
    ],
)
def test_query_parameters_are_converted_for_the_operations_of_their_changes(
    house: House, query: str, arrives: str
) -> None:
    assert get(house.gateway, f"/shop/v1/orders{query}").status == 200
    assert house.service.last.line == f"GET /shop/v3/orders{arrives} HTTP/1.1".encode()
    assert ask(house.gateway, "DELETE", f"/shop/v1/orders{query}").status == 200
    assert house.service.last.line == f"DELETE /shop/v3/orders{query} HTTP/1.1".encode()


def test_a_query_parameter_without_a_mapping_is_400_and_not_quoted(house: House) -> None:
    got = get(house.gateway, "/shop/v1/orders?sort=secret")
    assert got.refusal() == (400, "unconvertible_request")
    assert "the query parameter 'sort': a value other than asc, desc" in got.problem["detail"]
    assert "secret" not in got.problem["detail"]
    assert not house.service.asked


def test_header_fields_are_renamed_in_both_directions(house: House) -> None:
    house.service.answer = answer(b"{}", "x-total-count: 7", "X-Mode: fast")
    got = get(house.gateway, "/shop/v1/orders", "X-Count: 3", "x-mode: 1")
    assert got.one("X-Count") == b"7"
    assert got.one("X-Mode") == b"1"
    assert house.service.last.one("X-Total-Count") == b"3"
    assert house.service.last.one("X-Mode") == b"fast"


def test_a_header_without_a_mapping_is_400_in_requests_and_502_in_responses(house: House) -> None:
    got = get(house.gateway, "/shop/v1/orders", "X-Mode: 2")
    assert got.refusal() == (400, "unconvertible_request")
    house.service.answer = answer(b"{}", "X-Mode: odd")
    assert get(house.gateway, "/shop/v1/orders").refusal() == (502, "conversion_failed")


def test_a_body_without_changes_is_forwarded_unchanged(house: House) -> None:
    house.service.answer = answer(b" not JSON", "Content-Type: text/plain", 'ETag: "1"')
    got = get(house.gateway, "/shop/v2/export", "Accept-Encoding: br")
    assert (got.status, got.body) == (200, b" not JSON")
    body = b" not JSON"
    assert ask(house.gateway, "POST", "/shop/v1/export", "Content-Type: a/b", body=body).status
    assert house.service.last.body == body


def test_a_number_that_is_too_large_for_a_change_is_502(house: House) -> None:
    for digits in (b"1e99999999999999999999", b"9" * 5000):
        house.service.answer = answer(b'{"note":%b}' % digits)
        assert get(house.gateway, "/shop/v3/orders").body == b'{"note":%b}' % digits
        got = get(house.gateway, "/shop/v1/orders")
        assert got.refusal() == (502, "conversion_failed")
        assert "/note: a number too large" in got.problem["detail"]


@pytest.mark.parametrize(
    ("note", "cause"),
    [
        ("EXIT", "raised SystemExit at house_code.py:"),
        ("CANCEL", "raised CancelledError at house_code.py:"),
        ("TOO MUCH", "raised ValueError at house_code.py:"),
        ("ODD", "returned a value that is not JSON: nan is not a JSON number"),
        ("ODDER", "returned a value that is not JSON: Encoding objects of type object"),
    ],
)
def test_a_failing_python_function_is_502_and_its_message_is_not_shown(
    house: House, note: str, cause: str
) -> None:
    house.service.answer = answer(b'{"note":"%b"}' % note.encode())
    name = note.replace(" ", "")
    got = get(house.gateway, "/shop/v1/orders", f"X-Request-Id: {name}")
    assert got.refusal() == (502, "conversion_failed")
    assert b"SECRET" not in got.body
    assert b"Traceback" not in got.body

    def logged() -> list[str]:
        entries = house.gateway.log("request")
        return [entry["cause"] for entry in entries if entry["request_id"] == name]

    (found,) = wait_for(logged)
    assert f"house_code:whisper {cause}" in found
    assert "SECRET" not in found
