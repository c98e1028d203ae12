"""Shift: moves cutovers along, and back, on the evidence; says why; forgets nothing at a restart.

It looks once a second, in the process that has the ledger. What it decides becomes an order, which
holds wherever requests are answered.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from gateway.core.cutover import Arm, Cutover, first
from gateway.core.gates import Evidence, Outcomes
from gateway.core.orders import Served
from gateway.core.snapshot import Snapshot
from gateway.core.standing import Standing, Word, advance, ordered, outlook
from gateway.operation import log
from gateway.operation.control import Control
from gateway.operation.cutover import Cutover as Stands
from gateway.operation.cutover import Way
from gateway.operation.keeper import Keeper
from gateway.operation.ledger import Ledger
from gateway.operation.usage import moment

_NAME = "cutovers"
_INTERVAL = 1.0
# What went the old percentage's way is reported up to so much later, in seconds.
_SETTLE = 2.5
# So many looks back are remembered at most; in a long window they lie further apart.
_LOOKS = 300


@dataclass(slots=True)
class _History:
    """What had been counted of one cutover, look by look; times in seconds since 1970."""

    looks: deque[tuple[float, Evidence]] = field(default_factory=deque)

    def since(self, begin: float, now: float, total: Evidence) -> Evidence:
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


class Shift:
    """Holds how every cutover stands.

    Args:
        keeper: has what was counted, and keeps the standings.
        control: has orders obeyed.
        rules: returns the snapshot in force.
    """

    def __init__(self, keeper: Keeper, control: Control, rules: Callable[[], Snapshot]) -> None:
        self._keeper = keeper
        self._control = control
        self._rules = rules
        self._standings = _standings(keeper.documents.get(_NAME))
        self._histories: dict[Served, _History] = {}
        self._turn = asyncio.Lock()

    async def run(self) -> None:
        """Look once a second, for ever."""
        while True:
            try:
                await self.look(time.time())
            except TimeoutError:
                log.event("cutover_late", "error", reason="a worker has not said that it obeys")
            await asyncio.sleep(_INTERVAL)

    async def look(self, now: float) -> None:
        """Decide how every cutover stands, in seconds since 1970, and have it obeyed."""
        async with self._turn:
            cutovers = self._rules().cutovers
            for served, cutover in cutovers.items():
                before = self._standings.get(served)
                after = advance(cutover, before, self._evidence(cutover, now), now)
                if after != before:
                    await self._stand(cutover, after)
                await self._order(cutover, after)
            for served in self._standings.keys() - cutovers.keys():
                del self._standings[served]
                self._histories.pop(served, None)
                await self._keep()
                await self._control.shift(served, None, "the rules have no such cutover any more")

    async def set(self, served: Served, percent: float) -> None:
        """Set a percentage, which no gate changes until it is cleared; may raise TimeoutError."""
        async with self._turn:
            cutover = self._rules().cutovers[served]
            standing = ordered(percent, time.time())
            await self._stand(cutover, standing)
            await self._order(cutover, standing)

    async def clear(self, served: Served) -> None:
        """Begin anew, by the rules; may raise TimeoutError."""
        async with self._turn:
            cutover = self._rules().cutovers[served]
            standing = advance(cutover, None, Evidence(), time.time())
            await self._stand(cutover, standing)
            await self._order(cutover, standing)

    def forget_shadow(self, served: Served) -> None:
        """Take it that what the ledger has of the shadow of a version begins anew."""
        if served in self._histories:
            self._histories[served].forget_shadow()

    async def describe(self, served: Served) -> Stands:
        """Return how a cutover stands, what was seen since, and what comes next."""
        async with self._turn:  # what is decided is in force then
            return self._describe(served)

    def _describe(self, served: Served) -> Stands:
        now = time.time()
        cutover = self._rules().cutovers[served]
        standing = self._standings.get(served) or advance(cutover, None, Evidence(), now)
        seen = self._evidence(cutover, now)
        return Stands(
            *served,
            cutover.via,
            standing.percent,
            standing.word,
            standing.why,
            moment(standing.since),
            outlook(cutover, standing, seen, now),
            _way(seen.old),
            _way(seen.new),
            seen.compared,
            seen.differing,
        )

    def _evidence(self, cutover: Cutover, now: float) -> Evidence:
        standing = self._standings.get(cutover.served)
        begin = now if standing is None else standing.since + _SETTLE
        if cutover.gates is not None:
            begin = max(begin, now - cutover.gates.window)
        history = self._histories.setdefault(cutover.served, _History())
        return history.since(begin, now, _total(self._keeper.ledger, cutover.served))

    async def _stand(self, cutover: Cutover, standing: Standing) -> None:
        served, before = cutover.served, self._standings.get(cutover.served)
        self._standings[served] = standing
        await self._keep()
        if before is not None and standing.word is Word.HELD:
            log.event("cutover_held", api=served[0], version=served[1], reason=standing.why)

    async def _order(self, cutover: Cutover, standing: Standing) -> None:
        # What is so by the rules alone needs no order, and follows them at once when they change.
        by_rules = standing.word is Word.RULES and standing.percent == first(cutover)
        percent = None if by_rules else standing.percent
        if self._control.orders.percents.get(cutover.served) != percent:
            await self._control.shift(cutover.served, percent, standing.why)

    async def _keep(self) -> None:
        document = [
            {"served": served, **standing._asdict()} for served, standing in self._standings.items()
        ]
        await self._keeper.keep(_NAME, document)


def _total(ledger: Ledger, served: Served) -> Evidence:
    def went(arm: Arm) -> Outcomes:
        total = ledger.outcomes.get((*served, arm))
        if total is None:
            return Outcomes()
        return Outcomes(sum(total.buckets), total.failures, total.seconds)

    def counted(kind: str) -> int:
        times = ledger.counts.get((kind, served))
        return 0 if times is None else times.count

    return Evidence(went(Arm.OLD), went(Arm.NEW), counted("compared"), counted("differing"))


def _less(total: Evidence, before: Evidence) -> Evidence:
    def less(one: Outcomes, other: Outcomes) -> Outcomes:
        return Outcomes(
            one.requests - other.requests,
            one.failures - other.failures,
            one.seconds - other.seconds,
        )

    return Evidence(
        less(total.old, before.old),
        less(total.new, before.new),
        total.compared - before.compared,
        total.differing - before.differing,
    )


def _way(outcomes: Outcomes) -> Way:
    requests, failures, seconds = outcomes
    return Way(requests, failures, round(seconds / requests * 1000, 3) if requests else None)


class _Kept(msgspec.Struct):
    served: Served
    percent: float
    word: Word
    why: str
    since: float


def _standings(document: object) -> dict[Served, Standing]:
    if document is None:
        return {}
    try:
        kept = msgspec.convert(document, list[_Kept])
    except msgspec.ValidationError as error:
        log.event("cutovers_lost", "error", reason=str(error))
        return {}
    return {each.served: Standing(each.percent, each.word, each.why, each.since) for each in kept}
