"""Hop-by-hop fields are not forwarded, and everything else is forwarded byte for byte."""

import re

import pytest

from tests.gateway.kit import Program, Scripted, StartUpstream
from tests.gateway.live.conftest import House
from tests.gateway.live.raw import Message, answer, ask, get, parse_answer, send
from tests.gateway.talk import OK, Reader, Writer, connect
from tests.gateway.talk import ask as asking

# Hop-by-hop fields in unusual case and with white space; X-Kept must be forwarded in between.
ONE_HOP = [
    *("cOnnection: keep-alive ,\tX-Named\t, ,x-other", "X-Named: a", "x-oTHER: b"),
    *("KEEP-ALIVE: timeout=5, max=1", "proxy-CONNECTION: close", "X-Kept: c"),
    *("Proxy-Authenticate: Basic", "Proxy-Authorization: Basic x", "te: trailers, gzip;q=0.5"),
    *("TE:", "tRAILER: X-T, X-U", "Upgrade: h2c, x/1", "Connection:", "Connection: x-kept-not"),
    "X-Kept-Not: d",
]


def named(message: Message) -> list[bytes]:
    ours = (b"x-forwarded", b"x-request")
    names = [name.lower() for name, _ in message.fields]
    return [name for name in names if name.startswith(b"x-") and not name.startswith(ours)]


OF_ONE_HOP = {
    *("connection", "keep-alive", "proxy-connection", "proxy-authenticate", "proxy-authorization"),
    *("te", "trailer", "upgrade", "transfer-encoding"),
}


@pytest.mark.parametrize("target", ["/plain", "/native/v1", "/down/v1"])
def test_hop_by_hop_fields_are_not_forwarded(target: str, house: House) -> None:
    house.service.answer = answer(b"{}", *ONE_HOP)
    got = get(house.gateway, target, *ONE_HOP)
    assert got.status == 200
    for message in (house.service.last, got):
        assert named(message) == [b"x-kept"]
        names = {name.lower().decode() for name, _ in message.fields}
        assert names & OF_ONE_HOP <= ({"connection"} if message is got else set())
    assert got.all("Connection") == [b"close"]


@pytest.mark.parametrize("name", ["Via", "Date", "Content-Length", "X-Request-Id", "Vary"])
def test_a_service_cannot_drop_fields_of_the_gateway_by_connection(name: str, house: House) -> None:
    house.service.answer = answer(b"{}", f"Connection: {name}, keep-alive")
    got = get(house.gateway, "/native/header", "X-API-VERSION: 1")
    assert (got.status, got.body) == (200, b"{}")
    assert got.one("Via") == b"1.1 version-gateway"
    assert len(got.one("X-Request-Id")) > 0
    assert len(got.one("Date")) > 0
    assert got.members("Vary") == ["x-api-version"]
    # Whether named or not, there is exactly one framing.
    assert len(got.all("Content-Length") + got.all("Transfer-Encoding")) == 1


def test_request_targets_are_forwarded_byte_for_byte(house: House) -> None:
    """Covers RFC 3986, other characters that the parser accepts, and each encoded octet."""
    visible = bytes(byte for byte in range(0x21, 0x7F) if byte not in b"#?")
    octets = b"".join(b"%%%02x%%%02X" % (byte, byte) for byte in range(256))
    target = b"/tail/" + visible.replace(b"/", b"") + octets + b"?" + visible + b"?/" + octets
    assert get(house.gateway, target).status == 200
    assert house.service.last.line == b"GET " + target + b" HTTP/1.1"


@pytest.mark.parametrize(
    ("status", "lines", "body"),
    [
        ("206 Partial Content", ["Content-Range: bytes 1-2/9"], b"bc"),
        ("416 Range Not Satisfiable", ["Content-Range: bytes */9"], b"{}"),
        ("206 Partial Content", ["content-type: multipart/byteranges; boundary=x"], b"--x--"),
    ],
    ids=["a part", "no part", "parts"],
)
def test_ranges_of_unconverted_responses_are_forwarded(
    status: str, lines: list[str], body: bytes, house: House
) -> None:
    house.service.answer = answer(
        body, *lines, "Accept-Ranges: bytes", 'ETag: W/"a"', status=status, content_type=None
    )
    asks = ["Range: bytes=1-2, -1", 'If-Range: "a"']
    got = get(house.gateway, "/plain", *asks)
    assert got.line == f"HTTP/1.1 {status}".encode()
    assert got.body == body
    for line in (*lines, "Accept-Ranges: bytes", 'ETag: W/"a"'):
        name, _, value = line.partition(": ")
        assert got.one(name) == value.encode()
    for line in asks:
        name, _, value = line.partition(": ")
        assert house.service.last.one(name) == value.encode()


