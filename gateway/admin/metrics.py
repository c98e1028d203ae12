"""Metrics: the totals in the format of Prometheus. No label has the name of a client.

The durations of requests follow OpenTelemetry's conventions for HTTP metrics, under the names that
they have in Prometheus: https://opentelemetry.io/docs/specs/semconv/http/http-metrics/
"""

from collections import Counter
from collections.abc import Iterable, Iterator

from gateway.admin.operator import Operator
from gateway.core.cutover.cutover import in_force
from gateway.core.cutover.route_outcomes import OUTCOMES
from gateway.core.overrides import VersionKey
from gateway.state.totals import OVERFLOW, Durations, EndingKey, Totals
from gateway.telemetry.delta import BOUNDS, COUNTERS

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
"""https://prometheus.io/docs/instrumenting/exposition_formats/"""
_BOUNDS = [*(f"{bound:g}" for bound in BOUNDS), "+Inf"]
MOST = 500
"""A piece ends with the series that reaches so many lines; it takes less than a millisecond."""
_ABOUT = {
    "refusals": "Requests that the gateway answered with a fault of its own.",
    "upstream_errors": "Requests that a service failed to answer.",
    "client_bounds": "Times that clients reached a bound, by bound.",
    "operations": "Requests for versions with a shadow or a cutover, by operation.",
    "operations_compared": "Requests that a shadow compared or validated, by operation.",
    "compared": "Answers that were compared with that of their shadow.",
    "differing": "Answers that differed from that of their shadow.",
    "validated": "Requests that a shadow validated without sending them.",
    "invalid": "Requests that the version of a shadow would refuse.",
    "noise": "Fields in which two answers of a version's own service differed.",
    "shed": "Answers that were not compared, by reason.",
    "differences": "Fields in which answers differ from their shadow, or requests are refused.",
    "checked": "Converted answers that were checked against a schema.",
    "violations": "Violations of a schema in converted answers.",
    "unmapped_links": "Links of answers and requests that fit no endpoint, by place.",
    "dropped_digests": "Digests and signatures that were dropped with converted bodies, by field.",
    "log_dropped": "Lines of the log that were dropped because they could not be written, by kind.",
    "notifications": "Attempts to send word of events to webhooks, by outcome.",
    "admin_bounds": "Connections of the admin port that were closed for a bound.",
    "admin_refusals": "Requests of the admin port that were refused before they were looked at.",
    "in_flight_waits": "Requests that waited, as their service had as many as it may have.",
    "connection_waits": "Requests that waited while as many connections were opened as may be.",
    "local_connect_failures": "Connections that this machine could not open, by reason.",
    "unchecked": "Answers that were to be checked, and were not: too large, too many or by a"
    " document that was not loaded.",
    "spans_dropped": "Spans that were not exported, by reason; of the reason rate, requests.",
    "task_failures": "Failures of tasks of the gateway, which were started again.",
}
# What requests have in common that ended in so many ways that these are not told apart any more.
_OVERFLOW = {"otel_metric_overflow": "true"}

_Labels = dict[str, str]
_Series = Iterable[tuple[_Labels, float | Durations]]


