"""The cutover controller: moves cutovers forward and back on the evidence, with the reason.

It decides once a second, in the process that has the totals. A decision becomes an override, which
is in force in every process that serves, and outlives a restart.

Times here are monotonic seconds, so that windows and steps keep their length when the clock of the
machine is set. Only what people read and what is stored has the date.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from gateway.core.cutover.cutover import Cutover, CutoverRoute, first
from gateway.core.cutover.cutover_state import (
    CutoverState,
    DecidedBy,
    advance,
    ordered,
)
from gateway.core.cutover.gates import GateEvidence, RouteOutcomes
from gateway.core.overrides import VersionKey
from gateway.core.snapshot import Snapshot
from gateway.state.active_overrides import ActiveOverrides
from gateway.state.state_writer import StateWriter
from gateway.state.totals import Totals
from gateway.telemetry import log

_NAME = "cutovers"
_INTERVAL = 1.0
# Requests served at the former percentage are counted up to so many seconds after it changed.
_SETTLE = 2.5
# A history has at most so many totals; in a long window they lie further apart.
_MAX_TOTALS = 300


@dataclass(slots=True)
class _History:
    """The totals of one cutover at earlier times."""

    totals: deque[tuple[float, GateEvidence]] = field(default_factory=deque)

    def since(self, begin: float, now: float, total: GateEvidence) -> GateEvidence:
        """Return what was counted from `begin` on, or from the first total after it."""
        totals = self.totals
        while len(totals) > 1 and totals[1][0] <= begin:
            totals.popleft()
        if begin > now:
            totals.clear()
        if not totals or now - totals[-1][0] >= max((now - begin) / _MAX_TOTALS, _INTERVAL / 2):
            totals.append((now, total))
        return _less(total, totals[0][1])

    def reset_shadow(self) -> None:
        """Set what the shadow had counted to zero."""
        totals = [(at, total._replace(compared=0, differing=0)) for at, total in self.totals]
        self.totals = deque(totals)


class CurrentCutover(NamedTuple):
    """A cutover of the rules, its state, the evidence since then, and the date of asking."""

    cutover: Cutover
    state: CutoverState
    evidence: GateEvidence
    now: float


class CutoverController:
    """Holds the state of every cutover, and changes it.

    Args:
        writer: holds the totals, and stores the states.
        overrides: applies the percentages.
        rules: returns the snapshot in force.
    """

    def __init__(
        self, writer: StateWriter, overrides: ActiveOverrides, rules: Callable[[], Snapshot]
    ) -> None:
        self._writer = writer
        self._overrides = overrides
        self._rules = rules
        self._states = _states(writer.documents.get(_NAME))
        self._histories: dict[VersionKey, _History] = {}
        self._lock = asyncio.Lock()

    async def run(self) -> None:
        """Decide once a second, for ever."""
        while True:
            try:
                await self.decide(time.monotonic())
            except TimeoutError:
                log.event(
                    "cutover_late", "error", reason="a worker has not acknowledged the overrides"
                )
            await asyncio.sleep(_INTERVAL)

    async def decide(self, now: float) -> None:
        """Decide the state of every cutover at a time in monotonic seconds, and apply it."""
        async with self._lock:
            cutovers = self._rules().cutovers
            for key, cutover in cutovers.items():
                before = self._states.get(key)
                after = advance(cutover, before, self._evidence(cutover, now), now)
                if after != before:
                    await self._set_state(cutover, after)
                await self._override(cutover, after)
            for key in self._states.keys() - cutovers.keys():
                del self._states[key]
                self._histories.pop(key, None)
                await self._keep()
                await self._overrides.set_percent(
                    key, None, "the rules have no such cutover any more"
                )

    async def set(self, key: VersionKey, percent: float) -> None:
        """Set a percentage, which no gate changes until it is cleared; may raise TimeoutError."""
        async with self._lock:
            cutover = self._rules().cutovers[key]
            state = ordered(percent, time.monotonic())
            await self._set_state(cutover, state)
            await self._override(cutover, state)

    async def clear(self, key: VersionKey) -> None:
        """Return to the percentage of the rules, with no evidence; may raise TimeoutError."""
        async with self._lock:
            cutover = self._rules().cutovers[key]
            state = advance(cutover, None, GateEvidence(), time.monotonic())
            await self._set_state(cutover, state)
            await self._override(cutover, state)

    def reset_shadow(self, key: VersionKey) -> None:
        """Follow the totals, in which the counts of the shadow of a version were deleted."""
        if key in self._histories:
            self._histories[key].reset_shadow()

    async def current(self, key: VersionKey) -> "CurrentCutover":
        """Return a cutover with its state and the evidence; its percentage is in force."""
        async with self._lock:
            now = time.monotonic()
            cutover = self._rules().cutovers[key]
            state = self._states.get(key) or advance(cutover, None, GateEvidence(), now)
            dated = state._replace(since=_date(state.since))
            return CurrentCutover(cutover, dated, self._evidence(cutover, now), time.time())

    def _evidence(self, cutover: Cutover, now: float) -> GateEvidence:
        state = self._states.get(cutover.key)
        begin = now if state is None else state.since + _SETTLE
        if cutover.gates is not None:
            begin = max(begin, now - cutover.gates.window)
        history = self._histories.setdefault(cutover.key, _History())
        return history.since(begin, now, _total(self._writer.totals, cutover.key))

    async def _set_state(self, cutover: Cutover, state: CutoverState) -> None:
        key, before = cutover.key, self._states.get(cutover.key)
        self._states[key] = state
        await self._keep()
        if before is not None and state.decided_by is DecidedBy.HELD:
            log.event("cutover_held", api=key[0], version=key[1], reason=state.why)

    async def _override(self, cutover: Cutover, state: CutoverState) -> None:
        # A percentage of the rules needs no override, and changes with them at once.
        by_rules = state.decided_by is DecidedBy.RULES and state.percent == first(cutover)
        percent = None if by_rules else state.percent
        if self._overrides.in_force.percents.get(cutover.key) != percent:
            await self._overrides.set_percent(cutover.key, percent, state.why)

    async def _keep(self) -> None:
        document = [
            _Kept(key, *state._replace(since=_date(state.since)))
            for key, state in self._states.items()
        ]
        await self._writer.keep(_NAME, msgspec.to_builtins(document))


def _total(totals: Totals, key: VersionKey) -> GateEvidence:
    def outcomes(route: CutoverRoute) -> RouteOutcomes:
        total = totals.outcomes.get((*key, route))
        if total is None:
            return RouteOutcomes()
        return RouteOutcomes(sum(total.buckets), total.failures, total.seconds)

    def counted(kind: str) -> int:
        occurrences = totals.counts.get((kind, key))
        return 0 if occurrences is None else occurrences.count

    return GateEvidence(
        outcomes(CutoverRoute.OLD),
        outcomes(CutoverRoute.NEW),
        counted("compared"),
        counted("differing"),
    )


def _less(total: GateEvidence, before: GateEvidence) -> GateEvidence:
    def less(one: RouteOutcomes, other: RouteOutcomes) -> RouteOutcomes:
        return RouteOutcomes(
            one.requests - other.requests,
            one.failures - other.failures,
            one.seconds - other.seconds,
        )

    return GateEvidence(
        less(total.old, before.old),
        less(total.new, before.new),
        total.compared - before.compared,
        total.differing - before.differing,
    )


class _Kept(msgspec.Struct):
    """A state as it is stored, with a date; the names are those in every state file."""

    key: VersionKey = msgspec.field(name="served")
    percent: float
    decided_by: DecidedBy = msgspec.field(name="word")
    why: str
    since: float


def _states(document: object) -> dict[VersionKey, CutoverState]:
    if document is None:
        return {}
    try:
        kept = msgspec.convert(document, list[_Kept])
    except msgspec.ValidationError as error:
        log.event("cutovers_lost", "error", reason=str(error))
        return {}
    return {
        each.key: CutoverState(each.percent, each.decided_by, each.why, _monotonic(each.since))
        for each in kept
    }


def _date(seconds: float) -> float:
    """Return monotonic seconds as seconds since 1970, by the clock of now."""
    return time.time() - (time.monotonic() - seconds)


def _monotonic(date: float) -> float:
    """Return seconds since 1970 as monotonic seconds; a date in the future counts as now."""
    return time.monotonic() - max(time.time() - date, 0.0)
