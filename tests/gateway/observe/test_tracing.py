"""The tracing settings, from the configuration and from OpenTelemetry's variables."""

import sys

import pytest

from gateway.base.mistakes import Mistakes
from gateway.http.trace_parent import Tracing
from gateway.observe.tracing import NO_TRACING, TracingModel

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
OF_TRACES = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
RATIO = {"OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.25"}
LOCAL = "http://localhost:4318/v1/traces"


@pytest.mark.parametrize(
    ("config", "environment", "expected"),
    [
        (None, {}, None),
        (None, RATIO, None),
        (None, {ENDPOINT: ""}, None),
        (None, {ENDPOINT: "http://c:1/"}, Tracing("http://c:1/v1/traces")),
        (None, {ENDPOINT: "http://c:1/otlp"}, Tracing("http://c:1/otlp/v1/traces")),
        (None, {ENDPOINT: "http://c:1", OF_TRACES: "http://d/t"}, Tracing("http://d/t")),
        (None, {ENDPOINT: "http://c:1", **RATIO}, Tracing("http://c:1/v1/traces", 0.25)),
        (None, {ENDPOINT: "http://c:1", "OTEL_SDK_DISABLED": "TRUE"}, None),
        ({}, {"OTEL_SDK_DISABLED": "true"}, None),
        ({}, {}, Tracing(LOCAL)),
        ({}, {ENDPOINT: "https://c"}, Tracing("https://c/v1/traces")),
        ({}, {"OTEL_TRACES_SAMPLER": "parentbased_always_off"}, Tracing(LOCAL, 0.0)),
        ({}, {"OTEL_TRACES_SAMPLER": "parentbased_always_on"}, Tracing(LOCAL, 1.0)),
        ({}, {"OTEL_TRACES_SAMPLER": "traceidratio"}, Tracing(LOCAL, 1.0)),
        ({"ratio": 0.5}, RATIO, Tracing(LOCAL, 0.5)),
        ({"endpoint": "http://c:1"}, {ENDPOINT: "http://d"}, Tracing("http://c:1/v1/traces")),
    ],
)
def test_configuration_and_environment_determine_the_tracing(
    config: dict[str, object] | None, environment: dict[str, str], expected: Tracing | None
) -> None:
    mistakes = Mistakes()
    model = NO_TRACING if config is None else TracingModel(**config)  # type: ignore[arg-type]
    assert model.compile(environment, mistakes) == expected
    assert [*mistakes.found, *mistakes.warnings] == []


@pytest.mark.parametrize(
    ("endpoint", "environment", "text"),
    [
        ("c:1", {}, "the endpoint is not a URL; write one like http://localhost:4318"),
        ("http://[::1", {}, "the endpoint is not a URL; write one like http://localhost:4318"),
        (
            None,
            {ENDPOINT: "grpc://c"},
            "the endpoint is not a URL; write one like http://localhost:4318",
        ),
        (
            None,
            {ENDPOINT: "http://c:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
            (
                "OTEL_EXPORTER_OTLP_PROTOCOL is 'grpc', but spans are sent as http/protobuf; unset"
                " it, and name the collector's port for HTTP, such as 4318"
            ),
        ),
        (
            None,
            RATIO | {"OTEL_TRACES_SAMPLER_ARG": "2"},
            "OTEL_TRACES_SAMPLER_ARG is '2'; must be a number from 0 to 1",
        ),
        (
            None,
            RATIO | {"OTEL_TRACES_SAMPLER_ARG": "some"},
            "OTEL_TRACES_SAMPLER_ARG is 'some'; must be a number from 0 to 1",
        ),
    ],
)
def test_mistakes_in_tracing_suggest_a_fix(
    endpoint: str | None, environment: dict[str, str], text: str
) -> None:
    mistakes = Mistakes()
    TracingModel(endpoint=endpoint).compile(environment, mistakes)
    assert [each.text for each in mistakes.found] == [text]


def test_tracing_without_the_sdk_is_a_mistake_or_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the configuration it is a mistake.

    An environment variable may be meant for other programs.
    """
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    lacking = (
        "needs the SDK of OpenTelemetry, which is not installed;"
        " run: pip install 'version-gateway[otlp]'"
    )
    mistakes = Mistakes()
    assert NO_TRACING.compile({ENDPOINT: "http://c"}, mistakes) is None
    assert [each.text for each in mistakes.warnings] == [f"warning: {ENDPOINT} {lacking}"]
    assert TracingModel().compile({}, mistakes) is None
    assert [each.text for each in mistakes.found] == [lacking]
