"""How many requests are traced; tests/gateway/live/test_traces.py has what becomes of them."""

from types import SimpleNamespace
from typing import Any, cast

from multidict import CIMultiDict

from gateway.core.tracing.trace_parent import Tracing
from gateway.proxy.request_trace import RequestTraces
from tests.gateway.proxy import wires

SAMPLED = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def test_callers_have_so_many_traced_a_second() -> None:
    """The others are answered as well, and go on with their caller's trace."""
    dropped: list[None] = []
    traces = RequestTraces(lambda: dropped.append(None))
    traced = 0
    for number in range(600):
        exchange = wires.exchange()
        headers = CIMultiDict({"traceparent": SAMPLED})
        exchange.message = cast(Any, SimpleNamespace(headers=headers, raw_headers=()))
        exchange.began = 7.0 + number / 1000
        traces.begin(exchange, Tracing("", 0.0))
        traced += exchange.span is not None
        if exchange.span is None:
            assert exchange.trace_fields == ((b"traceparent", SAMPLED.encode()),)
    assert (traced, len(dropped)) == (500, 100)
    exchange.began = 8.0
    traces.begin(exchange, Tracing("", 0.0))
    assert exchange.span is not None
