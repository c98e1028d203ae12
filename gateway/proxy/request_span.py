"""RequestSpan: what a traced request notes of itself until its spans are made."""

from random import getrandbits


class RequestSpan:
    """A request that is traced.

    Attributes:
        trace_id: the id of its trace.
        span_id: the id of the span of the request.
        parent_id: the id of the caller's span; empty if the trace begins here.
        state: what the caller said of the trace in `tracestate`; empty for nothing.
        asked_id: the id of the span of the request to the service.
        stages: the conversions: the name of each, its beginning and its end in monotonic seconds.
        begun: the name and the beginning of what may become one; None between them.
    """

    __slots__ = ("asked_id", "begun", "parent_id", "span_id", "stages", "state", "trace_id")

    def __init__(self, trace_id: str, parent_id: str, state: str) -> None:
        self.trace_id = trace_id
        self.parent_id = parent_id
        self.state = state
        self.span_id = new_span_id()
        self.asked_id = new_span_id()
        self.stages: list[tuple[str, float, float]] = []
        self.begun: tuple[str, float] | None = None

    def end(self, at: float, *, converted: bool) -> None:
        """Note that what has begun was a conversion, which is over, or that it was none."""
        if converted and self.begun is not None:
            self.stages.append((*self.begun, at))
        self.begun = None


def new_span_id() -> str:
    """Return an id for a span; it need not be hard to guess."""
    return (getrandbits(64) | 1).to_bytes(8).hex()
