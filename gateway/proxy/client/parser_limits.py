"""The parser's bounds on a request head, and what its refusals mean."""

from dataclasses import dataclass
from typing import cast

from aiohttp.http import RawRequestMessage
from aiohttp.http_exceptions import HttpProcessingError, LineTooLong

from gateway.core.errors import Fault, FaultCode
from gateway.core.snapshot import Limits


@dataclass(frozen=True, slots=True)
class HeavyRequest:
    """Stands in the parser's queue for a request whose header fields are too large.

    Attributes:
        message: the head, or the parser's placeholder where it is not whole.
    """

    message: RawRequestMessage


def heavy(message: RawRequestMessage) -> RawRequestMessage:
    """Return what takes the place of a request in the parser's queue, to be refused in its turn."""
    # The queue's type is aiohttp's own, which names a private class beside requests.
    return cast(RawRequestMessage, HeavyRequest(message))


def longest_field(limits: Limits) -> int:
    """Return what the parser is told that a header field may have, in bytes."""
    # Another number than the target's, because the parser says which was broken and nothing more.
    return limits.header_bytes + (limits.header_bytes == limits.target)


def size(message: RawRequestMessage) -> int:
    """Return the bytes of the header fields of a request."""
    # As they came: with a colon, a space and the end of the line.
    return sum(len(name) + len(value) + 4 for name, value in message.raw_headers)


def largest_head(limits: Limits) -> int:
    """Return how many bytes of a request may be here before its head is whole."""
    # The method and the protocol's version stand in the request line beside the target.
    return limits.header_bytes + limits.target + 64


def too_heavy(limits: Limits) -> Fault:
    """Return the refusal of header fields of too many bytes."""
    return Fault(
        FaultCode.HEADERS_TOO_LARGE,
        f"The header fields may have {limits.header_bytes} bytes in all.",
    )


def fault(error: BaseException | None, limits: Limits) -> Fault:
    """Return what the parser's refusal of a request means."""
    if isinstance(error, LineTooLong):
        if error.args[1] == limits.target:
            return Fault(
                FaultCode.URI_TOO_LONG, f"The request target may have {limits.target} bytes."
            )
        return too_heavy(limits)
    what = error.message if isinstance(error, HttpProcessingError) else ""
    if what.startswith("Too many headers"):
        detail = f"A request may have {limits.header_fields} header fields."
        return Fault(FaultCode.HEADERS_TOO_LARGE, detail)
    # The parser's message quotes the request in several lines; its first line says what is wrong.
    reason = what.partition("\n")[0].rstrip(":. ") or "not HTTP"
    return Fault(FaultCode.BAD_REQUEST, f"The request is not valid HTTP/1.1: {reason}.")
