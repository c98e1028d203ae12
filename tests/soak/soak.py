"""The soak: all kinds of load and failures for a while, then a check for leaks."""

import asyncio
import sqlite3
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import partial
from random import Random
from time import monotonic

import psutil

from tests.gateway.kit import wait_for
from tests.soak import crowd, tls_crowd
from tests.soak.house import House
from tests.soak.leaks import Held, Memory, held
from tests.soak.load import Load
from tests.soak.questions import any_of

STEADY = 6
CROWD: tuple[tuple[Callable[[Load, Random], Awaitable[None]], int], ...] = (
    (crowd.user, 2),
    (crowd.large, 1),
    (crowd.slow, 2),
    (crowd.leaver, 2),
    (crowd.ahead, 1),
    (crowd.garbage, 1),
    (crowd.socket, 2),
    (tls_crowd.secure, 3),
    (tls_crowd.half_closed, 1),
    (tls_crowd.broken_service, 1),
    (tls_crowd.failed_handshake, 2),
)
_EVERY = 10.0


@dataclass
class Soak:
    """One run.

    Attributes:
        stop: ends the run early once set.
    """

    house: House
    random: Random
    say: Callable[[str], None]
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    done: Counter[str] = field(default_factory=Counter)

    async def run(self, seconds: float, least: int = 0) -> list[str]:
        """Run for some seconds and until there were enough right responses; return the errors."""
        house, load = self.house, self.house.load
        await house.resolve_names()
        before = await asyncio.to_thread(self._idle)
        # The oldest worker is never killed, so these connections last for the whole run.
        self.memories = [Memory(house.supervisor), Memory(house.workers[0])]
        began = monotonic()
        async with asyncio.TaskGroup() as group:
            for _ in range(STEADY):
                group.create_task(load.steady(partial(any_of, self.random)))
            for visit, clients in CROWD:
                for _ in range(clients):
                    group.create_task(self._keep(visit))
            group.create_task(self._operate())
            try:
                await self._watch(began, seconds, least)
            finally:
                load.over = True
        self.say(f"{monotonic() - began:6.0f} s  {self}")
        failures = [*self._answers(), *await asyncio.to_thread(self._left, before)]
        status = await asyncio.to_thread(house.end_gateway)
        house.server.close()
        failures += [f"the gateway ended with {status}"] if status else []
        return [*self._log(), *failures, *self._memory(), *self._users()]

    def __str__(self) -> str:
        load = self.house.load
        done = ", ".join(f"{times} {what}" for what, times in sorted(self.done.items()))
        rss = " ".join(f"{memory.bytes.samples[-1][1] / 1e6:.1f}" for memory in self.memories)
        return (
            f"{load.right} right, {len(load.wrong)} wrong; errors: {load.explained.total()}"
            f" explained, {len(load.unexplained)} not; {done}; RSS {rss} MB"
        )

    async def _watch(self, began: float, seconds: float, least: int) -> None:
        lines, load = 1, self.house.load
        while not self.stop.is_set() and (monotonic() < began + seconds or load.right < least):
            for memory in self.memories:
                memory.sample()
            if monotonic() > began + lines * _EVERY:
                self.say(f"{lines * _EVERY:6.0f} s  {self}")
                lines += 1
            with suppress(TimeoutError):
                async with asyncio.timeout(min(1.0, max(0.1, began + seconds - monotonic()))):
                    await self.stop.wait()

    async def _keep(self, visit: Callable[[Load, Random], Awaitable[None]]) -> None:
        while not self.house.load.over:
            await visit(self.house.load, self.random)
            await asyncio.sleep(0.01 * self.house.load.pace)

    async def _operate(self) -> None:
        house = self.house
        deeds: list[tuple[str, Callable[[], Awaitable[None]]]] = [
            ("workers killed", house.kill_worker),
            ("targets rolled", partial(house.roll, "person_v2_a")),
            ("targets rolled", partial(house.roll, "person_v2_b")),
            *((f"{name} restarted", partial(house.restart, name)) for name in house.backends),
            *[("reloads", house.toggle)] * 5,
            *[("DNS changes", partial(house.readdress, self.random))] * 5,
        ]
        pace = house.load.pace**0.5  # an action costs far more than a request
        while True:
            self.random.shuffle(deeds)
            for what, deed in deeds:
                await asyncio.sleep(self.random.uniform(0.1, 0.6) * pace)
                if house.load.over:
                    return
                await deed()
                self.done[what] += 1
                if "restarted" in what:  # otherwise, only this target would be healthy
                    await asyncio.sleep(1.0)

    # The judgement.

    def _answers(self) -> list[str]:
        load = self.house.load
        return self.house.unexplained() + [f"wrong: {each}" for each in load.wrong]

    def _idle(self) -> dict[str, Held]:
        house = self.house
        ports = house.rules.ports.values()
        return {
            "supervisor": held(house.supervisor, ports),
            "worker": min(held(worker, ports) for worker in house.workers),
        }

    def _left(self, before: dict[str, Held]) -> list[str]:
        """Return the processes that still hold more than before, after the backends have ended."""
        house = self.house
        roles = [(house.supervisor, "supervisor")] + [(each, "worker") for each in house.workers]
        house.end_backends()
        ports = house.rules.ports.values()
        failures = []
        for process, role in roles:
            try:
                wait_for(partial(_no_more, process, ports, before[role]))
            except AssertionError:
                now = held(process, ports)
                failures.append(f"leak: the {role} {process.pid} holds {now}, idle {before[role]}")
        return failures

    def _memory(self) -> list[str]:
        failures = []
        for role, memory in zip(("supervisor", "eldest worker"), self.memories, strict=True):
            self.say(f"memory of the {role}: {memory}")
            if memory.leaks:
                failures.append(f"leak: memory of the {role}: {memory}")
        return failures

    def _users(self) -> list[str]:
        path = self.house.folder / "users" / "users.db"
        with closing(sqlite3.connect(path)) as database:
            stored = dict(database.execute("SELECT id, name FROM users"))
        created = self.house.load.created
        lost = [f"lost: user {id_}" for id_, name in created.items() if stored.get(id_) != name]
        twice = [name for name, times in Counter(stored.values()).items() if times > 1]
        self.say(f"users: {len(created)} created, {len(stored)} stored")
        return lost + [f"stored twice: {name}" for name in twice]

    def _log(self) -> list[str]:
        self.house.journal.read()
        return [f"logged: {entry}" for entry in self.house.journal.others]


def _no_more(process: psutil.Process, ports: Iterable[int], before: Held) -> bool:
    now = held(process, ports)
    return now.descriptors <= before.descriptors and now.tasks <= before.tasks
