"""Metrics: the totals in the format of Prometheus. No label has the name of a client."""

from collections.abc import Iterable, Iterator

# prometheus_client: writes the format of Prometheus, which is its makers' own.
from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from gateway.admin.operator import Operator
from gateway.core.cutover.cutover import in_force
from gateway.state.totals import Totals, TrafficTotal
from gateway.telemetry.delta import BOUNDS, CLASSES, COUNTERS

CONTENT_TYPE = CONTENT_TYPE_LATEST
_ABOUT = {
    "refusals": "Requests that the gateway answered with a fault of its own.",
    "upstream_errors": "Requests that a service failed to answer.",
    "client_bounds": "Times that clients reached a bound, by bound.",
    "compared": "Answers that were compared with that of their shadow.",
    "differing": "Answers that differed from that of their shadow.",
    "noise": "Fields in which two answers of a version's own service differed.",
    "shed": "Answers that were not compared, by reason.",
    "differences": "Differences between answers and their shadows.",
    "checked": "Converted answers that were checked against a schema.",
    "violations": "Violations of a schema in converted answers.",
    "task_failures": "Failures of tasks of the gateway, which were started again.",
}
_VERSION = ("api", "version")


def exposition(operator: Operator) -> bytes:
    """Return all metrics in the text format of Prometheus."""
    registry = CollectorRegistry()
    registry.register(_OperatorCollector(operator))
    return generate_latest(registry)


class _OperatorCollector(Collector):
    def __init__(self, operator: Operator) -> None:
        self._operator = operator

    def collect(self) -> Iterator[Metric]:
        operator = self._operator
        yield from _traffic(operator.totals)
        yield from _cutovers(operator.totals)
        yield from _counts(operator.totals)
        yield from _usage(operator.totals)
        overrides = operator.overrides.in_force
        yield _gauge(
            "brownout_paused",
            "1 where an operator has paused the brownouts of a version.",
            ((key, 1) for key in overrides.paused),
        )
        yield _gauge(
            "cutover_percent",
            "Percentage of the clients of a version that are served via another version.",
            (
                (key, in_force(cutover, overrides))
                for key, cutover in operator.rules.cutovers.items()
            ),
        )
        yield GaugeMetricFamily("gateway_workers", "Processes that serve.", operator.workers())
        reloads = CounterMetricFamily(
            "gateway_reloads", "Times that the rules were loaded again.", labels=["result"]
        )
        reloads.add_metric(["loaded"], operator.reloader.loaded)
        reloads.add_metric(["rejected"], operator.reloader.rejected)
        yield reloads
        yield GaugeMetricFamily(
            "gateway_state_unwritten",
            "1 while the state cannot be written to its store.",
            operator.writer.failing,
        )


def _traffic(totals: Totals) -> Iterator[Metric]:
    requests = CounterMetricFamily(
        "gateway_requests", "Requests, by class of status.", labels=(*_VERSION, "endpoint", "class")
    )
    converted = CounterMetricFamily(
        "gateway_conversions", "Requests with a body converted.", labels=(*_VERSION, "endpoint")
    )
    sums: dict[tuple[str, str], TrafficTotal] = {}
    for place, total in totals.traffic.items():
        for status, count in zip(CLASSES, total.statuses, strict=True):
            if count:
                requests.add_metric((*place, status), count)
        if total.converted:
            converted.add_metric(place, total.converted)
        sums.setdefault(place[:2], TrafficTotal()).add(total)
    yield requests
    yield converted
    yield _histogram(
        "request_duration_seconds", "Seconds from a request to the end of its answer.", sums.items()
    )


def _cutovers(totals: Totals) -> Iterator[Metric]:
    labels = (*_VERSION, "route")
    failures = CounterMetricFamily(
        "gateway_cutover_failures", "Failed requests of a cutover, by route.", labels=labels
    )
    for place, total in totals.outcomes.items():
        failures.add_metric(place, total.failures)
    yield failures
    yield _histogram(
        "cutover_duration_seconds",
        "Seconds from a request of a cutover to the end of its answer, by route.",
        totals.outcomes.items(),
        labels,
    )


def _counts(totals: Totals) -> Iterator[Metric]:
    for kind, labels in COUNTERS.items():
        family = CounterMetricFamily(f"gateway_{kind}", _ABOUT[kind], labels=labels)
        for values, occurrences in totals.counted(kind):
            family.add_metric(values, occurrences.count)
        yield family


def _usage(totals: Totals) -> Iterator[Metric]:
    requests = CounterMetricFamily(
        "gateway_usage", "Requests for a version, restarts included.", labels=_VERSION
    )
    lasts, clients = [], []
    for version, usage in totals.clients.items():
        requests.add_metric(version, sum(row.count for row in usage.rows.values()))
        lasts.append((version, max((row.last for row in usage.rows.values()), default=0)))
        clients.append((version, len({client for _, client in usage.rows})))
    yield requests
    yield _gauge(
        "usage_last_seen_timestamp_seconds",
        "Time of the last request for a version, in seconds since 1970.",
        lasts,
    )
    yield _gauge("usage_clients", "Clients that asked for a version, by distinct name.", clients)


def _gauge(name: str, about: str, values: Iterable[tuple[tuple[str, str], float]]) -> Metric:
    family = GaugeMetricFamily(f"gateway_{name}", about, labels=_VERSION)
    for labels, value in values:
        family.add_metric(labels, value)
    return family


def _histogram(
    name: str,
    about: str,
    sums: Iterable[tuple[tuple[str, ...], TrafficTotal]],
    labels: tuple[str, ...] = _VERSION,
) -> Metric:
    family = HistogramMetricFamily(f"gateway_{name}", about, labels=labels)
    for values, total in sums:
        below = 0
        buckets: list[tuple[str, float]] = []
        for bound, count in zip((*BOUNDS, "+Inf"), total.buckets, strict=True):
            below += count
            buckets.append((str(bound), below))
        family.add_metric(values, buckets, total.seconds)
    return family
