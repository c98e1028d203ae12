"""Traces of requests and their spans. tests/gateway/live/test_traces.py tests their export."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiohttp import HttpVersion11
from multidict import CIMultiDict

from gateway.http.trace_parent import Tracing, parse_traceparent
from gateway.proxy.exchange import Exchange, RequestSpan
from gateway.proxy.request_trace import RequestTraces, spans
from tests.gateway.kit import rules
from tests.gateway.proxy import wires
from tests.gateway.rules.rules import RULES, loaded
from tests.gateway.talk import ask

TRACE = "0af7651916cd43dd8448eb211c80319c"
SAMPLED = f"00-{TRACE}-b7ad6b7169203331-01"


PASSED_ON = {
    "X-Forwarded-For": "198.51.100.7",
    "X-Forwarded-Proto": "https",
    "X-Forwarded-Host": "b.test",
}


def traced(fields: dict[str, str], *more: tuple[str, str]) -> Exchange:
    """Return a traced exchange of a gateway that trusts the proxies in 10.0.0.0/8."""
    exchange = wires.exchange()
    exchange.snapshot = loaded(f"{RULES}trusted_proxies: [10.0.0.0/8]\n")
    headers = CIMultiDict([("traceparent", SAMPLED), *fields.items(), *more])
    message = SimpleNamespace(headers=headers, raw_headers=(), version=HttpVersion11)
    exchange.message = cast(Any, message)
    RequestTraces(lambda: None).begin(exchange, Tracing("", 1.0))
    return exchange


def test_at_most_500_sampled_traces_are_accepted_in_a_second() -> None:
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
def test_a_request_that_is_not_sampled_still_has_trace_fields_for_the_service(
    given: list[str], expected: str | None
) -> None:
    exchange = wires.exchange()
    headers = CIMultiDict([*STATES, *(("Traceparent", each) for each in given)])
    exchange.message = cast(Any, SimpleNamespace(headers=headers, raw_headers=()))
    RequestTraces(lambda: None).begin(exchange, Tracing("", 0.0))
    assert exchange.span is None
    (name, value), *states = exchange.trace_fields
    assert name == b"traceparent"
    assert parse_traceparent(value.decode()) is not None
    assert exchange.trace_id == value[3:35].decode()
    if expected is None:  # a new trace does not inherit the tracestate
        assert TRACE.encode() not in value
        assert not states
    else:
        assert value.decode() == expected
        assert tuple(states) == STATE_LINES


def test_the_trace_fields_of_an_unsampled_request_are_forwarded_unchanged() -> None:
    exchange = wires.exchange()
    headers = CIMultiDict([*STATES, ("Traceparent", NOT_SAMPLED)])
    exchange.message = cast(Any, SimpleNamespace(headers=headers, raw_headers=()))
    RequestTraces(lambda: None).begin(exchange, Tracing("", 1.0))
    assert (exchange.span, exchange.trace_id, exchange.trace_fields) == (None, TRACE, ())


@pytest.mark.parametrize(
    ("peer", "authority", "fields", "expected"),
    [
        ("192.0.2.9", "a.test", {}, ("http", "a.test", 80, "192.0.2.9")),
        ("192.0.2.9", "[::1]:8080", {}, ("http", "::1", 8080, "192.0.2.9")),
        ("192.0.2.9", "[::1]", {}, ("http", "::1", 80, "192.0.2.9")),
        ("192.0.2.9", "a.test:", {}, ("http", "a.test", 80, "192.0.2.9")),
        ("192.0.2.9", "a.test:99999", {}, ("http", "a.test", 99999, "192.0.2.9")),
        ("192.0.2.9", "", {}, ("http", None, None, "192.0.2.9")),
        ("192.0.2.9", "a.test", PASSED_ON, ("http", "a.test", 80, "192.0.2.9")),
        ("10.0.0.1", "a.test", PASSED_ON, ("https", "b.test", 443, "198.51.100.7")),
    ],
)
def test_a_span_has_the_server_and_client_addresses_that_a_trusted_proxy_reports(
    peer: str,
    authority: str,
    fields: dict[str, str],
    expected: tuple[str, str | None, int | None, str],
) -> None:
    exchange = traced({"User-Agent": "x\udcff" * 200, **fields})
    exchange.peer, exchange.authority = peer, authority
    (server,) = spans(exchange, cast(RequestSpan, exchange.span))
    found = server.attributes
    names = ("url.scheme", "server.address", "server.port", "client.address")
    assert tuple(found.get(name) for name in names) == expected
    assert found["network.peer.address"] == peer
    assert found["user_agent.original"] == "x?" * 128


@pytest.mark.parametrize(
    ("states", "kept"),
    [(["a=1", "b=2"], "a=1,b=2"), (["a=\udcff"], "a=\ufffd"), ([f"a={'x' * 511}"], ""), ([], "")],
)
def test_spans_have_the_tracestate_of_the_caller(states: list[str], kept: str) -> None:
    """A state of more than 512 characters is dropped, because memory may hold many spans."""
    exchange = traced({}, *(("tracestate", each) for each in states))
    assert {span.state for span in spans(exchange, cast(RequestSpan, exchange.span))} == {kept}


async def test_the_span_of_a_failed_service_request_lasts_until_the_end() -> None:
    """The conversion of the request has a separate span, which ends earlier."""
    text = rules(1, via=True) + "tracing: { ratio: 1 }\n"
    gateway = wires.Gateway(text, {1: lambda _: b"no HTTP"})
    body = b'{"name":"A B"}'
    framed = "Content-Type: application/json", f"Content-Length: {len(body)}"
    answer = await gateway.ask(ask("POST /v1/person", *framed, body=body))
    assert answer.startswith(b"HTTP/1.1 502")
    (exchange,) = gateway.exchanges
    server, conversion, asked = spans(exchange, cast(RequestSpan, exchange.span))
    assert (conversion.name, asked.name) == ("convert request", "POST")
    assert conversion.ended <= asked.began < asked.ended == server.ended
    gateway.close()
