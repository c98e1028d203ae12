"""Cutovers: their states, moved forward and back by the evidence or by an operator.

Times are seconds of a steady clock, so that windows and steps keep their length when the clock of
the machine is set. States are stored with dates, and people read dates.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict
from enum import Enum
from typing import NamedTuple

import msgspec

from gateway.base.overrides import VersionKey
from gateway.rollout.cutover import VersionCutover, first
from gateway.rollout.cutover_state import CutoverState, DecidedBy, advance, ordered
from gateway.rollout.decisions import BY_GATEWAY, ChangeRequest, Draft, Event
from gateway.rollout.evidence import CutoverEvidence, RouteCounts, read_outcomes
from gateway.rollout.gates import GateEvidence, GateOutcome, GateResult
from gateway.rollout.judgement import judge

CUTOVERS = "cutovers"
"""The name of the document with the states."""
SETTLE_SECONDS = 2.5
"""For this long after a change, requests served at the former percentage are still counted."""
# The dates of states are stored again once the clock was set by more seconds.
_SET = 5.0
# This many numbers of RouteOutcomes are stored in an array that every release reads.
_KNOWN = 5


class Moment(NamedTuple):
    """A time, by a steady clock and as a date, in seconds since 1970."""

    seconds: float
    date: float

    def date_of(self, seconds: float) -> float:
        """Return the date of a time of the steady clock."""
        return self.date - (self.seconds - seconds)

    def seconds_of(self, date: float) -> float:
        """Return the time of a date; a date in the future counts as now."""
        return self.seconds - max(self.date - date, 0.0)


class Wish(Enum):
    """A request of an operator other than a percentage."""

    STAY = "fix the current percentage"
    CLEAR = "return to the configured percentage, with no evidence"


class Decision(NamedTuple):
    """The next state of a cutover, and the events to log."""

    state: CutoverState
    events: tuple[Event, ...] = ()

    def override(self, cutover: VersionCutover) -> float | None:
        """The percentage that replaces the configured one; None if it is the configured one."""
        configured = self.state.decided_by is DecidedBy.RULES
        return None if configured and self.state.percent == first(cutover) else self.state.percent


class CurrentCutover(NamedTuple):
    """A cutover, its state with a date, the evidence since then, and the date of asking.

    `results` are those of the gates now, or those for which they rolled it back.
    """

    cutover: VersionCutover
    state: CutoverState
    evidence: GateEvidence
    results: tuple[GateResult, ...]
    now: float


Counted = Callable[[VersionKey], RouteCounts]


def decide(
    cutover: VersionCutover,
    state: CutoverState | None,
    evidence: GateEvidence,
    order: float | Wish | None,
    now: float,
) -> Decision:
    """Decide the next state of a cutover.

    Args:
        cutover: the configuration.
        state: the current state; None if it has none yet.
        evidence: the measurements since then.
        order: the percentage or the wish of an operator; None if the gates decide.
        now: the time in seconds, of the same clock as `state.since`.
    """
    if order is Wish.CLEAR:
        return Decision(advance(cutover, None, GateEvidence(), now))
    if order is not None:
        current = state or advance(cutover, None, GateEvidence(), now)
        return Decision(ordered(current.percent if isinstance(order, Wish) else order, now))
    after = advance(cutover, state, evidence, now)
    if state in (None, after) or after.decided_by is not DecidedBy.HELD:
        return Decision(after)
    named = {"api": cutover.key[0], "version": cutover.key[1], "reason": after.why}
    return Decision(after, (Event("cutover_held", "info", named),))


class Cutovers:
    """The states of all cutovers, with the evidence of each."""

    def __init__(self) -> None:
        self._states: dict[VersionKey, CutoverState] = {}
        self._evidence: dict[VersionKey, CutoverEvidence] = {}
        # The stored date of each state with its time.
        self._dates: dict[VersionKey, tuple[float, float]] = {}
        self._exceeded: dict[VersionKey, set[tuple[str, str]]] = {}

    def load(
        self,
        documents: Mapping[str, object],
        at: Moment,
        only: Collection[VersionKey] | None = None,
        report: Callable[[str], None] | None = None,
    ) -> None:
        """Replace the states by those in documents, or `only` some of them.

        A state that cannot be read is left out; `report` then gets the reason.
        """
        stored = _read(documents.get(CUTOVERS), report)
        if only is None:
            self._states.clear()
        for each in stored:
            if only is not None and each.key not in only:
                continue
            # The clock may have been set since it was stored.
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
        at: Moment,
        forget_after: float = 0.0,
    ) -> None:
        """Decide the state of every cutover, by the gates.

        Args:
            draft: takes the changes.
            cutovers: the configuration.
            counted: returns the counts of a cutover.
            at: the time.
            forget_after: the age in seconds from which on a state without a configured cutover is
                forgotten.
        """
        # Otherwise the next judge would take a step for older, or younger.
        stale = any(abs(at.date_of(since) - date) > _SET for date, since in self._dates.values())
        for key, cutover in cutovers.items():
            before, evidence = self._states.get(key), self.evidence(cutover, counted, at)
            decision = decide(cutover, before, evidence, None, at.seconds)
            # After a rollback, requests that hung still end, and shadows go on: that is no news.
            if before is None or before.decided_by is not DecidedBy.ROLLED_BACK:
                draft.events += self._newly_exceeded(cutover, evidence)
            if decision.state != before:
                stale = True
                self._states[key] = decision.state
                if before is None or before.since != decision.state.since:
                    self.evidence(cutover, counted, at)  # from now on, requests count as later
            draft.events += decision.events
            _override(draft, cutover, decision)
        absent = self._states.keys() - cutovers.keys()
        for key in {
            each for each in absent if at.seconds - self._states[each].since >= forget_after
        }:
            stale = True
            del self._states[key]
            self._evidence.pop(key, None)
            self._exceeded.pop(key, None)
            draft.set_percent(key, None, "the rules have no such cutover any more")
        if stale:
            self._dates = {
                key: (at.date_of(state.since), state.since) for key, state in self._states.items()
            }
            draft.put(CUTOVERS, self._document(self._states, at))

    def request(
        self,
        draft: Draft,
        cutover: VersionCutover,
        order: float | Wish,
        request: ChangeRequest,
        at: Moment,
    ) -> None:
        """Draft the change that an operator orders; `load` takes it over once it is stored.

        Raises:
            ChangedMeanwhileError: the state differs from the one that the operator saw.
        """
        state = self._state(cutover, at)
        text = f"The cutover now stands at {state.percent:g}%: {state.why}."
        request.check_seen(state.word, text)
        decision = decide(cutover, state, GateEvidence(), order, at.seconds)
        states = self._states | {cutover.key: decision.state}
        draft.put(CUTOVERS, self._document(states, at))
        _override(draft, cutover, decision, request)

    def current(
        self, cutover: VersionCutover, evidence: GateEvidence, at: Moment
    ) -> CurrentCutover:
        """Return a cutover as people see it."""
        state = self._state(cutover, at)
        dated = state._replace(since=at.date_of(state.since))
        # Since a rollback, gates have seen nothing; people ask why it was made.
        results = state.results or judge(cutover.gates, evidence)
        return CurrentCutover(cutover, dated, evidence, results, at.date)

    def evidence(self, cutover: VersionCutover, counted: Counted, at: Moment) -> GateEvidence:
        """Return the evidence for a cutover since its percentage was set."""
        now, state = at.seconds, self._states.get(cutover.key)
        set_at = now if state is None else state.since
        begin = now if state is None else set_at + SETTLE_SECONDS
        if cutover.gates is not None:
            begin = max(begin, now - cutover.gates.window)
        percent = first(cutover) if state is None else state.percent
        known = self._evidence_of(cutover.key)
        return known.since(begin, now, cutover, percent, counted(cutover.key), set_at)

    def reset_shadow(self, key: VersionKey) -> None:
        """Follow the deletion of the counts of the shadow of a version."""
        if key in self._evidence:
            self._evidence[key].reset_shadow()

    def _evidence_of(self, key: VersionKey) -> CutoverEvidence:
        return self._evidence.setdefault(key, CutoverEvidence())

    def _state(self, cutover: VersionCutover, at: Moment) -> CutoverState:
        known = self._states.get(cutover.key)
        return known or advance(cutover, None, GateEvidence(), at.seconds)

    def _newly_exceeded(self, cutover: VersionCutover, evidence: GateEvidence) -> list[Event]:
        """Return an event for each comparison that has begun to exceed its limit."""
        results = [
            result
            for result in judge(cutover.gates, evidence)
            if result.outcome is GateOutcome.EXCEEDED
        ]
        before = self._exceeded.get(cutover.key, set())
        self._exceeded[cutover.key] = {(result.gate, result.measure) for result in results}
        new = (result for result in results if (result.gate, result.measure) not in before)
        return [_exceeded_event(cutover, result) for result in new]

    def _document(self, states: Mapping[VersionKey, CutoverState], at: Moment) -> object:
        stored = []
        for key, state in states.items():
            date, since = self._dates.get(key, (0.0, None))
            dated = state._replace(since=date if since == state.since else at.date_of(state.since))
            latest = self._evidence_of(key).latest_old
            stored.append(_Stored(key, *dated, latest[:_KNOWN], latest[_KNOWN:]))
        return msgspec.to_builtins(stored)


def evidence_document(
    cutovers: Cutovers, rules: Mapping[VersionKey, VersionCutover], counted: Counted, at: Moment
) -> object:
    """Return the evidence of all cutovers as a JSON value, for replicas without these counts."""
    return msgspec.to_builtins(
        [_Published(each.key, cutovers.evidence(each, counted, at)) for each in rules.values()]
    )


def published_evidence(document: object) -> dict[VersionKey, GateEvidence]:
    """Return the evidence in such a JSON value; none if another release wrote it."""
    try:
        published = msgspec.convert(document or [], list[_Published])
    except msgspec.ValidationError:
        return {}
    return {each.key: each.evidence for each in published}


def _override(
    draft: Draft, cutover: VersionCutover, decision: Decision, request: ChangeRequest = BY_GATEWAY
) -> None:
    # A configured percentage needs no override, and changes with the configuration at once.
    percent, key = decision.override(cutover), cutover.key
    if draft.overrides.percents.get(key) != percent:
        draft.set_percent(key, percent, decision.state.why, request, first(cutover))


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
    """A state as it is stored, with a date; its keys are those of every release.

    Another release has to find the state also if it has other deciders, results or outcomes:
    otherwise a rolling update could undo a rollback.
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
    """Return who decided a state; one of another release is left alone like an operator's."""
    return DecidedBy(word) if word in [*DecidedBy] else DecidedBy.OPERATOR


def _results(document: object) -> tuple[GateResult, ...]:
    """Return the results of a rollback; none if another release has other ones."""
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
