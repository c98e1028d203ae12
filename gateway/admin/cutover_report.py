"""CutoverReport: the state of a cutover, as JSON and as a text for people."""

import msgspec

from gateway.findings.formatting import columns, compared_text, format_time, plural
from gateway.findings.uncompared import listed
from gateway.rollout.cutovers import SETTLE_SECONDS, CurrentCutover, outlook
from gateway.rollout.gates import GateResult
from gateway.rollout.route_outcomes import OUTCOMES, RouteOutcomes

# What is counted arrives so many seconds later: processes hand it on once a second.
_LATE = 1.5


class RouteReport(msgspec.Struct):
    """The outcomes of one route of a cutover.

    Attributes:
        requests: the number of requests.
        failures: the number of those that failed for no fault of the client.
        overdue: the number of those that took longer than the gates allow.
        outcomes: the number of ended requests by outcome; see `route_outcomes.OUTCOMES`.
        mean_ms: the mean duration in milliseconds; None if there were no requests.
    """

    requests: int
    failures: int
    overdue: int
    outcomes: dict[str, int]
    mean_ms: float | None


class CutoverReport(msgspec.Struct):
    """The state of a cutover.

    Attributes:
        api: the name of the API.
        version: the label of the version that is cut over.
        via: the label of the version whose service takes over.
        percent: the percentage of its clients that is cut over now.
        state: what set the percentage; see `cutover_state.DecidedBy`.
        why: the reason.
        since: when the percentage was set.
        next: what the controller does next.
        old: the outcomes of the old route since then, or since the gateway started.
        new: the outcomes of the new route, likewise.
        compared: the number of answers compared with a shadow.
        differing: the number of answers that differed.
        gates: what each gate compares, and its result; if gates have rolled it back, those for
            which they did.
        then: what happens when a gate is exceeded; None without gates, or if they have no effect.
        uncompared: the operations of which no request was ever compared.
        gates_at: when gates rolled it back, if `gates` are of that time; None if they are of now.
        counted_from: from when on answers count as compared, and requests for the gates, as long as
            nothing of it can be known; else None.
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
    counted_from: str | None = None


def cutover_report(current: CurrentCutover, uncompared: list[str]) -> CutoverReport:
    """Return the report of a cutover, with the operations that were never compared."""
    cutover, state, evidence, results, now = current
    gates = cutover.gates
    counted_from = state.since + SETTLE_SECONDS
    return CutoverReport(
        *cutover.key,
        via=cutover.via,
        percent=state.percent,
        state=state.decided_by,
        why=state.why,
        since=format_time(state.since),
        next=outlook(cutover, state, evidence, now),
        old=_route(evidence.served_old),
        new=_route(evidence.served_new),
        compared=evidence.compared,
        differing=evidence.differing,
        gates=list(results),
        then=None if gates is None or gates.dry_run else gates.then,
        uncompared=uncompared,
        gates_at=format_time(state.since) if state.results else None,
        counted_from=format_time(counted_from) if now < counted_from + _LATE else None,
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
    """Return a text for people."""
    state = found.state.replace("_", " ")
    facts = {
        "since": f"{found.since}: {found.why}"
        + (f" ({state})" if found.state in ("held", "rolled_back") else ""),
        "next": found.next,
        "old route": _outcomes(found.old),
        "new route": _outcomes(found.new),
        "shadow": compared_text(found.compared, found.differing)
        if found.counted_from is None
        else f"not known yet: answers count from {found.counted_from} on",
    }
    if found.uncompared:
        facts["missing"] = f"never compared: {listed(found.uncompared)}"
    head = f"Version {found.version} of {found.api}: {found.percent:g}% goes via {found.via}"
    lines = [head, *(f"  {name:<9}  {fact}" for name, fact in facts.items())]
    if found.gates:
        shown = [gate for gate in found.gates if is_shown(gate)]
        effect = " (dry run: without effect)" if found.then is None else ""
        window = f"within {found.gates[0].window:g} s"
        when = "" if found.gates_at is None else f" before {found.gates_at}"
        lines.append(f"  gates{effect}, {window}{when}")
        rows = [("", "gate", "old route", "new route", "limit", "outcome"), *map(_row, shown)]
        lines += (f"  {line}" for line in columns(rows, {2, 3, 4}))
    return "\n".join(lines)


def is_shown(gate: GateResult) -> bool:
    """Whether people see a comparison; not if nothing of its kind occurred on either route."""
    always = not adds(gate) or gate.measure in ("5xx", "answers")
    return always or bool(gate.new_count or gate.old_count)


def adds(gate: GateResult) -> bool:
    """Whether the limit of a gate is added to what the old route has."""
    return gate.gate in ("errors", "violations")


def gate_name(gate: GateResult) -> str:
    """Return the name of a comparison for people."""
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
        "-" if value is None else f"{value * 100:.3g}% ({count} of {total})"
        for value, count, total in (
            (gate.old, gate.old_count, gate.old_requests),
            (gate.new, gate.new_count, gate.new_requests),
        )
    )
    sign = "+" if adds(gate) else ""
    return "", name, *values, f"{sign}{gate.limit * 100:.3g}%", gate.outcome


def _outcomes(route: RouteReport) -> str:
    mean = "" if route.mean_ms is None else f", {route.mean_ms:g} ms on average"
    return f"{route.requests} {plural(route.requests, 'request')}, {route.failures} failed{mean}"
