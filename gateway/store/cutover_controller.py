"""The cutover controller: moves cutovers forward and back on the evidence, with the reason.

It decides once a second, in the process that has the totals. A decision becomes an override, which
is in force in every process that serves, and outlives a restart.

Times here are monotonic seconds, so that windows and steps keep their length when the clock of the
machine is set. Only what people read and what is stored has the date.
"""

import time
from collections.abc import Callable
from dataclasses import asdict
from typing import NamedTuple

import msgspec

from gateway.base.overrides import VersionKey
from gateway.observe import log
from gateway.rollout.cutover import Cutover, first
from gateway.rollout.cutover_state import CutoverState, DecidedBy, advance, ordered
from gateway.rollout.gates import GateEvidence, GateOutcome, GateResult
from gateway.rollout.judgement import judge
from gateway.routing.snapshot import Snapshot
from gateway.store.active_overrides import ActiveOverrides
from gateway.store.cutover_evidence import CutoverEvidence, read_outcomes
from gateway.store.ledger import BY_GATEWAY, Ledger, Order

_NAME = "cutovers"
SETTLE_SECONDS = 2.5
"""Requests served at the former percentage are counted up to so many seconds after it changed."""
# The dates of states are stored anew once the clock was set by more seconds.
_SET = 5.0


class CurrentCutover(NamedTuple):
    """A cutover of the rules, its state, the evidence since then, and the date of asking.

    Its `results` are those of the gates now, or those for which they rolled it back.
    """

    cutover: Cutover
    state: CutoverState
    evidence: GateEvidence
    results: tuple[GateResult, ...]
    now: float


