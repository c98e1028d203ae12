"""Results of the gates, from the evidence since the percentage was set.

- A limit is exceeded if the mean e-value of all groups and measures is above 1,000. So a healthy
step is rolled back with a probability of at most 1 in 1,000.
- A step does not end while the e-value of any group is above 3, or while it is not unlikely that a
share is higher by three times the limit and by its usual value. The second condition lapses after
three times the length of the step.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import log

from gateway.rollout.e_process import log_sum
from gateway.rollout.evidence import (
    ALL,
    DIFFERS,
    READS,
    SHADOW,
    SLOW,
    SUSPECTED,
    WRITES,
    CutoverEvidence,
    EvidenceRow,
    Group,
    Subject,
)
from gateway.rollout.gates import (
    MEASURES,
    VIOLATIONS,
    GateEvidence,
    GateLimits,
    GateOutcome,
    GateResult,
)

# Above this e-value, a limit is exceeded.
_EXCEEDED = log(1000)
# A step does not end unless an excess of this many times the limit is unlikely: more than this
# number of standard errors above the measured excess.
_TIMES, _ERRORS = 3.0, 3.0
SINCE = "since the percentage was set"
_NO_ROW = EvidenceRow("", "")


def margins(gates: GateLimits) -> dict[str, float]:
    """Return the `margins` of `CutoverEvidence.advance`."""
    found: dict[str, float] = {}
    if gates.errors is not None:
        found |= dict.fromkeys(MEASURES, gates.errors)
    if gates.violations is not None:
        found |= dict.fromkeys(VIOLATIONS, gates.violations)
    if gates.latency is not None:
        found[SLOW] = log(gates.latency)
    if gates.differences is not None:
        found[DIFFERS] = gates.differences
    return found


def judge(
    gates: GateLimits,
    evidence: CutoverEvidence,
    counted: GateEvidence,
    field: str,
    seconds: float,
    *,
    is_long: bool = False,
    since: str = SINCE,
) -> tuple[tuple[GateResult, ...], str]:
    """Return the results of all measures, and why the result is uncertain, or an empty string.

    Args:
        counted: The counts since the percentage was set.
        field: The field that violates the document most often; empty if there is none.
        seconds: The time for which evidence was collected.
        is_long: Whether the step lasts longer than it should. Then only an e-value is a doubt.
        since: The time for which evidence was collected, in words.
    """
    enough = not missing_requests(gates, counted)
    limits = margins(gates)
    combined = evidence.combined(len(limits))
    means = {
        measure: log_sum([value for value, _ in values]) for measure, values in combined.items()
    }
    exceeded = {measure for measure, mean in means.items() if mean > _EXCEEDED}
    if not exceeded and log_sum([*means.values()]) > _EXCEEDED:
        exceeded = {max(means, key=means.__getitem__)}
    found, doubt = [], ""
    for measure, margin in limits.items():
        _, subject = max(combined.get(measure, ()), default=(0.0, Subject(Group(ALL), measure)))
        if measure in exceeded:
            outcome, subject = GateOutcome.EXCEEDED, _clearest(evidence, subject)
        elif evidence.values.get(subject, 0.0) > SUSPECTED:
            outcome = GateOutcome.INCONCLUSIVE
        else:
            subject = Subject(Group(ALL), measure)
            passed = enough and (is_long or _is_unlikely(evidence, measure, margin))
            outcome = GateOutcome.PASSED if passed else GateOutcome.INCONCLUSIVE
        if measure == SLOW:
            result = _latency(gates, subject.group.name, outcome, counted, seconds, since)
        else:
            result = _result(gates, evidence, subject, outcome, seconds, since)
        if measure in VIOLATIONS and field:
            result = replace(result, text=f"{result.text}; most often {field}")
        found.append(result)
        if outcome is GateOutcome.INCONCLUSIVE and enough and not doubt:
            doubt = result.text
    return tuple(found), doubt


def _clearest(evidence: CutoverEvidence, foremost: Subject) -> Subject:
    """Return the subject of a measure in which the largest share fails, among the convincing ones.

    If several have the same share, the largest group is returned.
    """
    measure = foremost.measure
    route = SHADOW if measure == DIFFERS else "new"

    def clarity(subject: Subject) -> tuple[float, int]:
        row = evidence.sums.get(route, {}).get(subject.group, _NO_ROW)
        return share(row.counts.get(measure, 0), row.total(measure)) or 0.0, row.total(measure)

    convincing = [
        subject
        for subject, value in evidence.values.items()
        if subject.measure == measure and value > _EXCEEDED
    ]
    return foremost if measure == SLOW else max(convincing, key=clarity, default=foremost)


def _is_unlikely(evidence: CutoverEvidence, measure: str, margin: float) -> bool:
    """Return whether an excess that is clearly above the limit is unlikely."""
    new = evidence.sums.get("new", {}).get(Group(ALL), _NO_ROW)
    if measure in (SLOW, DIFFERS) or not new.counts.get(measure):
        return True
    excess, error, usual = evidence.excess(measure)
    return excess + _ERRORS * error < _TIMES * margin + usual


def _result(
    gates: GateLimits,
    evidence: CutoverEvidence,
    subject: Subject,
    outcome: GateOutcome,
    seconds: float,
    since: str,
) -> GateResult:
    name, measure = subject.group.name, subject.measure
    new = evidence.sums.get(SHADOW if measure == DIFFERS else "new", {}).get(subject.group, _NO_ROW)
    old = _NO_ROW
    if measure != DIFFERS:
        old = evidence.sums.get("old", {}).get(Group(name), _NO_ROW)
    served, bad = new.total(measure), new.counts.get(measure, 0)
    among, usual = old.total(measure), old.counts.get(measure, 0)
    before = share(usual, among)
    if before is None and measure != DIFFERS:
        before = evidence.known_share(Subject(Group(name), measure))
    return GateResult(
        *_gate(measure),
        outcome=outcome,
        new=share(bad, served),
        old=before,
        limit=margins(gates)[measure],
        new_count=bad,
        new_requests=served,
        old_count=usual,
        old_requests=among,
        window=seconds,
        text=_text(gates, subject, (bad, served), (usual, among, before), since),
    )


def _gate(measure: str) -> tuple[str, str]:
    if measure == DIFFERS:
        return "differences", "share"
    return ("errors" if measure in MEASURES else "violations"), measure


def _text(
    gates: GateLimits,
    subject: Subject,
    new: tuple[int, int],
    old: tuple[int, int, float | None],
    since: str,
) -> str:
    (name, client), measure = subject.group, subject.measure
    limit = percent(margins(gates)[measure])
    if measure == DIFFERS:
        kind = "compared responses" + (f" to {name}" if name else "")
        return f"differences: {_of(*new, kind)} differ, {since}; {limit} may"
    gate = _gate(measure)[0]
    kind = {ALL: "requests", READS: "reads", WRITES: "writes"}.get(name, f"requests {name}")
    what = MEASURES.get(measure, "").format(overdue=gates.overdue)
    if measure in VIOLATIONS:
        what = "violate the document"
        kind = VIOLATIONS[measure] + (f" to {kind}" if name else "")
    whose = f" of the client '{client}'" if client else ""
    count, among, usual = old
    others = f"{_of(count, among, kind)}{' of all clients' if client else ''} on the old route"
    if not among and usual is not None:
        others = f"usually {percent(usual)} of the {kind} on the old route"
    return (
        f"{gate} ({measure}): {_of(*new, kind + whose)} {what} on the new route, {others}, {since};"
        f" {limit} more may"
    )


def _latency(
    gates: GateLimits,
    operation: str,
    outcome: GateOutcome,
    counted: GateEvidence,
    seconds: float,
    since: str,
) -> GateResult:
    old, new = counted.old, counted.new
    after, before = share(new.seconds, new.requests), share(old.seconds, old.requests)
    limit = gates.latency or 1.0
    slower = "" if outcome is GateOutcome.PASSED or not operation else f", slowest {operation}"
    text = (
        f"latency: a request takes {_milliseconds(after)} on the new route ({new.requests}"
        f" requests{slower}), {_milliseconds(before)} on the old route ({old.requests} requests),"
        f" {since}; {limit:g}x is allowed"
    )
    return GateResult(
        gate="latency",
        measure="mean",
        outcome=outcome,
        new=after,
        old=before,
        limit=limit,
        new_count=new.requests,
        new_requests=new.requests,
        old_count=old.requests,
        old_requests=old.requests,
        window=seconds,
        text=text,
    )


def missing_requests(gates: GateLimits, evidence: GateEvidence) -> str:
    """Return how many requests a step needs until it can end; empty if it has enough."""
    new = gates.minimum - evidence.new.requests
    if new > 0:
        return f"{_more(new)} on the new route"
    old = gates.minimum - evidence.known
    if gates.latency is not None and old > 0:
        return f"{_more(old)} on the old route"
    if gates.differences is not None and evidence.compared < gates.minimum:
        return f"{gates.minimum - evidence.compared} more comparisons of the shadow"
    return ""


def first_exceeded(results: Sequence[GateResult]) -> str | None:
    exceeded = (result.text for result in results if result.outcome is GateOutcome.EXCEEDED)
    return next(exceeded, None)


def share(count: float, total: int) -> float | None:
    return count / total if total else None


def percent(part: float | None) -> str:
    return "none seen" if part is None else f"{part * 100:.3g}%"


def _more(count: int) -> str:
    return "1 more request" if count == 1 else f"{count} more requests"


def _of(count: int, total: int, kind: str) -> str:
    return f"{count} of {total} {kind} ({percent(share(count, total))})"


def _milliseconds(seconds: float | None) -> str:
    return "an unknown time" if seconds is None else f"{seconds * 1000:.1f} ms"
