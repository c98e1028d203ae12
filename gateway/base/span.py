"""Spans of traced requests, before an exporter sends them."""

from typing import NamedTuple


class SpanKind:
    """The kinds of spans, by their numbers in OpenTelemetry's SDK."""

    INTERNAL = 0
    SERVER = 1
    CLIENT = 2


class Span(NamedTuple):
    """A step of a traced request.

    Attributes:
        parent_id: The id of the parent span; empty for the first span of a trace.
        name: The operation, such as `GET /v{version}/person`.
        began: The start, in nanoseconds since 1970.
        ended: The end, in nanoseconds since 1970.
        attributes: The attributes, with names from the OpenTelemetry conventions.
        links: Related spans in other traces: pairs of a trace id and a span id.
        state: The value of `tracestate` in the request; empty if it has none.
    """

    trace_id: str
    span_id: str
    parent_id: str
    name: str
    kind: int
    began: int
    ended: int
    attributes: dict[str, str | int]
    failed: bool = False
    links: tuple[tuple[str, str], ...] = ()
    state: str = ""
