"""Metrics: the ledger as Prometheus reads it. Labels are what the rules name, never clients."""

from collections.abc import Iterable, Iterator

# prometheus_client: the format is its makers' to know. Imported where metrics are first asked for.
from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from gateway.core.cutover import in_force
from gateway.operation.desk import Desk
from gateway.operation.ledger import Ledger, Sum
from gateway.operation.report import BOUNDS, CLASSES, KINDS

CONTENT_TYPE = CONTENT_TYPE_LATEST
_ABOUT = {
    "refusals": "Requests that the gateway answered with a fault of its own.",
    "upstream_errors": "Requests that a service failed to answer.",
    "compared": "Answers that a shadow was compared with.",
    "differing": "Those of them that differed.",
    "noise": "Fields in which two answers of a version's own service differed.",
    "shed": "Answers that were not compared, by reason.",
    "differences": "Differences between answers and their shadows.",
    "checked": "Converted answers that were checked against a schema.",
    "violations": "Violations of a schema in converted answers.",
}
_VERSION = ("api", "version")


def exposition(desk: Desk) -> bytes:
    """Return all metrics in the text format of Prometheus."""
    registry = CollectorRegistry()
    registry.register(_Desk(desk))
    return generate_latest(registry)


class _Desk(Collector):
    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def collect(self) -> Iterator[Metric]:
        desk = self._desk
        yield from _traffic(desk.ledger)
        yield from _cutovers(desk.ledger)
        yield from _counts(desk.ledger)
        yield from _usage(desk.ledger)
        orders = desk.control.orders
        yield _gauge(
            "brownout_paused", "1 where an operator paused it.", ((key, 1) for key in orders.paused)
        )
        yield _gauge(
            "cutover_percent",
            "Clients that are served via another version.",
            (
                (served, in_force(cutover, orders))
                for served, cutover in desk.rules.cutovers.items()
            ),
        )
        yield GaugeMetricFamily("gateway_workers", "Processes that serve.", desk.workers())
        reloads = CounterMetricFamily(
            "gateway_reloads", "Times that the rules were loaded again.", labels=["result"]
        )
        reloads.add_metric(["taken"], desk.reloader.taken)
        reloads.add_metric(["rejected"], desk.reloader.rejected)
        yield reloads


def _traffic(ledger: Ledger) -> Iterator[Metric]:
    requests = CounterMetricFamily(
        "gateway_requests", "Requests, by class of status.", labels=(*_VERSION, "endpoint", "class")
    )
    converted = CounterMetricFamily(
        "gateway_conversions", "Requests with a body converted.", labels=(*_VERSION, "endpoint")
    )
    sums: dict[tuple[str, str], Sum] = {}
    for place, total in ledger.traffic.items():
        for status, count in zip(CLASSES, total.statuses, strict=True):
            if count:
                requests.add_metric((*place, status), count)
        if total.converted:
            converted.add_metric(place, total.converted)
        sums.setdefault(place[:2], Sum()).add(total)
    yield requests
    yield converted
    yield _histogram("request_duration_seconds", "From a request to its answer.", sums.items())


def _cutovers(ledger: Ledger) -> Iterator[Metric]:
    labels = (*_VERSION, "arm")
    failures = CounterMetricFamily(
        "gateway_cutover_failures", "Failed requests of a cutover, by arm.", labels=labels
    )
    for place, total in ledger.outcomes.items():
        failures.add_metric(place, total.failures)
    yield failures
    yield _histogram(
        "cutover_duration_seconds",
        "Requests of a cutover, by arm.",
        ledger.outcomes.items(),
        labels,
    )


def _counts(ledger: Ledger) -> Iterator[Metric]:
    for kind, labels in KINDS.items():
        family = CounterMetricFamily(f"gateway_{kind}", _ABOUT[kind], labels=labels)
        for values, times in ledger.counted(kind):
            family.add_metric(values, times.count)
        yield family


def _usage(ledger: Ledger) -> Iterator[Metric]:
    requests = CounterMetricFamily(
        "gateway_usage", "Requests for a version, restarts included.", labels=_VERSION
    )
    lasts, clients = [], []
    for version, book in ledger.books.items():
        requests.add_metric(version, sum(row.count for row in book.rows.values()))
        lasts.append((version, max((row.last for row in book.rows.values()), default=0)))
        clients.append((version, len({client for _, client in book.rows})))
    yield requests
    yield _gauge("usage_last_seen_timestamp_seconds", "When a version was last asked for.", lasts)
    yield _gauge("usage_clients", "Clients told apart that asked for a version.", clients)


def _gauge(name: str, about: str, values: Iterable[tuple[tuple[str, str], float]]) -> Metric:
    family = GaugeMetricFamily(f"gateway_{name}", about, labels=_VERSION)
    for labels, value in values:
        family.add_metric(labels, value)
    return family


def _histogram(
    name: str,
    about: str,
    sums: Iterable[tuple[tuple[str, ...], Sum]],
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
