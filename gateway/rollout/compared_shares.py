"""The gates that compare shares: how many requests of a kind there are on both routes."""

from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

from gateway.rollout.failing_operations import OF_STALLS, worst_operation
from gateway.rollout.gates import (
    MEASURES,
    VIOLATIONS,
    GateEvidence,
    GateLimits,
    GateOutcome,
    GateResult,
)
from gateway.rollout.moved_clients import worst_moved
from gateway.rollout.route_outcomes import RouteOutcomes
from gateway.rollout.significance import CONVINCING, design_effect, share_above

# Shares that are known to be 0 where all is well. An old route that has served fewer requests, all
# without such a failure, counts as if it had served so many. It converts nothing, so that there is
# no share of conversions to estimate.
_ASSUMED = {"5xx": 100, "conversion": 10_000}
# A machine that stands still is seen in so many parts of a window.
_OF_A_STALL = 2
SINCE = "since the percentage was set"
# Those of which each failure is one.
_KINDS = ("5xx", "conversion", "401", "403", "404", "429", "other 4xx")


def compare_shares(
    gates: GateLimits,
    seen: GateEvidence,
    beyond: float = CONVINCING,
    span: str = "",
    measures: Collection[str] = (*MEASURES, *VIOLATIONS),
) -> Iterator[GateResult]:
    """Yield the results of the gates `errors` and `violations`.

    No share of violations is known to be right: documents may be wrong about both services. So
    nothing is judged without answers of the old route.

    Args:
        gates: The gates.
        seen: The evidence.
        beyond: How strongly the evidence has to contradict a limit.
        span: The time of the evidence, as a text; empty for the window.
        measures: What is compared.
    """
    span = span or within(gates)
    if gates.errors is not None:
        compared = _Comparison("errors", gates, gates.errors, seen, beyond, span)
        for measure, about in MEASURES.items():
            if measure in measures:
                writes = measure == "writes"
                kind = "writes" if writes else "requests"
                what = about.format(overdue=gates.overdue)
                more = _how(_old(seen, measure, gates.minimum), seen.new) if writes else ""
                yield compared.result(measure, kind, what, more)
    if gates.violations is not None:
        compared = _Comparison("violations", gates, gates.violations, seen, beyond, span)
        for measure, kind in VIOLATIONS.items():
            if measure in measures:
                yield compared.result(measure, kind, "violate the document", _where(seen))


class _Comparison(NamedTuple):
    """The comparisons of one gate."""

    gate: str
    gates: GateLimits
    limit: float
    seen: GateEvidence
    beyond: float
    span: str

    def result(self, measure: str, kind: str, what: str, more: str) -> GateResult:
        """Return the result of a comparison.

        Args:
            measure: What is compared.
            kind: What the share is of, as a text.
            what: What those do that are counted, as a text.
            more: The end of the text.
        """
        limit, seen, new = self.limit, self.seen, self.seen.new
        old = _old(seen, measure, self.gates.minimum)
        count, usual = new.count(measure), old.count(measure)
        served, among = new.total(measure), old.total(measure)
        few = served < self.gates.minimum
        few = few or (among < self.gates.minimum and measure not in _ASSUMED)
        known = seen.before.total(measure) >= self.gates.minimum

        def weight() -> float:
            found = [(cell.count(measure), cell.total(measure)) for cell in seen.cells]
            usual = share(sum(bad for bad, _ in found), sum(total for _, total in found)) or 0.0
            return design_effect(found, usual * (1 - usual))

        outcome = judged(
            lambda base: self._excess(measure, base),
            old,
            seen.before if known else None,
            weight,
            self.beyond,
            few=few,
        )
        whose, span = "on the old route", self.span
        if outcome is not GateOutcome.EXCEEDED and self.beyond >= CONVINCING:
            worst = worst_moved(seen, measure, limit, len(MEASURES) + len(VIOLATIONS))
            failing = worst_operation(seen.failing, measure, limit, self.gates.minimum)
            if worst is not None:
                outcome, whose, span = GateOutcome.EXCEEDED, "of the same clients before", SINCE
                count, usual = worst.since.count(measure), worst.before.count(measure)
                served, among = worst.since.total(measure), worst.before.total(measure)
                kind = _named(kind, worst.operation)
            elif failing is not None:
                outcome, whose = GateOutcome.EXCEEDED, "on the old route so far"
                span = f"within {failing.span:.0f} s"
                (count, served), (usual, among) = failing.new, failing.usual
                kind = _named(kind, failing.operation)
        text = (
            f"{self.gate} ({measure}): {_of(count, served, kind)} {what} on the new route,"
            f" {_of(usual, among, kind)} {whose}, {span};"
            f" {percent(limit)} more may{more}"
        )
        return GateResult(
            gate=self.gate,
            measure=measure,
            outcome=outcome,
            new=share(count, served),
            old=share(usual, among),
            limit=limit,
            new_count=count,
            new_requests=served,
            old_count=usual,
            old_requests=among,
            window=self.gates.window,
            text=text,
        )

    def _excess(self, measure: str, base: RouteOutcomes) -> float:
        bad, total = self._on_the_new_route(measure)
        before, among = base.count(measure), base.total(measure)
        if measure in _ASSUMED and not before:
            among = max(among, _ASSUMED[measure])
        if not among or bad / max(total, self.gates.minimum) <= self.limit + before / among:
            return 0.0
        return share_above((bad, total), (before, among), self.limit)

    def _on_the_new_route(self, measure: str) -> tuple[int, int]:
        """Return the count and the total, but for a stall where nothing is to compare it with."""
        new = self.seen.new
        bad, total = new.count(measure), new.total(measure)
        if measure in OF_STALLS:
            parts = [(part.count(measure), part.total(measure)) for part in self.seen.parts]
            for count, among in sorted(parts)[-_OF_A_STALL:]:
                bad, total = bad - count, total - among
        return bad, total


