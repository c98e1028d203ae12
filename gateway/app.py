"""The composition root: puts the parts together, runs them, and takes them down in order."""

import asyncio
import os
import signal
from collections.abc import Callable
from contextlib import suppress

from aiohttp import web

from gateway.operation import log
from gateway.operation.admin import admin_app
from gateway.operation.reload import Reloader
from gateway.settings import Settings
from gateway.wire.front import Front
from gateway.wire.handler import Handler
from gateway.wire.health import HealthChecks
from gateway.wire.pool import Pool

# What is left when the grace is over gets this long to be cut off in order.
_CUT_OFF = 0.5


class CannotListen(Exception):
    """An address that cannot be listened on; the text says which and why."""


async def serve(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT, then finish what is in flight within the grace.

    Raises:
        ConfigError: the rules cannot be used.
        CannotListen: a port is taken, or an address is not ours.
    """
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    reloader = Reloader(settings.config, os.environ)
    loop.add_signal_handler(signal.SIGHUP, reloader.tell)

    pool = Pool()
    requests = log.RequestLog(loop)
    handler = Handler(reloader.load(), pool, requests.record)
    checks = HealthChecks(pool, log.health)
    checks.follow(handler.snapshot.services.values())
    front = Front(handler)
    admin = web.AppRunner(
        admin_app(lambda: "the gateway is stopping" if stop.is_set() else None), access_log=None
    )
    await admin.setup()
    assert admin.server is not None  # set by setup()
    admin_listener = await _listen(admin.server, settings.admin_host, settings.admin_port)
    listener = await _listen(front, settings.host, settings.port)
    log.event("listening", url=_url(listener), admin=_url(admin_listener))

    following = asyncio.create_task(_follow(reloader, handler, checks))
    await stop.wait()

    log.event("stopping")
    following.cancel()
    checks.stop()
    listener.close()
    with suppress(TimeoutError):
        async with asyncio.timeout(settings.grace):
            await asyncio.gather(handler.drain(), front.finish())
    await front.cut(_CUT_OFF)
    pool.close()
    admin_listener.close()
    await admin.cleanup()
    requests.flush()
    log.event("stopped")


async def _follow(reloader: Reloader, handler: Handler, checks: HealthChecks) -> None:
    async for snapshot in reloader.changes():
        handler.snapshot = snapshot
        checks.follow(snapshot.services.values())
        log.event("config_loaded")


async def _listen(protocol: Callable[[], asyncio.Protocol], host: str, port: int) -> asyncio.Server:
    try:
        return await asyncio.get_running_loop().create_server(protocol, host, port, backlog=1024)
    except OSError as error:
        # asyncio wraps what the system says in a sentence of its own; the last part is the reason.
        reason = (error.strerror or str(error)).rpartition(": ")[2]
        raise CannotListen(f"cannot listen on {host}:{port}: {reason}") from None


def _url(listener: asyncio.Server) -> str:
    host, port = listener.sockets[0].getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
