"""Supervisor: several processes that share the port, watched over by one that never serves.

The supervisor opens one listening socket a worker (SO_REUSEPORT), so that the kernel spreads new
connections over them, and it keeps them open: what waits to be accepted when a worker dies, and
what comes before another takes its place, is accepted by those that are left. A
worker holds one end of a channel, on which it reports what it counts and hears what is ordered;
when the supervisor is gone, however that came, it reads the end there and leaves.
"""

import asyncio
import signal
import socket
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from gateway.core.overrides import NO_OVERRIDES, Overrides
from gateway.process.channel import (
    Applied,
    ApplyOverrides,
    Channel,
    Counted,
    OrphanedListeners,
    Ready,
)
from gateway.process.serving import BACKLOG
from gateway.telemetry import log
from gateway.telemetry.delta import Deliver, Delta

# What the supervisor tells a worker: the numbers of the listening sockets, its own first, and of
# its channel's.
LISTENERS = "GATEWAY_WORKER_LISTENERS"
CHANNEL = "GATEWAY_WORKER_CHANNEL"
# A worker that dies young is started again after a while, each time a longer one, in seconds.
_YOUNG = 5.0
_LONGEST_WAIT = 10.0
# Beyond its grace, a worker gets this long before it is killed, in seconds.
_SPARE = 5.0
# How long a worker may take to apply, in seconds; it is a matter of milliseconds.
_APPLY_SECONDS = 5.0


@dataclass(slots=True)
class _Link:
    """A worker that runs: its process, the channel to it, the last overrides that it applies."""

    process: asyncio.subprocess.Process
    channel: Channel
    applied: int = 0
    heard: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def hear(self, number: int) -> None:
        """Note the overrides that it applies."""
        async with self.heard:
            self.applied = number
            self.heard.notify_all()

    async def applies(self, number: int) -> None:
        """Return when it applies the overrides of that number, or later ones."""
        async with self.heard:
            await self.heard.wait_for(lambda: self.applied >= number)


class Supervisor:
    """Starts workers, starts them again when they die, and ends them together.

    Args:
        listeners: the listening sockets, one a worker.
        environment: what each is started with.
        deliver: takes their reports.
        overrides: what they go by from the start.
    """

    def __init__(
        self,
        listeners: list[socket.socket],
        environment: Mapping[str, str],
        deliver: Deliver,
        overrides: Overrides,
    ) -> None:
        self._listeners = listeners
        self._environment = environment
        self._deliver = deliver
        self._overrides = ApplyOverrides(0, overrides)
        self._running: dict[int, _Link] = {}
        self._ready: set[int] = set()
        self._orphaned: set[int] = set()
        self._reloads = 0
        self._keepers: list[asyncio.Task[None]] = []
        self._stopping = asyncio.Event()

    @property
    def ready(self) -> int:
        """Return how many workers serve."""
        return len(self._ready)

    async def start(self) -> None:
        """Start all workers and return when each is ready, or has died trying."""
        first = [asyncio.Event() for _ in self._listeners]
        self._keepers = [
            asyncio.create_task(self._keep(index, listener, first[index]))
            for index, listener in enumerate(self._listeners)
        ]
        for event in first:
            await event.wait()

    def reload(self) -> None:
        """Have every worker load the rules again, now, or as soon as it serves."""
        self._reloads += 1
        for index in self._ready:
            _tell(self._running[index].process)

    async def apply(self, overrides: Overrides) -> None:
        """Return when every worker goes by these overrides.

        Raises:
            TimeoutError: one does not say so; it does when it comes to it.
        """
        told = self._overrides = ApplyOverrides(self._overrides.number + 1, overrides)
        links = tuple(self._running.values())
        for link in links:
            link.channel.send(told)
        async with asyncio.timeout(_APPLY_SECONDS):
            for link in links:
                await link.applies(told.number)

    async def stop(self, grace: float) -> None:
        """Stop accepting, let every worker finish within the grace; return when all are gone."""
        self._stopping.set()
        for listener in self._listeners:
            listener.close()
        for link in self._running.values():
            with suppress(ProcessLookupError):
                link.process.terminate()
        _, late = await asyncio.wait(self._keepers, timeout=grace + _SPARE)
        for link in self._running.values() if late else ():
            with suppress(ProcessLookupError):
                link.process.kill()
        await asyncio.gather(*late)

    async def _keep(self, index: int, listener: socket.socket, first: asyncio.Event) -> None:
        wait = 0.1
        while True:
            began = time.monotonic()
            status = await self._run(index, listener, first)
            first.set()
            if self._stopping.is_set():
                return
            log.event("worker_died", "error", worker=index, exit_status=status)
            wait = 0.1 if time.monotonic() - began > _YOUNG else min(wait * 2, _LONGEST_WAIT)
            with suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._stopping.wait()
                    return

    async def _run(self, index: int, listener: socket.socket, first: asyncio.Event) -> int:
        others = (each.fileno() for each in self._listeners if each is not listener)
        numbers = (listener.fileno(), *others)
        ours, theirs = socket.socketpair()
        reloads = self._reloads
        channel = await Channel.over(ours)
        with theirs:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "gateway",
                env={
                    **self._environment,
                    LISTENERS: ",".join(map(str, numbers)),
                    CHANNEL: str(theirs.fileno()),
                },
                pass_fds=(*numbers, theirs.fileno()),
            )
        link = self._running[index] = _Link(process, channel)
        channel.send(self._overrides)
        try:
            await self._hear(link, index, first, reloads)
            return await process.wait()
        finally:
            self._ready.discard(index)
            del self._running[index]
            self._orphaned.add(index)
            self._share_orphans()
            await channel.close()

    async def _hear(self, link: _Link, index: int, first: asyncio.Event, reloads: int) -> None:
        # A worker that was killed is heard to the end: what it had sent is in the socket.
        while (message := await link.channel.receive()) is not None:
            match message:
                case Ready():
                    self._ready.add(index)
                    self._orphaned.discard(index)
                    self._share_orphans()
                    if reloads != self._reloads:
                        _tell(link.process)  # what it loaded may be what was there before
                    if first.is_set():
                        log.event("worker_replaced", worker=index)
                    first.set()
                case Counted(report=report):
                    self._deliver(report)
                case Applied(number=number):
                    await link.hear(number)
                case ApplyOverrides() | OrphanedListeners():
                    raise AssertionError("overrides go down")
        # Nobody waits for what is gone; the one that takes its place is told at the start.
        await link.hear(sys.maxsize)

    def _share_orphans(self) -> None:
        if not self._stopping.is_set():
            told = OrphanedListeners([self._listeners[index].fileno() for index in self._orphaned])
            for index in self._ready:
                self._running[index].channel.send(told)


