"""How a cutover stands, and where it goes from there: by the rules, the gates or an operator."""

from enum import StrEnum
from typing import NamedTuple

from gateway.core.cutover import Cutover, first
from gateway.core.gates import Evidence, Then, objection


class Word(StrEnum):
    """Whose word the percentage is, and what was done."""

    RULES = "rules"
    HELD = "held"
    ROLLED_BACK = "rolled_back"
    OPERATOR = "operator"


class Standing(NamedTuple):
    """How a cutover stands.

    Attributes:
        percent: how many are moved now.
        word: whose word that is; the gates hold and roll back.
        why: the reason, for people.
        since: when the percentage became what it is, in seconds since 1970; evidence from before
            says nothing of it.
    """

    percent: float
    word: Word
    why: str
    since: float


def ordered(percent: float, now: float) -> Standing:
    """Return how a cutover stands that an operator has set."""
    return Standing(percent, Word.OPERATOR, "an operator has set it", now)


def advance(
    cutover: Cutover, standing: Standing | None, evidence: Evidence, now: float
) -> Standing:
    """Return how a cutover stands from now on; the same standing where nothing changes.

    - What an operator has set stays until it is cleared: the gates do not overrule people.
    - What the gates rolled back stays so too. It would only fail again.
    - A held cutover climbs on when nothing speaks against it any more; it may always go down.
    - A step is left after its time, if nothing spoke against it and there was enough to see.

    Args:
        cutover: what the rules say.
        standing: as it was; None where nothing has been decided yet.
        evidence: since then, as far back as the window reaches.
        now: in seconds since 1970.
    """
    if standing is None:
        return Standing(first(cutover), Word.RULES, _BY_RULES, now)
    if standing.word in (Word.OPERATOR, Word.ROLLED_BACK):
        return standing
    gates = cutover.gates
    against = objection(gates, evidence)
    returns = gates is not None and gates.then is Then.ROLL_BACK and standing.percent > 0
    if against is not None and returns:
        return Standing(0.0, Word.ROLLED_BACK, against, now)
    wanted = _wanted(cutover, standing, evidence, now)
    if against is not None and wanted >= standing.percent:
        held = standing.word is Word.HELD
        return standing if held else standing._replace(word=Word.HELD, why=against)
    if wanted != standing.percent:
        return Standing(wanted, Word.RULES, _BY_RULES, now)
    if standing.word is Word.HELD:
        return standing._replace(word=Word.RULES, why=_BY_RULES)
    return standing


def outlook(cutover: Cutover, standing: Standing, evidence: Evidence, now: float) -> str:
    """Say what comes next."""
    if standing.word is Word.OPERATOR:
        return "stays until it is cleared"
    if standing.word is Word.ROLLED_BACK:
        return "stays at 0% until it is cleared or set"
    if standing.word is Word.HELD:
        return "is held until nothing speaks against it"
    following = _following(cutover, standing)
    if following is None:
        return "has arrived"
    left = standing.since + cutover.every - now
    if left > 0:
        return f"goes to {following:g}% in {left:.0f} s at the earliest"
    missing = _minimum(cutover) - evidence.new.requests
    return f"goes to {following:g}% after {max(missing, 0)} more requests"


def _wanted(cutover: Cutover, standing: Standing, evidence: Evidence, now: float) -> float:
    begin, end = first(cutover), cutover.percent
    if not begin <= standing.percent <= end:
        return min(max(standing.percent, begin), end)
    following = _following(cutover, standing)
    seen_enough = evidence.new.requests >= _minimum(cutover)
    if following is None or now - standing.since < cutover.every or not seen_enough:
        return standing.percent
    return following


def _following(cutover: Cutover, standing: Standing) -> float | None:
    return next((step for step in cutover.steps if step > standing.percent), None)


def _minimum(cutover: Cutover) -> int:
    return cutover.gates.minimum if cutover.gates is not None else 0


_BY_RULES = "the rules say so"
