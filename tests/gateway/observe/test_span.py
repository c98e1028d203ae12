"""Spans: their kinds have the numbers of the OpenTelemetry SDK."""

from opentelemetry.trace import SpanKind as Exported

from gateway.base.span import Span, SpanKind


def test_span_kinds_are_those_of_opentelemetry() -> None:
    ours = {name: value for name, value in vars(SpanKind).items() if name.isupper()}
    assert ours == {name: Exported[name].value for name in ours}
    assert len(ours) == 3


def test_a_span_has_default_values() -> None:
    span = Span("1" * 32, "2" * 16, "", "GET", SpanKind.SERVER, 1, 2, {})
    assert (span.failed, span.links) == (False, ())
