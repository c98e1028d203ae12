"""Open load: a constant rate of requests, regardless of the responses.

Clients do not wait for each other. So if a system stalls for a moment, all requests of that moment
are delayed. Latency is therefore measured from the moment at which a request is due, and includes
the wait for a free connection. This process shares a core with the backend, so the rate must be
below the maximum rate of this process.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from functools import partial

# httptools finds the end of a response within a few µs; uvloop sends and receives as fast.
import uvloop
from httptools import HttpResponseParser

from benchmarks.measure import Load, NoResultError
from benchmarks.request import Request
from benchmarks.wrk import CONNECTIONS

_TICK = 0.001
_SPARE = 15.0


def load(port: int, request: Request, rate: float, seconds: float) -> Load:
    """Send requests at a constant rate to a port of 127.0.0.1 and wait for all responses.

    Args:
        rate: requests per second, sent in groups of one millisecond.

    Raises:
        NoResultError: a response is missing, or its status is not 200.
    """
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_load(port, request, rate, seconds))


async def _load(port: int, request: Request, rate: float, seconds: float) -> Load:
    loop = asyncio.get_running_loop()
    work = _Work(round(rate * seconds))
    data = request.to(port)
    transports = []
    for _ in range(CONNECTIONS):
        transport, connection = await loop.create_connection(
            lambda: _Connection(work), "127.0.0.1", port
        )
        connection.send = partial(transport.write, data)
        work.free.append(connection)
        transports.append(transport)
    began = time.perf_counter()
    try:
        async with asyncio.timeout(seconds + _SPARE):
            while (sent := work.sent) < work.count:
                now = time.perf_counter()
                work.add(min(int((now - began) * rate) + 1, work.count) - sent, now)
                await asyncio.sleep(_TICK)
            await work.over.wait()
    except TimeoutError:
        raise NoResultError(
            f"{len(work.latencies)} of {work.count} responses came in time"
        ) from None
    finally:
        for transport in transports:
            transport.close()
    if work.wrong:
        raise NoResultError(work.wrong)
    taken = time.perf_counter() - began
    latencies = sorted(work.latencies)
    return Load(work.count, taken, _percentile(latencies, 50), _percentile(latencies, 99))


def _percentile(ordered: list[float], percent: int) -> float:
    """Return a percentile (nearest rank) in milliseconds."""
    return ordered[-(-len(ordered) * percent // 100) - 1] * 1e3


class _Work:
    """The due requests, the latencies of the completed ones, and the free connections."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.sent = 0
        self.latencies: list[float] = []
        self.wrong = ""
        self.over = asyncio.Event()
        self.free: list[_Connection] = []
        self._due: deque[float] = deque()

    def add(self, count: int, due: float) -> None:
        """Send requests now, or as soon as a connection is free."""
        self.sent += count
        self._due.extend([due] * count)
        while self._due and self.free:
            self.free.pop().ask(self._due.popleft())

    def done(self, connection: "_Connection", due: float) -> None:
        """Record the latency of a response, and reuse its connection."""
        self.latencies.append(time.perf_counter() - due)
        if self._due:
            connection.ask(self._due.popleft())
        else:
            self.free.append(connection)
            if len(self.latencies) == self.count:
                self.over.set()

    def fail(self, what: str) -> None:
        """End the load with an error."""
        self.wrong = self.wrong or what
        self.over.set()


class _Connection(asyncio.Protocol):
    """A kept connection, which carries one request at a time."""

    def __init__(self, work: _Work) -> None:
        self.send: Callable[[], None]
        self._work = work
        self._parser = HttpResponseParser(self)
        self._due = 0.0

    def ask(self, due: float) -> None:
        """Send a request that was due at a time of `time.perf_counter`."""
        self._due = due
        self.send()

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_message_complete(self) -> None:
        """Record a complete response; the parser calls this method."""
        if self._parser.get_status_code() != 200:
            self._work.fail(f"a response has status {self._parser.get_status_code()}")
        self._work.done(self, self._due)

    def connection_lost(self, exc: Exception | None) -> None:
        if len(self._work.latencies) < self._work.count:
            self._work.fail(f"a connection was closed: {exc}")
