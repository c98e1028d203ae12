"""The states of cutovers, which gates and operators change.

Times are in seconds of a monotonic clock, so setting the system clock does not change the length of
windows and steps. Stored and displayed states have dates.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict
from enum import Enum, StrEnum
from typing import NamedTuple

import msgspec

from gateway.base.overrides import VersionKey
from gateway.rollout.cutover import VersionCutover, first_percent
from gateway.rollout.decisions import BY_GATEWAY, ChangeRequest, Draft, Event
from gateway.rollout.evidence import CutoverEvidence, RouteCounts, read_outcomes
from gateway.rollout.gates import GateAction, GateEvidence, GateLimits, GateOutcome, GateResult
from gateway.rollout.judgement import doubtful_result, first_exceeded, judge, missing_requests

CUTOVERS = "cutovers"
SETTLE_SECONDS = 2.5
"""Requests that end within this number of seconds after a change may have used the previous
percentage."""
# If the system clock was changed by more than this number of seconds, the dates are stored again.
_CLOCK_TOLERANCE = 5.0
# The number of leading fields of RouteOutcomes that every release reads from one array. The other
# fields are stored in a second array.
_COMMON_FIELDS = 5
_BY_RULES = "as configured"


class DecidedBy(StrEnum):
    RULES = "rules"
    HELD = "held"
    ROLLED_BACK = "rolled_back"
    OPERATOR = "operator"


class CutoverState(NamedTuple):
    """The current state of a cutover.

    Attributes:
        since: The time at which the percentage was set, in seconds. Earlier evidence does not
            count.
        results: The results of the gates that caused the rollback; empty in any other state.
    """

    percent: float
    decided_by: DecidedBy
    why: str
    since: float
    results: tuple[GateResult, ...] = ()

    @property
    def revision(self) -> str:
        """The percentage and its origin. A change request has the revision that the user saw."""
        return f"{self.percent:g}-{self.decided_by}"


class PercentCommand(Enum):
    STAY = "fix the current percentage"
    CLEAR = "return to the configured percentage, and discard the evidence"


def decide(
    cutover: VersionCutover,
    state: CutoverState | None,
    evidence: GateEvidence,
    order: float | PercentCommand | None,
    now: float,
    results: tuple[GateResult, ...] | None = None,
) -> tuple[CutoverState, tuple[Event, ...]]:
    """Return the next state of a cutover, and the events to log.

    Args:
        order: an operator's percentage or command; None if the gates decide.
    """
    if order is PercentCommand.CLEAR:
        return advance(cutover, None, GateEvidence(), now), ()
    if order is not None:
        current = state or advance(cutover, None, GateEvidence(), now)
        percent = current.percent if isinstance(order, PercentCommand) else order
        return ordered(percent, now), ()
    after = advance(cutover, state, evidence, now, results)
    if state in (None, after) or after.decided_by is not DecidedBy.HELD:
        return after, ()
    named = {"api": cutover.key[0], "version": cutover.key[1], "reason": after.why}
    return after, (Event("cutover_held", "info", named),)


def ordered(percent: float, now: float) -> CutoverState:
    return CutoverState(percent, DecidedBy.OPERATOR, "an operator has set it", now)


def advance(
    cutover: VersionCutover,
    state: CutoverState | None,
    evidence: GateEvidence,
    now: float,
    results: tuple[GateResult, ...] | None = None,
) -> CutoverState:
    """Return the next state of a cutover, or the same state if nothing changes.

    - An operator's percentage stays until it is cleared; gates never replace it.
    - After a rollback by the gates, the percentage stays at 0, since the cutover would fail again.
    - A held cutover continues when no gate is exceeded. Its percentage may be reduced at any time.
    - The next step begins when the current step has lasted its minimum time, no gate is exceeded,
    and there are enough requests for a judgement. If there are too few requests, the setting
    `inconclusive` of the gates decides whether the cutover waits, is held or is rolled back. With
    enough requests but a doubtful result, the cutover is held instead of rolled back.
    - Gates with `dry_run` have no effect.

    Args:
        evidence: The measurements since `state.since`, within the window of the gates.
    """
    if state is None:
        return CutoverState(first_percent(cutover), DecidedBy.RULES, _BY_RULES, now)
    if state.decided_by in (DecidedBy.OPERATOR, DecidedBy.ROLLED_BACK):
        return state
    gates = cutover.gates
    if gates is not None and gates.dry_run:
        gates = None
    if gates is None:
        results = ()
    elif results is None:
        results = judge(gates, evidence)
    then, against = GateAction.WAIT, first_exceeded(results)
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


def next_change(
    cutover: VersionCutover, state: CutoverState, evidence: GateEvidence, now: float
) -> str:
    if state.decided_by is DecidedBy.OPERATOR:
        return "stays until it is cleared"
    if state.decided_by is DecidedBy.ROLLED_BACK:
        return "stays at 0% until it is cleared or set"
    held = state.decided_by is DecidedBy.HELD
    if held and first_exceeded(judge(cutover.gates, evidence)) is not None:
        return "is held as long as a gate is exceeded"
    following = _following(cutover, state)
    if following is None:
        return "has arrived" if cutover.percent == 100 else "has reached its last percentage"
    left, more = state.since + cutover.every - now, _missing(cutover, evidence)
    if left > 0:
        then = "" if more is None else _without(cutover, evidence, more)
        return f"goes to {following:g}% in {_spelled(left)} at the earliest{then}"
    if more is None:
        return f"goes to {following:g}% now"
    return f"{'is held, and ' if held else ''}goes to {following:g}% after {more}"


def _without(cutover: VersionCutover, evidence: GateEvidence, more: str) -> str:
    gates = cutover.gates
    then = GateAction.WAIT if gates is None else _inconclusive_action(gates, evidence)
    if then is GateAction.WAIT:
        return ""
    done = "is held" if then is GateAction.HOLD else "goes back to 0%"
    return f"; without {more} by then, it {done}"


def _inconclusive_action(gates: GateLimits, evidence: GateEvidence) -> GateAction:
    if gates.inconclusive is GateAction.ROLL_BACK and missing_requests(gates, evidence) is None:
        return GateAction.HOLD  # the doubt may be due to chance, even on a healthy route
    return gates.inconclusive


def missing_evidence(
    cutover: VersionCutover, state: CutoverState, evidence: GateEvidence, now: float
) -> str | None:
    """Describe what evidence a step lacks after its minimum time; None if it lacks nothing."""
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
    begin, end = first_percent(cutover), cutover.percent
    if not begin <= state.percent <= end:
        return min(max(state.percent, begin), end)
    following = _following(cutover, state)
    if following is None or now - state.since < cutover.every or _missing(cutover, evidence):
        return state.percent
    return following


def _inconclusive(
    cutover: VersionCutover, state: CutoverState, evidence: GateEvidence, now: float
) -> str | None:
    more = missing_evidence(cutover, state, evidence, now)
    if more is None:
        return None
    # A held state keeps this reason while more requests arrive, so the reason is in the past tense.
    return f"inconclusive: after {now - state.since:.0f} s, it still took {more}"


def _missing(cutover: VersionCutover, evidence: GateEvidence) -> str | None:
    gates = cutover.gates
    if gates is None or gates.dry_run:
        return None
    return missing_requests(gates, evidence) or doubtful_result(gates, evidence)


def _following(cutover: VersionCutover, state: CutoverState) -> float | None:
    return next((step for step in cutover.steps if step > state.percent), None)


class ClockTime(NamedTuple):
    """A time in seconds of a monotonic clock, and as a date in seconds since 1970."""

    seconds: float
    date: float

    def date_of(self, seconds: float) -> float:
        return self.date - (self.seconds - seconds)

    def seconds_of(self, date: float) -> float:
        """Convert a date to a time of the monotonic clock. A future date is treated as now."""
        return self.seconds - max(self.date - date, 0.0)


class CurrentCutover(NamedTuple):
    """A cutover with its state and evidence. After a rollback, `results` have its cause."""

    cutover: VersionCutover
    state: CutoverState
    evidence: GateEvidence
    results: tuple[GateResult, ...]
    now: float


Counted = Callable[[VersionKey], RouteCounts]


class Cutovers:
    def __init__(self) -> None:
        self._states: dict[VersionKey, CutoverState] = {}
        self._evidence: dict[VersionKey, CutoverEvidence] = {}
        # The stored date of each state, and the same time by the monotonic clock.
        self._dates: dict[VersionKey, tuple[float, float]] = {}
        self._exceeded: dict[VersionKey, set[tuple[str, str]]] = {}

    def load(
        self,
        documents: Mapping[str, object],
        at: ClockTime,
        only: Collection[VersionKey] | None = None,
        report: Callable[[str], None] | None = None,
    ) -> None:
        """Replace the states with the stored states in `documents`."""
        stored = _read(documents.get(CUTOVERS), report)
        if only is None:
            self._states.clear()
        for each in stored:
            if only is not None and each.key not in only:
                continue
            # If the date is unchanged, its monotonic time is reused, since the system clock may
            # have been changed after the date was stored.
            if each.key not in self._dates or self._dates[each.key][0] != each.since:
                self._dates[each.key] = each.since, at.seconds_of(each.since)
            since = self._dates[each.key][1]
            self._states[each.key] = CutoverState(
                each.percent, _decider(each.decided_by), each.why, since, _results(each.results)
            )
            latest = read_outcomes(each.latest_old, each.latest_old_more)
            self._evidence.setdefault(each.key, CutoverEvidence(latest))

    def decide(
        self,
        draft: Draft,
        cutovers: Mapping[VersionKey, VersionCutover],
        counted: Counted,
        at: ClockTime,
        forget_after: float = 0.0,
    ) -> None:
        """Decide all states by the gates; delete unconfigured ones after `forget_after` seconds."""
        # If the system clock was changed, the next leader would compute a wrong age of steps from
        # the stored dates.
        stale = any(
            abs(at.date_of(since) - date) > _CLOCK_TOLERANCE for date, since in self._dates.values()
        )
        for key, cutover in cutovers.items():
            before, evidence = self._states.get(key), self.evidence(cutover, counted, at)
            results: tuple[GateResult, ...] = ()
            # After a rollback, late requests still end and shadows continue. They cause no events.
            if before is None or before.decided_by is not DecidedBy.ROLLED_BACK:
                results = judge(cutover.gates, evidence)
                draft.events += self._newly_exceeded(cutover, results)
            state, events = decide(cutover, before, evidence, None, at.seconds, results)
            if state != before:
                stale = True
                self._states[key] = state
                if before is None or before.since != state.since:
                    self.evidence(cutover, counted, at)  # starts the evidence of the new state
            draft.events += events
            _override(draft, cutover, state)
        absent = self._states.keys() - cutovers.keys()
        for key in {
            each for each in absent if at.seconds - self._states[each].since >= forget_after
        }:
            stale = True
            del self._states[key]
            self._evidence.pop(key, None)
            self._exceeded.pop(key, None)
            draft.set_percent(key, None, "the configuration has no such cutover")
        if stale:
            self._dates = {
                key: (at.date_of(state.since), state.since) for key, state in self._states.items()
            }
            draft.put(CUTOVERS, self._document(self._states, at))

    def request(
        self,
        draft: Draft,
        cutover: VersionCutover,
        order: float | PercentCommand,
        request: ChangeRequest,
        at: ClockTime,
    ) -> None:
        """Draft an operator's change, which `load` puts in force; raises ChangedMeanwhileError."""
        state = self._state(cutover, at)
        text = f"The cutover is now at {state.percent:g}%: {state.why}."
        request.check_seen(state.revision, text)
        after, _ = decide(cutover, state, GateEvidence(), order, at.seconds)
        states = self._states | {cutover.key: after}
        draft.put(CUTOVERS, self._document(states, at))
        _override(draft, cutover, after, request)

    def current(
        self, cutover: VersionCutover, evidence: GateEvidence, at: ClockTime
    ) -> CurrentCutover:
        state = self._state(cutover, at)
        dated = state._replace(since=at.date_of(state.since))
        # After a rollback, show the results that caused it.
        results = state.results or judge(cutover.gates, evidence)
        return CurrentCutover(cutover, dated, evidence, results, at.date)

    def evidence(self, cutover: VersionCutover, counted: Counted, at: ClockTime) -> GateEvidence:
        """Return the evidence since the percentage was set, within the window of the gates."""
        now, state = at.seconds, self._states.get(cutover.key)
        set_at = now if state is None else state.since
        begin = now if state is None else set_at + SETTLE_SECONDS
        if cutover.gates is not None:
            begin = max(begin, now - cutover.gates.window)
        percent = first_percent(cutover) if state is None else state.percent
        known = self._evidence_of(cutover.key)
        return known.since(begin, now, cutover, percent, counted(cutover.key), set_at)

    def reset_shadow(self, key: VersionKey) -> None:
        if key in self._evidence:
            self._evidence[key].reset_shadow()

    def _evidence_of(self, key: VersionKey) -> CutoverEvidence:
        return self._evidence.setdefault(key, CutoverEvidence())

    def _state(self, cutover: VersionCutover, at: ClockTime) -> CutoverState:
        known = self._states.get(cutover.key)
        return known or advance(cutover, None, GateEvidence(), at.seconds)

    def _newly_exceeded(
        self, cutover: VersionCutover, judged: tuple[GateResult, ...]
    ) -> list[Event]:
        results = [each for each in judged if each.outcome is GateOutcome.EXCEEDED]
        before = self._exceeded.get(cutover.key, set())
        self._exceeded[cutover.key] = {(result.gate, result.measure) for result in results}
        new = (result for result in results if (result.gate, result.measure) not in before)
        return [_exceeded_event(cutover, result) for result in new]

    def _document(self, states: Mapping[VersionKey, CutoverState], at: ClockTime) -> object:
        stored = []
        for key, state in states.items():
            date, since = self._dates.get(key, (0.0, None))
            dated = state._replace(since=date if since == state.since else at.date_of(state.since))
            latest = self._evidence_of(key).latest_old
            stored.append(_Stored(key, *dated, latest[:_COMMON_FIELDS], latest[_COMMON_FIELDS:]))
        return msgspec.to_builtins(stored)


