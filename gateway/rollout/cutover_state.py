"""The state of a cutover, and its transitions by configuration, gates or an operator."""

from enum import StrEnum
from typing import NamedTuple

from gateway.rollout.cutover import VersionCutover, first
from gateway.rollout.gates import GateAction, GateEvidence, GateLimits, GateResult
from gateway.rollout.judgement import doubt, judge, missing, objection


class DecidedBy(StrEnum):
    """The origin of the percentage of a cutover: configuration, gates or an operator."""

    RULES = "rules"
    HELD = "held"
    ROLLED_BACK = "rolled_back"
    OPERATOR = "operator"


class CutoverState(NamedTuple):
    """The current state of a cutover.

    Attributes:
        percent: The percentage of clients or requests that are moved now.
        decided_by: The origin of the percentage; HELD and ROLLED_BACK are decisions of the gates.
        why: The reason for the percentage, as a text for operators.
        since: The time at which the percentage was set, in seconds; evidence from before that time
            does not count.
        results: What the gates compared when they rolled it back; empty for any other state.
    """

    percent: float
    decided_by: DecidedBy
    why: str
    since: float
    results: tuple[GateResult, ...] = ()

    @property
    def word(self) -> str:
        """The percentage and its origin, which tell this state from another one."""
        return f"{self.percent:g}-{self.decided_by}"


def ordered(percent: float, now: float) -> CutoverState:
    """Return the state of a cutover whose percentage an operator sets now."""
    return CutoverState(percent, DecidedBy.OPERATOR, "an operator has set it", now)


def advance(
    cutover: VersionCutover, state: CutoverState | None, evidence: GateEvidence, now: float
) -> CutoverState:
    """Return the next state of a cutover, or the same state if nothing changes.

    - A percentage that an operator set stays until it is cleared; gates never replace it.
    - A cutover that the gates rolled back stays at 0, since it would fail again.
    - A held cutover continues once its gates have no objection; it may go down at any time.
    - The next step begins when the current one has lasted its time, the gates have no objection and
      enough was seen to judge them. If too little was seen by then, the gates decide whether the
      cutover waits, is held or is rolled back. For few requests that leave doubt, it is held at
      most.
    - Gates of a dry run have no effect.

    Args:
        cutover: The configuration of the cutover.
        state: The current state; None where the cutover has none yet.
        evidence: The measurements since `state.since`, within the window of the gates.
        now: The time in seconds, of the same clock as `since`.
    """
    if state is None:
        return CutoverState(first(cutover), DecidedBy.RULES, _BY_RULES, now)
    if state.decided_by in (DecidedBy.OPERATOR, DecidedBy.ROLLED_BACK):
        return state
    gates = cutover.gates
    if gates is not None and gates.dry_run:
        gates = None
    results = judge(gates, evidence)
    then, against = GateAction.WAIT, objection(results)
    if gates is not None:
        then = gates.then
        if against is None and (against := _inconclusive(cutover, state, evidence, now)):
            then = _inconclusive_action(gates, evidence)
    if against is not None and then is GateAction.ROLL_BACK and state.percent > 0:
        return CutoverState(0.0, DecidedBy.ROLLED_BACK, against, now, results)
    wanted = _wanted(cutover, state, evidence, now)
    if against is not None and then is not GateAction.WAIT and wanted >= state.percent:
        held = state.decided_by is DecidedBy.HELD
        return state if held else state._replace(decided_by=DecidedBy.HELD, why=against)
    if wanted != state.percent:
        step = wanted == _following(cutover, state)
        why = f"the step after {state.percent:g}%" if step else _BY_RULES
        return CutoverState(wanted, DecidedBy.RULES, why, now)
    if state.decided_by is DecidedBy.HELD:
        return state._replace(decided_by=DecidedBy.RULES, why=_BY_RULES)
    return state


def outlook(
    cutover: VersionCutover, state: CutoverState, evidence: GateEvidence, now: float
) -> str:
    """Return a text for operators about the next change of a cutover."""
    if state.decided_by is DecidedBy.OPERATOR:
        return "stays until it is cleared"
    if state.decided_by is DecidedBy.ROLLED_BACK:
        return "stays at 0% until it is cleared or set"
    held = state.decided_by is DecidedBy.HELD
    if held and objection(judge(cutover.gates, evidence)) is not None:
        return "is held as long as a gate is exceeded"
    following = _following(cutover, state)
    if following is None:
        return "has arrived" if cutover.percent == 100 else "is where the rules end"
    left, more = state.since + cutover.every - now, _missing(cutover, evidence)
    if left > 0:
        then = "" if more is None else _without(cutover, evidence, more)
        return f"goes to {following:g}% in {_spelled(left)} at the earliest{then}"
    if more is None:
        return f"goes to {following:g}% now"
    return f"{'is held, and ' if held else ''}goes to {following:g}% after {more}"


def _without(cutover: VersionCutover, evidence: GateEvidence, more: str) -> str:
    """Return what is done if a step cannot be judged when it has lasted its time."""
    gates = cutover.gates
    then = GateAction.WAIT if gates is None else _inconclusive_action(gates, evidence)
    if then is GateAction.WAIT:
        return ""
    done = "is held" if then is GateAction.HOLD else "goes back to 0%"
    return f"; without {more} by then, it {done}"


def _inconclusive_action(gates: GateLimits, evidence: GateEvidence) -> GateAction:
    """Return what is done about a step that cannot be judged."""
    if gates.inconclusive is GateAction.ROLL_BACK and missing(gates, evidence) is None:
        return GateAction.HOLD  # a healthy route leaves doubt, too
    return gates.inconclusive


def awaited(
    cutover: VersionCutover, state: CutoverState, evidence: GateEvidence, now: float
) -> str | None:
    """Return what a step that has lasted its time needs to end; None if it needs nothing."""
    if now - state.since < cutover.every or _following(cutover, state) is None:
        return None
    return _missing(cutover, evidence)


def _spelled(seconds: float) -> str:
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def _wanted(
    cutover: VersionCutover, state: CutoverState, evidence: GateEvidence, now: float
) -> float:
    begin, end = first(cutover), cutover.percent
    if not begin <= state.percent <= end:
        return min(max(state.percent, begin), end)
    following = _following(cutover, state)
    if following is None or now - state.since < cutover.every or _missing(cutover, evidence):
        return state.percent
    return following


def _inconclusive(
    cutover: VersionCutover, state: CutoverState, evidence: GateEvidence, now: float
) -> str | None:
    """Return the reason why a step that has lasted its time cannot be judged; None if it can."""
    more = awaited(cutover, state, evidence, now)
    if more is None:
        return None
    # It stays the reason while more requests come: it says what was missing then.
    return f"inconclusive: after {now - state.since:.0f} s, it still took {more}"


def _missing(cutover: VersionCutover, evidence: GateEvidence) -> str | None:
    gates = cutover.gates
    if gates is None or gates.dry_run:
        return None
    return missing(gates, evidence) or doubt(gates, evidence)


def _following(cutover: VersionCutover, state: CutoverState) -> float | None:
    return next((step for step in cutover.steps if step > state.percent), None)


_BY_RULES = "the rules say so"
