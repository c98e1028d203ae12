"""CutoverReport: the state of a cutover, as JSON and as a text for people."""

import msgspec

from gateway.admin.formatting import format_time
from gateway.core.cutover.cutover_state import outlook
from gateway.core.cutover.gates import RouteOutcomes
from gateway.state.cutover_controller import CurrentCutover


class RouteReport(msgspec.Struct):
    """The outcomes of one route of a cutover; `mean_ms` is None if it had no requests."""

    requests: int
    failures: int
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
        old: the outcomes of the old route, since then and within the window.
        new: the outcomes of the new route, likewise.
        compared: the number of answers compared with a shadow.
        differing: the number of answers that differed.
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


def cutover_report(current: CurrentCutover) -> CutoverReport:
    """Return the report of a cutover."""
    cutover, state, evidence, now = current
    return CutoverReport(
        *cutover.key,
        cutover.via,
        state.percent,
        state.decided_by,
        state.why,
        format_time(state.since),
        outlook(cutover, state, evidence, now),
        _route(evidence.old),
        _route(evidence.new),
        evidence.compared,
        evidence.differing,
    )


def _route(outcomes: RouteOutcomes) -> RouteReport:
    requests, failures, seconds = outcomes
    return RouteReport(
        requests, failures, round(seconds / requests * 1000, 3) if requests else None
    )


def cutover_table(found: CutoverReport) -> str:
    """Return a text for people."""
    state = found.state.replace("_", " ")
    facts = {
        "since": f"{found.since}: {found.why}"
        + (f" ({state})" if found.state in ("held", "rolled_back") else ""),
        "next": found.next,
        "old way": _outcomes(found.old),
        "new way": _outcomes(found.new),
        "shadow": f"{found.compared} answers compared, {found.differing} differ",
    }
    head = f"Version {found.version} of {found.api}: {found.percent:g}% goes via {found.via}"
    return "\n".join((head, *(f"  {name:<7}  {fact}" for name, fact in facts.items())))


def _outcomes(route: RouteReport) -> str:
    mean = "" if route.mean_ms is None else f", {route.mean_ms:g} ms on average"
    return f"{route.requests} requests, {route.failures} failed{mean}"
