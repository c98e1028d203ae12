"""Ambiguous framing of requests: the request is refused, or forwarded with unambiguous framing.

After each such request, the test sends another, which must never be smuggled to the service.
"""

import json
import re
import socket
from contextlib import suppress

import pytest

from tests.gateway.kit import Program, wait_for
from tests.gateway.live.raw import send
from tests.gateway.live.tap import Tap

SMUGGLED = b"GET /tail/smuggled HTTP/1.1\r\nHost: b\r\nConnection: close\r\n\r\n"
CHUNKS = b"3\r\nabc\r\n0\r\n\r\n"
CHUNKED = b"Transfer-Encoding: chunked"


def post(*lines: bytes, body: bytes = b"", path: bytes = b"/plain") -> bytes:
    head = [b"POST " + path + b" HTTP/1.1", b"Host: a", *lines, b"", b""]
    return b"\r\n".join(head) + body


def get(*lines: bytes, target: bytes = b"/plain") -> bytes:
    return post(*lines, path=target).replace(b"POST", b"GET", 1)


def statuses(data: bytes) -> list[bytes]:
    return re.findall(rb"HTTP/1\.1 ([0-9]{3}) ", data)


LENGTHS: dict[str, tuple[bytes, ...]] = {
    "length, chunks": (b"Content-Length: 3", CHUNKED),
    "chunks, length": (CHUNKED, b"Content-Length: 13"),
    "chunks, length of nothing": (CHUNKED, b"Content-Length: 0"),
    "chunks, empty length": (CHUNKED, b"Content-Length:"),
    "the same length twice": (b"Content-Length: 13", b"Content-Length: 13"),
    "another length": (b"Content-Length: 13", b"Content-Length: 3"),
    "length folded": (b"Content-Length: 1", b" 3"),
    "length behind a bare CR": (b"X: y\rContent-Length: 13",),
    "length behind a bare LF": (b"X: y\nContent-Length: 13",),
    **{
        f"length {value!r}": (b"Content-Length:" + value,)
        for value in [
            *(b"+13", b"-13", b"\x0b13", b"13\x0c", b"0xd", b"13.0", b"1e1", b"1_3", b"", b"13;"),
            *(b'"13"', b"1 3", b"13,", b",13", b"13, 13", b"\xb3", b"\xd9\xa3", b"13\x00"),
            *(b"%d" % (2**63 - 1), b"%d" % 2**63, b"%d" % (2**64 - 1), b"%d" % (2**64 + 13)),
        ]
    },
    "a length of many digits": (b"Content-Length: " + b"9" * 5000,),
    "a length of many zeros": (b"Content-Length: " + b"0" * 5000 + b"13",),
    **{
        f"length called {name!r}": (name + b": 13",)
        for name in (
            b"Content-Length ",
            b"Content-Length\t",
            b" Content-Length",
            b"Content-Len\0gth",
        )
    },
}
CODINGS: dict[str, tuple[bytes, ...]] = {
    **{
        f"coding {value!r}": (b"Transfer-Encoding:" + value,)
        for value in [
            *(b"chunked, chunked", b"chunked, identity", b"identity, chunked", b"identity"),
            *(b"gzip, chunked", b"chunked, gzip", b"gzip", b"xchunked", b"chunkedx", b"chunked,"),
            *(
                *(b",chunked", b"chunked;a=b", b'"chunked"', b"chu nked", b"\x0bchunked"),
                b"chunked\x0c",
            ),
            *(b"chunked\t", b"chunked\0", b"\xffchunked", b"chun\xe7ked", b"trailers", b"", b" "),
        ]
    },
    "chunked twice": (CHUNKED, CHUNKED),
    "chunked, then identity": (CHUNKED, b"Transfer-Encoding: identity"),
    "identity, then chunked": (b"Transfer-Encoding: identity", CHUNKED),
    "nothing, then chunked": (b"Transfer-Encoding:", CHUNKED),
    "coding folded": (b"Transfer-Encoding:", b" chunked"),
    "coding folded behind another": (b"Transfer-Encoding: gzip,", b"\tchunked"),
    **{
        f"coding called {name!r}": (b"X: y", name + b": chunked")
        for name in (b"Transfer-Encoding ", b"Transfer-Encoding\t", b" Transfer-Encoding")
    },
}
LINES: dict[str, bytes] = {
    "LF for CRLF": post(b"Content-Length: 3", body=b"abc").replace(b"\r\n", b"\n"),
    "LF behind the request line": b"GET /plain HTTP/1.1\nHost: a\r\n\r\n",
    "CR behind the request line": b"GET /plain HTTP/1.1\rHost: a\r\n\r\n",
    "LF behind a field": b"GET /plain HTTP/1.1\r\nHost: a\n\r\n",
    "LF for the empty line": b"GET /plain HTTP/1.1\r\nHost: a\r\n\n",
    "CR for the empty line": b"GET /plain HTTP/1.1\r\nHost: a\r\n\r",
    "CR twice": get(b"X: y\r"),
    "CR before the colon": get(b"X\r: y"),
    "space before the first field": b"GET /plain HTTP/1.1\r\n Host: a\r\n\r\n",
    "tab before the first field": b"GET /plain HTTP/1.1\r\n\tX: y\r\nHost: a\r\n\r\n",
    "space before the request line": b" " + get(),
    "tab behind the method": b"GET\t/plain HTTP/1.1\r\nHost: a\r\n\r\n",
    "tab behind the target": b"GET /plain\tHTTP/1.1\r\nHost: a\r\n\r\n",
    "space behind the version": b"GET /plain HTTP/1.1 \r\nHost: a\r\n\r\n",
    "no target": b"GET HTTP/1.1\r\nHost: a\r\n\r\n",
    "no version": b"GET /plain\r\nHost: a\r\n\r\n",
    "white space in the target": get(target=b"/plain x"),
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    "CONNECT": b"CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n",
    "CONNECT to a path": get().replace(b"GET", b"CONNECT"),
    **{
        f"method {method!r}": get().replace(b"GET", method, 1)
        for method in (b"", b"BR@W", b"B" * 33)
    },
    "no colon": get(b"Colonless"),
    "no name": get(b": z"),
    "odd bytes in a name": get(b"caf\xe9: z"),
    "a folded field": get(b"X: a", b" b"),
    **{
        f"version {version!r}": b"GET /plain " + version + b"\r\nHost: a\r\n\r\n"
        for version in [
            *(b"", b"HTTP", b"HTTP/1", b"HTTP/1.", b"HTTP/1.10", b"HTTP/01.1"),
            *(b"HTTP/1.1x", b"HTTP/1.1, x", b"HTTP /1.1", b"HTTP/ 1.1", b"http/1.1", b"XTTP/1.1"),
            *(b"HTTP/0.9", b"HTTP/2.0", b"HTTP/2", b"HTTP/3", b"RTSP/1.0", b"ICE/1.0"),
        ]
    },
    "chunks in HTTP/1.0": post(CHUNKED, body=CHUNKS).replace(b"/1.1", b"/1.0"),
    "chunks in HTTP/1.0, kept alive": post(CHUNKED, b"Connection: keep-alive", body=CHUNKS).replace(
        b"/1.1", b"/1.0"
    ),
    "no Host": b"GET /plain HTTP/1.1\r\n\r\n",
    "the same Host twice": get(b"Host: a"),
    "two Hosts": get(b"Host: b"),
    "no Host, absolute target": b"GET http://a/plain HTTP/1.1\r\n\r\n",
    **{
        f"target {target!r}": get(target=target)
        for target in [
            *(b"*", b"a:80", b"plain", b"?x", b"#x", b"/plain#x", b"/tail/\xe9", b"/plain?\xff"),
            *(
                *(b"http:/plain", b"http:///plain", b"http://b#x", b"http://b/plain#x"),
                b"ws://b/plain",
            ),
            *(b"http://u@b/plain", b"http://b c/plain", b"http://b\\c/plain", b"http://\xe9/plain"),
        ]
    },
    **{
        f"Host {host!r}": b"GET /plain HTTP/1.1\r\nHost:" + host + b"\r\n\r\n"
        for host in [
            *(
                *(b"a\tb", b"a#", b"a?", b"a\\b", b" ", b"a:-1", b"a:999999", b"[::1", b"::1"),
                b"[::1]x",
            ),
            *(b"a%zz", b"a%0d%0aX:y", b"a:80:80", b"\xe9", b"a\0", b"http://a", b"", b"a/b"),
            *(b"user@a", b'a"b', b"a b", b"a, b", b"a,b", b"a%2Cb", b"a" * 300, b"a:port"),
            *(b"[:]", b"[192.0.2.1]:80"),
        ]
    },
}
ODD = [bytes([byte]) for byte in (*range(9), 10, 11, 12, 13, *range(14, 32), 127)]
CONTROLS = {
    f"{byte!r} in {place}": data
    for byte in ODD
    for place, data in {
        "a value": get(b"X: a" + byte + b"b"),
        "a name": get(b"X" + byte + b"Y: b"),
        "the target": get(target=b"/tail/a" + byte + b"b"),
        "the method": b"G" + byte + get()[1:],
    }.items()
}
DELIMITERS = {
    f"{chr(byte)} in a name": get(b"X" + bytes([byte]) + b"Y: b")
    for byte in b'()<>@,;\\"/[]?={} \t'
}
REFUSED = {
    **{name: post(*lines, body=CHUNKS) for name, lines in (LENGTHS | CODINGS).items()},
    **LINES,
    **CONTROLS,
    **DELIMITERS,
}


