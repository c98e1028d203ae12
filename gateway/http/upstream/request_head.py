"""Serialization of a request to a service, in HTTP/1.1."""

from collections.abc import Callable
from functools import lru_cache
from typing import Final

from gateway.base.headers import FIELD_LINE, FieldLines, forwarding
from gateway.http.upstream.upstream import UpstreamRequest

# A larger body is written as it is: to put it behind its head is to copy it, which takes
# milliseconds, while nobody else is answered.
_ONE_WRITE: Final = 64 * 1024


def write_request(
    write: Callable[[bytes], None], request: UpstreamRequest, authority: bytes
) -> None:
    """Write a request in HTTP/1.1: the head, and the body if it is complete.

    Args:
        write: writes to the connection.
        request: the request to send.
        authority: the authority of the target, for Host unless the request sets a host.
    """
    begin = f"{request.method} {request.target} HTTP/1.1"
    lines = [
        begin.encode("utf-8", "surrogateescape"),
        b"Host: " + (request.host or authority),
        *map(FIELD_LINE, request.fields),
        *request.lines,
    ]
    body, rest = request.body, b""
    if isinstance(body, bytes):
        size = len(body)
        if size > _ONE_WRITE:
            body, rest = b"", body
        lines += (b"Content-Length: %d" % size, b"", body)
    elif body is None:
        lines += (b"", b"")
    elif request.length is None:
        lines += (b"Transfer-Encoding: chunked", b"", b"")
    else:
        lines += (b"Content-Length: %d" % request.length, b"", b"")
    write(b"\r\n".join(lines))
    if rest:
        write(rest)


def forwarding_lines(peer: str, authority: str, via: bytes, inherited: FieldLines) -> bytes:
    """Return the lines of `headers.forwarding` and of Via, joined, without the end of the last."""
    fields = *forwarding(peer, authority, inherited), (b"Via", via)
    return b"\r\n".join(map(FIELD_LINE, fields))


known_forwarding_lines: Final = lru_cache(maxsize=1024)(forwarding_lines)
"""The same for requests without a trusted proxy, whose fields are of any length, and not kept."""