OLD = b"GET /plain HTTP/1.0\r\nHost: a\r\n%b\r\n"


@pytest.mark.parametrize(
    ("said", "heard"),
    [
        (b"", [b"close"]),
        (b"Connection: close\r\n", [b"close"]),
        (b"Connection: X, Keep-Alive\r\nKeep-Alive: timeout=9\r\n", [b"keep-alive"]),
    ],
    ids=["nothing", "close", "keep-alive"],
)
def test_an_http_1_0_client_gets_its_own_connection_field(
    said: bytes, heard: list[bytes], house: House
) -> None:
    house.service.answer = answer(b"{}", "Connection: keep-alive", "Keep-Alive: timeout=1")
    last = OLD % b"" if heard == [b"keep-alive"] else b""
    data = send(house.gateway, OLD % said + last, seconds=5)
    head, *rest = re.split(rb"(?<=\r\n\r\n\{\})", data)
    got = parse_answer(head)
    assert got.all("Connection") == heard
    assert got.all("Keep-Alive") == []
    assert house.service.asked[0].line == b"GET /plain HTTP/1.1"
    assert house.service.asked[0].all("Connection") == []
    assert len(house.service.asked) == (2 if last else 1)
    assert bool(rest[0]) == bool(last)


def test_a_body_of_an_http_1_0_client_arrives(house: House) -> None:
    data = b"POST /plain HTTP/1.0\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc"
    assert parse_answer(send(house.gateway, data, seconds=5)).status == 200
    assert house.service.last.body == b"abc"
    assert house.service.last.one("Via") == b"1.0 version-gateway"


def test_an_http_1_0_client_gets_an_unframed_body_until_the_end(house: House) -> None:
    house.service.answer = b"HTTP/1.0 200 OK\r\nConnection: close\r\n\r\nabc"
    head, _, body = send(house.gateway, OLD % b"Connection: keep-alive\r\n").partition(b"\r\n\r\n")
    assert b"\r\nConnection: close" in head
    assert b"keep-alive" not in head
    assert b"content-length" not in head.lower()
    assert body == b"abc"


@pytest.mark.parametrize("http", ["1.0", "1.1"])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_an_http_1_0_response_is_sent_as_http_1_1(method: str, http: str, house: House) -> None:
    """The HTTP version is hop-by-hop, so the client gets that of the gateway."""
    body = b"" if method == "HEAD" else b"ok"
    house.service.answer = (
        b"HTTP/1.0 203 Old\r\nConnection: close\r\nContent-Length: 2\r\n\r\n" + body
    )
    line = f"{method} /plain HTTP/{http}\r\nHost: a\r\nConnection: close\r\n\r\n"
    got = parse_answer(send(house.gateway, line.encode(), seconds=5), method)
    assert got.line == b"HTTP/1.1 203 Old"
    assert (got.one("Content-Length"), got.body) == (b"2", body)
    assert got.one("Via").endswith(b"version-gateway")


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
async def test_a_body_that_ends_with_its_connection_does_not_affect_others(
    method: str, standing: Program, through: StartUpstream
) -> None:
    """Each body uses its own service connection; the client has one connection for all."""

    async def script(scripted: Scripted, reader: Reader, writer: Writer) -> None:
        await scripted.take(reader)
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n" + (b"" if method == "HEAD" else OK))

    scripted = await through(script)
    async with connect(standing) as client:
        for _ in range(3):
            client.send(asking(f"{method} /plain", "Content-Length: 0"))
            got = await client.answer(bodiless=method == "HEAD")
            # It looks like a response but is part of the body.
            assert (got.status, got.body) == (200, b"" if method == "HEAD" else OK)
    assert scripted.connections == 3


def test_te_is_neither_forwarded_nor_applied(house: House) -> None:
    got = ask(house.gateway, "POST", "/plain", "Connection: TE", "TE: gzip", body=b"abc")
    assert got.status == 200
    assert house.service.last.all("TE") == []
    assert got.all("Transfer-Encoding") == []