class Worker:
    """A worker's side: the socket it accepts from, those of the others, and the channel.

    Args:
        environment: as the supervisor made it.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        numbers = environment[LISTENERS].split(",")
        self.listeners = [socket.socket(fileno=int(number)) for number in numbers]
        self._end = socket.socket(fileno=int(environment[CHANNEL]))

    async def join(self) -> Overrides:
        """Open the channel; return the overrides to begin with."""
        self._channel = await Channel.over(self._end)
        message = await self._channel.receive()
        return message.overrides if isinstance(message, ApplyOverrides) else NO_OVERRIDES

    def report_ready(self) -> None:
        """Tell the supervisor that this worker serves."""
        self._channel.send(Ready())

    def deliver(self, report: Delta) -> None:
        """Hand on what was counted."""
        self._channel.send(Counted(report))

    async def listen(
        self,
        apply: Callable[[Overrides], None],
        stand_in: Callable[[list[int]], Awaitable[None]],
    ) -> None:
        """Apply what comes, overrides and sockets alike; return when the supervisor is gone."""
        while (message := await self._channel.receive()) is not None:
            if isinstance(message, ApplyOverrides):
                apply(message.overrides)
                self._channel.send(Applied(message.number))
            elif isinstance(message, OrphanedListeners):
                await stand_in(message.listeners)

    async def leave(self) -> None:
        """Close the channel; all that was sent arrives."""
        await self._channel.close()


def _tell(process: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError):  # it died, and nobody has noticed yet
        process.send_signal(signal.SIGHUP)


def is_worker(environment: Mapping[str, str]) -> bool:
    """Whether this process was started by a supervisor."""
    return LISTENERS in environment


def listening_sockets(host: str, port: int, count: int) -> list[socket.socket]:
    """Return sockets that listen on one address together, the kernel spreading connections.

    Args:
        host: an address or a host name.
        port: 0 for any that is free.
        count: how many.

    Raises:
        OSError: the address cannot be listened on, by whatever share of it.
    """
    family, kind, protocol, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    with socket.socket(family, kind, protocol) as probe:
        # Alone first: SO_REUSEPORT would share the port with another gateway unasked.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(address)
        address = probe.getsockname()
    sockets = []
    for _ in range(count):
        shared = socket.socket(family, kind, protocol)
        shared.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        shared.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        shared.bind(address)
        shared.listen(BACKLOG)
        sockets.append(shared)
    return sockets
