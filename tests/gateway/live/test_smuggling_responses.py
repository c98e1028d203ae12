"""Ambiguous responses are never forwarded, and neither are the bytes after them."""

import json
import re

import pytest

from tests.gateway.kit import Program
from tests.gateway.live.raw import parse_answer, request, send
from tests.gateway.live.tap import OK, Tap

FORGED = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged"
CHUNKED = b"Transfer-Encoding: chunked"
CHUNKS = b"2\r\nok\r\n0\r\n\r\n"
LENGTH = b"Content-Length: 2"


@pytest.fixture
def gateway(tapped: Program, tap: Tap) -> Program:
    tap.answer = OK
    return tapped


def response(*lines: bytes, body: bytes = b"ok", status: bytes = b"HTTP/1.1 200 OK") -> bytes:
    return b"\r\n".join((status, *lines, b"", body))


AMBIGUOUS: dict[str, bytes] = {
    **{
        f"length {value!r}": response(b"Content-Length:" + value)
        for value in [
            *(b"%d" % (2**63 - 1), b"%d" % 2**63, b"%d" % (2**64 + 2), b"0" * 5000 + b"2", b"0_2"),
            *(b"2 2", b"2;", b",2", b"2.0", b"\x0b2", b'"2"', b"\xb2", b"2, 2", b"+2", b"-2"),
            *(b"0x2", b"", b"9" * 20),
        ]
    },
    **{
        f"coding {value!r}": response(b"Transfer-Encoding:" + value, body=CHUNKS)
        for value in [
            *(b",chunked", b"chunked,", b"identity, chunked", b"identity", b"", b"xchunked"),
            *(b"chunked;a=b", b"chunked \t", b"chu nked", b"\xffchunked", b"gzip"),
            *(b"gzip, chunked", b"chunked, gzip", b"\x0bchunked", b'"chunked"'),
        ]
    },
    "a length and chunks": response(LENGTH, CHUNKED, body=CHUNKS),
    "chunks and a length": response(CHUNKED, LENGTH, body=CHUNKS),
    "two lengths": response(LENGTH, b"Content-Length: 3"),
    "a length twice": response(LENGTH, LENGTH),
    "chunks twice": response(CHUNKED, CHUNKED, body=CHUNKS),
    "a length called with a space": response(b"Content-Length : 2"),
    "a space before the length": response(b" Content-Length: 2"),
    "an empty coding and a length": response(b"Transfer-Encoding:", LENGTH),
    "chunked and an empty coding": response(CHUNKED, b"Transfer-Encoding:", body=CHUNKS),
    "a coding called with a space": response(b"X: y", b"Transfer-Encoding : chunked", body=CHUNKS),
    "a coding called with a tab": response(b"X: y", b"Transfer-Encoding\t: chunked", body=CHUNKS),
    "a coding folded": response(b"Transfer-Encoding:", b" chunked", body=CHUNKS),
    "chunks in HTTP/1.0": response(CHUNKED, body=CHUNKS, status=b"HTTP/1.0 200 OK"),
    "chunks and a length in HTTP/1.0": response(
        CHUNKED, LENGTH, body=CHUNKS, status=b"HTTP/1.0 200 OK"
    ),
    **{
        f"status line {line!r}": response(LENGTH, status=line)
        for line in [
            *(b"HTTP/0.9 200 OK", b"HTTP/2.0 200 OK", b"HTTP/1.2 200 OK", b"HTTP/1.10 200 OK"),
            *(b"HTTP/01.1 200 OK", b"http/1.1 200 OK", b" HTTP/1.1 200 OK", b"HTTP/1.1  200 OK"),
            *(b"HTTP/1.1\t200 OK", b"HTTP/1.1 +20 OK", b"HTTP/1.1 2e2 OK", b"HTTP/1.1 200x OK"),
            *(
                b"HTTP/1.1 1000 OK",
                b"HTTP/1.1 200 O\0K",
                b"HTTP/1.1 200 O\x01K",
                b"HTTP/1.1 200 \x7f",
            ),
            *(b"HTTP/1.1 \xb2\xb0\xb0 OK", b"HTTP/1.1", b"200 OK", b"HTTP/1.1 OK"),
            *(b"HTTP/1.1 200 O\rK", b"HTTP/1 200 OK", b"HTTP/3.1 200 OK"),
        ]
    },
    "HTTP/0.9": b"<html>ok</html>\r\n\r\n",
    "LF behind the status line": response(LENGTH).replace(b"OK\r\n", b"OK\n"),
    "LF behind the last field": response(LENGTH).replace(b"2\r\n", b"2\n"),
    "LF for the empty line": response(LENGTH).replace(b"\r\n\r\n", b"\r\n\n"),
    "CR for the empty line": response(LENGTH).replace(b"\r\n\r\n", b"\r\n\r"),
    "LF for CRLF": b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok",
    "LF for CRLF in a field": response(b"A: b\nB: c", LENGTH),
    "CR in a value": response(b"A: b\rc", LENGTH),
    "CR twice": response(b"X: y\r", LENGTH),
    "no name": response(b": b", LENGTH),
    "no colon": response(b"Content-Length 2"),
    "NUL in a value": response(b"A: b\0c", LENGTH),
    "NUL in a name": response(b"A\0: b", LENGTH),
    "a folded line": response(b"A: b", b" c", LENGTH),
    "a tab before the first field": response(b"\tX: y", LENGTH),
    "a fold by a tab": response(b"X: y", b"\tz", LENGTH),
    "DEL in a value": response(b"X: \x7f", LENGTH),
    "VT in a value": response(b"X: a\x0bb", LENGTH),
    "odd bytes in a name": response(b"caf\xe9: y", LENGTH),
    "a delimiter in a name": response(b"X(y): z", LENGTH),
    "an interim response with chunks": (
        response(CHUNKED, body=CHUNKS, status=b"HTTP/1.1 103 Early Hints") + OK
    ),
    "an interim response with a body": (response(LENGTH, status=b"HTTP/1.1 103 Early Hints") + OK),
}


