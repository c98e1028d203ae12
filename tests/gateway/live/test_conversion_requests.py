"""Converting requests, over sockets: a client of one version writes to a backend of another."""

import gzip
import socket
import zlib

import brotli
import pytest
from backports import zstd

from tests.gateway.kit import DEADLINE
from tests.gateway.live.conftest import House
from tests.gateway.live.raw import answer, ask, chunked, parse_answer, request, send

LIMIT = 65536  # limits.convert of house.yaml
JSON = "Content-Type: application/json"

BOB_1 = b'{"name":"Bob Charlie"}'
BOB_2 = b'{"name":{"firstName":"Bob","lastName":"Charlie"}}'

CONVERTED = {
    "version 1 to 2": ("/down/v1", BOB_1, BOB_2),
    "white space and the rest": (
        "/down/v1",
        b' { "id": 1.50, "name" :"Bob Charlie Jr." ,"x":[ 1e5 , "\\u00e9" ]} ',
        b'{"id":1.50,"name":{"firstName":"Bob","lastName":"Charlie Jr."},"x":[ 1e5 , "\\u00e9" ]}',
    ),
    "array": ("/down/v1", b'[{"name":"Bob Charlie"}, {}]', b"[" + BOB_2 + b",{}]"),
    "version 2 to 1": (
        "/up/v2",
        b'{"name":{"firstName":"Bob","lastName":"Charlie"},"contact":{"phone":1},"n":1.0}',
        b'{"name":"Charlie, Bob","n":1.0}',
    ),
    "native 1": ("/up/v1", b" {broken", b" {broken"),
    "native 2": ("/down/v2", b'{"name":"Bob Charlie" }', b'{"name":"Bob Charlie" }'),
}


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
@pytest.mark.parametrize(("path", "sent", "arrives"), CONVERTED.values(), ids=CONVERTED)
def test_a_request_body_is_converted_with_its_length(
    house: House, method: str, path: str, sent: bytes, arrives: bytes
) -> None:
    house.service.answer = answer(b"{}", status="201 Created")
    assert ask(house.gateway, method, path, JSON, body=sent).status == 201
    asked = house.service.last
    assert asked.line.startswith(method.encode())
    assert asked.body == arrives
    assert asked.one("Content-Length") == b"%d" % len(arrives)
    assert asked.one("Content-Type") == b"application/json"


@pytest.mark.parametrize("lines", [[], [JSON], ["Content-Type: text/plain"]], ids=str)
def test_an_empty_chunked_body_is_not_converted(house: House, lines: list[str]) -> None:
    """Without Content-Length, only the last chunk shows that the body is empty."""
    fields = ("Transfer-Encoding: chunked", *lines)
    assert ask(house.gateway, "POST", "/down/v1", *fields, body=chunked()).status == 200
    assert house.service.last.body == b""


def test_a_body_that_the_service_echoes_returns_unchanged(house: House) -> None:
    house.service.answer = lambda message: answer(message.body, status="201 Created")
    got = ask(house.gateway, "POST", "/down/v1", JSON, body=BOB_1)
    assert (got.status, got.body) == (201, BOB_1)
    assert house.service.last.body == BOB_2


@pytest.mark.parametrize(
    ("body", "coding"),
    [
        (gzip.compress(BOB_1), "gzip"),
        (zlib.compress(BOB_1), "deflate"),
        (brotli.compress(BOB_1), "br"),
        (zstd.compress(BOB_1), "zstd"),
        (brotli.compress(gzip.compress(BOB_1)), "gzip, br"),
    ],
    ids=["gzip", "deflate", "br", "zstd", "gzip, br"],
)
def test_a_compressed_request_is_converted_and_sent_plain(
    house: House, body: bytes, coding: str
) -> None:
    lines = [JSON, f"Content-Encoding: {coding}", "Content-Digest: x", "Content-MD5: x"]
    assert ask(house.gateway, "POST", "/down/v1", *lines, body=body).status == 200
    asked = house.service.last
    assert asked.body == BOB_2
    for name in ("Content-Encoding", "Content-Digest", "Content-MD5", "Transfer-Encoding"):
        assert asked.all(name) == []


@pytest.mark.parametrize(
    "framed",
    [
        chunked(BOB_1),
        chunked(*(BOB_1[i : i + 1] for i in range(len(BOB_1)))),
        chunked(BOB_1)[:-2] + b"X-T: 1\r\n\r\n",
    ],
    ids=["one chunk", "many chunks", "a trailer"],
)
def test_a_chunked_request_is_converted_and_gets_a_length(house: House, framed: bytes) -> None:
    got = ask(house.gateway, "POST", "/down/v1", JSON, "Transfer-Encoding: chunked", body=framed)
    assert got.status == 200
    assert house.service.last.body == BOB_2
    assert house.service.last.one("Content-Length") == b"%d" % len(BOB_2)
    assert house.service.last.all("Transfer-Encoding") == []


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_a_request_without_a_body_stays_without_one(house: House, method: str) -> None:
    assert ask(house.gateway, method, "/down/v1").status == 200
    assert house.service.last.body == b""
    assert ask(house.gateway, method, "/down/v1", "Content-Length: 0").status == 200
    assert house.service.last.one("Content-Length") == b"0"


