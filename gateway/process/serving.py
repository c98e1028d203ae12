"""Serving: all that answers requests in one process, alone or as one of several workers."""

import asyncio
import logging
import socket
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial

from gateway.core.overrides import Overrides
from gateway.process.reloader import Reloader
from gateway.proxy.client.client_response import ClientResponse
from gateway.proxy.client.client_server import ClientServer
from gateway.proxy.client.descriptors import raise_limit
from gateway.proxy.exchange import Exchange
from gateway.proxy.handler import Handler
from gateway.proxy.shadow.shadows import Shadows
from gateway.proxy.upstream.health_checks import HealthChecks
from gateway.proxy.upstream.pool import Pool
from gateway.telemetry import log
from gateway.telemetry.delta import Deliver
from gateway.telemetry.recorder import Recorder
from gateway.verify.sampling import Sampling

_log = logging.getLogger(__name__)

# How many connections may wait to be accepted, at each listening socket.
BACKLOG = 1024
# What is left when the grace is over gets this long to be cut off in order.
_CUT_OFF = 0.5


class Serving:
    """Answers requests by the rules and the overrides of the moment, and counts them.

    Args:
        reloader: has the rules.
        overrides: what is in force over and above them.
        deliver: takes the reports of what was counted.
    """

    def __init__(self, reloader: Reloader, overrides: Overrides, deliver: Deliver) -> None:
        loop = asyncio.get_running_loop()
        raise_limit()
        self._reloader = reloader
        self._pool = Pool()
        self._requests = log.RequestLog(loop)
        self._recorder = Recorder(loop, deliver)
        self._sampling = Sampling(reloader.folder, self._recorder)
        self._shadows = Shadows(self._pool, self._recorder)
        self._handler = Handler(reloader.latest, self._pool, self._shadows, self._record)
        self._handler.overrides = overrides
        self._front = ClientServer(self._handler, partial(self._recorder.count, "client_bounds"))
        self._others: dict[int, socket.socket] = {}
        self._standing_in: dict[int, asyncio.Server] = {}
        self._checks = HealthChecks(self._pool, log.health)
        self._checks.follow(self._handler.snapshot.services.values())

    def apply(self, overrides: Overrides) -> None:
        """Go by other overrides from the next request on; hand on what was counted before that."""
        self._recorder.flush()
        self._handler.overrides = overrides

    async def serve(
        self,
        listeners: Sequence[socket.socket],
        stop: asyncio.Event,
        grace: float,
        announce: Callable[[], None],
    ) -> None:
        """Answer until told to stop, then finish what is under way within the grace.

        Args:
            listeners: the socket to accept from, and those of others, to stand in for them.
            stop: says when.
            grace: in seconds.
            announce: called when all is ready.
        """
        own, *others = listeners
        server = await self._accept(own)
        self._others = {each.fileno(): each for each in others}
        following = asyncio.create_task(self._follow())
        sampling = asyncio.create_task(self._sampling.run())
        announce()
        await stop.wait()

        following.cancel()
        sampling.cancel()
        self._checks.stop()
        server.close()
        await self.stand_in([])
        while self._others:  # or the kernel would go on to queue connections for nobody
            self._others.popitem()[1].close()
        with suppress(TimeoutError):
            async with asyncio.timeout(grace):
                await self._front.finish()
        await self._front.cut(_CUT_OFF)
        self._shadows.close()
        self._pool.close()
        self._requests.flush()
        self._recorder.flush()

    async def stand_in(self, numbers: Iterable[int]) -> None:
        """Accept from these sockets of others too, by their numbers, and from no more of them."""
        wanted = self._others.keys() & numbers
        for number in self._standing_in.keys() - wanted:
            self._standing_in.pop(number).close()
        for number in wanted - self._standing_in.keys():
            with suppress(OSError):  # too many files are open: they wait
                self._standing_in[number] = await self._accept(self._others[number].dup())

    async def _accept(self, listener: socket.socket) -> asyncio.Server:
        loop = asyncio.get_running_loop()
        return await loop.create_server(self._front, sock=listener, backlog=BACKLOG)

    async def _follow(self) -> None:
        async for snapshot in self._reloader.changes():
            self._handler.snapshot = snapshot
            self._pool.follow(snapshot.services.values())
            self._checks.follow(snapshot.services.values())
            self._sampling.forget()
            log.event("config_loaded")

    def _record(self, exchange: Exchange, down: ClientResponse) -> None:
        try:
            self._requests.record(exchange, down)
            self._recorder.record(exchange, down)
            if exchange.body is not None:
                self._sampling.record(exchange, down)
        except Exception:  # what cannot be recorded is answered all the same
            _log.exception("request %s could not be recorded", exchange.request_id)
