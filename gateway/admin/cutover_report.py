"""Cutover: how one stands, as JSON can say it and as a text for people."""

import msgspec

from gateway.admin.formatting import format_time
from gateway.core.cutover.cutover_state import outlook
from gateway.core.cutover.gates import RouteOutcomes
from gateway.state.cutover_controller import CurrentCutover


class RouteReport(msgspec.Struct):
    """How the requests that went one way fared; `mean_ms` is None where there were none."""

    requests: int
    failures: int
    mean_ms: float | None


class CutoverReport(msgspec.Struct):
    """How a cutover stands.

    Attributes:
        api: the name of the API.
        version: the label of the version that is moved.
        via: the label of the version whose service takes over.
        percent: how much is moved now.
        state: whose word that is, and what was done; see `standing.Word`.
        why: the reason.
        since: when the percentage became what it is.
        next: what comes next.
        old: how it goes the old way, since then and within the window.
        new: how it goes the new way.
        compared: how many answers were compared.
        differing: how many of them differed.
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
    """Return how a cutover stands, what was seen since, and what comes next."""
    cutover, state, seen, now = current
    return CutoverReport(
        *cutover.key,
        cutover.via,
        state.percent,
        state.decided_by,
        state.why,
        format_time(state.since),
        outlook(cutover, state, seen, now),
        _route(seen.old),
        _route(seen.new),
        seen.compared,
        seen.differing,
    )


def _route(outcomes: RouteOutcomes) -> RouteReport:
    requests, failures, seconds = outcomes
    return RouteReport(
        requests, failures, round(seconds / requests * 1000, 3) if requests else None
    )


def cutover_table(found: CutoverReport) -> str:
    """Return it for people."""
    done = found.state.replace("_", " ")
    facts = {
        "since": f"{found.since}: {found.why}"
        + (f" ({done})" if found.state in ("held", "rolled_back") else ""),
        "next": found.next,
        "old way": _fared(found.old),
        "new way": _fared(found.new),
        "shadow": f"{found.compared} answers compared, {found.differing} differ",
    }
    head = f"Version {found.version} of {found.api}: {found.percent:g}% goes via {found.via}"
    return "\n".join((head, *(f"  {name:<7}  {fact}" for name, fact in facts.items())))


def _fared(way: RouteReport) -> str:
    mean = "" if way.mean_ms is None else f", {way.mean_ms:g} ms on average"
    return f"{way.requests} requests, {way.failures} failed{mean}"