def judged(
    excess: Callable[[RouteOutcomes], float],
    old: RouteOutcomes,
    before: RouteOutcomes | None,
    weight: Callable[[], float],
    beyond: float,
    *,
    few: bool,
) -> GateOutcome:
    """Return the outcome of a comparison with the old route, and with the moved clients before.

    Args:
        excess: How strongly what was seen contradicts the limit, compared with these outcomes.
        old: The old route.
        before: The moved clients before they were moved; None if too little is known of them.
        weight: By how much the evidence is weaker then, as clients differ from each other.
        beyond: How strongly the evidence has to contradict the limit.
        few: Whether too little was seen to be sure that the limit is kept.
    """
    found = excess(old)
    if found >= beyond:
        found = found / weight() if before is None else excess(before)
    if found >= beyond:
        return GateOutcome.EXCEEDED
    return GateOutcome.INCONCLUSIVE if few else GateOutcome.PASSED


def share(count: float, total: int) -> float | None:
    """Return a share or a mean; None of nothing."""
    return count / total if total else None


def percent(part: float | None) -> str:
    """Return a share as a text."""
    return "none seen" if part is None else f"{part * 100:.3g}%"


def within(gates: GateLimits) -> str:
    """Return the window as a text."""
    return f"within {gates.window:g} s"


def _old(seen: GateEvidence, measure: str, minimum: int) -> RouteOutcomes:
    """Return the old route within the window, or for longer if it has few of a measure there."""
    if seen.old.total(measure) >= minimum:
        return seen.old
    return max(seen.old, seen.served_old, key=lambda outcomes: outcomes.total(measure))


def _how(old: RouteOutcomes, new: RouteOutcomes) -> str:
    """Return how requests fail that did not on the old route, as a text; empty if none do."""

    def more(measure: str) -> float:
        usual = share(old.count(measure), old.total(measure)) or 0.0
        return new.count(measure) - usual * new.total(measure)

    foremost = max(_KINDS, key=more)
    if more(foremost) <= 0:
        return ""
    number, total = new.count(foremost), new.total(foremost)
    return f"; {number} of all {total} requests {MEASURES[foremost]}"


def _where(seen: GateEvidence) -> str:
    """Return the field that violates the document more than on the old route, as a text."""
    old, new = max(seen.served_old.checked, 1), max(seen.served_new.checked, 1)
    more = {field.name: field.new / new - field.old / old for field in seen.fields}
    foremost = max(more, key=lambda name: more[name], default="")
    return f"; most of all {foremost}" if foremost and more[foremost] > 0 else ""


def _named(kind: str, operation: str) -> str:
    return f"{kind} {operation}" if operation else kind


def _of(count: int, total: int, kind: str) -> str:
    return f"{count} of {total} {kind} ({percent(share(count, total))})"
