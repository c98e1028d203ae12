"""Metrics in the Prometheus text format.

Request durations follow the OpenTelemetry conventions for HTTP metrics, with Prometheus names:
https://opentelemetry.io/docs/specs/semconv/http/http-metrics/
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from math import inf
from time import perf_counter

from aiohttp import web

# prometheus_client is the reference implementation of the text format in Python.
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, Metric, generate_latest
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample

from gateway.admin.piecewise import send_pieces
from gateway.findings.operator import Operator
from gateway.observe.metric_table import METRICS, MetricRow
from gateway.rollout.cutover import percent_in_force
from gateway.rollout.gates import GateResult
from gateway.rollout.route_outcomes import OUTCOMES
from gateway.usage.delta import BOUNDS
from gateway.usage.totals import OVERFLOW, Durations, EndingKey, Totals

# A piece ends after the series that reaches this number of samples or this time, in seconds.
# Writing a sample takes 10 microseconds.
MOST_SAMPLES = 100
_SECONDS = 0.001
# The number of counts that are grouped by metric before the event loop can run other tasks.
_GROUPED = 5000
_BOUNDS = [*(f"{bound:g}" for bound in BOUNDS), "+Inf"]

_Series = Iterable[tuple[tuple[str, ...], float | Durations]]
"""For each series: its label values, in the order of the metric's row in METRICS, and its value."""


class Metrics:
    def __init__(self, operator: Operator) -> None:
        self._operator = operator

    async def metrics(self, request: web.Request) -> web.StreamResponse:
        fields = {"Content-Type": CONTENT_TYPE_PLAIN_0_0_4}
        return await send_pieces(request, exposition(self._operator), fields)


def exposition(operator: Operator) -> Iterator[bytes]:
    """Yield all metrics in the text format of Prometheus, in pieces of about a millisecond.

    The event loop can run other tasks between pieces, so later pieces may include newer counts. All
    values of one series are read at the same time.
    """
    counts = defaultdict[str, list[tuple[tuple[str, ...], float]]](list)
    for number, ((kind, values), times) in enumerate([*operator.totals.counts.items()]):
        counts[kind].append((values, times.count))
        if number % _GROUPED == 0:
            yield b""
    series = {**_of_requests(operator.totals), **_of_cutovers(operator), **_of_versions(operator)}
    series |= _of_process(operator)
    for row in METRICS:
        yield from _pieces(row, counts[row.kind] if row.counted else series[row.name])


class _OneMetric(Collector):
    def __init__(self, metric: Metric) -> None:
        self._metric = metric

    def collect(self) -> Iterator[Metric]:
        yield self._metric


def _pieces(row: MetricRow, series: _Series) -> Iterator[bytes]:
    """Yield a metric in pieces. Only the first piece has the lines HELP and TYPE."""
    name = row.name.removesuffix("_total")
    metric, first = Metric(name, row.help, row.type), True
    begun = perf_counter()
    for values, value in series:
        labels = {label: text for label, text in zip(row.labels, values, strict=True) if text}
        metric.samples += _samples(row.name, labels, value)
        if len(metric.samples) >= MOST_SAMPLES or perf_counter() - begun >= _SECONDS:
            yield _text(metric, head=first)
            metric, first = Metric(name, row.help, row.type), False
            begun = perf_counter()
    if first or metric.samples:
        yield _text(metric, head=first)


def _text(metric: Metric, *, head: bool) -> bytes:
    text = generate_latest(_OneMetric(metric))
    return text if head else text.split(b"\n", 2)[2]


def _samples(name: str, labels: dict[str, str], value: float | Durations) -> Iterator[Sample]:
    if not isinstance(value, Durations):
        yield Sample(name, labels, value)
        return
    count = 0
    for bound, more in zip(_BOUNDS, value.buckets, strict=True):
        count += more
        yield Sample(f"{name}_bucket", {**labels, "le": bound}, count)
    yield Sample(f"{name}_count", labels, count)
    yield Sample(f"{name}_sum", labels, value.seconds)


def _of_requests(totals: Totals) -> Mapping[str, _Series]:
    def served() -> _Series:
        for place, total in [*totals.traffic.items()]:
            for ending, durations in [*total.endings.items()]:
                yield (*place, *_ending(ending)), durations

    def sent() -> _Series:
        for (api, version, target), total in [*totals.upstream.items()]:
            host, _, port = target.rpartition(":")
            for ending, durations in [*total.endings.items()]:
                yield (api, version, host.strip("[]"), port, *_ending(ending)), durations

    converted = Counter[tuple[str, str, str]]()
    for (api, version, endpoint, _), total in [*totals.traffic.items()]:
        converted[api, version, endpoint] += total.converted
    return {
        "http_server_request_duration_seconds": served(),
        "http_client_request_duration_seconds": sent(),
        "gateway_conversions_total": (
            (place, times) for place, times in converted.items() if times
        ),
    }