@pytest.mark.parametrize("data", REFUSED.values(), ids=REFUSED)
def test_an_ambiguous_request_is_refused_and_ends_the_connection(
    data: bytes, tapped: Program, tap: Tap
) -> None:
    """After one response the connection ends, since the start of the next request is unknown."""
    answer = send(tapped, data + SMUGGLED, seconds=5)
    assert statuses(answer) == [b"400"]
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"\r\nConnection: close" in head
    assert json.loads(body)["code"] == "bad_request"
    assert tap.taken == []


LAST = {
    "no body": get(b"Connection: close"),
    "a length": post(b"Connection: close", b"Content-Length: 3", body=b"abc"),
    "chunks": post(b"Connection: close", CHUNKED, body=CHUNKS),
    "HTTP/1.0": get().replace(b"HTTP/1.1", b"HTTP/1.0"),
}


@pytest.mark.parametrize("behind", [SMUGGLED, b"\0", b"POST / HTTP/1.1\r\nHost"])
@pytest.mark.parametrize("data", LAST.values(), ids=LAST)
def test_bytes_after_the_last_request_are_ignored(
    data: bytes, behind: bytes, tapped: Program, tap: Tap
) -> None:
    """The gateway must ignore them (RFC 9112, section 9.6), even in the same segment."""
    for before in (b"", get()):
        asked = len(tap.asked)
        with socket.create_connection(("127.0.0.1", tapped.port), 5) as client:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            client.sendall(before)
            if before:
                client.recv(65536)
            client.sendall(data + behind)
            answer = b"".join(iter(lambda: client.recv(65536), b""))
        assert statuses(answer) == [b"200"]
        assert b"\r\nConnection: close" in answer.partition(b"\r\n\r\n")[0]
        assert len(tap.asked) - asked == (2 if before else 1)