BAD_CHUNKS: dict[str, bytes] = {
    **{
        f"size {size!r}": size + b"\r\nok\r\n0\r\n\r\n"
        for size in [
            *(b"", b"-2", b"+2", b"0x2", b"0_2", b"2 ", b"2\t", b" 2", b"\xb2", b"2\0", b"2,"),
            *(b"%x" % (2**64 + 2), b"00%x" % (2**64 + 2)),
        ]
    },
    "LF behind the size": b"2\nok\r\n0\r\n\r\n",
    "CR behind the size": b"2\rok\r\n0\r\n\r\n",
    "LF behind the data": b"2\r\nok\n0\r\n\r\n",
    "nothing behind the data": b"2\r\nok0\r\n\r\n",
    "LF behind the last size": b"2\r\nok\r\n0\n\r\n",
    "LF at the end": b"2\r\nok\r\n0\r\n\n",
    "LF in an extension": b"2;a\nb\r\nok\r\n0\r\n\r\n",
    "CR in an extension": b"2;a\rb\r\nok\r\n0\r\n\r\n",
    "NUL in an extension": b"2;a\0b\r\nok\r\n0\r\n\r\n",
    "a length for a trailer": b"2\r\nok\r\n0\r\nContent-Length: 5\r\n\r\n",
    "a folded trailer": b"2\r\nok\r\n0\r\nX: a\r\n b\r\n\r\n",
    "LF in a trailer": b"2\r\nok\r\n0\r\nX: a\nY: b\r\n\r\n",
    "a trailer without a colon": b"2\r\nok\r\n0\r\nX\r\n\r\n",
}