def exposition(operator: Operator) -> Iterator[bytes]:
    """Yield all metrics in the text format of Prometheus, in pieces.

    Each piece takes little time, so that the event loop is not held up if it has a turn between
    them. What is counted meanwhile may be in later pieces; a series is always of one moment.
    """
    totals, state = operator.totals, operator.state
    yield from _metric(
        *("histogram", "http_server_request_duration_seconds"),
        "Seconds from a request to the end of its answer.",
        _served(totals),
    )
    yield from _metric(
        *("histogram", "http_client_request_duration_seconds"),
        "Seconds from a request to a service to the head of its answer.",
        _asked(totals),
    )
    yield from _metric(
        *("counter", "gateway_conversions"),
        "Requests with a body converted.",
        (
            (_labels("api version endpoint", *place), total.converted)
            for place, total in [*totals.traffic.items()]
            if total.converted
        ),
    )
    yield from _cutovers(totals)
    yield from _gates(operator)
    yield from _counts(totals)
    yield from _usage(totals)
    overrides = state.in_force
    yield from _metric(
        *("gauge", "gateway_brownout_paused"),
        "1 where an operator has paused the brownouts of a version, 0 where they go on.",
        (
            (_version(key), int(key in overrides.paused))
            for key in sorted(operator.rules.brownouts | overrides.paused)
        ),
    )
    yield from _metric(
        *("gauge", "gateway_cutover_percent"),
        "Percentage of the clients of a version that are served via another version.",
        (
            (_version(key), in_force(cutover, overrides))
            for key, cutover in operator.rules.cutovers.items()
        ),
    )
    yield from _metric(
        "gauge", "gateway_workers", "Processes that serve.", [({}, operator.workers())]
    )
    yield from _metric(
        *("gauge", "gateway_target_failing"),
        "Processes in which a target of a service fails, or gets no requests as it has failed.",
        _targets(operator),
    )
    reloader = operator.reloader
    yield from _metric(
        *("counter", "gateway_reloads"),
        "Times that the rules were loaded again.",
        [({"result": "loaded"}, reloader.loaded), ({"result": "rejected"}, reloader.rejected)],
    )
    yield from _metric(
        *("gauge", "gateway_webhook_failing"),
        "1 while a webhook takes no messages, 0 while it does; of the gateway that sends them.",
        [({"webhook": name}, int(fails)) for name, fails in [*operator.webhooks.items()]],
    )
    yield from _metric(
        *("gauge", "gateway_state_unwritten"),
        "1 while the state cannot be written to its store.",
        [({}, int(state.stale_since is not None))],
    )
    yield from _metric(
        *("gauge", "gateway_state_stale_since_timestamp_seconds"),
        "Since when the store of the state has not been reached, in seconds since 1970, or 0.",
        [({}, state.stale_since or 0)],
    )


def _targets(operator: Operator) -> _Series:
    failing = Counter((each.service, each.target) for each in operator.targets())
    for service in operator.rules.services.values():
        for target in dict.fromkeys(each.authority for each in service.targets):
            yield _labels("service target", service.name, target), failing[service.name, target]


def _served(totals: Totals) -> _Series:
    for (api, version, endpoint), total in [*totals.traffic.items()]:
        place = {
            "gateway_api_name": api,
            "gateway_api_version": version,
            "http_route": endpoint,
            "url_scheme": "http",
        }
        for ending, durations in [*total.endings.items()]:
            yield place | _ending(ending), durations


def _asked(totals: Totals) -> _Series:
    for (api, version, target), total in [*totals.upstream.items()]:
        host, _, port = target.rpartition(":")
        place = {
            "gateway_api_name": api,
            "gateway_api_version": version,
            "server_address": host.strip("[]"),
            "server_port": port,
        }
        for ending, durations in [*total.endings.items()]:
            yield place | _ending(ending), durations


def _ending(ending: EndingKey) -> _Labels:
    if ending == OVERFLOW:
        return _OVERFLOW
    method, status, error = ending
    return {
        "http_request_method": method,
        "http_response_status_code": str(status) if status else "",
        "error_type": error,
    }


def _cutovers(totals: Totals) -> Iterator[bytes]:
    found = [
        (_labels("api version route", *place), total) for place, total in totals.outcomes.items()
    ]
    yield from _metric(
        *("counter", "gateway_cutover_failures"),
        "Failed requests of a cutover, by route.",
        ((labels, total.outcomes.failures) for labels, total in found),
    )
    yield from _metric(
        *("counter", "gateway_cutover_outcomes"),
        "Requests of a cutover, by route and outcome.",
        (
            ({**labels, "outcome": name}, count)
            for labels, total in found
            for name, count in zip(OUTCOMES, total.outcomes.ends, strict=True)
            if count
        ),
    )
    yield from _metric(
        *("counter", "gateway_cutover_checked"),
        "Answers of a cutover that were validated by the document of the version, by route.",
        ((labels, total.outcomes.checked) for labels, total in found),
    )
    yield from _metric(
        *("counter", "gateway_cutover_violating"),
        "Validated answers of a cutover that violate the document of the version, by route.",
        ((labels, total.outcomes.violating) for labels, total in found),
    )
    yield from _metric(
        *("histogram", "gateway_cutover_duration_seconds"),
        "Seconds from a request of a cutover to the end of its answer, by route.",
        ((labels, total.durations) for labels, total in found),
    )