class CutoverController:
    """Holds the state of every cutover, and changes it; one change is made at a time.

    Args:
        ledger: holds the totals, and stores the states.
        overrides: applies the percentages.
        rules: returns the snapshot in force.
        clock: returns the date, in seconds since 1970; without it, that of this machine.
    """

    def __init__(
        self,
        ledger: Ledger,
        overrides: ActiveOverrides,
        rules: Callable[[], Snapshot],
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._ledger = ledger
        self._overrides = overrides
        self._rules = rules
        self._clock = clock or time.time
        self._states: dict[VersionKey, CutoverState] = {}
        self._known: dict[VersionKey, CutoverEvidence] = {}
        self._dates: dict[VersionKey, _Dated] = {}
        self._exceeded: dict[VersionKey, set[tuple[str, str]]] = {}
        self._recalled: dict[VersionKey, GateEvidence] | None = None
        self._load()

    async def decide(self, now: float, forgotten: float = 0.0) -> None:
        """Decide the state of every cutover, and apply it.

        Args:
            now: in monotonic seconds.
            forgotten: for how many seconds a state has to have stood before it is forgotten where
                the rules have no such cutover.
        """
        if any(abs(self._date(each.seconds) - each.date) > _SET for each in self._dates.values()):
            await self._keep()  # or another controller would take a step for older, or younger
        cutovers = self._rules().cutovers
        for key, cutover in cutovers.items():
            before, evidence = self._states.get(key), self._evidence(cutover, now)
            after = advance(cutover, before, evidence, now)
            # After a rollback, requests that hung still end, and shadows go on: that is no news.
            if before is None or before.decided_by is not DecidedBy.ROLLED_BACK:
                self._log_exceeded(cutover, evidence)
            if after != before:
                await self._set_state(cutover, after)
            await self._override(cutover, after)
        absent = self._states.keys() - cutovers.keys()
        for key in {key for key in absent if now - self._states[key].since >= forgotten}:
            del self._states[key]
            self._known.pop(key, None)
            self._exceeded.pop(key, None)
            await self._keep()
            await self._overrides.set_percent(key, None, "the rules have no such cutover any more")

    async def set(self, key: VersionKey, percent: float | None, order: Order = BY_GATEWAY) -> None:
        """Set a percentage, or with None the present one; no gate changes it until it is cleared.

        Raises:
            ChangedMeanwhileError: it stands otherwise than was seen.
            TimeoutError: a worker has not confirmed it.
        """
        cutover, before = self._seen(key, order)
        state = ordered(before.percent if percent is None else percent, time.monotonic())
        await self._set_state(cutover, state)
        await self._override(cutover, state, order)

    async def clear(self, key: VersionKey, order: Order = BY_GATEWAY) -> None:
        """Return to the percentage of the rules, with no evidence.

        Raises:
            ChangedMeanwhileError: it stands otherwise than was seen.
            TimeoutError: a worker has not confirmed it.
        """
        cutover, _ = self._seen(key, order)
        state = advance(cutover, None, GateEvidence(), time.monotonic())
        await self._set_state(cutover, state)
        await self._override(cutover, state, order)

    def resume(self, ledger: Ledger, overrides: ActiveOverrides) -> None:
        """Go on with another ledger, by the states that it has."""
        self._ledger = ledger
        self._overrides = overrides
        self._load()

    def adopt(self, key: VersionKey) -> None:
        """Take the state of a cutover from the ledger, where another controller has set it."""
        self._load(key)
        self._evidence(self._rules().cutovers[key], time.monotonic())

    def published(self) -> object:
        """Return the evidence as a JSON value, from which `recall` makes it again."""
        now = time.monotonic()
        cutovers = self._rules().cutovers.values()
        return msgspec.to_builtins(
            [_Published(cutover.key, self._evidence(cutover, now)) for cutover in cutovers]
        )

    def recall(self, document: object) -> None:
        """Go by the evidence of another controller; by none if one of another release has it."""
        try:
            published = msgspec.convert(document or [], list[_Published])
        except msgspec.ValidationError:
            published = []
        self._recalled = {each.key: each.evidence for each in published}

    def reset_shadow(self, key: VersionKey) -> None:
        """Follow the totals, in which the counts of the shadow of a version were deleted."""
        if key in self._known:
            self._known[key].reset_shadow()

    def current(self, key: VersionKey) -> "CurrentCutover":
        """Return a cutover with its state and the evidence; its percentage is in force."""
        now = time.monotonic()
        cutover = self._rules().cutovers[key]
        state = self._state(cutover, now)
        dated = state._replace(since=self._date(state.since))
        evidence = self._evidence(cutover, now)
        # Since a rollback, gates have seen nothing; people ask why it was made.
        results = state.results or judge(cutover.gates, evidence)
        return CurrentCutover(cutover, dated, evidence, results, self._clock())

    def results(self, key: VersionKey) -> tuple[GateResult, ...]:
        """Return the results of the gates now, or those for which they rolled the cutover back."""
        return self.current(key).results

    def _state(self, cutover: Cutover, now: float) -> CutoverState:
        return self._states.get(cutover.key) or advance(cutover, None, GateEvidence(), now)

    def _seen(self, key: VersionKey, order: Order) -> tuple[Cutover, CutoverState]:
        cutover = self._rules().cutovers[key]
        state = self._state(cutover, time.monotonic())
        text = f"The cutover now stands at {state.percent:g}%: {state.why}."
        order.check_seen(state.word, text)
        return cutover, state

    def _evidence(self, cutover: Cutover, now: float) -> GateEvidence:
        if self._recalled is not None:
            return self._recalled.get(cutover.key, GateEvidence())
        state = self._states.get(cutover.key)
        set_at = now if state is None else state.since
        begin = now if state is None else set_at + SETTLE_SECONDS
        if cutover.gates is not None:
            begin = max(begin, now - cutover.gates.window)
        percent = first(cutover) if state is None else state.percent
        known = self._evidence_of(cutover.key)
        return known.since(begin, now, cutover, percent, self._ledger.totals, set_at)

    def _evidence_of(self, key: VersionKey) -> CutoverEvidence:
        return self._known.setdefault(key, CutoverEvidence())

    def _log_exceeded(self, cutover: Cutover, evidence: GateEvidence) -> None:
        """Log each comparison that exceeds its limit, once until it does so no more."""
        before, now = self._exceeded.get(cutover.key, set()), set()
        for result in judge(cutover.gates, evidence):
            if result.outcome is not GateOutcome.EXCEEDED:
                continue
            now.add((result.gate, result.measure))
            if (result.gate, result.measure) not in before:
                _log_result(cutover, result)
        self._exceeded[cutover.key] = now

    async def _set_state(self, cutover: Cutover, state: CutoverState) -> None:
        key, before = cutover.key, self._states.get(cutover.key)
        self._states[key] = state
        if before is None or before.since != state.since:
            self._evidence(cutover, state.since)  # what comes from now on counts as served since
        await self._keep()
        if before is not None and state.decided_by is DecidedBy.HELD:
            self._ledger.announce("cutover_held", api=key[0], version=key[1], reason=state.why)

    async def _override(
        self, cutover: Cutover, state: CutoverState, order: Order = BY_GATEWAY
    ) -> None:
        # A percentage of the rules needs no override, and changes with them at once.
        by_rules = state.decided_by is DecidedBy.RULES and state.percent == first(cutover)
        percent = None if by_rules else state.percent
        if self._overrides.in_force.percents.get(cutover.key) != percent:
            begin = first(cutover)
            await self._overrides.set_percent(cutover.key, percent, state.why, order, begin)

    async def _keep(self) -> None:
        self._dates = {
            key: _Dated(self._date(state.since), state.since) for key, state in self._states.items()
        }
        document = []
        for key, state in self._states.items():
            dated = state._replace(since=self._dates[key].date)
            latest = self._evidence_of(key).latest_old
            document.append(_Kept(key, *dated, latest[:_KNOWN], latest[_KNOWN:]))
        await self._ledger.keep(_NAME, msgspec.to_builtins(document))

    def _load(self, key: VersionKey | None = None) -> None:
        """Take the states from the ledger, or that of one cutover."""
        kept = _read(self._ledger.documents.get(_NAME))
        if key is None:
            self._states.clear()
        else:
            kept = [each for each in kept if each.key == key]
        for each in kept:
            # The clock may have been set since it was stored.
            if each.key not in self._dates or self._dates[each.key].date != each.since:
                self._dates[each.key] = _Dated(each.since, self._monotonic(each.since))
        self._states |= {
            each.key: CutoverState(
                each.percent,
                _decider(each.decided_by),
                each.why,
                self._dates[each.key].seconds,
                _results(each.results),
            )
            for each in kept
        }
        for each in kept:
            latest = read_outcomes(each.latest_old, each.latest_old_more)
            self._known.setdefault(each.key, CutoverEvidence(latest))

    def _date(self, seconds: float) -> float:
        """Return monotonic seconds as seconds since 1970, by the clock of now."""
        return self._clock() - (time.monotonic() - seconds)

    def _monotonic(self, date: float) -> float:
        """Return seconds since 1970 as monotonic seconds; a date in the future counts as now."""
        return time.monotonic() - max(self._clock() - date, 0.0)


def _log_result(cutover: Cutover, result: GateResult) -> None:
    gates = cutover.gates
    assert gates is not None  # a cutover without gates has no results
    fields = asdict(result)
    reason, _ = fields.pop("text"), fields.pop("outcome")
    log.event(
        "gate_exceeded",
        "info" if gates.dry_run else "warning",
        api=cutover.key[0],
        version=cutover.key[1],
        **fields,
        dry_run=gates.dry_run,
        reason=reason,
    )


class _Dated(NamedTuple):
    """When a state was set: the date that is stored, and in monotonic seconds."""

    date: float
    seconds: float


class _Published(msgspec.Struct):
    """The evidence of a cutover, for controllers that do not see the totals."""

    key: VersionKey
    evidence: GateEvidence


# So many numbers of RouteOutcomes are in an array that each release reads; others have their own.
_KNOWN = 5


class _Kept(msgspec.Struct):
    """A state as it is stored, with a date; the names are those in every state file.

    Another release has to find the state also where it knows other deciders, results or outcomes:
    or a rolling update could undo a rollback.
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
    """Return who decided a state; one that this release does not know is left as operators' are."""
    return DecidedBy(word) if word in [*DecidedBy] else DecidedBy.OPERATOR


def _results(document: object) -> tuple[GateResult, ...]:
    """Return the results of a rollback; none where another release has other ones."""
    try:
        return msgspec.convert(document, tuple[GateResult, ...])
    except msgspec.ValidationError:
        return ()


def _read(document: object) -> list[_Kept]:
    found = []
    for each in document if isinstance(document, list) else []:
        try:
            found.append(msgspec.convert(each, _Kept))
        except msgspec.ValidationError as error:
            log.event("cutovers_lost", "error", reason=str(error))
    return found
