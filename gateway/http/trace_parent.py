"""Tracing: the selection of traced requests, and the continuation of traces between programs.

W3C Trace Context, https://www.w3.org/TR/trace-context/. Sampling is parent-based: a request that
belongs to a caller's trace is traced if the caller traces it. A configured share of the other
requests is traced.
"""

import re
from dataclasses import dataclass
from typing import NamedTuple

TRACE_FIELDS = frozenset({b"traceparent", b"tracestate"})
# Section 3.2: later versions may append fields, and an id of zeros is invalid.
_TRACEPARENT = re.compile(
    r"(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:\Z|-)"
)
_NOT_SAMPLED = re.compile(r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-00\Z")
_LENGTH = 55
_SAMPLED = 1


@dataclass(frozen=True, slots=True)
class Tracing:
    """`ratio` is the share of the requests without a caller's trace that is traced, from 0 to 1."""

    endpoint: str
    ratio: float = 1.0


class TraceParent(NamedTuple):
    """The caller's trace; its ids have 32 and 16 hexadecimal digits."""

    trace_id: str
    span_id: str
    sampled: bool

    @property
    def field(self) -> bytes:
        return f"00-{self.trace_id}-{self.span_id}-{self.sampled:02d}".encode()


def parse_traceparent(text: str) -> TraceParent | None:
    found = _TRACEPARENT.match(text)
    if found is None or (found[1] == "00" and len(text) != _LENGTH):
        return None
    return TraceParent(found[2], found[3], bool(int(found[4], 16) & _SAMPLED))


def is_not_sampled(text: str) -> bool:
    """Return whether a `traceparent` field is valid, of the first version, and without flags.

    Most requests of a trace have such a field, and this check takes a tenth of the time of parsing.
    The field can then be forwarded unchanged.
    """
    return _NOT_SAMPLED.match(text) is not None
