"""The primitives of bounds: byte budget, fair semaphore, deadline, and slow-client detection.

Theory of operation
===================

Whoever can reach a port can hold three things: bytes, places and time.

- Bytes. `ByteBudget` counts the bytes that wait for peers that do not read. Above its limit, the
  peer that has waited longest is closed. `pass_on` applies it to tunnels. The budget of
  conversions (`gateway.proxy.conversion_budget`) also shares out what is free: a network of clients
  that holds little is served before one that holds much.
- Places. `FairQueue` is the waiting side of every semaphore here: the networks of clients (an IPv4
  address, an IPv6 /64) take turns, however many requests each has waiting. `FairLock` grants one
  place, the `ConcurrencyLimiter` of the pool one place for each request in flight to a service.
- Time. `Deadline` is one timer for each connection. To move it later is one assignment.

A slow client costs its sender nothing and holds what others wait for. `SlowBody` (sending) and
`SlowReadDetector` (reading) find clients that pass less than `SLOW_BYTES` in `SLOW_SECONDS`, and
`SlowClients` closes the one that has been slow longest, only while others wait. Nothing is closed
on an idle gateway. docs/bounds.md lists every bound with its default.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sized
from functools import partial
from math import inf
from typing import Generic, Self, TypeVar

from gateway.base.errors import Fault, FaultCode, FaultError


class Deadline:
    """A deadline that can be moved, bounded by a last one that cannot.

    Moving it later is one assignment: the timer is set again only when it fires too early.

    Args:
        loop: the event loop.
        missed: a function that is called when the deadline passes.
    """

    __slots__ = ("_alarm", "_at", "_last", "_loop", "_missed", "_rings_at")

    def __init__(self, loop: asyncio.AbstractEventLoop, missed: Callable[[], None]) -> None:
        self._loop = loop
        self._missed = missed
        self._alarm: asyncio.TimerHandle | None = None
        self._at = self._last = self._rings_at = inf

    def begin(self, last: float, first: float = inf) -> None:
        """Set the last deadline and the first one, in seconds from now; `inf` sets none."""
        now = self._loop.time()
        self._last = now + last
        self._at = at = now + (first if first < last else last)  # noqa: FURB136  # min() takes five times as much
        if at < self._rings_at:
            self._ring_at(at)

    def set(self, seconds: float) -> None:
        """Set the deadline to seconds from now, or to the last one if that is earlier."""
        self.set_at(self._loop.time() + seconds)

    def set_at(self, at: float) -> None:
        """Set the deadline, in seconds of the event loop's clock; see `set`."""
        if at > self._last:
            at = self._last
        self._at = at
        if at < self._rings_at:
            self._ring_at(at)

    def clear(self) -> None:
        """Remove the deadline; the last one stays."""
        self._at = self._last  # the timer set earlier fires no later than the last

    def cancel(self) -> None:
        """Remove all deadlines, and the reference to `missed`, so that its owner can be freed."""
        self._missed = _nothing
        self._at = self._last = inf
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
            self._rings_at = inf

    def _ring_at(self, at: float) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm, self._rings_at = self._loop.call_at(at, self._ring), at

    def _ring(self) -> None:
        self._alarm, self._rings_at = None, inf
        if self._at == inf:
            return
        if self._loop.time() < self._at:
            self._ring_at(self._at)
        else:
            self._at = inf
            self._missed()


def _nothing() -> None:
    pass


class ByteBudget:
    """Counts bytes that wait. If those of all are too many, who has waited longest gives way.

    Args:
        most: the maximum number of bytes that wait; those of one alone may be more.
    """

    def __init__(self, most: int) -> None:
        self._left = most
        self._waiting: dict[Callable[[], None], int] = {}

    def hold(self, give_way: Callable[[], None], size: int) -> None:
        """Count bytes that begin to wait, in place of those that were counted before.

        Args:
            give_way: a function that ends the wait.
            size: how many they are.
        """
        self.release(give_way)
        self._waiting[give_way] = size
        self._left -= size
        while self._left < 0 and len(self._waiting) > 1:
            longest = next(iter(self._waiting))
            self.release(longest)
            longest()

    def release(self, give_way: Callable[[], None]) -> None:
        """Count bytes no more: they are taken, or given up."""
        self._left += self._waiting.pop(give_way, 0)


