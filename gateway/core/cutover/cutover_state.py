"""The state of a cutover, and how it changes: by the rules, the gates or an operator."""

from enum import StrEnum
from typing import NamedTuple

from gateway.core.cutover.cutover import Cutover, first
from gateway.core.cutover.gates import GateAction, GateEvidence, objection


class DecidedBy(StrEnum):
    """What set the percentage of a cutover."""

    RULES = "rules"
    HELD = "held"
    ROLLED_BACK = "rolled_back"
    OPERATOR = "operator"


class CutoverState(NamedTuple):
    """How a cutover stands.

    Attributes:
        percent: how many are moved now.
        decided_by: what set the percentage; the gates hold and roll back.
        why: the reason, for people.
        since: when the percentage was set, in seconds; evidence from before does not count.
    """

    percent: float
    decided_by: DecidedBy
    why: str
    since: float


def ordered(percent: float, now: float) -> CutoverState:
    """Return how a cutover stands that an operator has set."""
    return CutoverState(percent, DecidedBy.OPERATOR, "an operator has set it", now)


def advance(
    cutover: Cutover, state: CutoverState | None, evidence: GateEvidence, now: float
) -> CutoverState:
    """Return how a cutover stands from now on; the same state where nothing changes.

    - What an operator has set stays until it is cleared: the gates do not overrule people.
    - What the gates rolled back stays so too. It would only fail again.
    - A held cutover climbs on when nothing speaks against it any more; it may always go down.
    - A step is left after its time, if nothing spoke against it and there was enough to see.

    Args:
        cutover: what the rules say.
        state: as it was; None where nothing has been decided yet.
        evidence: since then, as far back as the window reaches.
        now: in seconds, of the same clock as `since`.
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
    """Say what comes next."""
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
