"""Messages that other gateways once altered, with the gateway in whose reports they occur.

Version 1 is converted from version 2 (`down`), or nothing is converted (`tail`).
"""

from dataclasses import dataclass

import pytest

from tests.gateway.live.conftest import House
from tests.gateway.live.raw import answer, ask, request, send

NEW = b'{"name":{"firstName":"Bob","lastName":"C"}}'
OLD = b'{"name":"Bob C"}'
JSON = "Content-Type: application/json"


@dataclass(frozen=True)
class Case:
    """A request and the service's response.

    Attributes:
        target: after `GET`, or after the method.
        sent: what the service gets in place of the target and of the body.
        asked: a field that the service gets with exactly this value.
        got: the client's body.
        field: a field that the client gets with exactly this value; None if it must be missing.
    """

    target: str
    lines: tuple[str, ...] = ()
    body: bytes | None = None
    reply: bytes = answer(NEW)
    sent: tuple[str, bytes] | None = None
    asked: tuple[str, bytes] | None = None
    got: bytes | None = None
    field: tuple[str, bytes | None] | None = None


CASES = {
    "a parameter without a value gets no equals sign (Spring Cloud Gateway)": Case(
        "/down/v1?wsdl&a=&&b", sent=("/down/2?wsdl&a=&&b", b"")
    ),
    "a plus and a percent-encoded space stay what they are (Tyk)": Case(
        "/down/v1?q=a+b%20c%2B", sent=("/down/2?q=a+b%20c%2B", b"")
    ),
    "a percent-encoded percent sign stays encoded (YARP)": Case(
        "/tail/a%2520b", sent=("/tail/a%2520b", b"")
    ),
    "a repeated parameter keeps its order (KrakenD)": Case(
        "/down/v1?b=2&a=1&b=1", sent=("/down/2?b=2&a=1&b=1", b"")
    ),
    "a GET request keeps its body (Spring Cloud Gateway)": Case(
        "/down/v1", (JSON,), OLD, sent=("/down/2", NEW)
    ),
    "a DELETE request keeps its body (Kong)": Case(
        "DELETE /down/v1", (JSON,), OLD, sent=("/down/2", NEW)
    ),
    "an empty body of type JSON is no mistake (APISIX)": Case(
        "POST /down/v1", (JSON,), b"", sent=("/down/2", b"")
    ),
    "an empty array stays an array, and an empty object an object (Kong)": Case(
        "POST /down/v1",
        (JSON,),
        b'{"name":"Bob C","a":[],"b":{},"c":[{}],"d":""}',
        sent=("/down/2", NEW[:-1] + b',"a":[],"b":{},"c":[{}],"d":""}'),
    ),
    "a Content-Type that a second proxy has repeated is read (Dapr)": Case(
        "/down/v1", reply=answer(NEW, JSON), got=OLD
    ),
    "a list of equal types is read (Dapr)": Case(
        "POST /down/v1",
        ("Content-Type: application/json, application/json",),
        OLD,
        sent=("/down/2", NEW),
    ),
    "a 204 gets no length (Envoy)": Case(
        "/down/v1",
        reply=b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n",
        got=b"",
        field=("Content-Length", None),
    ),
    "a page of a list keeps its range of items (react-admin)": Case(
        "/down/v1",
        ("Range: items=0-1",),
        reply=answer(b"[%b]" % NEW, "Content-Range: items 0-1/319"),
        asked=("Range", b"items=0-1"),
        got=b"[%b]" % OLD,
        field=("Content-Range", b"items 0-1/319"),
    ),
    "a 206 with a range of items is converted (PostgREST)": Case(
        "/down/v1",
        ("Range-Unit: items", "Range: 0-1"),
        reply=answer(b"[%b]" % NEW, "Content-Range: 0-1/*", status="206 Partial Content"),
        got=b"[%b]" % OLD,
        field=("Accept-Ranges", None),
    ),
    "an alternative service is not passed on (Caddy)": Case(
        "/tail/x", reply=answer(NEW, 'Alt-Svc: h3=":8443"'), field=("Alt-Svc", None)
    ),
    "Refresh leads to the client's version (nginx)": Case(
        "/down/v1",
        reply=answer(b"", "Refresh: 5; URL='/down/2?a=1'"),
        field=("Refresh", b"5; URL='/down/v1?a=1'"),
    ),
    "Refresh without a URL stays (nginx)": Case(
        "/down/v1", reply=answer(b"", "Refresh: 5"), field=("Refresh", b"5")
    ),
    "a redirect to the service's own address leads to the client's host (APISIX)": Case(
        "/down/v1",
        ("Host: shop.test:8443",),
        reply=answer(b"", "Location: http://127.0.0.1:{port}/down/2#x", status="302 Found"),
        field=("Location", b"http://shop.test:8443/down/v1#x"),
    ),
    "a login page elsewhere keeps its URL with that of the service (APISIX)": Case(
        "/down/v1",
        reply=answer(b"", "Location: https://id.test/?next=/down/2", status="302 Found"),
        field=("Location", b"https://id.test/?next=/down/2"),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_message_that_another_gateway_altered_arrives_right(house: House, case: Case) -> None:
    house.service.answer = case.reply.replace(b"{port}", b"%d" % house.service.port)
    method, _, target = case.target.rpartition(" ")
    got = ask(house.gateway, method or "GET", target, *case.lines, body=case.body)
    asked = house.service.last
    if case.sent is not None:
        path, body = case.sent
        assert asked.line == f"{method or 'GET'} {path} HTTP/1.1".encode()
        assert asked.body == body
    if case.asked is not None:
        name, value = case.asked
        assert asked.one(name) == value
    if case.got is not None:
        assert got.body == case.got
    if case.field is not None:
        name, expected = case.field
        assert got.all(name) == ([] if expected is None else [expected])


def test_links_in_early_hints_lead_to_the_clients_version(house: House) -> None:
    """The client would load `/down/2` itself, which the gateway does not serve."""
    hints = b"HTTP/1.1 103 Early Hints\r\nLink: </down/2?a=1>; rel=preload\r\n\r\n"
    house.service.answer = hints + answer(NEW)
    data = send(house.gateway, request("GET", "/down/v1"))
    assert data.startswith(
        b"HTTP/1.1 103 Early Hints\r\nLink: </down/v1?a=1>; rel=preload\r\n\r\nHTTP/1.1 200 OK\r\n"
    )
