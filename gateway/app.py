"""The composition root: puts the parts together, runs them, and takes them down in order.

One process serves by itself. Several are workers under a supervisor, which holds the port, the
admin port and the watch over the rules; they answer requests and do nothing else.
"""

import asyncio
import os
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from aiohttp import web

from gateway.operation import log
from gateway.operation.admin import admin_app
from gateway.operation.reload import Reloader
from gateway.operation.workers import Worker, Workers, listening_sockets
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
    """Serve in this process until told to stop, then finish what is in flight within the grace.

    Raises:
        ConfigError: the rules cannot be used.
        CannotListen: a port is taken, or an address is not ours.
    """
    stop = _stop_on_signals()
    reloader = Reloader(settings.config, os.environ)
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, reloader.tell)

    async with _admin(settings, lambda: _stopping(stop)) as admin:
        (listener,) = _listen(settings.host, settings.port, 1)
        await _answer(
            settings,
            listener,
            reloader,
            stop,
            lambda: log.event("listening", url=_url(listener), admin=admin),
        )
    log.event("stopped")


async def work(settings: Settings) -> None:
    """Serve as one of several workers, until told to stop or left alone; raises ConfigError."""
    stop = _stop_on_signals(say=False)
    worker = Worker(os.environ)
    reloader = Reloader(settings.config, os.environ, interval=None)
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, reloader.tell)
    orphaned = asyncio.create_task(worker.outlived())
    orphaned.add_done_callback(lambda _: stop.set())
    await _answer(settings, worker.listener, reloader, stop, worker.report_ready)
    orphaned.cancel()


async def supervise(settings: Settings, count: int) -> None:
    """Have workers serve until told to stop, then let them finish within the grace.

    Raises:
        ConfigError: the rules cannot be used.
        CannotListen: a port is taken, or an address is not ours.
    """
    stop = _stop_on_signals()
    reloader = Reloader(settings.config, os.environ)
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, reloader.tell)
    reloader.load()

    def unready() -> str | None:
        return _stopping(stop) or (None if workers.ready else "no worker is ready")

    async with _admin(settings, unready) as admin:
        listeners = _listen(settings.host, settings.port, count)
        workers = Workers(listeners, os.environ)
        await workers.start()
        log.event("listening", url=_url(listeners[0]), admin=admin, workers=count)
        following = asyncio.create_task(_pass_on(reloader, workers))
        await stop.wait()
        following.cancel()
        await workers.stop(settings.grace)
    log.event("stopped")


async def _answer(
    settings: Settings,
    listener: socket.socket,
    reloader: Reloader,
    stop: asyncio.Event,
    announce: Callable[[], Awaitable[None] | None],
) -> None:
    loop = asyncio.get_running_loop()
    pool = Pool()
    requests = log.RequestLog(loop)
    handler = Handler(reloader.load(), pool, requests.record)
    checks = HealthChecks(pool, log.health)
    checks.follow(handler.snapshot.services.values())
    front = Front(handler)
    server = await loop.create_server(front, sock=listener)
    following = asyncio.create_task(_follow(reloader, handler, checks))
    said = announce()
    if said is not None:
        await said
    await stop.wait()

    following.cancel()
    checks.stop()
    server.close()
    with suppress(TimeoutError):
        async with asyncio.timeout(settings.grace):
            await front.finish()
    await front.cut(_CUT_OFF)
    pool.close()
    requests.flush()


async def _follow(reloader: Reloader, handler: Handler, checks: HealthChecks) -> None:
    async for snapshot in reloader.changes():
        handler.snapshot = snapshot
        checks.follow(snapshot.services.values())
        log.event("config_loaded")


async def _pass_on(reloader: Reloader, workers: Workers) -> None:
    async for _ in reloader.changes():
        workers.reload()


def _stop_on_signals(*, say: bool = True) -> asyncio.Event:
    stop = asyncio.Event()

    def told() -> None:
        if say and not stop.is_set():
            log.event("stopping")
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, told)
    return stop


def _stopping(stop: asyncio.Event) -> str | None:
    return "the gateway is stopping" if stop.is_set() else None


@asynccontextmanager
async def _admin(settings: Settings, unready: Callable[[], str | None]) -> AsyncIterator[str]:
    runner = web.AppRunner(admin_app(unready), access_log=None)
    await runner.setup()
    (listener,) = _listen(settings.admin_host, settings.admin_port, 1)
    await web.SockSite(runner, listener).start()
    try:
        yield _url(listener)
    finally:
        await runner.cleanup()


def _listen(host: str, port: int, count: int) -> list[socket.socket]:
    try:
        return listening_sockets(host, port, count)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise CannotListen(f"cannot listen on {host}:{port}: {reason}") from None


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
