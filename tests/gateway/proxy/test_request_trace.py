"""How many requests are traced; tests/gateway/live/test_traces.py has what becomes of them."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from multidict import CIMultiDict

from gateway.core.tracing.trace_parent import Tracing, parse_traceparent
from gateway.proxy.request_trace import RequestTraces
from tests.gateway.proxy import wires

TRACE = "0af7651916cd43dd8448eb211c80319c"
SAMPLED = f"00-{TRACE}-b7ad6b7169203331-01"


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


STATES = [("TraceState", "a=1"), ("tracestate", "b=\udcff")]
STATE_LINES = ((b"tracestate", b"a=1"), (b"tracestate", b"b=\xff"))
NOT_SAMPLED = f"{SAMPLED[:-1]}0"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([f"{SAMPLED[:-2]}02"], NOT_SAMPLED),
        ([f"cc{NOT_SAMPLED[2:]}-more"], NOT_SAMPLED),
        ([NOT_SAMPLED, NOT_SAMPLED], None),
        (["none"], None),
        ([], None),
    ],
)
def test_what_is_not_sampled_goes_on_all_the_same(given: list[str], expected: str | None) -> None:
    exchange = wires.exchange()
    headers = CIMultiDict([*STATES, *(("Traceparent", each) for each in given)])
    exchange.message = cast(Any, SimpleNamespace(headers=headers, raw_headers=()))
    RequestTraces(lambda: None).begin(exchange, Tracing("", 0.0))
    assert exchange.span is None
    (name, value), *states = exchange.trace_fields
    assert name == b"traceparent"
    assert parse_traceparent(value.decode()) is not None
    assert exchange.trace_id == value[3:35].decode()
    if expected is None:  # of the state of another trace, nothing goes on
        assert TRACE.encode() not in value
        assert not states
    else:
        assert value.decode() == expected
        assert tuple(states) == STATE_LINES


def test_a_trace_that_is_not_sampled_goes_on_by_the_fields_of_the_request() -> None:
    exchange = wires.exchange()
    headers = CIMultiDict([*STATES, ("Traceparent", NOT_SAMPLED)])
    exchange.message = cast(Any, SimpleNamespace(headers=headers, raw_headers=()))
    RequestTraces(lambda: None).begin(exchange, Tracing("", 1.0))
    assert (exchange.span, exchange.trace_id, exchange.trace_fields) == (None, TRACE, ())
