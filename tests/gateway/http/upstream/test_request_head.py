"""The bytes of a request to a service."""

from collections.abc import AsyncIterator

import pytest

from gateway.http.upstream.connection import write_request
from gateway.http.upstream.upstream import UpstreamRequest


async def pieces() -> AsyncIterator[bytes]:
    yield b"never asked for"


def written(request: UpstreamRequest, authority: bytes) -> bytes:
    found: list[bytes] = []
    write_request(found.append, request, authority)
    return b"".join(found)


BODIES: dict[str, tuple[bytes | None, bytes]] = {
    "none": (None, b"\r\n"),
    "empty": (b"", b"Content-Length: 0\r\n\r\n"),
    "whole": (b"body", b"Content-Length: 4\r\n\r\nbody"),
}


@pytest.mark.parametrize(("body", "end"), BODIES.values(), ids=BODIES)
def test_a_complete_body_is_written_with_its_length(body: bytes | None, end: bytes) -> None:
    request = UpstreamRequest("PUT", "/a?b", [(b"X-A", b"1"), (b"x-a", b"")], body=body)
    head = b"PUT /a?b HTTP/1.1\r\nHost: target:1\r\nX-A: 1\r\nx-a: \r\n"
    assert written(request, b"target:1") == head + end


@pytest.mark.parametrize(
    ("length", "framing"), [(None, b"Transfer-Encoding: chunked"), (9, b"Content-Length: 9")]
)
async def test_a_streamed_body_is_announced_by_length_or_chunked(
    length: int | None, framing: bytes
) -> None:
    request = UpstreamRequest("PUT", "/", [], b"name.test", pieces(), length)
    expected = b"PUT / HTTP/1.1\r\nHost: name.test\r\n" + framing + b"\r\n\r\n"
    assert written(request, b"target:1") == expected


def test_a_large_body_is_not_copied() -> None:
    body = bytes(64 * 1024 + 1)
    found: list[bytes] = []
    write_request(found.append, UpstreamRequest("PUT", "/", [], body=body), b"t")
    head, rest = found
    assert head == b"PUT / HTTP/1.1\r\nHost: t\r\nContent-Length: 65537\r\n\r\n"
    assert rest is body


def test_a_target_that_is_not_utf_8_is_written_unchanged() -> None:
    target = b"/\xff".decode("utf-8", "surrogateescape")
    assert written(UpstreamRequest("GET", target, []), b"t").startswith(b"GET /\xff HTTP/1.1")
