"""span."""

from typing import NamedTuple


class SpanKind:
    """The kinds of spans, by their numbers in OpenTelemetry's SDK."""

    INTERNAL = 0
    SERVER = 1
    CLIENT = 2


class Span(NamedTuple):
    """One step of a traced request.

    Attributes:
        parent_id: The id of the span that it is a part of; empty if it begins the trace.
        name: What is done, such as `GET /v{version}/person`.
        kind: One of SpanKind.
        began: When it began, in nanoseconds since 1970.
        ended: When it ended.
        attributes: By the names of OpenTelemetry's conventions.
        links: The ids of spans, each with the id of its trace, that it is about but no part of.
        state: What its caller said of the trace in `tracestate`; empty for nothing.
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
