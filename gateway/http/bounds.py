"""Resource limits: byte budget, fair semaphore, deadline, and slow-client detection.

Theory of operation
===================

Any client that can reach a port can occupy three resources: memory, places and time.

- Memory. `ByteBudget` counts the buffered bytes of peers that do not read. Above its limit, the
  peer that has waited longest is disconnected. `pass_on` applies it to tunnels. The budget of
  conversions (`gateway.proxy.conversion_budget`) is also fair: it serves a client network that
  holds few bytes before a network that holds many.
- Places. A place is one unit of a semaphore. `FairQueue` is the queue of every semaphore here: the
  client networks (an IPv4 address, an IPv6 /64) take turns, however many requests of each network
  are waiting. `FairLock` has one place. The `ConcurrencyLimiter` of the pool has one place for each
  request in flight to a service.
- Time. Each connection has one timer, its `Deadline`. Postponing the deadline costs one assignment.

Being slow costs an attacker nothing but occupies resources that other clients need. `SlowBody`
(for sending) and `SlowReadDetector` (for reading) find clients that transfer less than `SLOW_BYTES`
in `SLOW_SECONDS`. `SlowClients` disconnects the client that has been slow longest, but only while
other requests are waiting. An idle gateway disconnects no slow client. docs/bounds.md lists every
bound with its default.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sized
from functools import partial
from math import inf
from typing import Generic, Self, TypeVar

from gateway.base.errors import FaultCode, FaultError, temporary_fault


class Deadline:
    """A movable deadline that never exceeds a fixed final deadline.

    Postponing the deadline costs one assignment: the timer is rescheduled only when it fires too
    early.
    """

    __slots__ = ("_alarm", "_at", "_last", "_loop", "_missed", "_rings_at")

    def __init__(self, loop: asyncio.AbstractEventLoop, missed: Callable[[], None]) -> None:
        self._loop = loop
        self._missed = missed
        self._alarm: asyncio.TimerHandle | None = None
        self._at = self._last = self._rings_at = inf

    def begin(self, last: float, first: float = inf) -> None:
        """Set the final deadline and the first deadline, in seconds from now; `inf` means none."""
        now = self._loop.time()
        self._last = now + last
        self._at = at = now + (first if first < last else last)  # noqa: FURB136  # min() takes five times as much
        if at < self._rings_at:
            self._ring_at(at)

    def set(self, seconds: float) -> None:
        """Set the deadline, in seconds from now, but no later than the final deadline."""
        self.set_at(self._loop.time() + seconds)

    def set_at(self, at: float) -> None:
        """Set the deadline, in seconds of the loop's clock, but no later than the final one."""
        if at > self._last:
            at = self._last
        self._at = at
        if at < self._rings_at:
            self._ring_at(at)

    def clear(self) -> None:
        """Remove the movable deadline but not the final one."""
        self._at = self._last  # the timer set earlier fires no later than the final deadline

    def cancel(self) -> None:
        """Remove both deadlines and the reference to `missed`, so that its owner can be freed."""
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
    """Counts buffered bytes. Above the maximum, the holder that has waited longest is closed.

    Args:
        most: the maximum number of buffered bytes; a single holder may exceed it.
    """

    def __init__(self, most: int) -> None:
        self._left = most
        self._waiting: dict[Callable[[], None], int] = {}

    def hold(self, give_way: Callable[[], None], size: int) -> None:
        """Set a holder's number of buffered bytes; `give_way` closes and identifies the holder."""
        self.release(give_way)
        self._waiting[give_way] = size
        self._left -= size
        while self._left < 0 and len(self._waiting) > 1:
            longest = next(iter(self._waiting))
            self.release(longest)
            longest()

    def release(self, give_way: Callable[[], None]) -> None:
        self._left += self._waiting.pop(give_way, 0)


TUNNEL_BYTES = 32 * 1024 * 1024
"""The maximum number of buffered bytes in all tunnels together."""


async def pass_on(
    budget: ByteBudget,
    read: Callable[[], Awaitable[bytes]],
    write: Callable[[bytes], Awaitable[None]],
    give_way: Callable[[], None],
) -> None:
    """Forward bytes in one direction of a tunnel until the sender ends it.

    The next piece is read only after the receiver has accepted the previous one, so at most one
    piece is buffered in each direction. If the pieces of all tunnels together exceed the budget,
    the tunnel whose piece has waited longest is closed.
    """
    direction = partial(give_way)  # both directions of a tunnel get the same function
    while piece := await read():
        budget.hold(direction, len(piece))
        try:
            await write(piece)
        finally:
            budget.release(direction)


_T = TypeVar("_T")