def _ending(ending: EndingKey) -> tuple[str, str, str, str]:
    if ending == OVERFLOW:
        return "", "", "", "true"
    method, status, error = ending
    return method, str(status) if status else "", error, ""


def _of_cutovers(operator: Operator) -> Mapping[str, _Series]:
    rules, overrides = operator.rules, operator.state.in_force
    found = [*operator.totals.outcomes.items()]
    gates = [
        ((*key, result.gate, result.measure), result)
        for key in rules.cutovers
        for result in operator.state.cutover(key).results
    ]

    def by_route(values: Callable[[GateResult], tuple[float | None, float | None]]) -> _Series:
        for gate, result in gates:
            for route, value in zip(("old", "new"), values(result), strict=True):
                if value is not None:
                    yield (*gate, route), value

    return {
        "gateway_cutover_failures_total": (
            (place, total.outcomes.failures) for place, total in found
        ),
        "gateway_cutover_outcomes_total": (
            ((*place, outcome), count)
            for place, total in found
            for outcome, count in zip(OUTCOMES, total.outcomes.ends, strict=True)
            if count
        ),
        "gateway_cutover_checked_total": (
            (place, total.outcomes.checked) for place, total in found
        ),
        "gateway_cutover_violating_total": (
            (place, total.outcomes.violating) for place, total in found
        ),
        "gateway_cutover_duration_seconds": ((place, total.durations) for place, total in found),
        "gateway_gate_value": by_route(lambda result: (result.old, result.new)),
        "gateway_gate_requests": by_route(
            lambda result: (result.old_requests, result.new_requests)
        ),
        "gateway_gate_matching_requests": by_route(
            lambda result: (result.old_count, result.new_count)
        ),
        "gateway_gate_window_seconds": ((gate, result.window) for gate, result in gates),
        "gateway_gate_limit": ((gate, result.limit) for gate, result in gates),
        "gateway_gate_outcome": (((*gate, result.outcome), 1) for gate, result in gates),
        "gateway_cutover_percent": (
            (key, percent_in_force(cutover, overrides)) for key, cutover in rules.cutovers.items()
        ),
    }


def _of_versions(operator: Operator) -> Mapping[str, _Series]:
    usages = [*operator.totals.clients.items()]
    paused = operator.state.in_force.paused
    keys = [(api, label) for api, labels in operator.rules.labels.items() for label in labels]
    dates = [(key, terms) for key in keys if (terms := operator.rules.terms(key)) is not None]
    return {
        "gateway_usage_total": (
            (key, sum(row.count for row in usage.rows.values())) for key, usage in usages
        ),
        "gateway_usage_last_seen_timestamp_seconds": (
            (key, max((row.last for row in usage.rows.values()), default=0))
            for key, usage in usages
        ),
        "gateway_usage_clients": (
            (key, len({client for _, client in usage.rows})) for key, usage in usages
        ),
        "gateway_version_deprecated_timestamp_seconds": (
            (key, terms.deprecated) for key, terms in dates if terms.deprecated is not None
        ),
        "gateway_version_sunset_timestamp_seconds": (
            (key, terms.sunset) for key, terms in dates if terms.sunset < inf
        ),
        "gateway_brownout_paused": (
            (key, key in paused) for key in sorted(operator.rules.brownouts | paused)
        ),
    }


def _of_process(operator: Operator) -> Mapping[str, _Series]:
    reloader, stale_since = operator.reloader, operator.state.stale_since
    failing = Counter((each.service, each.target) for each in operator.targets())
    targets = [
        (service.name, target)
        for service in operator.rules.services.values()
        for target in dict.fromkeys(each.authority for each in service.targets)
    ]
    return {
        "gateway_workers": [((), operator.workers())],
        "gateway_target_failing": ((target, failing[target]) for target in targets),
        "gateway_reloads_total": [
            (("loaded",), reloader.loaded),
            (("rejected",), reloader.rejected),
        ],
        "gateway_certificate_expiry_timestamp_seconds": (
            ((file,), expires) for file, expires in operator.certificate_expiries().items()
        ),
        "gateway_key_set_timestamp_seconds": (
            (labels[:1], times.last)
            for labels, times in operator.totals.counted("key_fetches")
            if labels[1] == "fetched"
        ),
        "gateway_webhook_failing": (
            ((name,), fails) for name, fails in [*operator.webhooks.items()]
        ),
        "gateway_state_unwritten": [((), stale_since is not None)],
        "gateway_state_stale_since_timestamp_seconds": [((), stale_since or 0)],
    }
