"""Worker: the worker's side of the channel, and the listening sockets that it was given."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

from gateway.base.overrides import Overrides
from gateway.base.span import Span
from gateway.observe.target_watch import FailingTarget
from gateway.process.channel import (
    Alive,
    Applied,
    ApplyOverrides,
    Channel,
    Counted,
    FailingTargets,
    LoadRules,
    OrphanedListeners,
    Ready,
    SetClock,
    Traced,
)
from gateway.process.listening import CHANNEL, LISTENERS, UNHEARD
from gateway.process.silence import Silence
from gateway.usage.delta import Delta

# Between two reports that this worker is alive, in seconds; less than between looks at them, and as
# much as between two deltas.
_ALIVE_SECONDS = 1.0


class SupervisorLostError(Exception):
    """The supervisor ended before this worker had its rules."""


class Worker:
    """A worker as its own process sees it.

    Args:
        environment: as the supervisor made it.

    Attributes:
        listeners: the sockets of all workers, its own first.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        numbers = environment[LISTENERS].split(",")
        self.listeners = [socket.socket(fileno=int(number)) for number in numbers]
        self._end = socket.socket(fileno=int(environment[CHANNEL]))
        mark = environment.get(UNHEARD)
        self._silence = Silence(None if mark is None else Path(mark))

    async def join(self) -> tuple[bytes, Overrides, float]:
        """Open the channel; return the rules' text, the overrides and the clock to begin with.

        Raises:
            SupervisorLostError: the supervisor has ended.
        """
        self._channel = await Channel.over(self._end)
        first = [await self._channel.receive() for _ in range(3)]
        match first:
            case [LoadRules(content=rules), ApplyOverrides() as overrides, SetClock() as clock]:
                return rules, overrides.overrides, clock.seconds
            case _:
                raise SupervisorLostError

    def report_ready(self) -> None:
        """Report that this worker serves."""
        self._channel.send(Ready())

    async def report_alive(self) -> None:
        """Report that the event loop runs, until cancelled."""
        while True:
            await asyncio.sleep(_ALIVE_SECONDS)
            self._channel.send(Alive())
            self._silence.reported()

    def deliver(self, delta: Delta) -> None:
        """Send what was counted."""
        self._channel.send(Counted(delta))

    def trace(self, spans: Sequence[Span]) -> bool:
        """Send spans for their export; return False if the supervisor reads too slowly."""
        return self._channel.send(Traced([*spans]))

    def report_targets(self, failing: list[FailingTarget]) -> None:
        """Send which targets fail in this worker."""
        self._channel.send(FailingTargets(failing))

    async def listen(
        self,
        load: Callable[[bytes], None],
        apply: Callable[[Overrides], None],
        set_ahead: Callable[[float], None],
        stand_in: Callable[[list[int]], Awaitable[None]],
    ) -> None:
        """Pass on the supervisor's messages; return when the supervisor has ended.

        Args:
            load: takes the text of new rules.
            apply: puts overrides in force.
            set_ahead: takes by how many seconds the dates of the rules are ahead of the clock.
            stand_in: takes the descriptors of the listening sockets that have no worker.
        """
        while (message := await self._channel.receive()) is not None:
            match message:
                case LoadRules(content=content):
                    load(content)
                case ApplyOverrides(number=number, overrides=overrides):
                    apply(overrides)
                    self._channel.send(Applied(number))
                case SetClock(seconds=seconds):
                    set_ahead(seconds)
                case OrphanedListeners(listeners=listeners):
                    await stand_in(listeners)
                case Alive():
                    self._silence.answered()
                case Ready() | Counted() | Traced() | FailingTargets() | Applied():
                    raise AssertionError("a message of workers came down")
        self._silence.end()

    async def leave(self) -> None:
        """Close the channel after all that was sent."""
        await self._channel.close()