@pytest.mark.parametrize("body", BAD_CHUNKS.values(), ids=BAD_CHUNKS)
def test_ambiguous_response_chunks_cut_the_response(
    body: bytes, gateway: Program, tap: Tap
) -> None:
    tap.answer = response(CHUNKED, body=body) + FORGED
    received = b""
    # After an orderly end instead of RST, the response could look complete.
    with pytest.raises(ConnectionResetError):
        received = send(gateway, request("GET", "/plain"), seconds=5)
    assert not received
    tap.answer = OK
    assert parse_answer(send(gateway, request("GET", "/plain"), seconds=5)).body == b"ok"
    assert len(tap.taken) == 2


@pytest.mark.parametrize("body", BAD_CHUNKS.values(), ids=BAD_CHUNKS)
def test_ambiguous_chunks_of_a_converted_response_are_502(
    body: bytes, gateway: Program, tap: Tap
) -> None:
    tap.answer = response(CHUNKED, b"Content-Type: application/json", body=body)
    got = parse_answer(send(gateway, request("GET", "/v1/person"), seconds=5))
    assert got.refusal() == (502, "upstream_protocol")


@pytest.mark.parametrize(
    "body",
    [
        b"0002\r\nok\r\n000\r\n\r\n",
        b"2;a=b\r\nok\r\n0;c\r\n\r\n",
        b"2;a=" + b"b" * 20_000 + b"\r\nok\r\n0\r\n\r\n",
        b"1\r\no\r\n1\r\nk\r\n0\r\nX-T: y\r\nTransfer-Encoding: chunked\r\n\r\n",
    ],
    ids=["leading zeros", "extensions", "a long extension", "trailers"],
)
def test_response_chunks_are_forwarded_with_the_gateways_own_framing(
    body: bytes, gateway: Program, tap: Tap
) -> None:
    tap.answer = response(CHUNKED, body=body)
    for _ in range(2):
        received = send(gateway, request("GET", "/plain"), seconds=5)
        assert parse_answer(received).body == b"ok"
        framed = received.partition(b"\r\n\r\n")[2]
        assert re.fullmatch(rb"(?:2\r\nok\r\n|1\r\no\r\n1\r\nk\r\n)0\r\n\r\n", framed)


def test_a_connection_with_close_in_its_trailer_is_not_reused(gateway: Program, tap: Tap) -> None:
    tap.answer = response(CHUNKED, body=b"2\r\nok\r\n0\r\nConnection: close\r\n\r\n")
    for _ in range(3):
        assert parse_answer(send(gateway, request("GET", "/plain"), seconds=5)).body == b"ok"
    assert len(tap.taken) == 3


@pytest.mark.parametrize("status", [b"204 No Content", b"304 Not Modified"])
@pytest.mark.parametrize(
    ("line", "body"), [(LENGTH, b"ok"), (CHUNKED, CHUNKS), (b"X: y", FORGED)], ids=str
)
def test_a_body_after_a_bodiless_response_is_dropped(
    status: bytes, line: bytes, body: bytes, gateway: Program, tap: Tap
) -> None:
    tap.answer = response(line, body=body, status=b"HTTP/1.1 " + status)
    received = send(gateway, request("GET", "/plain"), seconds=5)
    assert received.startswith(b"HTTP/1.1 " + status)
    assert received.endswith(b"\r\n\r\n")
    assert CHUNKED not in received
    tap.answer = OK
    assert parse_answer(send(gateway, request("GET", "/plain"), seconds=5)).body == b"ok"


def test_many_interim_responses_and_fields_are_bounded_and_harmless(
    gateway: Program, tap: Tap
) -> None:
    hint = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
    tap.answer = hint * 1000 + response(*[b"X: y"] * 2000, LENGTH)
    got = parse_answer(send(gateway, request("GET", "/plain"), seconds=5))
    assert (len(got.interim), len(got.all("X")), got.body) == (1000, 2000, b"ok")
    tap.answer = response(*[b"X: " + b"y" * 1000] * 1000, LENGTH)
    got = parse_answer(send(gateway, request("GET", "/plain"), seconds=5))
    assert json.loads(got.body)["code"] == "upstream_protocol"