@pytest.mark.parametrize("data", LAST.values(), ids=LAST)
def test_bytes_after_the_last_pipelined_request_are_ignored(
    data: bytes, tapped: Program, tap: Tap
) -> None:
    """The requests are pipelined in one segment; some bodies look like the end of a head."""
    several = get() + post(b"Content-Length: 10", body=b"a\r\n\r\nb\r\n\r\n") + get()
    answer = send(tapped, several + data + SMUGGLED)
    assert statuses(answer) == [b"200"] * 4
    assert len(tap.asked) == 4


@pytest.mark.parametrize("bad", [b"\0", get(b"Host : b"), get().replace(b"HTTP/1.1", b"HTTP/1.10")])
@pytest.mark.parametrize("before", [get(), post(b"Content-Length: 3", body=b"abc")])
def test_requests_before_a_refused_request_are_answered(
    before: bytes, bad: bytes, tapped: Program, tap: Tap
) -> None:
    """The valid requests get responses first, and bytes after the refused one are not read."""
    with socket.create_connection(("127.0.0.1", tapped.port), 5) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client.sendall(before)
        answer = client.recv(65536)
        client.sendall(before + get() + bad + SMUGGLED)
        answer += b"".join(iter(lambda: client.recv(65536), b""))
    assert statuses(answer) == [b"200", b"200", b"200", b"400"]
    assert len(tap.asked) == 3