TUNNEL_BYTES = 32 * 1024 * 1024
"""The maximum bytes that wait in all tunnels together."""


async def pass_on(
    budget: ByteBudget,
    read: Callable[[], Awaitable[bytes]],
    write: Callable[[bytes], Awaitable[None]],
    give_way: Callable[[], None],
) -> None:
    """Pass bytes on in one direction of a tunnel, until their end.

    A sender waits until its receiver has taken all of a piece, so at most one piece waits in each
    direction. If the pieces of all tunnels are too large together, the tunnel whose piece has
    waited longest gives way.

    Args:
        budget: the budget of all tunnels.
        read: returns the next piece, empty at the end.
        write: writes a piece, and returns once the receiver has taken it.
        give_way: ends the tunnel.
    """
    direction = partial(give_way)  # both directions of a tunnel are given the same function
    while piece := await read():
        budget.hold(direction, len(piece))
        try:
            await write(piece)
        finally:
            budget.release(direction)


_T = TypeVar("_T")


class FairQueue(Generic[_T]):
    """A line in which each network of clients has its turn, however many of its own each has there.

    So one that sends a thousand requests at once has the others wait for one of them.

    Attributes:
        size: how many wait; to read it costs less than `len`.
    """

    def __init__(self) -> None:
        self._networks: dict[str, deque[asyncio.Future[_T]]] = {}  # that whose turn it is first
        self.size = 0

    def __len__(self) -> int:
        return self.size

    def join(self, network: str) -> asyncio.Future[_T]:
        """Return the place of one that begins to wait, to be resolved when it is its turn."""
        place: asyncio.Future[_T] = asyncio.get_running_loop().create_future()
        self._networks.setdefault(network, deque()).append(place)
        self.size += 1
        return place

    def pop(self) -> asyncio.Future[_T] | None:
        """Take the place whose turn it is out of the line; None if nobody waits."""
        while self._networks:
            network = next(iter(self._networks))
            places = self._networks.pop(network)
            place = places.popleft()
            self.size -= 1
            if places:
                self._networks[network] = places  # behind all others
            if not place.done():
                return place
        return None

    def displace(self, network: str, error: Exception) -> bool:
        """End the last wait of the network that has most here, for one of a network with fewer.

        Args:
            network: of the other.
            error: is raised where the wait ends.

        Returns:
            Whether a network has more than that one would have.
        """
        if not self._networks:
            return False
        most = max(self._networks, key=lambda name: len(self._networks[name]))
        places = self._networks[most]
        if len(places) <= len(self._networks.get(network, ())) + 1:
            return False
        place = places[-1]
        self.leave(most, place)
        if not place.done():
            place.set_exception(error)
        return True

    def leave(self, network: str, place: asyncio.Future[_T]) -> None:
        """Take a place out whose owner waits no more, if it is there."""
        places = self._networks.get(network)
        if places is not None and place in places:
            places.remove(place)
            self.size -= 1
            if not places:
                del self._networks[network]


class FairLock:
    """Grants one turn at a time, to each network of clients in turn."""

    def __init__(self) -> None:
        self._taken = False
        self._waiting = FairQueue[None]()

    def took(self) -> bool:
        """Take the turn if nobody has it; return whether that was so."""
        free = not self._taken
        self._taken = True
        return free

    async def take(self, network: str) -> None:
        """Return when it is the turn of this caller, who ends it by `end`."""
        if self.took():
            return
        turn = self._waiting.join(network)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.end()  # the turn came just as the wait ended
            raise

    def end(self) -> None:
        """End the turn; the next network has its own."""
        turn = self._waiting.pop()
        if turn is None:
            self._taken = False
        else:
            turn.set_result(None)


