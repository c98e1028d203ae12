"""Serving: all that answers requests in one process, alone or as one of several workers."""

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress

from gateway.core.orders import Orders
from gateway.operation import log
from gateway.operation.reload import Reloader
from gateway.operation.report import Deliver
from gateway.operation.tally import Tally
from gateway.verification.sampling import Sampling
from gateway.wire.downstream import Downstream
from gateway.wire.exchange import Exchange
from gateway.wire.front import Front
from gateway.wire.handler import Handler
from gateway.wire.health import HealthChecks
from gateway.wire.pool import Pool
from gateway.wire.shadow import Shadows

# What is left when the grace is over gets this long to be cut off in order.
_CUT_OFF = 0.5


class Serving:
    """Answers requests by the rules and the orders of the moment, and counts them.

    Args:
        reloader: has the rules.
        orders: what is in force over and above them.
        deliver: takes the reports of what was counted.
    """

    def __init__(self, reloader: Reloader, orders: Orders, deliver: Deliver) -> None:
        loop = asyncio.get_running_loop()
        self._reloader = reloader
        self._pool = Pool()
        self._requests = log.RequestLog(loop)
        self._tally = Tally(loop, deliver)
        self._sampling = Sampling(reloader.folder, self._tally)
        self._shadows = Shadows(self._pool, self._tally)
        self._handler = Handler(reloader.latest, self._pool, self._shadows, self._record)
        self._handler.orders = orders
        self._checks = HealthChecks(self._pool, log.health)
        self._checks.follow(self._handler.snapshot.services.values())

    def obey(self, orders: Orders) -> None:
        """Go by other orders from the next request on; hand on what was counted before that."""
        self._tally.flush()
        self._handler.orders = orders

    async def serve(
        self,
        listener: socket.socket,
        stop: asyncio.Event,
        grace: float,
        announce: Callable[[], None],
    ) -> None:
        """Answer until told to stop, then finish what is under way within the grace, in seconds."""
        front = Front(self._handler)
        server = await asyncio.get_running_loop().create_server(front, sock=listener)
        following = asyncio.create_task(self._follow())
        sampling = asyncio.create_task(self._sampling.run())
        announce()
        await stop.wait()

        following.cancel()
        sampling.cancel()
        self._checks.stop()
        server.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(grace):
                await front.finish()
        await front.cut(_CUT_OFF)
        self._shadows.close()
        self._pool.close()
        self._requests.flush()
        self._tally.flush()

    async def _follow(self) -> None:
        async for snapshot in self._reloader.changes():
            self._handler.snapshot = snapshot
            self._pool.follow(snapshot.services.values())
            self._checks.follow(snapshot.services.values())
            self._sampling.forget()
            log.event("config_loaded")

    def _record(self, exchange: Exchange, down: Downstream) -> None:
        self._requests.record(exchange, down)
        self._tally.record(exchange, down)
        if exchange.body is not None:
            self._sampling.record(exchange, down)