def evidence_document(
    cutovers: Cutovers, rules: Mapping[VersionKey, VersionCutover], counted: Counted, at: ClockTime
) -> object:
    """Return the evidence for all cutovers as JSON, for replicas that do not have the counts."""
    return msgspec.to_builtins(
        [_Published(each.key, cutovers.evidence(each, counted, at)) for each in rules.values()]
    )


def published_evidence(document: object) -> dict[VersionKey, GateEvidence]:
    """Parse the result of `evidence_document`; empty if another release used another format."""
    try:
        published = msgspec.convert(document or [], list[_Published])
    except msgspec.ValidationError:
        return {}
    return {each.key: each.evidence for each in published}


def _override(
    draft: Draft, cutover: VersionCutover, state: CutoverState, request: ChangeRequest = BY_GATEWAY
) -> None:
    # The configured percentage is not stored as an override. Otherwise, a later change of the
    # configuration would have no effect.
    configured = state.decided_by is DecidedBy.RULES and state.percent == first_percent(cutover)
    percent, key = None if configured else state.percent, cutover.key
    if draft.overrides.percents.get(key) != percent:
        draft.set_percent(key, percent, state.why, request, first_percent(cutover))


def _exceeded_event(cutover: VersionCutover, result: GateResult) -> Event:
    gates = cutover.gates
    assert gates is not None  # a cutover without gates has no results
    fields = asdict(result)
    reason, _ = fields.pop("text"), fields.pop("outcome")
    named = {"api": cutover.key[0], "version": cutover.key[1]}
    fields = {**named, **fields, "dry_run": gates.dry_run, "reason": reason}
    return Event("gate_exceeded", "info" if gates.dry_run else "warning", fields)


class _Published(msgspec.Struct):
    key: VersionKey
    evidence: GateEvidence


class _Stored(msgspec.Struct):
    """A stored state with its date. The keys are the same in every release.

    An unknown value from another release must not make the state unreadable. Otherwise, a rolling
    update could undo a rollback.
    """

    key: VersionKey = msgspec.field(name="served")
    percent: float
    decided_by: str = msgspec.field(name="word")
    why: str
    since: float
    results: object = ()
    latest_old: object = ()
    latest_old_more: object = ()


def _decider(word: str) -> DecidedBy:
    """Parse an origin. An unknown one is treated as an operator, so that the state stays."""
    return DecidedBy(word) if word in [*DecidedBy] else DecidedBy.OPERATOR


def _results(document: object) -> tuple[GateResult, ...]:
    """Parse the stored results of a rollback; empty if another release used another format."""
    try:
        return msgspec.convert(document, tuple[GateResult, ...])
    except msgspec.ValidationError:
        return ()


def _read(document: object, report: Callable[[str], None] | None) -> list[_Stored]:
    found = []
    for each in document if isinstance(document, list) else []:
        try:
            found.append(msgspec.convert(each, _Stored))
        except msgspec.ValidationError as error:
            if report is not None:
                report(str(error))
    return found