class FairQueue(Generic[_T]):
    """A fair queue: the client networks take turns.

    If one network sends a thousand requests at once, a request of another network waits for only
    one of them.

    Attributes:
        size: the number of waiting requests; reading it costs less than `len`.
    """

    def __init__(self) -> None:
        self._networks: dict[str, deque[asyncio.Future[_T]]] = {}  # ordered by whose turn is next
        self.size = 0

    def __len__(self) -> int:
        return self.size

    def join(self, network: str) -> asyncio.Future[_T]:
        place: asyncio.Future[_T] = asyncio.get_running_loop().create_future()
        self._networks.setdefault(network, deque()).append(place)
        self.size += 1
        return place

    def pop(self) -> asyncio.Future[_T] | None:
        while self._networks:
            network = next(iter(self._networks))
            places = self._networks.pop(network)
            place = places.popleft()
            self.size -= 1
            if places:
                self._networks[network] = places  # at the end of the queue
            if not place.done():
                return place
        return None

    def displace(self, network: str, error: Exception) -> bool:
        """Remove the last request of the largest network in favour of `network`.

        Return False if no network would have more requests waiting than `network` after it joins.
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
        places = self._networks.get(network)
        if places is not None and place in places:
            places.remove(place)
            self.size -= 1
            if not places:
                del self._networks[network]


class FairLock:
    def __init__(self) -> None:
        self._taken = False
        self._waiting = FairQueue[None]()

    def took(self) -> bool:
        free = not self._taken
        self._taken = True
        return free

    async def take(self, network: str) -> None:
        if self.took():
            return
        turn = self._waiting.join(network)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.end()  # acquired just as the wait was cancelled
            raise

    def end(self) -> None:
        turn = self._waiting.pop()
        if turn is None:
            self._taken = False
        else:
            turn.set_result(None)


SLOW_SECONDS = 5.0
"""The period in which a client must transfer `SLOW_BYTES` to not be slow, in seconds."""
SLOW_BYTES = 64 * 1024
"""The number of bytes that a client must send or receive in `SLOW_SECONDS` to not be slow."""


class SlowClients:
    """The clients that are slow at the moment, ordered by how long they have been slow.

    Args:
        spared: the number of slow clients that are tolerated even while other requests wait.
    """

    def __init__(self, spared: int, waiting: Callable[[], Sized]) -> None:
        self._spared = spared
        self._waiting = waiting
        self._slow: dict[Callable[[], None], None] = {}
        self._ending: set[Callable[[], None]] = set()

    def add(self, give_way: Callable[[], None]) -> None:
        """Add a slow client; `give_way` ends its exchange and is called at most once."""
        if give_way not in self._ending:
            self._slow.setdefault(give_way)
            self.make_way()

    def remove(self, give_way: Callable[[], None]) -> None:
        self._slow.pop(give_way, None)
        self._ending.discard(give_way)

    def make_way(self) -> None:
        """End one slow exchange for each waiting request while more than `spared` are slow."""
        while len(self._ending) < len(self._waiting()) and len(self._slow) > self._spared:
            give_way = next(iter(self._slow))
            del self._slow[give_way]
            self._ending.add(give_way)
            give_way()


class SlowBody:
    """The pieces of a body; its sender is slow while too few bytes arrive.

    Only the time spent waiting for pieces counts, not the time spent processing them.
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
"""The seconds between two checks of a reading client. Every working connection transfers bytes
within this time, since it is several round trips."""
_LOOKS = SLOW_SECONDS // LOOK_SECONDS


class SlowReadDetector:
    """Detects whether a client reads its response too slowly; checked every `LOOK_SECONDS`.

    A client becomes slow when it has received nothing between two checks, or less than `SLOW_BYTES`
    in `SLOW_SECONDS`. It stops being slow when it has received that many bytes.

    Args:
        left: the number of bytes that the client has not received yet.
    """

    def __init__(self, left: int) -> None:
        self.slow = False
        self._begun = self._last = left
        self._looks = 0

    def look(self, left: int) -> None:
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
    detail = "The backend has reached its limit of requests; try again."
    return FaultError(temporary_fault(FaultCode.OVERLOADED, detail))


# Slow clients may occupy one place in four. Beyond that, their exchanges end in favour of waiting
# requests.
_SPARED_SHARE = 4


class ConcurrencyLimiter:
    """Bounds the requests in flight to one service; the networks of clients take turns.

    Attributes:
        free: the number of free places; hot code takes one itself.
        waiting: the waiting requests; hot code gives a place back itself if there are none.
        slow: the slow clients that keep the service waiting, and so a place.
    """

    def __init__(self, limit: int, line: int, patience: float) -> None:
        self.free = limit
        self._limit = limit
        self._line = line
        self._patience = patience
        self.waiting = FairQueue[None]()
        self.slow = SlowClients(limit // _SPARED_SHARE, lambda: self.waiting)

    @property
    def half_full(self) -> bool:
        return self.free * 2 <= self._limit

    def entered(self) -> bool:
        if not self.free:
            return False
        self.free -= 1
        return True

    async def enter(self, network: str) -> None:
        """Take a place, or wait for one; raises FaultError if the queue is full or slow."""
        if self.entered():
            return
        full = len(self.waiting) >= self._line
        if full and not self.waiting.displace(network, overloaded()):
            raise overloaded()
        place = self.waiting.join(network)
        self.slow.make_way()
        try:
            async with asyncio.timeout(self._patience):
                await place
        except BaseException as error:
            if place.done() and not place.cancelled() and place.exception() is None:
                self.leave()  # the place was granted just as the wait ended
            else:
                self.waiting.leave(network, place)
            if isinstance(error, TimeoutError):
                raise overloaded() from None
            raise

    def leave(self) -> None:
        place = self.waiting.pop() if self.waiting.size else None
        if place is None:
            self.free += 1
        else:
            place.set_result(None)