def test_rtsp_requests_are_refused(tapped: Program, tap: Tap) -> None:
    """The parser accepts RTSP. A pipelined RTSP request is refused after the earlier responses."""
    rtsp = get().replace(b"HTTP/1.1", b"RTSP/1.0")
    assert statuses(send(tapped, rtsp)) == [b"400"]
    assert statuses(send(tapped, get() + rtsp + get())) == [b"200", b"400"]
    assert len(tap.asked) == 1


@pytest.mark.parametrize("data", LAST.values(), ids=LAST)
def test_a_last_request_in_two_segments_is_answered(data: bytes, tapped: Program, tap: Tap) -> None:
    with socket.create_connection(("127.0.0.1", tapped.port), 5) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client.sendall(data)
        wait_for(lambda: tap.taken)
        client.sendall(SMUGGLED)
        answer = b""
        with suppress(ConnectionResetError):  # the gateway may have closed the connection already
            while piece := client.recv(65536):
                answer += piece
    assert statuses(answer) == [b"200"]
    assert len(tap.asked) == 1


BAD_CHUNKS: dict[str, bytes] = {
    **{
        f"size {size!r}": size + b"\r\nabc\r\n0\r\n\r\n"
        for size in [
            *(
                *(b"", b"-3", b"+3", b"0x3", b"0_3", b"3.0", b"g", b"3 ", b"3\t", b" 3", b"\xb3"),
                b"3\0",
            ),
            *(b"3,", b'"3"', b"%x" % (2**64 + 3), b"00%x" % (2**64 + 3), b"f" * 17),
        ]
    },
    **{
        f"extension {extension!r}": b"3" + extension + b"\r\nabc\r\n0\r\n\r\n"
        for extension in [
            *(b' ;a="b"', b';a="b\r\nc"', b";a\nbc", b";a\rbc", b";a\r", b";a\0", b";a\xff", b";")
        ]
    },
    "LF behind the size": b"3\nabc\r\n0\r\n\r\n",
    "CR behind the size": b"3\rabc\r\n0\r\n\r\n",
    "LF behind an extension": b"3;a\nabc\r\n0\r\n\r\n",
    "LF behind the data": b"3\r\nabc\n0\r\n\r\n",
    "CR behind the data": b"3\r\nabc\r0\r\n\r\n",
    "nothing behind the data": b"3\r\nabc0\r\n\r\n",
    "CRLF twice": b"3\r\nabc\r\n\r\n0\r\n\r\n",
    "data too long": b"3\r\nabcd\r\n0\r\n\r\n",
    "data too short": b"3\r\nab\r\n0\r\n\r\n",
    "LF behind the last size": b"3\r\nabc\r\n0\n\r\n",
    "LF at the end": b"3\r\nabc\r\n0\r\n\n",
    "LF and LF at the end": b"3\r\nabc\r\n0\n\n",
    "CR at the end": b"3\r\nabc\r\n0\r\n\r",
    "no last CRLF": b"3\r\nabc\r\n0\r\n",
    "an empty line in place of a chunk": b"\r\n" + CHUNKS,
    **{
        f"trailer {trailer!r}": b"3\r\nabc\r\n0\r\n" + trailer + b"\r\n\r\n"
        for trailer in [
            *(b"Content-Length: 5", b"Transfer-Encoding: gzip", CHUNKED, b"X: a\r\n b", b"X : a"),
            *(
                *(b"X: a\nY: b", b"X: a\rY: b", b"X: a\0", b"X", b" X: a", b"Host: b\r\nX: y"),
                *(b": a", b"X\xe9: a"),
            ),
        ]
    },
}


