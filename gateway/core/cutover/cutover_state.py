"""The state of a cutover, and its transitions by configuration, gates or an operator."""

from enum import StrEnum
from typing import NamedTuple

from gateway.core.cutover.cutover import Cutover, first
from gateway.core.cutover.gates import GateAction, GateEvidence, objection


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
    """

    percent: float
    decided_by: DecidedBy
    why: str
    since: float


def ordered(percent: float, now: float) -> CutoverState:
    """Return the state of a cutover whose percentage an operator sets now."""
    return CutoverState(percent, DecidedBy.OPERATOR, "an operator has set it", now)


def advance(
    cutover: Cutover, state: CutoverState | None, evidence: GateEvidence, now: float
) -> CutoverState:
    """Return the next state of a cutover, or the same state if nothing changes.

    - A percentage that an operator set stays until it is cleared; gates never replace it.
    - A cutover that the gates rolled back stays at 0, since it would fail again.
    - A held cutover continues once its gates have no objection; it may go down at any time.
    - The next step begins when the current one has lasted its time, the gates have no objection and
      the new route has served the minimum of requests.

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
    against = objection(gates, evidence)
    returns = gates is not None and gates.then is GateAction.ROLL_BACK and state.percent > 0
    if against is not None and returns:
        return CutoverState(0.0, DecidedBy.ROLLED_BACK, against, now)
    wanted = _wanted(cutover, state, evidence, now)
    if against is not None and wanted >= state.percent:
        held = state.decided_by is DecidedBy.HELD
        return state if held else state._replace(decided_by=DecidedBy.HELD, why=against)
    if wanted != state.percent:
        return CutoverState(wanted, DecidedBy.RULES, _BY_RULES, now)
    if state.decided_by is DecidedBy.HELD:
        return state._replace(decided_by=DecidedBy.RULES, why=_BY_RULES)
    return state


def outlook(cutover: Cutover, state: CutoverState, evidence: GateEvidence, now: float) -> str:
    """Return a text for operators about the next change of a cutover."""
    if state.decided_by is DecidedBy.OPERATOR:
        return "stays until it is cleared"
    if state.decided_by is DecidedBy.ROLLED_BACK:
        return "stays at 0% until it is cleared or set"
    if state.decided_by is DecidedBy.HELD:
        return "is held until nothing speaks against it"
    following = _following(cutover, state)
    if following is None:
        return "has arrived"
    left = state.since + cutover.every - now
    if left > 0:
        return f"goes to {following:g}% in {left:.0f} s at the earliest"
    missing = _minimum(cutover) - evidence.new.requests
    return f"goes to {following:g}% after {max(missing, 0)} more requests"


def _wanted(cutover: Cutover, state: CutoverState, evidence: GateEvidence, now: float) -> float:
    begin, end = first(cutover), cutover.percent
    if not begin <= state.percent <= end:
        return min(max(state.percent, begin), end)
    following = _following(cutover, state)
    seen_enough = evidence.new.requests >= _minimum(cutover)
    if following is None or now - state.since < cutover.every or not seen_enough:
        return state.percent
    return following


def _following(cutover: Cutover, state: CutoverState) -> float | None:
    return next((step for step in cutover.steps if step > state.percent), None)


def _minimum(cutover: Cutover) -> int:
    return cutover.gates.minimum if cutover.gates is not None else 0


_BY_RULES = "the rules say so"
