"""The cutover controller: moves cutovers forward and back on the evidence, with the reason.

It looks once a second, in the process that has the totals. What it decides becomes an override,
which is in force wherever requests are answered, and outlives a restart.
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
# What went the old percentage's way is reported up to so much later, in seconds.
_SETTLE = 2.5
# So many looks back are remembered at most; in a long window they lie further apart.
_LOOKS = 300


@dataclass(slots=True)
class _History:
    """What had been counted of one cutover, look by look; times in seconds since 1970."""

    looks: deque[tuple[float, GateEvidence]] = field(default_factory=deque)

    def since(self, begin: float, now: float, total: GateEvidence) -> GateEvidence:
        """Return what was counted from `begin` on, or from the first look after it."""
        looks = self.looks
        while len(looks) > 1 and looks[1][0] <= begin:
            looks.popleft()
        if begin > now:
            looks.clear()
        if not looks or now - looks[-1][0] >= max((now - begin) / _LOOKS, _INTERVAL / 2):
            looks.append((now, total))
        return _less(total, looks[0][1])

    def forget_shadow(self) -> None:
        """Look as if no answer had been compared before."""
        looks = [(at, seen._replace(compared=0, differing=0)) for at, seen in self.looks]
        self.looks = deque(looks)


class CurrentCutover(NamedTuple):
    """A cutover of the rules, its state, what was seen since, and when that was looked up."""

    cutover: Cutover
    state: CutoverState
    evidence: GateEvidence
    now: float


class CutoverController:
    """Holds the state of every cutover.

    Args:
        writer: has what was counted, and keeps the states.
        overrides: has overrides applied.
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
        self._turn = asyncio.Lock()

    async def run(self) -> None:
        """Look once a second, for ever."""
        while True:
            try:
                await self.look(time.time())
            except TimeoutError:
                log.event(
                    "cutover_late", "error", reason="a worker has not acknowledged the overrides"
                )
            await asyncio.sleep(_INTERVAL)

    async def look(self, now: float) -> None:
        """Decide the state of every cutover at a time in seconds since 1970, and apply it."""
        async with self._turn:
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
        async with self._turn:
            cutover = self._rules().cutovers[key]
            state = ordered(percent, time.time())
            await self._set_state(cutover, state)
            await self._override(cutover, state)

    async def clear(self, key: VersionKey) -> None:
        """Begin anew, by the rules; may raise TimeoutError."""
        async with self._turn:
            cutover = self._rules().cutovers[key]
            state = advance(cutover, None, GateEvidence(), time.time())
            await self._set_state(cutover, state)
            await self._override(cutover, state)

    def forget_shadow(self, key: VersionKey) -> None:
        """Take it that what the totals have of the shadow of a version begins anew."""
        if key in self._histories:
            self._histories[key].forget_shadow()

    async def current(self, key: VersionKey) -> "CurrentCutover":
        """Return a cutover, its state, and what was seen since; what is decided is in force."""
        async with self._turn:
            now = time.time()
            cutover = self._rules().cutovers[key]
            state = self._states.get(key) or advance(cutover, None, GateEvidence(), now)
            return CurrentCutover(cutover, state, self._evidence(cutover, now), now)

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
        # What is so by the rules alone needs no order, and follows them at once when they change.
        by_rules = state.decided_by is DecidedBy.RULES and state.percent == first(cutover)
        percent = None if by_rules else state.percent
        if self._overrides.in_force.percents.get(cutover.key) != percent:
            await self._overrides.set_percent(cutover.key, percent, state.why)

    async def _keep(self) -> None:
        document = [_Kept(key, *state) for key, state in self._states.items()]
        await self._writer.keep(_NAME, msgspec.to_builtins(document))


def _total(totals: Totals, key: VersionKey) -> GateEvidence:
    def went(route: CutoverRoute) -> RouteOutcomes:
        total = totals.outcomes.get((*key, route))
        if total is None:
            return RouteOutcomes()
        return RouteOutcomes(sum(total.buckets), total.failures, total.seconds)

    def counted(kind: str) -> int:
        times = totals.counts.get((kind, key))
        return 0 if times is None else times.count

    return GateEvidence(
        went(CutoverRoute.OLD), went(CutoverRoute.NEW), counted("compared"), counted("differing")
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
    """A state as it is kept; the names are those of every file there is."""

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
        each.key: CutoverState(each.percent, each.decided_by, each.why, each.since) for each in kept
    }
