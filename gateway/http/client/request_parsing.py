"""Parsing of request heads by aiohttp: its limits, the faults of its errors, and its first line.

llhttp, the parser of aiohttp, refuses every method and version of HTTP that it does not list, and
takes RTSP for HTTP. `in_known_words` makes an unlisted first line parseable; its method is put back
afterwards.
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
"""Matches a head whose first line is complete and names HTTP."""

HTTP_2_PREFACE = b"PRI * HTTP/2.0\r\n"
"""How a connection of HTTP/2 begins (RFC 9113, section 3.4)."""
_TEXT = b"This gateway speaks HTTP/1.1; put a proxy that speaks HTTP/2 before it."
HTTP_1_1_REQUIRED = (
    b"\0\0\0\4\0\0\0\0\0"  # SETTINGS
    + (len(_TEXT) + 8).to_bytes(3)
    + b"\7\0\0\0\0\0"  # GOAWAY
    + b"\0\0\0\0"  # no request was processed
    + b"\0\0\0\x0d"
    + _TEXT
)
"""The frames that end a connection of HTTP/2 with HTTP_1_1_REQUIRED (RFC 9113, section 7)."""

_LATER_VERSION = re.compile(rb"([\r\n]*[^\r\n]* HTTP/1\.)[2-9](?=\r|\Z)")
_METHOD = re.compile(rb"([\r\n]*)([\w!#$%&'*+.^`|~-]{1,32})(?= |\Z)")
# PRI is reserved, for the first bytes of HTTP/2 (RFC 9113, section 3.4); it is refused.
_LISTED = frozenset({*HTTPMethod, "PRI"})


def in_known_words(head: bytes) -> tuple[bytes, str]:
    """Return a head, or its beginning, with a version and a method that the parser knows.

    A later minor version becomes 1.1, the highest one that is known here (RFC 9110, section 2.5).
    A method may have any name (RFC 9110, section 9.1); POST stands for those without a standard.

    Returns:
        the head, and the method for which POST stands; empty for none.
    """
    if later := _LATER_VERSION.match(head):
        head = later[1] + b"1" + head[later.end() :]
    named = _METHOD.match(head)
    if named is None or (method := named[2].decode()) in _LISTED:
        return head, ""
    return named[1] + b"POST" + head[named.end() :], method


# aiohttp has plain dictionaries here, which no code that reads header fields can take.
UNREAD: RequestMessage = ERROR._replace(headers=CIMultiDictProxy(CIMultiDict()), raw_headers=())
"""The head of a request that cannot be read: it has no header fields."""
_UNREAD_HEAD = UNREAD._replace(method="HEAD")
_ASKS_FOR_HEAD = re.compile(rb"[\r\n]*HEAD ").match


@dataclass(frozen=True, slots=True)
class RefusedRequest:
    """Stands in the parser's queue for a request that is refused in its turn.

    Attributes:
        fault: why it is refused.
        message: the head, or what `unread` returns.
    """

    fault: Fault
    message: RequestMessage


def unread(begun: bytes) -> RequestMessage:
    """Return UNREAD, with the method HEAD if the first bytes of a head have that.

    A response to HEAD has no content (RFC 9110, section 9.3.2).
    """
    return _UNREAD_HEAD if _ASKS_FOR_HEAD(begun) else UNREAD


def refused(fault: Fault, message: RequestMessage) -> RawRequestMessage:
    """Return what stands in the parser's queue for a refused request; see `RefusedRequest`."""
    # The type of aiohttp's queue allows requests and a private class only.
    return cast(RawRequestMessage, RefusedRequest(fault, message))


def new_parser(
    connection: RequestHandler, loop: asyncio.AbstractEventLoop, limits: Limits, body: int
) -> HttpRequestParser:
    """Return a parser for a connection; it stops after twice `body` unread bytes of a body."""
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
    """Return the limit of the parser on one header field, in bytes."""
    # It differs from the limit on the target, because the parser's error names only the number.
    return limits.header_bytes + (limits.header_bytes == limits.target)


def size(message: RawRequestMessage) -> int:
    """Return the size of the header fields of a request in bytes."""
    # Each line has a colon, a space and a line end of two bytes.
    return sum(len(name) + len(value) + 4 for name, value in message.raw_headers)


def largest_head(limits: Limits) -> int:
    """Return how many bytes of a request may arrive before its head is complete."""
    # The request line has the method and the protocol version in addition to the target.
    return limits.header_bytes + limits.target + 64


def too_heavy(limits: Limits) -> Fault:
    """Return the fault for header fields of too many bytes."""
    return Fault(
        FaultCode.HEADERS_TOO_LARGE,
        f"The header fields may have {limits.header_bytes} bytes in all.",
    )


def too_many(limits: Limits) -> Fault:
    """Return the fault for too many header fields."""
    detail = f"A request may have {limits.header_fields} header fields."
    return Fault(FaultCode.HEADERS_TOO_LARGE, detail)


def too_long(limits: Limits) -> Fault:
    """Return the fault for a request target that is too long."""
    return Fault(FaultCode.URI_TOO_LONG, f"The request target may have {limits.target} bytes.")


def malformed(reason: str) -> Fault:
    """Return the fault for a request that is not HTTP."""
    return Fault(FaultCode.BAD_REQUEST, f"The request is not valid HTTP/1.1: {reason}.")


def fault(error: HttpProcessingError, limits: Limits) -> Fault:
    """Return the fault for an error of the parser."""
    if isinstance(error, LineTooLong):
        if error.args[1] == limits.target:
            return too_long(limits)
        return too_heavy(limits)
    if error.message.startswith("Too many headers"):
        return too_many(limits)
    # The parser's message quotes the request in several lines; the first line has the reason.
    return malformed(error.message.partition("\n")[0].rstrip(":. ") or "not HTTP")
