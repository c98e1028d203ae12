"""Tracing: which requests are traced, and how a trace goes on from one program to the next.

W3C Trace Context, https://www.w3.org/TR/trace-context/. Sampling is based on the parent: a request
that belongs to a trace is traced if its caller traces it; of those that begin one, a share is.
"""

import re
from dataclasses import dataclass
from typing import NamedTuple

TRACE_FIELDS = frozenset({b"traceparent", b"tracestate"})
"""The names of the fields by which a trace goes on."""
# Section 3.2: later versions may have more fields after these; an id of zeros is none.
_TRACEPARENT = re.compile(
    r"(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:\Z|-)"
)
_NOT_SAMPLED = re.compile(r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-00\Z")
_LENGTH = 55
_SAMPLED = 1


@dataclass(frozen=True, slots=True)
class Tracing:
    """Where spans go, and how many.

    Attributes:
        endpoint: The URL of a collector that takes spans by OTLP over HTTP.
        ratio: The share of the requests without a caller's trace that is traced, from 0 to 1.
    """

    endpoint: str
    ratio: float = 1.0


class TraceParent(NamedTuple):
    """The trace that a request belongs to.

    Attributes:
        trace_id: The id of the trace, 32 hexadecimal digits.
        span_id: The id of the caller's span, 16 hexadecimal digits.
        sampled: Whether the caller traces it.
    """

    trace_id: str
    span_id: str
    sampled: bool

    @property
    def field(self) -> bytes:
        """The value of the field `traceparent`."""
        return f"00-{self.trace_id}-{self.span_id}-{self.sampled:02d}".encode()


def parse_traceparent(text: str) -> TraceParent | None:
    """Return what a field `traceparent` says; None if it is not valid."""
    found = _TRACEPARENT.match(text)
    if found is None or (found[1] == "00" and len(text) != _LENGTH):
        return None
    return TraceParent(found[2], found[3], bool(int(found[4], 16) & _SAMPLED))


def is_not_sampled(text: str) -> bool:
    """Return whether a field `traceparent` is valid, of the first version, and has no flag set.

    That is what most requests have that belong to a trace, and it costs a tenth of all that is
    said. Such a field can go on as it is.
    """
    return _NOT_SAMPLED.match(text) is not None
