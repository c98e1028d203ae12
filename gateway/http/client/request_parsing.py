"""Parsing of request heads by aiohttp: limits, errors, and request lines that it does not support.

llhttp, the parser of aiohttp, refuses every method and HTTP version that it does not list, but
accepts RTSP as HTTP. `with_supported_words` changes an unlisted request line so that it can be
parsed; the original method is restored afterwards.
"""

import asyncio
import re
from dataclasses import dataclass
from http import HTTPMethod
from typing import cast

from aiohttp.http import HttpRequestParser, RawRequestMessage
from aiohttp.http_exceptions import HttpProcessingError, LineTooLong
from aiohttp.web import RequestHandler, RequestPayloadError
from aiohttp.web_protocol import ERROR, MAX_MSG_QUEUE_SIZE
from multidict import CIMultiDict, CIMultiDictProxy

from gateway.base.errors import Fault, FaultCode
from gateway.http.client.message import RequestMessage
from gateway.http.limits import Limits

HTTP = re.compile(rb"[\r\n]*[^\r\n]* HTTP/[^ \r\n]*\r?\n")
"""Matches a head whose first line is complete and names HTTP as the protocol."""

HTTP_2_PREFACE = b"PRI * HTTP/2.0\r\n"
"""The first bytes of an HTTP/2 connection (RFC 9113, section 3.4)."""
_TEXT = b"This gateway speaks HTTP/1.1; put a proxy that speaks HTTP/2 before it."
HTTP_1_1_REQUIRED = (
    b"\0\0\0\4\0\0\0\0\0"  # SETTINGS
    + (len(_TEXT) + 8).to_bytes(3)
    + b"\7\0\0\0\0\0"  # GOAWAY
    + b"\0\0\0\0"  # no request was processed
    + b"\0\0\0\x0d"
    + _TEXT
)
"""The frames that end an HTTP/2 connection with HTTP_1_1_REQUIRED (RFC 9113, section 7)."""

_LATER_VERSION = re.compile(rb"([\r\n]*[^\r\n]* HTTP/1\.)[2-9](?=\r|\Z)")
_METHOD = re.compile(rb"([\r\n]*)([\w!#$%&'*+.^`|~-]{1,32})(?= |\Z)")
# PRI is reserved for the first bytes of HTTP/2 (RFC 9113, section 3.4), so it is refused.
_LISTED = frozenset({*HTTPMethod, "PRI"})


def with_supported_words(head: bytes) -> tuple[bytes, str]:
    """Return a head, or its beginning, with a version and a method that the parser supports.

    A later minor version becomes 1.1, the highest supported one (RFC 9110, section 2.5). A method
    may have any name (RFC 9110, section 9.1); POST replaces non-standard methods.

    Returns:
        The head, and the method that POST replaces; empty if no method was replaced.
    """
    if later := _LATER_VERSION.match(head):
        head = later[1] + b"1" + head[later.end() :]
    named = _METHOD.match(head)
    if named is None or (method := named[2].decode()) in _LISTED:
        return head, ""
    return named[1] + b"POST" + head[named.end() :], method


# aiohttp uses plain dictionaries here, which the code that reads header fields cannot handle.
UNREAD: RequestMessage = ERROR._replace(headers=CIMultiDictProxy(CIMultiDict()), raw_headers=())
_UNREAD_HEAD = UNREAD._replace(method="HEAD")
_ASKS_FOR_HEAD = re.compile(rb"[\r\n]*HEAD ").match


@dataclass(frozen=True, slots=True)
class RefusedRequest:
    """A queued request that is refused when its turn comes; the message may be that of `unread`."""

    fault: Fault
    message: RequestMessage


def unread(begun: bytes) -> RequestMessage:
    """Return UNREAD, with the method HEAD if the first bytes of a head contain it.

    A response to HEAD has no content (RFC 9110, section 9.3.2).
    """
    return _UNREAD_HEAD if _ASKS_FOR_HEAD(begun) else UNREAD


def refused(fault: Fault, message: RequestMessage) -> RawRequestMessage:
    # aiohttp's types allow only requests and a private class in the queue.
    return cast(RawRequestMessage, RefusedRequest(fault, message))


def new_parser(
    connection: RequestHandler, loop: asyncio.AbstractEventLoop, limits: Limits, body: int
) -> HttpRequestParser:
    """Create a parser for a connection; it stops after twice `body` unread bytes of a body."""
    return HttpRequestParser(
        connection,
        loop,
        body,
        max_line_size=limits.target,
        max_field_size=longest_field(limits),
        max_headers=limits.header_fields,
        payload_exception=RequestPayloadError,
        auto_decompress=False,
        max_msg_queue_size=MAX_MSG_QUEUE_SIZE,
    )


def longest_field(limits: Limits) -> int:
    # It must differ from the limit for the target, because the parser's error contains only the
    # number.
    return limits.header_bytes + (limits.header_bytes == limits.target)


def size(message: RawRequestMessage) -> int:
    # Each line has a colon, a space and a line end of two bytes.
    return sum(len(name) + len(value) + 4 for name, value in message.raw_headers)


def largest_head(limits: Limits) -> int:
    # In addition to the target, the request line contains the method and the protocol version.
    return limits.header_bytes + limits.target + 64


def too_heavy(limits: Limits) -> Fault:
    return Fault(
        FaultCode.HEADERS_TOO_LARGE,
        f"The header fields may have at most {limits.header_bytes} bytes in total.",
    )


def too_many(limits: Limits) -> Fault:
    detail = f"A request may have at most {limits.header_fields} header fields."
    return Fault(FaultCode.HEADERS_TOO_LARGE, detail)


def too_long(limits: Limits) -> Fault:
    return Fault(
        FaultCode.URI_TOO_LONG, f"The request target may have at most {limits.target} bytes."
    )


def malformed(reason: str) -> Fault:
    return Fault(FaultCode.BAD_REQUEST, f"The request is not valid HTTP/1.1: {reason}.")


def fault(error: HttpProcessingError, limits: Limits, head: bytes = b"") -> Fault:
    """`head` is the beginning of the head that the parser refused."""
    if head.startswith(b"\x16\x03"):  # a TLS record of a handshake (RFC 8446, section 5.1)
        return malformed("it begins with TLS, and this port accepts only plain HTTP; use http")
    if isinstance(error, LineTooLong):
        if error.args[1] == limits.target:
            return too_long(limits)
        return too_heavy(limits)
    if error.message.startswith("Too many headers"):
        return too_many(limits)
    # The parser's message quotes the request on several lines; the first line contains the reason.
    return malformed(error.message.partition("\n")[0].rstrip(":. ") or "not HTTP")
