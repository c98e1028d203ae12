"""The siege: honest clients during all attacks, kills and reloads, then a check of the results.

Attackers, services and clients share the processors with the gateway, so honest clients wait longer
in any case. A control in the same run measures how much longer: the same attackers, kills and
reloads are directed at a twin of the gateway in front of the same services.

Attackers have the same priority as all other processes. With a lower one, they would get only the
processor time that honest clients leave, and make a tenth of the attacks. The number of attacks is
printed, so that runs can be compared.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from random import Random
from statistics import quantiles
from time import monotonic

import psutil

from tests.gateway.kit import wait_for
from tests.gateway.talk import get
from tests.siege.attacks import attacking
from tests.soak.house import House
from tests.soak.leaks import Held, held
from tests.soak.questions import echo, listed, person, written

HONEST = 4
READS = (person, echo, listed)
MOST_RESIDENT = 256e6
# The shares of the time without attacks, and with attacks on the twin.
_IN_PEACE = 0.2
_BESIDE = 0.3
# The phases take turns, so that other load on the machine affects all of them equally.
_ROUND = 60.0
_BETWEEN_KILLS = 4.0


@dataclass
class Siege:
    """One run.

    Attributes:
        stop: ends the run early once set.
        peace: seconds that honest clients waited for responses without attacks.
        beside: the same during attacks on the twin.
        war: the same during attacks on the gateway.
        diverted: how often each attack was made on the twin.
        attacks: how often each attack was made on the gateway.
        resident: the largest memory of a worker, in bytes.
        done: how often a worker was killed and replaced, and the rules were changed.
        asked: how often honest clients sent each write, by its key, until they got a response.
        arrived: how often the service had each write at the end.
    """

    house: House
    random: Random
    say: Callable[[str], None]
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    peace: list[float] = field(default_factory=list)
    beside: list[float] = field(default_factory=list)
    war: list[float] = field(default_factory=list)
    diverted: Counter[str] = field(default_factory=Counter)
    attacks: Counter[str] = field(default_factory=Counter)
    resident: int = 0
    done: int = 0
    asked: Counter[str] = field(default_factory=Counter)
    arrived: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._times = self.peace

    async def run(self, seconds: float) -> list[str]:
        """Run for some seconds; return the errors, one line each."""
        house = self.house
        before = await asyncio.to_thread(self._idle)
        with house.twin() as twin:
            await self._compare(twin, seconds)
        self.arrived = Counter(
            json.loads((await get(house.backends["mirror"], "GET /arrivals")).body)
        )
        self.say(str(self))
        self.say(f"attacks: {', '.join(f'{n} {kind}' for kind, n in self.attacks.most_common())}")
        failures = [*self._answers(), *self._writes(), *await asyncio.to_thread(self._left, before)]
        status = await asyncio.to_thread(house.end_gateway)
        failures += [f"the gateway ended with {status}"] if status else []
        if self.resident > MOST_RESIDENT:
            failures.append(f"memory: a worker held {self.resident / 1e6:.0f} MB")
        house.journal.read()
        return failures + [f"logged: {entry}" for entry in house.journal.others]

    def __str__(self) -> str:
        load = self.house.load
        return (
            f"{self.done} workers killed; {load.right} right, {len(load.wrong)} wrong; errors:"
            f" {load.explained.total()} explained, {len(load.unexplained)} not;"
            f" {len(self.asked)} writes in {self.asked.total()} requests; in peace"
            f" {_summary(self.peace)}; beside a gateway under {self.diverted.total()} attacks"
            f" {_summary(self.beside)}; under {self.attacks.total()} attacks {_summary(self.war)};"
            f" at most {self.resident / 1e6:.0f} MB a worker"
        )

    async def _compare(self, twin: House, seconds: float) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(HONEST):
                group.create_task(self._honest())
            group.create_task(self._write())
            try:
                rounds = max(1, round(seconds / _ROUND))
                for _ in range(rounds):
                    each = seconds / rounds
                    self._times = self.peace
                    await self._wait(each * _IN_PEACE)
                    await self._attack(twin, self.beside, each * _BESIDE)
                    await self._attack(self.house, self.war, each * (1 - _IN_PEACE - _BESIDE))
            finally:
                self.house.load.over = True

    async def _attack(self, house: House, times: list[float], seconds: float) -> None:
        over = asyncio.Event()
        made = self.attacks if house is self.house else self.diverted
        async with attacking(house.gateway, made), asyncio.TaskGroup() as group:
            self._times = times
            group.create_task(self._operate(house, over))
            await self._wait(seconds)
            over.set()

    async def _honest(self) -> None:
        load = self.house.load
        while not load.over:
            async with load.visit("") as visit:
                while not load.over and not visit.ended:
                    began, times = monotonic(), self._times
                    await visit.ask(self.random.choice(READS)(self.random))
                    times.append(monotonic() - began)
                    await asyncio.sleep(0.005)

    async def _write(self) -> None:
        """Write one document after the other; repeat each until there is a response."""
        load = self.house.load
        keys = map(str, count())
        key, answered = next(keys), True
        while not load.over or not answered:
            async with load.visit("") as visit:
                while not visit.ended and not (load.over and answered):
                    self.asked[key] += 1
                    answered = False
                    if await visit.ask(written(key)) is not None:
                        key, answered = next(keys), True
                    await asyncio.sleep(0.01)

    async def _wait(self, seconds: float) -> None:
        end = monotonic() + seconds
        while (left := end - monotonic()) > 0 and not self.stop.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(min(0.25, left)):
                    await self.stop.wait()
            for worker in self.house.workers:
                with suppress(psutil.Error):
                    self.resident = max(self.resident, worker.memory_info().rss)

    async def _operate(self, house: House, over: asyncio.Event) -> None:
        next_kill = monotonic() + _BETWEEN_KILLS / 2
        while not over.is_set():
            await asyncio.sleep(0.25)
            if monotonic() > next_kill:
                next_kill = monotonic() + _BETWEEN_KILLS
                await house.kill_worker()
                await house.toggle()
                self.done += house is self.house

    def _answers(self) -> list[str]:
        load = self.house.load
        return self.house.unexplained() + [f"wrong: {each}" for each in load.wrong]

    def _writes(self) -> list[str]:
        """Return the writes that were lost, or done more often than a client sent them."""
        return [
            f"write {key}: sent {sent} times, arrived {self.arrived[key]} times"
            for key, sent in self.asked.items()
            if not 1 <= self.arrived[key] <= sent
        ]

    def _idle(self) -> dict[str, Held]:
        house = self.house
        ports = house.rules.ports.values()
        workers = [held(worker, ports) for worker in house.workers]
        return {"supervisor": held(house.supervisor, ports), "worker": min(workers)}

    def _left(self, before: dict[str, Held]) -> list[str]:
        """Return the processes that still hold more than before, without attackers and backends."""
        house = self.house
        house.end_backends()
        failures = []
        for process, role in [(house.supervisor, "supervisor")] + [
            (each, "worker") for each in house.workers
        ]:
            try:
                wait_for(partial(self._no_more, process, before[role]))
            except AssertionError:
                now = held(process, house.rules.ports.values())
                failures.append(f"left: the {role} {process.pid} holds {now}, idle {before[role]}")
        return failures

    def _no_more(self, process: psutil.Process, before: Held) -> bool:
        now = held(process, self.house.rules.ports.values())
        return now.descriptors <= before.descriptors and now.tasks <= before.tasks


def _summary(seconds: list[float]) -> str:
    if len(seconds) < 100:
        return f"{len(seconds)} answers"
    cuts = quantiles(seconds, n=100)
    return f"p50 {cuts[49] * 1000:.1f} ms, p99 {cuts[98] * 1000:.1f} ms of {len(seconds)}"