@pytest.mark.parametrize("path", [b"/plain", b"/v1/person"], ids=["streamed", "converted"])
@pytest.mark.parametrize("body", BAD_CHUNKS.values(), ids=BAD_CHUNKS)
def test_invalid_chunks_are_refused_before_the_service_gets_the_request(
    body: bytes, path: bytes, tapped: Program, tap: Tap
) -> None:
    data = post(CHUNKED, b"Content-Type: application/json", body=body, path=path)
    answer = send(tapped, data + SMUGGLED, seconds=5)
    assert statuses(answer) == [b"400"]
    assert b"\r\nConnection: close" in answer.partition(b"\r\n\r\n")[0]
    assert tap.taken == []


@pytest.mark.parametrize("body", BAD_CHUNKS.values(), ids=BAD_CHUNKS)
def test_chunks_that_become_invalid_later_never_end_a_request_to_the_service(
    body: bytes, tapped: Program, tap: Tap
) -> None:
    with socket.create_connection(("127.0.0.1", tapped.port), 5) as client:
        client.sendall(post(CHUNKED, body=b"5\r\nfirst\r\n"))
        wait_for(lambda: tap.taken and tap.taken[0].endswith(b"first\r\n"))
        client.sendall(body + SMUGGLED)
        answer = b""
        while data := client.recv(65536):
            answer += data
    assert statuses(answer) == [b"400"]
    assert len(tap.taken) == 1
    assert tap.taken[0].count(b"HTTP/1.1") == 1
    assert not tap.taken[0].endswith(b"0\r\n\r\n")


LIKE_CHUNKS = b'{"name":"A B"}'
GOOD_CHUNKS: dict[str, bytes] = {
    "plain": b"e\r\n%b\r\n0\r\n\r\n",
    "upper case": b"E\r\n%b\r\n0\r\n\r\n",
    "leading zeros": b"000e\r\n%b\r\n000\r\n\r\n",
    "many leading zeros": b"0" * 5000 + b"e\r\n%b\r\n" + b"0" * 5000 + b"\r\n\r\n",
    "an extension": b"e;a\r\n%b\r\n0;b=c\r\n\r\n",
    "a quoted extension": b'e;a="b ;c\\"";d\r\n%b\r\n0\r\n\r\n',
    "a long extension": b"e;a=" + b"b" * 20_000 + b"\r\n%b\r\n0\r\n\r\n",
    "a trailer": b"e\r\n%b\r\n0\r\nX-T: y\r\n\r\n",
    "trailers that are nobody's to send": (
        b"e\r\n%b\r\n0\r\nX-API-VERSION: 2\r\nAuthorization: x\r\n\r\n"
    ),
    "a trailer to upgrade": (b"e\r\n%b\r\n0\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"),
}


@pytest.mark.parametrize("ahead", [True, False], ids=["ahead", "later"])
@pytest.mark.parametrize("path", [b"/plain", b"/v1/person"], ids=["streamed", "converted"])
@pytest.mark.parametrize("body", GOOD_CHUNKS.values(), ids=GOOD_CHUNKS)
def test_request_chunks_are_forwarded_with_the_gateways_own_framing(
    body: bytes, path: bytes, ahead: bool, tapped: Program, tap: Tap
) -> None:
    body = body.replace(b"%b", LIKE_CHUNKS)
    data = post(CHUNKED, b"Content-Type: application/json", body=body, path=path)
    with socket.create_connection(("127.0.0.1", tapped.port), 5) as client:
        client.sendall(data + SMUGGLED if ahead else data)
        answer = b""
        if not ahead:
            while not answer.endswith(b"ok"):
                answer += client.recv(65536)
            client.sendall(SMUGGLED)
        while piece := client.recv(65536):
            answer += piece
    first, *others = tap.asked
    assert first.line.startswith(b"POST ")
    if path == b"/plain":
        assert (first.body, first.all(b"Transfer-Encoding")) == (LIKE_CHUNKS, [b"chunked"])
    else:
        assert json.loads(first.body or b"") == {"name": {"firstName": "A", "lastName": "B"}}
        assert len(first.all(b"Content-Length")) == 1
    # A pipelined request may stay unanswered, but it must arrive unchanged.
    assert [other.line for other in others] in ([], [b"GET /tail/smuggled HTTP/1.1"])
    assert ahead or others
    for other in others:
        assert [name for name, _ in other.fields if not name.startswith((b"X-F", b"F"))] == [
            *(b"Host", b"Via", b"X-Request-Id")
        ]


