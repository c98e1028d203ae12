"""The states of cutovers, which gates and operators change.

Times are in seconds of a monotonic clock, so setting the system clock does not change the length of
windows and steps. Stored and displayed states have dates.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict
from enum import Enum, StrEnum
from typing import NamedTuple

import msgspec

from gateway.base.overrides import VersionKey
from gateway.rollout.cutover import VersionCutover, first_percent
from gateway.rollout.decisions import BY_GATEWAY, ChangeRequest, Draft, Event
from gateway.rollout.evidence import CutoverEvidence, EvidenceRow
from gateway.rollout.gates import GateAction, GateEvidence, GateOutcome, GateResult
from gateway.rollout.judgement import SINCE, first_exceeded, judge, margins, missing_requests
from gateway.rollout.route_outcomes import RouteOutcomes

CUTOVERS = "cutovers"
# If the system clock was changed by more than this number of seconds, the dates are stored again.
_CLOCK_TOLERANCE = 5.0
# A step with an uncertain result is held after this many times its length.
_LONGEST = 3
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
    PROMOTE = "go to the next step, where steps and gates continue"
    CLEAR = "return to the configured percentage, and discard the evidence"


def decide(
    cutover: VersionCutover,
    state: CutoverState | None,
    evidence: GateEvidence,
    order: float | PercentCommand | None,
    now: float,
) -> tuple[CutoverState, tuple[Event, ...]]:
    """Return the next state of a cutover, and the events to log.

    Args:
        order: an operator's percentage or command; None if the gates decide.
    """
    if order is PercentCommand.CLEAR:
        return advance(cutover, None, GateEvidence(), now), ()
    if order is not None:
        current = state or advance(cutover, None, GateEvidence(), now)
        if order is PercentCommand.PROMOTE:
            following = next_percent(cutover, current)
            if following is None:
                return current, ()
            return CutoverState(following, DecidedBy.RULES, "an operator has promoted it", now), ()
        percent = current.percent if isinstance(order, PercentCommand) else order
        return ordered(percent, now), ()
    after = advance(cutover, state, evidence, now)
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
) -> CutoverState:
    """Return the next state of a cutover, or the same state if nothing changes.

    - An operator's percentage stays until it is cleared; gates never replace it.
    - After a rollback by the gates, the percentage stays at 0, since the cutover would fail again.
    - A held cutover continues when no gate is exceeded. Its percentage may be reduced at any time.
    - The next step begins when the current step has lasted its minimum time, no gate is exceeded,
    and there are enough requests for a judgement. If there are too few requests, the setting
    `inconclusive` of the gates decides whether the cutover waits, is held or is rolled back. With
    enough requests but an uncertain result, the cutover waits, and is held after three times the
    length of the step.
    - Gates with `dry_run` have no effect.

    Args:
        evidence: The measurements since `state.since`.
    """
    if state is None:
        return CutoverState(first_percent(cutover), DecidedBy.RULES, _BY_RULES, now)
    if state.decided_by in (DecidedBy.OPERATOR, DecidedBy.ROLLED_BACK):
        return state
    gates = cutover.gates
    if gates is not None and gates.dry_run:
        gates = None
    results = evidence.results if gates is not None else ()
    then: GateAction = "wait"
    against = first_exceeded(results)
    if gates is not None:
        then = gates.then
        if against is None and (against := _inconclusive(cutover, state, evidence, now)):
            then = _inconclusive_action(cutover, evidence, now - state.since)
    if against is not None and then == "roll_back" and state.percent > 0:
        return CutoverState(0.0, DecidedBy.ROLLED_BACK, against, now, results)
    wanted = _wanted(cutover, state, evidence, now)
    if against is not None and then != "wait" and wanted >= state.percent:
        held = state.decided_by is DecidedBy.HELD
        return state if held else state._replace(decided_by=DecidedBy.HELD, why=against)
    if wanted != state.percent:
        step = wanted == _following(cutover, state)
        why = _passed(state, evidence.new) if step else _BY_RULES
        return CutoverState(wanted, DecidedBy.RULES, why, now)
    if state.decided_by is DecidedBy.HELD:
        return state._replace(decided_by=DecidedBy.RULES, why=_BY_RULES)
    return state


def _passed(state: CutoverState, new: RouteOutcomes) -> str:
    evidence = f"{new.requests} requests on the new route, {new.failures} failed"
    return f"the step after {state.percent:g}%: {evidence}"


def next_change(
    cutover: VersionCutover, state: CutoverState, evidence: GateEvidence, now: float
) -> str:
    if state.decided_by is DecidedBy.OPERATOR:
        return "stays until it is cleared"
    if state.decided_by is DecidedBy.ROLLED_BACK:
        return "stays at 0% until it is cleared or set"
    held = state.decided_by is DecidedBy.HELD
    if held and first_exceeded(evidence.results) is not None:
        return "is held as long as a gate is exceeded"
    following = _following(cutover, state)
    if following is None:
        return "has arrived" if cutover.percent == 100 else "has reached its last percentage"
    left, more = state.since + cutover.every - now, _missing(cutover, evidence)
    if left > 0:
        then = "" if not more else _without(cutover, evidence, more)
        return f"goes to {following:g}% in {_spelled(left)} at the earliest{then}"
    if not more:
        return f"goes to {following:g}% now"
    return f"{'is held, and ' if held else ''}goes to {following:g}% after {more}"


def _without(cutover: VersionCutover, evidence: GateEvidence, more: str) -> str:
    then = _inconclusive_action(cutover, evidence, cutover.every)
    if then == "wait":
        return ""
    done = "is held" if then == "hold" else "goes back to 0%"
    return f"; without {more} by then, it {done}"


def _inconclusive_action(cutover: VersionCutover, evidence: GateEvidence, age: float) -> GateAction:
    """Return what happens if a step of the given age in seconds lacks evidence."""
    gates = cutover.gates
    if gates is None:
        return "wait"
    if missing_requests(gates, evidence):
        return gates.inconclusive
    return "hold" if age >= _LONGEST * cutover.every else "wait"


def missing_evidence(
    cutover: VersionCutover, state: CutoverState, evidence: GateEvidence, now: float
) -> str | None:
    """Describe what evidence a step lacks after its minimum time; None if it lacks nothing."""
    if now - state.since < cutover.every or _following(cutover, state) is None:
        return None
    return _missing(cutover, evidence) or None


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
    return f"inconclusive: after {now - state.since:.0f} s, it still needed {more}"


def _missing(cutover: VersionCutover, evidence: GateEvidence) -> str:
    gates = cutover.gates
    if gates is None or gates.dry_run:
        return ""
    doubt = f"more requests, since the result is uncertain: {evidence.doubt}"
    return missing_requests(gates, evidence) or (doubt if evidence.doubt else "")


def next_percent(cutover: VersionCutover, state: CutoverState) -> float | None:
    """Return the percentage to which an operator may promote; None if no step follows.

    A percentage that an operator has set, and one that was rolled back, have no next step.
    """
    by_steps = state.decided_by in (DecidedBy.RULES, DecidedBy.HELD)
    return _following(cutover, state) if by_steps else None


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


class RouteCounts(NamedTuple):
    """The counts of both routes since counting began. `rows` has the new evidence by route."""

    old: RouteOutcomes
    new: RouteOutcomes
    compared: int
    differing: int
    old_fields: Counter[str]
    new_fields: Counter[str]
    rows: Mapping[str, Collection[EvidenceRow]]

    def copied(self) -> "RouteCounts":
        old, new = self.old_fields.copy(), self.new_fields.copy()
        return self._replace(old_fields=old, new_fields=new, rows={})

    def worst_field(self, before: "RouteCounts") -> str:
        """Return the field whose violations have increased most on the new route, if any."""
        old, new = self.old_fields - before.old_fields, self.new_fields - before.new_fields
        among = max(self.old.checked - before.old.checked, 1)
        total = max(self.new.checked - before.new.checked, 1)
        more = {name: count / total - old[name] / among for name, count in new.items()}
        worst = max(more, key=lambda name: more[name], default="")
        return worst if worst and more[worst] > 0 else ""


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
        # The evidence of a step begins with these counts. The key of a step is arbitrary.
        self._begun: dict[VersionKey, tuple[object, float, RouteCounts]] = {}
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
            self._evidence.setdefault(each.key, CutoverEvidence(each.history))

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
            # After a rollback, late requests still end and shadows continue. They cause no events.
            if before is None or before.decided_by is not DecidedBy.ROLLED_BACK:
                draft.events += self._newly_exceeded(cutover, evidence.results)
            state, events = decide(cutover, before, evidence, None, at.seconds)
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
            self._begun.pop(key, None)
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
        results = state.results or evidence.results
        return CurrentCutover(cutover, dated, evidence, results, at.date)

    def evidence(self, cutover: VersionCutover, counted: Counted, at: ClockTime) -> GateEvidence:
        """Return the evidence since the percentage was set."""
        now, state, key = at.seconds, self._states.get(cutover.key), cutover.key
        counts, known = counted(key), self._evidence_of(key)
        for route, rows in counts.rows.items():
            known.add(route, rows)
        age = 0.0 if state is None else now - state.since
        since = None if state is None else state.since
        settled = state is not None and _following(cutover, state) is None and age > cutover.every
        step: object = since, _period(cutover, age) if settled else 0
        if settled and known.is_suspected and key in self._begun:
            step = self._begun[key][0]  # evidence does not restart while a fault is suspected
        if key not in self._begun or self._begun[key][0] != step:
            self._begun[key] = step, now, counts.copied()
        _, began, before = self._begun[key]
        found = GateEvidence(
            counts.old.minus(before.old),
            counts.new.minus(before.new),
            counts.old.requests,
            counts.compared - before.compared,
            counts.differing - before.differing,
        )
        gates = cutover.gates
        limits = {} if gates is None else margins(gates)
        known.advance(now, step, limits, timed=not settled, settled=settled)
        if gates is None:
            return found
        field, seconds = counts.worst_field(before), now - began
        is_long = age >= _LONGEST * cutover.every
        begun = f"in the last {seconds:.0f} s" if settled else SINCE
        results, doubt = judge(gates, known, found, field, seconds, is_long=is_long, since=begun)
        return found._replace(results=results, doubt=doubt)

    def reset_shadow(self, key: VersionKey) -> None:
        if key in self._evidence:
            self._evidence[key].reset_shadow()
        if key in self._begun:
            step, began, counts = self._begun[key]
            self._begun[key] = step, began, counts._replace(compared=0, differing=0)

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
            stored.append(_Stored(key, *dated, self._evidence_of(key).stored()))
        return msgspec.to_builtins(stored)


def _period(cutover: VersionCutover, age: float) -> int:
    """Return the number of the current period after the last step; evidence restarts with each."""
    window = cutover.every if cutover.gates is None else max(cutover.gates.window, cutover.every)
    return 1 + int((age - cutover.every) / window)


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
    history: object = None


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
