"""Reports: the JSON documents of the admin port, and the tables that commands print from them."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Literal

import msgspec

from gateway.admin.piecewise import batches
from gateway.base.mistakes import printable
from gateway.base.overrides import NO_OVERRIDES, SetAside, VersionKey
from gateway.findings.formatting import (
    client_text,
    columns,
    compared_text,
    format_time,
    gap_text,
    plural,
)
from gateway.findings.suggested_fix import DifferenceSample, shadow_samples
from gateway.findings.uncompared import listed
from gateway.observe.failing_targets import FailingService
from gateway.rollout.cutover import CutoverRoute
from gateway.rollout.cutovers import CurrentCutover, next_change
from gateway.rollout.decisions import AuditEntry
from gateway.rollout.gates import GateResult
from gateway.rollout.route_outcomes import OUTCOMES, RouteOutcomes
from gateway.store.state import FleetView, StateUnreachableError, StateView
from gateway.usage.delta import latency_quantile
from gateway.usage.history import HistoryView, Interval
from gateway.usage.totals import Totals

MOST_LINES = 200
"""The maximum number of lines in a piece of JSON. Creating a piece takes about a millisecond."""


class _UsageLine(msgspec.Struct, frozen=True):
    """One client's usage of one operation of a version; see `ClientUsage`.

    `client` is None for the sum of all clients without a row. `served` is None without a use. Times
    are truncated to seconds. They are `datetime` objects because msgspec formats these as RFC 3339
    three times as fast as `format_time`, and a report may contain a million times.
    """

    client: str | None
    api: str
    version: str
    operation: str
    count: int
    refused: int
    rejected: int
    failed: int
    slack: int
    first: datetime
    last: datetime
    served: datetime | None


class UsageReport(msgspec.Struct, frozen=True):
    """`missing` has a sentence for each gap in the data."""

    since: str
    usage: list[_UsageLine]
    replica: str | None = None
    missing: list[str] = []
    set_aside: list["SetAsideReport"] = []


def usage(
    view: StateView,
    api: str | None = None,
    version: str | None = None,
    aside: Mapping[str, SetAside] = NO_OVERRIDES.set_aside,
) -> UsageReport:
    """Return the usage of all clients, sorted by version and then by number of requests."""
    found = _without_lines(view, aside)
    lines = [line for key in used_versions(view, api, version) for line in _lines(view, key)]
    return msgspec.structs.replace(found, usage=lines)


async def usage_json(
    view: StateView,
    read: Callable[[VersionKey], Awaitable[StateView]],
    api: str | None = None,
    version: str | None = None,
    aside: Mapping[str, SetAside] = NO_OVERRIDES.set_aside,
) -> AsyncIterator[bytes]:
    """Yield the report of `usage` as JSON in small pieces; raises StateError.

    Only the rows of one version are in memory at a time, since all can take hundreds of megabytes.
    The client rows of `view` are not used.
    """
    whole = msgspec.json.encode(_without_lines(view, aside))
    before, lines, after = whole.partition(b'"usage":[')
    yield before + lines
    comma = b""
    for key in used_versions(view, api, version):
        found = await read(key)
        if found.replica != view.replica:  # the view contains only the counts of one replica
            raise StateUnreachableError(
                "the connection to the store was lost while usage was read; try again"
            )
        for batch in batches(_lines(found, key), MOST_LINES):
            yield comma + msgspec.json.encode(batch)[1:-1]
            comma = b","
    yield after


def used_versions(view: StateView, api: str | None, version: str | None) -> Sequence[VersionKey]:
    """Return the versions that clients have called, sorted; None does not limit the result."""
    asked = (
        key for key in view.totals.clients if api in (None, key[0]) and version in (None, key[1])
    )
    return sorted(asked)


def _lines(view: StateView, key: VersionKey) -> Iterator[_UsageLine]:
    """Yield the lines of a version. Later lines may include requests counted in the meantime."""
    known = view.totals.clients.get(key)
    rows = [] if known is None else list(known.rows.items())
    rows.sort(key=lambda each: (-each[1].count, each[0][0], each[0][1] or ""))
    for (operation, client), row in rows:
        last = _moment(row.last)
        yield _UsageLine(
            client,
            *key,
            operation,
            row.count,
            row.refused,
            row.rejected,
            row.failed,
            row.slack,
            _moment(row.first),
            last,
            last if row.served == row.last else _moment(row.served) if row.served else None,
        )


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(int(seconds), UTC)


def _without_lines(view: StateView, aside: Mapping[str, SetAside]) -> UsageReport:
    missing = [f"{gap_text(gap)}." for gap in view.gaps]
    since = format_time(view.totals.since)
    return UsageReport(since, [], view.replica, missing, set_aside_report(aside))


def usage_table(found: UsageReport) -> str:
    """Format the report as a table. A count that may be too low has a plus sign."""
    if not found.usage:
        return "\n".join((f"Nobody has called since {found.since}.", *_remarks(found)))
    cells = [
        (
            "CLIENT",
            "API",
            "VERSION",
            "OPERATION",
            "COUNT",
            "REFUSED",
            "REJECTED",
            "FAILED",
            "FIRST",
            "LAST",
            "SERVED",
        ),
        *(
            (
                client_text(line.client),
                line.api,
                line.version or "-",
                line.operation,
                f"{line.count}{'+' if line.slack else ''}",
                str(line.refused),
                str(line.rejected),
                str(line.failed),
                format_time(line.first.timestamp()),
                format_time(line.last.timestamp()),
                format_time(line.served.timestamp()) if line.served else "never",
            )
            for line in found.usage
        ),
    ]
    return "\n".join(
        (*columns(cells, right=range(4, 8)), f"Counted since {found.since}.", *_remarks(found))
    )


def _alone(replica: str | None) -> list[str]:
    return [] if replica is None else [f"These are the counts of replica {replica} only."]


def _remarks(found: UsageReport) -> Iterator[str]:
    yield from _alone(found.replica)
    for each in found.set_aside:
        yield f"{printable(each.client)} is set aside until {each.until}: {printable(each.why)}"
    for sentence in found.missing:
        yield f"{sentence[:1].upper()}{sentence[1:]}"


class SetAsideReport(msgspec.Struct, frozen=True):
    """A client that does not count for retirement; `until` is an RFC 3339 time."""

    client: str
    until: str
    why: str


def set_aside_report(aside: Mapping[str, SetAside]) -> list[SetAsideReport]:
    return [
        SetAsideReport(client_text(client), format_time(until), why)
        for client, (until, why) in sorted(aside.items())
    ]


class HistoryLine(msgspec.Struct, frozen=True):
    """A minute or a day in which a version was requested.

    Attributes:
        start: the beginning of the minute or day, as an RFC 3339 time.
        share: the version's share of the API's requests, from 0 to 1.
        mean_ms: the mean duration of requests, in milliseconds.
        p50_ms: the median duration of requests, in milliseconds; None if unknown.
    """

    start: str
    requests: int
    share: float
    errors: int
    refused: int
    mean_ms: float
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    callers: int


class HistoryReport(msgspec.Struct, frozen=True):
    """`by` is `minute` or `day`, `until` an RFC 3339 time; the lines are in chronological order."""

    api: str
    version: str
    by: str
    until: str
    replica: str | None
    lines: list[HistoryLine]


def history_report(view: HistoryView, key: VersionKey) -> HistoryReport:
    all_versions: dict[int, int] = {}
    for (api, _), series in view.series.items():
        for start, interval in series.items():
            if api == key[0]:
                all_versions[start] = all_versions.get(start, 0) + interval.requests
    lines = [
        _line(start, interval, all_versions[start])
        for start, interval in view.series.get(key, {}).items()
    ]
    return HistoryReport(*key, view.query.by, format_time(view.now), view.replica, lines)


def _line(start: int, interval: Interval, of: int) -> HistoryLine:
    requests = interval.requests
    p50, p95, p99 = (_milliseconds(interval.quantile(part)) for part in (0.5, 0.95, 0.99))
    return HistoryLine(
        start=format_time(start),
        requests=requests,
        share=round(requests / of, 4) if of else 0.0,
        errors=interval.errors,
        refused=interval.refused,
        mean_ms=round(interval.seconds * 1000 / requests, 3) if requests else 0.0,
        p50_ms=p50,
        p95_ms=p95,
        p99_ms=p99,
        callers=interval.callers.count,
    )


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1000, 3)


def history_table(report: HistoryReport) -> str:
    alone = _alone(report.replica)
    if not report.lines:
        nobody = f"No client has called version {report.version} of {report.api}."
        return "\n".join((nobody, *alone))
    head = ("START", "REQUESTS", "SHARE", "ERRORS", "REFUSED", "MEAN", "P95", "CALLERS")
    rows = [
        (
            line.start if report.by == "minute" else line.start[:10],
            str(line.requests),
            f"{line.share:.1%}",
            str(line.errors),
            str(line.refused),
            f"{line.mean_ms:.1f} ms",
            "unknown" if line.p95_ms is None else f"{line.p95_ms:.1f} ms",
            str(line.callers),
        )
        for line in report.lines
    ]
    return "\n".join((*columns([head, *rows], range(1, len(head))), *alone))


class _FailingReport(msgspec.Struct, frozen=True):
    """A service with failing targets, as seen by one replica."""

    service: str
    targets: int
    failing: int
    since: str
    errors: dict[str, str]


class _ReplicaReport(msgspec.Struct, frozen=True):
    """The JSON form of `ReplicaView`. `lag` is in seconds."""

    replica: str
    presence: str
    judges: bool
    version: str
    rules: str
    admin: str
    started: str
    heard: str
    lag: float
    behind: int
    refused: str = ""
    failing: tuple[_FailingReport, ...] = ()


class FleetReport(msgspec.Struct, frozen=True):
    """The replicas of a fleet, and a sentence for each problem with them."""

    replicas: list[_ReplicaReport]
    warnings: list[str]


class AuditReport(msgspec.Struct, frozen=True):
    """The JSON form of `AuditEntry`, an entry of the audit log."""

    at: str
    who: str
    origin: str
    what: str
    api: str
    version: str
    why: str
    before: str
    after: str


def fleet_report(view: FleetView) -> FleetReport:
    return FleetReport(
        [
            _ReplicaReport(
                replica=each.replica,
                presence=each.presence,
                judges=each.leads,
                version=each.version,
                rules=each.rules,
                admin=each.admin,
                started=format_time(each.started),
                heard=format_time(each.heard),
                lag=round(each.lag, 1),
                behind=each.behind,
                refused=each.refused,
                failing=(*map(_failing, each.failing),),
            )
            for each in view.replicas
        ],
        view.warnings,
    )


def _failing(found: FailingService) -> _FailingReport:
    errors = {each.target: each.error for each in found.listed}
    since = format_time(found.since)
    return _FailingReport(found.service, found.targets, found.failing, since, errors)


def audit_report(entries: list[AuditEntry]) -> list[AuditReport]:
    return [AuditReport(format_time(entry.at), *entry[1:]) for entry in entries]


def fleet_table(found: FleetReport) -> str:
    rows = [
        (
            each.replica,
            f"{_presence(each)}, leader" if each.judges else _presence(each),
            each.version,
            each.rules,
            each.heard,
            f"{each.lag:.1f} s",
            each.admin,
        )
        for each in found.replicas
    ]
    head = ("REPLICA", "STATE", "VERSION", "CONFIGURATION", "LAST HEARTBEAT", "LAG", "ADMIN")
    lines = [*columns([head, *rows], right=(5,))]
    refused = (
        f"the configuration on disk of {each.replica} cannot be used: {each.refused}"
        for each in found.replicas
        if each.refused
    )
    failing = (
        f"in {each.replica}, {one.failing} of {one.targets} targets of service {one.service} fail"
        f" since {one.since}"
        for each in found.replicas
        for one in each.failing
    )
    told = (*found.warnings, *refused, *failing)
    return "\n".join([*lines, *(f"warning: {text}" for text in told)])


def _presence(replica: _ReplicaReport) -> str:
    return "active" if replica.presence == "heard" else replica.presence


def audit_table(found: list[AuditReport]) -> str:
    if not found:
        return "There are no changes yet."
    rows = [
        (
            each.at,
            f"{each.who} {each.origin}".rstrip(),
            each.what,
            f"{each.api} {each.version}".rstrip(),
            f"{each.before} -> {each.after}" if each.before or each.after else "",
            each.why,
        )
        for each in reversed(found)
    ]
    return "\n".join(columns([("WHEN", "WHO", "WHAT", "WHERE", "CHANGE", "WHY"), *rows]))


class RouteReport(msgspec.Struct):
    """`outcomes` has the number of requests by outcome; see `OUTCOMES`."""

    requests: int
    failures: int
    overdue: int
    outcomes: dict[str, int]
    mean_ms: float | None


class CutoverReport(msgspec.Struct):
    """The state of a cutover.

    Attributes:
        state: what set the percentage; see `DecidedBy`.
        next: what will happen next, as the end of a sentence.
        gates: the gates' current comparisons and results; after a rollback, the results that caused
            it.
        then: the action if a gate is exceeded; None without gates or if the gates are a dry run.
        gates_at: the time of the rollback if `gates` are the results that caused it, otherwise
            None.
    """

    api: str
    version: str
    via: str
    percent: float
    state: str
    why: str
    since: str
    next: str
    old: RouteReport
    new: RouteReport
    compared: int
    differing: int
    gates: list[GateResult]
    then: str | None
    uncompared: list[str] = []
    gates_at: str | None = None


def cutover_report(current: CurrentCutover, uncompared: list[str]) -> CutoverReport:
    """`uncompared` lists the operations that were never compared."""
    cutover, state, evidence, results, now = current
    gates = cutover.gates
    return CutoverReport(
        *cutover.key,
        via=cutover.via,
        percent=state.percent,
        state=state.decided_by,
        why=state.why,
        since=format_time(state.since),
        next=next_change(cutover, state, evidence, now),
        old=_route(evidence.old),
        new=_route(evidence.new),
        compared=evidence.compared,
        differing=evidence.differing,
        gates=list(results),
        then=None if gates is None or gates.dry_run else gates.then,
        uncompared=uncompared,
        gates_at=format_time(state.since) if state.results else None,
    )


def _route(outcomes: RouteOutcomes) -> RouteReport:
    requests, seconds = outcomes.requests, outcomes.seconds
    return RouteReport(
        requests,
        outcomes.failures,
        outcomes.overdue,
        {name: count for name, count in zip(OUTCOMES, outcomes.ends, strict=True) if count},
        round(seconds / requests * 1000, 3) if requests else None,
    )


def cutover_table(found: CutoverReport) -> str:
    state = found.state.replace("_", " ")
    facts = {
        "since": f"{found.since}: {found.why}"
        + (f" ({state})" if found.state in ("held", "rolled_back") else ""),
        "next": found.next,
        "old route": _outcomes(found.old),
        "new route": _outcomes(found.new),
        "shadow": compared_text(found.compared, found.differing),
    }
    if found.uncompared:
        facts["missing"] = f"never compared: {listed(found.uncompared)}"
    head = f"Version {found.version} of {found.api}: {found.percent:g}% goes via {found.via}"
    lines = [head, *(f"  {name:<9}  {fact}" for name, fact in facts.items())]
    if found.gates:
        shown = [gate for gate in found.gates if is_shown(gate)]
        effect = " (dry run: without effect)" if found.then is None else ""
        seconds = f"{found.gates[0].window:.0f} s"
        when = f"last {seconds}" if found.gates_at is None else f"{seconds} before {found.gates_at}"
        lines.append(f"  gates{effect}, over the {when}")
        rows = [("", "gate", "old route", "new route", "limit", "outcome"), *map(_row, shown)]
        lines += (f"  {line}" for line in columns(rows, {2, 3, 4}))
    return "\n".join(lines)


def is_shown(gate: GateResult) -> bool:
    """Return whether to show a gate's comparison.

    Comparisons of rare errors and violations are hidden while both routes have none.
    """
    always = not adds(gate) or gate.measure in ("5xx", "answers")
    return always or bool(gate.new_count or gate.old_count)


def adds(gate: GateResult) -> bool:
    """Return whether a gate's limit is added to the old route's value; else it is a factor."""
    return gate.gate in ("errors", "violations")


def gate_name(gate: GateResult) -> str:
    return f"{gate.gate} {gate.measure}" if adds(gate) else gate.gate


def _row(gate: GateResult) -> tuple[str, ...]:
    name = gate_name(gate)
    if gate.gate == "latency":
        values = (
            "-" if value is None else f"{value * 1000:.1f} ms ({count})"
            for value, count in ((gate.old, gate.old_requests), (gate.new, gate.new_requests))
        )
        return "", name, *values, f"{gate.limit:g}x", gate.outcome
    values = (
        "-" if value is None else share_text(value, count, total)
        for value, count, total in (
            (gate.old, gate.old_count, gate.old_requests),
            (gate.new, gate.new_count, gate.new_requests),
        )
    )
    sign = "+" if adds(gate) else ""
    return "", name, *values, f"{sign}{gate.limit * 100:.3g}%", gate.outcome


def share_text(value: float, count: int, total: int) -> str:
    found = f"{count:,} of {total:,}" if total else "usually"
    return f"{value * 100:.3g}% ({found})"


def _outcomes(route: RouteReport) -> str:
    mean = "" if route.mean_ms is None else f", {route.mean_ms:g} ms on average"
    return f"{route.requests} {plural(route.requests, 'request')}, {route.failures} failed{mean}"


class FieldReport(msgspec.Struct):
    """`noise` is how often the field differed between two responses of the same service."""

    field: str
    differences: int
    noise: int
    last: str
    kind: Literal["answer", "request"] = "answer"


class LatencyReport(msgspec.Struct):
    """Percentiles of the time from a request to its response head, in milliseconds, within 5%."""

    answers: int
    p50_ms: float
    p95_ms: float
    p99_ms: float


class ShadowReport(msgspec.Struct):
    """`samples` are the latest ones in chronological order; `old` and `new` are latencies."""

    api: str
    version: str
    compared: int
    differing: int
    validated: int
    invalid: int
    shed: dict[str, int]
    fields: list[FieldReport]
    samples: list[DifferenceSample]
    old: LatencyReport | None = None
    new: LatencyReport | None = None
    uncompared: list[str] = []
    replica: str | None = None


def shadow_report(
    totals: Totals, key: VersionKey, uncompared: list[str], replica: str | None = None
) -> ShadowReport:
    """`uncompared` lists the operations that were never compared."""

    def total(kind: str) -> int:
        return sum(occurrences.count for _, occurrences in totals.counted(kind, *key))

    fields: dict[str, FieldReport] = {}
    for labels, occurrences in totals.counted("differences", *key):
        fields[labels[-1]] = FieldReport(
            labels[-1],
            occurrences.count,
            0,
            format_time(occurrences.last),
            "request" if labels[-1].startswith("request ") else "answer",
        )
    for labels, occurrences in totals.counted("noise", *key):
        found = fields.setdefault(
            labels[-1], FieldReport(labels[-1], 0, 0, format_time(occurrences.last))
        )
        found.noise = occurrences.count
    return ShadowReport(
        *key,
        compared=total("compared"),
        differing=total("differing"),
        validated=total("validated"),
        invalid=total("invalid"),
        shed={
            labels[-1]: occurrences.count for labels, occurrences in totals.counted("shed", *key)
        },
        fields=sorted(
            fields.values(), key=lambda each: (-each.differences, -each.noise, each.field)
        ),
        samples=[*shadow_samples(totals, key)],
        old=_latency(totals, key, CutoverRoute.OLD),
        new=_latency(totals, key, CutoverRoute.NEW),
        uncompared=uncompared,
        replica=replica,
    )


def _latency(totals: Totals, key: VersionKey, route: CutoverRoute) -> LatencyReport | None:
    buckets = totals.latencies.get((*key, route))
    if not buckets:
        return None
    shares = (round(latency_quantile(buckets, share) * 1000, 1) for share in (0.5, 0.95, 0.99))
    return LatencyReport(buckets.total(), *shares)


def shadow_table(found: ShadowReport) -> str:
    shed = ", ".join(f"{count} {reason}" for reason, count in sorted(found.shed.items()))
    lines = [
        f"{found.api} {found.version}: {compared_text(found.compared, found.differing)}"
        + (
            f"; {found.validated} {plural(found.validated, 'request')} validated,"
            f" {found.invalid} would be refused"
            if found.validated
            else ""
        )
        + (f"; not compared: {shed}" if shed else "")
    ]
    for name, latency in (("old route", found.old), ("new route", found.new)):
        if latency is not None:
            lines.append(
                f"  {name}  p50 {latency.p50_ms:.1f} ms, p95 {latency.p95_ms:.1f} ms,"
                f" p99 {latency.p99_ms:.1f} ms"
            )
    if found.uncompared:
        lines.append(f"  missing    never compared: {listed(found.uncompared)}")
    if found.fields:
        fields = [
            (each.field, str(each.differences), str(each.noise), each.last) for each in found.fields
        ]
        lines += columns([("FIELD", "DIFFERENCES", "NOISE", "LAST"), *fields], right=range(1, 3))
    if found.samples:
        samples = [
            (each.field, each.old, each.new, f"{each.method} {each.path}", each.request_id)
            for each in reversed(found.samples)
        ]
        head = ("SAMPLE", "CLIENT GOT", "WOULD GET", "REQUEST", "ID")
        lines += columns([head, *samples])
    return "\n".join([*lines, *_alone(found.replica)])