GOOD: dict[str, tuple[bytes, bytes, bytes | None]] = {
    **{
        f"length {value!r}": (post(b"Content-Length:" + value, body=b"abc"), b"POST /plain", b"abc")
        for value in (b"3", b"\t 3", b"3 \t", b"03", b"0" * 17 + b"3")
    },
    **{
        f"coding {value!r}": (
            post(b"Transfer-Encoding:" + value, body=CHUNKS),
            b"POST /plain",
            b"abc",
        )
        for value in (b" Chunked", b"\tCHUNKED", b"chunked  ")
    },
    "Connection names the length": (
        post(b"Connection: Content-Length", b"Content-Length: 3", body=b"abc"),
        b"POST /plain",
        b"abc",
    ),
    "Connection names the coding": (
        post(b"Connection: Transfer-Encoding", CHUNKED, body=CHUNKS),
        b"POST /plain",
        b"abc",
    ),
    "Connection names Host": (get(b"Connection: Host"), b"GET /plain", None),
    "GET with a length": (get(b"Content-Length: 3") + b"abc", b"GET /plain", b"abc"),
    "GET with chunks": (get(CHUNKED) + CHUNKS, b"GET /plain", b"abc"),
    "spaces in the request line": (
        get().replace(b" /plain ", b"   /plain   "),
        b"GET /plain",
        None,
    ),
    "empty lines first": (b"\r\n\r\n" + get(), b"GET /plain", None),
    "absolute target": (get(target=b"HTTP://other:81/plain?x"), b"GET /plain?x", None),
    "HTTP/2 by upgrade": (
        get(b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c", b"HTTP2-Settings: AAMAAABk"),
        b"GET /plain",
        None,
    ),
    "WebSocket and another": (
        get(b"Connection: Upgrade", b"Upgrade: websocket, h2c"),
        b"GET /plain",
        None,
    ),
    "upgrade with a length": (
        post(b"Connection: Upgrade", b"Upgrade: h2c", b"Content-Length: 3", body=b"abc"),
        b"POST /plain",
        b"abc",
    ),
    "encoded line ends": (get(target=b"/tail/%0d%0aX:%20y"), b"GET /tail/%0d%0aX:%20y", None),
}


@pytest.mark.parametrize(("data", "line", "body"), GOOD.values(), ids=GOOD)
def test_an_ambiguous_framing_is_forwarded_unambiguously(
    data: bytes, line: bytes, body: bytes | None, tapped: Program, tap: Tap
) -> None:
    """The service gets exactly one framing; the bytes after the body are a separate request."""
    send(tapped, data + SMUGGLED, seconds=5)
    first, *others = tap.asked
    assert (first.line, first.body) == (line + b" HTTP/1.1", body)
    assert first.all(b"Host") == ([b"other:81"] if b"other:81" in data else [b"a"])
    assert first.all(b"Connection") == first.all(b"Upgrade") == first.all(b"HTTP2-Settings") == []
    assert [other.line for other in others] in ([], [b"GET /tail/smuggled HTTP/1.1"])


@pytest.mark.parametrize(
    "size", [2**31, 2**32 + 3, 2**63 - 1, 2**63, 2**64 - 1], ids=lambda size: f"{size:x}"
)
def test_a_huge_chunk_size_does_not_start_another_request(
    size: int, tapped: Program, tap: Tap
) -> None:
    """All bytes that follow are data of this chunk, forwarded in chunks of their actual size."""
    with socket.create_connection(("127.0.0.1", tapped.port), 5) as client:
        client.sendall(post(CHUNKED, body=b"%x\r\nabc\r\n0\r\n\r\n" % size) + SMUGGLED)
        wait_for(lambda: tap.taken and tap.taken[0].endswith(SMUGGLED + b"\r\n"))
    (taken,) = tap.taken
    length = len(b"abc\r\n0\r\n\r\n" + SMUGGLED)
    assert taken.partition(b"\r\n\r\n")[2].startswith(b"%x\r\nabc" % length)
    assert taken.lower().count(b"content-length") == 0
