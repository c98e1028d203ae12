"""`tracing` in gateway.yaml: which requests are traced, and where their spans go."""

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import Field

from gateway.base.mistakes import Mistakes
from gateway.base.model import NonEmptyText, NumberText, SectionModel
from gateway.http.trace_parent import Tracing

_PATH = "/v1/traces"
_DEFAULT = "http://localhost:4318"
# The variables of OpenTelemetry's specification that stand for what the rules leave out.
_DISABLED = "OTEL_SDK_DISABLED"
_OF_TRACES = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
_OF_ALL = "OTEL_EXPORTER_OTLP_ENDPOINT"
_SAMPLER = "OTEL_TRACES_SAMPLER"
_ARGUMENT = "OTEL_TRACES_SAMPLER_ARG"


class TracingModel(SectionModel):
    """Which requests are traced, and where their spans go."""

    endpoint: NonEmptyText | None = None
    """The URL of a collector that takes spans by OTLP over HTTP, such as http://collector:4318;
    /v1/traces is added to it. Without it, OTEL_EXPORTER_OTLP_ENDPOINT applies, or
    http://localhost:4318."""
    ratio: Annotated[float, Field(ge=0, le=1), NumberText] | None = None
    """The share of the requests that are traced, from 0 to 1, of those that belong to no trace of
    their caller. Without it, OTEL_TRACES_SAMPLER_ARG applies, or all are traced."""

    def compile(self, environment: Mapping[str, str], mistakes: Mistakes) -> Tracing | None:
        """Return where spans go, by the configuration or else by the environment.

        Returns:
            None if nothing is traced.
        """
        if environment.get(_DISABLED, "").strip().lower() == "true":
            return None
        named = environment.get(_OF_TRACES) or _under(environment.get(_OF_ALL))
        if self is NO_TRACING and not named:
            return None
        if find_spec("opentelemetry") is None:
            text = (
                "needs the SDK of OpenTelemetry, which is not installed; install"
                " version-gateway[otlp]"
            )
            if self is NO_TRACING:
                mistakes.warn(f"warning: {_OF_ALL} {text}", "tracing")
            else:
                mistakes.add(text, "tracing")
            return None
        endpoint = _under(self.endpoint) or named or _under(_DEFAULT)
        if not _is_url(endpoint):
            # Not repeated, since it may hold a password.
            text = f"the endpoint is no URL; write one like {_DEFAULT}"
            mistakes.add(text, "tracing", *(("endpoint",) if self.endpoint else ()))
        ratio = _ratio(environment, mistakes) if self.ratio is None else self.ratio
        return Tracing(endpoint, ratio)


NO_TRACING = TracingModel.model_construct(endpoint=None, ratio=None)
"""The absence of `tracing` in gateway.yaml: the environment alone decides."""


def _under(base: str | None) -> str:
    return f"{base.rstrip('/')}{_PATH}" if base else ""


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _ratio(environment: Mapping[str, str], mistakes: Mistakes) -> float:
    sampler = environment.get(_SAMPLER, "")
    if sampler.endswith("always_off"):
        return 0.0
    if not sampler.endswith("traceidratio"):
        return 1.0
    text = environment.get(_ARGUMENT) or "1"
    try:
        ratio = float(text)
    except ValueError:
        ratio = -1.0
    if not 0 <= ratio <= 1:
        mistakes.add(f"{_ARGUMENT} is '{text}'; must be a number from 0 to 1", "tracing")
        return 1.0
    return ratio