LARGE = b'{"a":"%b"}' % (b"x" * LIMIT)
GZIP = "Content-Encoding: gzip"
CHUNKED = "Transfer-Encoding: chunked"
REFUSED = {
    "no type": (b"Bob", [], 415),
    "a form": (b"name=Bob", ["Content-Type: application/x-www-form-urlencoded"], 400),
    "two types": (BOB_1, [JSON, JSON], 400),
    "unknown coding": (BOB_1, [JSON, "Content-Encoding: compress"], 415),
    "too many codings": (BOB_1, [JSON, f"Content-Encoding: {'gzip, ' * 100}gzip"], 415),
    "not in the coding": (BOB_1, [JSON, GZIP], 415),
    "coding breaks off": (gzip.compress(BOB_1)[:-1], [JSON, GZIP], 415),
    "costly members": (gzip.compress(b"") * 3000, [JSON, GZIP], 415),
    "malformed": (b'{"name":', [JSON], 400),
    "white space": (b" ", [JSON], 400),
    "something behind": (BOB_1 + b"x", [JSON], 400),
    "odd UTF-8": (b'{"a":"\xff"}', [JSON], 400),
    "name is a number": (b'{"name":7}', [JSON], 400),
    "already version 2": (BOB_2, [JSON], 400),
    "one of many": (b"[" + BOB_1 + b"," + BOB_2 + b"]", [JSON], 400),
    "deep": (b'{"a":' + b"[" * 20_000 + b"]" * 20_000 + b"}", [JSON], 400),
    "deep arrays": (b"[" * 30_000 + b"]" * 30_000, [JSON], 400),
    "too large": (LARGE, [JSON], 413),
    "too large, in chunks": (chunked(LARGE[:9], LARGE[9:]), [JSON, CHUNKED], 413),
    "bomb": (gzip.compress(LARGE), [JSON, GZIP], 413),
    "bad chunk": (b"3\r\nabc\r\nx\r\n\r\n", [JSON, CHUNKED], 400),
}
CODES = {
    400: {"unconvertible_request", "bad_request"},
    413: {"body_too_large"},
    415: {"unsupported_media_type"},
}


@pytest.mark.parametrize(("body", "lines", "status"), REFUSED.values(), ids=REFUSED)
def test_a_request_that_cannot_be_converted_never_reaches_the_service(
    house: House, body: bytes, lines: list[str], status: int
) -> None:
    got = ask(house.gateway, "POST", "/down/v1", *lines, body=body)
    assert got.status == status
    assert got.problem["code"] in CODES[status]
    assert "Bob" not in got.problem["detail"]
    assert house.service.asked == []


def test_a_refusal_names_the_location_of_the_value(house: House) -> None:
    body = b'[{"name":"a"},{"name":7}]'
    got = ask(house.gateway, "POST", "/down/v1", JSON, body=body)
    assert "/1/name: expected a string, found a number" in got.problem["detail"]


def test_an_incomplete_body_does_not_reach_the_service(house: House) -> None:
    whole = request("POST", "/down/v1", JSON, "Content-Length: 100", body=BOB_1)
    with socket.create_connection(("127.0.0.1", house.gateway.port), DEADLINE) as connection:
        connection.sendall(whole)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(65536):
            pass
    assert house.service.asked == []


class TestExpectContinue:
    """The gateway needs the body, so the gateway itself sends 100 Continue."""

    LINES = (JSON, "Expect: 100-Continue")

    def test_a_client_that_expects_100_continue_gets_it_before_its_body(self, house: House) -> None:
        head, _, body = request("POST", "/down/v1", *self.LINES, body=BOB_1).partition(b"\r\n\r\n")
        with socket.create_connection(("127.0.0.1", house.gateway.port), DEADLINE) as connection:
            connection.sendall(head + b"\r\n\r\n")
            assert connection.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
            connection.sendall(body)
            data = b""
            while piece := connection.recv(65536):
                data += piece
        assert parse_answer(data).status == 200
        assert house.service.last.body == BOB_2
        assert house.service.last.all("Expect") == []

    def test_clients_of_http_1_0_get_no_100_continue(self, house: House) -> None:
        sent = request("POST", "/down/v1", *self.LINES, body=BOB_1).replace(b"1.1", b"1.0", 1)
        got = parse_answer(send(house.gateway, sent))
        assert (got.status, got.interim) == (200, ())
        assert house.service.last.body == BOB_2