SLOW_SECONDS = 5.0
"""The seconds in which fewer than `SLOW_BYTES` bytes make a client slow."""
SLOW_BYTES = 64 * 1024
"""The bytes that pass to or from a client that is not slow, in `SLOW_SECONDS`."""


class SlowClients:
    """Who is slow at the moment, the longest first.

    Args:
        spared: the number of clients that may be slow even while others wait.
        waiting: those who wait for what they hold.
    """

    def __init__(self, spared: int, waiting: Callable[[], Sized]) -> None:
        self._spared = spared
        self._waiting = waiting
        self._slow: dict[Callable[[], None], None] = {}
        self._ending: set[Callable[[], None]] = set()

    def add(self, give_way: Callable[[], None]) -> None:
        """Count a holder as slow; `give_way` is called at most once, to have it end."""
        if give_way not in self._ending:
            self._slow.setdefault(give_way)
            self.make_way()

    def remove(self, give_way: Callable[[], None]) -> None:
        """Count a holder as slow no more; it may have ended."""
        self._slow.pop(give_way, None)
        self._ending.discard(give_way)

    def make_way(self) -> None:
        """Have a holder give way to each who waits, as long as more than those spared are slow."""
        while len(self._ending) < len(self._waiting()) and len(self._slow) > self._spared:
            give_way = next(iter(self._slow))
            del self._slow[give_way]
            self._ending.add(give_way)
            give_way()


class SlowBody:
    """The pieces of a body, whose sender is a slow holder while too few bytes come.

    Only the time in which a piece is waited for counts, not that in which it is taken.

    Args:
        pieces: the pieces of the body.
        holders: the slow holders of what this body holds.
        had_to_end: returns the fault that ends the body, for others to have what it holds.
    """

    def __init__(
        self,
        pieces: AsyncIterator[bytes],
        holders: SlowClients,
        had_to_end: Callable[[], FaultError],
    ) -> None:
        self._pieces = pieces
        self._holders = holders
        self._had_to_end = had_to_end
        self._left = SLOW_SECONDS
        self._came = 0

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            async with asyncio.timeout(None) as limit:

                def give_way() -> None:
                    limit.reschedule(loop.time())

                timer = loop.call_later(max(0.0, self._left), self._holders.add, give_way)
                try:
                    piece = await anext(self._pieces)
                finally:
                    timer.cancel()
                    self._holders.remove(give_way)
        except TimeoutError:
            raise self._had_to_end() from None
        self._left -= loop.time() - began
        self._came += len(piece)
        if self._came >= SLOW_BYTES:
            self._left, self._came = SLOW_SECONDS, 0
        return piece


LOOK_SECONDS = 1.0
"""How often is looked at what a client has not taken yet. Any link that is not interrupted carries
something in that time: its round trips take a fraction of it."""
_LOOKS = SLOW_SECONDS // LOOK_SECONDS


class SlowReadDetector:
    """What a client receives of its response, checked every `LOOK_SECONDS`.

    It is slow as soon as it has taken nothing between two looks, or too little in `SLOW_SECONDS`,
    until it takes enough.

    Args:
        left: the bytes that it has not taken yet.
    """

    def __init__(self, left: int) -> None:
        self.slow = False
        self._begun = self._last = left
        self._looks = 0

    def look(self, left: int) -> None:
        """Note how many bytes it has not taken by now."""
        self._looks += 1
        enough = self._begun - left >= SLOW_BYTES
        late = self._looks >= _LOOKS
        if enough:
            self.slow = False
        elif late or left >= self._last:
            self.slow = True
        if enough or late:
            self._begun, self._looks = left, 0
        self._last = left


def overloaded() -> FaultError:
    """Return the fault for a request that gets no place at its service in time."""
    fault = Fault(
        FaultCode.OVERLOADED,
        "The backend has as many requests as it can take; try again.",
        fields=((b"Retry-After", b"1"),),
    )
    return FaultError(fault)