def _gates(operator: Operator) -> Iterator[bytes]:
    found = [
        (_labels("api version gate measure", *key, result.gate, result.measure), result)
        for key in operator.rules.cutovers
        for result in operator.state.gate_results(key)
    ]
    yield from _metric(
        *("gauge", "gateway_gate_value"),
        "What a gate compares, or a rollback was made for: a share, or a mean in seconds.",
        (
            ({**labels, "route": route}, value)
            for labels, result in found
            for route, value in (("old", result.old), ("new", result.new))
            if value is not None
        ),
    )
    yield from _metric(
        *("gauge", "gateway_gate_requests"),
        "The requests that a gate compares within its window, by route.",
        (
            ({**labels, "route": route}, requests)
            for labels, result in found
            for route, requests in (("old", result.old_requests), ("new", result.new_requests))
        ),
    )
    yield from _metric(
        *("gauge", "gateway_gate_matching_requests"),
        "Those of the requests of a gate that are of its measure, by route.",
        (
            ({**labels, "route": route}, count)
            for labels, result in found
            for route, count in (("old", result.old_count), ("new", result.new_count))
        ),
    )
    yield from _metric(
        *("gauge", "gateway_gate_window_seconds"),
        "The seconds back to which a gate looks.",
        ((labels, result.window) for labels, result in found),
    )
    yield from _metric(
        *("gauge", "gateway_gate_limit"),
        "How much more a gate allows on the new route: a share to add, or a factor.",
        ((labels, result.limit) for labels, result in found),
    )
    yield from _metric(
        *("gauge", "gateway_gate_outcome"),
        "1 for the outcome of a gate, now or at a rollback: passed, exceeded or inconclusive.",
        (({**labels, "outcome": result.outcome}, 1) for labels, result in found),
    )


def _counts(totals: Totals) -> Iterator[bytes]:
    found: dict[str, list[tuple[_Labels, float]]] = {kind: [] for kind in COUNTERS}
    for number, ((kind, values), times) in enumerate([*totals.counts.items()]):
        if kind in found:
            labels = dict(zip(COUNTERS[kind], values, strict=True))
            found[kind].append((labels, times.count))
        if number % MOST == 0:
            yield b""
    for kind, series in found.items():
        yield from _metric("counter", f"gateway_{kind}", _ABOUT[kind], series)


def _usage(totals: Totals) -> Iterator[bytes]:
    requests, lasts, clients = [], [], []
    for key, usage in [*totals.clients.items()]:
        labels = _version(key)
        requests.append((labels, sum(row.count for row in usage.rows.values())))
        lasts.append((labels, max((row.last for row in usage.rows.values()), default=0)))
        clients.append((labels, len({client for _, client in usage.rows})))
        yield b""
    yield from _metric(
        "counter", "gateway_usage", "Requests for a version, restarts included.", requests
    )
    yield from _metric(
        *("gauge", "gateway_usage_last_seen_timestamp_seconds"),
        "Time of the last request for a version, in seconds since 1970.",
        lasts,
    )
    yield from _metric(
        *("gauge", "gateway_usage_clients"),
        "Clients that asked for a version, by distinct name.",
        clients,
    )


def _labels(names: str, *values: str) -> _Labels:
    return dict(zip(names.split(), values, strict=True))


def _version(key: VersionKey) -> _Labels:
    return _labels("api version", *key)


def _metric(kind: str, name: str, about: str, series: _Series) -> Iterator[bytes]:
    """Yield a metric in pieces; its series are written without its head in all but the first."""
    name += "_total" if kind == "counter" else ""
    lines = [f"# HELP {name} {about}", f"# TYPE {name} {kind}"]
    for labels, value in series:
        shown = ",".join(
            [f'{label}="{_escaped(text)}"' for label, text in sorted(labels.items()) if text]
        )
        if isinstance(value, Durations):
            lines += _histogram(name, shown, value)
        else:
            lines.append(_line(name, shown, value))
        if len(lines) >= MOST:
            yield _piece(lines)
            lines = []
    if lines:
        yield _piece(lines)


def _histogram(name: str, labels: str, durations: Durations) -> Iterator[str]:
    count, before = 0, f"{labels}," if labels else ""
    for bound, more in zip(_BOUNDS, durations.buckets, strict=True):
        count += more
        yield f'{name}_bucket{{{before}le="{bound}"}} {count}'
    yield _line(f"{name}_count", labels, count)
    yield _line(f"{name}_sum", labels, durations.seconds)


def _line(name: str, labels: str, value: float) -> str:
    return f"{name}{{{labels}}} {value}" if labels else f"{name} {value}"


def _piece(lines: list[str]) -> bytes:
    return ("\n".join(lines) + "\n").encode()


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
