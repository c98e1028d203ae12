"""The composition root: puts the parts together, runs them, and takes them down in order.

One process serves by itself. Several are workers under a supervisor, which holds the port, the
admin port, the state and the reloader; they answer requests and do nothing else.
"""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from ipaddress import ip_address
from pathlib import Path

# uvloop: libuv's event loop, on which moving bytes costs least.
import uvloop
from aiohttp import web

from gateway.admin.admin_app import admin_app
from gateway.admin.admin_guard import AdminGuard
from gateway.admin.operator import Operator
from gateway.config.text.mistakes import ConfigError
from gateway.core.overrides import Overrides
from gateway.process.listening import is_worker, listening_sockets
from gateway.process.reloader import Reloader
from gateway.process.serving import Serving
from gateway.process.tasks import Tasks
from gateway.settings import SettingError, Settings
from gateway.state.active_overrides import ActiveOverrides
from gateway.state.cutover_controller import CutoverController
from gateway.state.state_changes import StateError
from gateway.state.state_store import open_store
from gateway.state.state_writer import StateWriter
from gateway.telemetry import log


class ListenError(Exception):
    """An address that cannot be listened on; the text names it and the reason."""


def run() -> int:
    """Serve until asked to stop; return the exit status: 0 done, 1 refused, 2 wrongly set."""
    try:
        log.configure()
        uvloop.run(_main(Settings.from_environment(os.environ)))
    except (ConfigError, StateError, ListenError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except SettingError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


def _main(settings: Settings) -> Coroutine[None, None, None]:
    if is_worker(os.environ):
        return work(settings)
    reloader = Reloader(settings.config, os.environ)
    count = settings.workers or reloader.latest.workers or len(os.sched_getaffinity(0))
    return serve(settings, reloader) if count == 1 else supervise(settings, reloader, count)


async def serve(settings: Settings, reloader: Reloader) -> None:
    """Serve in this process until asked to stop, then finish what is in flight within the grace.

    Raises:
        StateError: the state cannot be used.
        ListenError: a port is taken, or an address is not one of this machine.
    """
    stop = _stop_on_signals(lambda: log.event("stopping"))
    _on_hangup(reloader.reload)
    async with _state(reloader.latest.state) as (writer, tasks):
        overrides = ActiveOverrides(writer)
        serving = Serving(reloader, overrides.in_force, writer.totals.absorb, tasks)

        async def apply(overrides: Overrides) -> None:
            serving.apply(overrides)

        overrides.follow(apply)
        cutovers = CutoverController(writer, overrides, lambda: reloader.latest)
        operator = Operator(
            writer, overrides, cutovers, reloader, lambda: 1, lambda: _stopping(stop)
        )
        async with _admin(settings, operator, tasks) as admin:
            (listener,) = _listen(settings.host, settings.port, 1)
            url = _url(listener)
            await serving.serve(
                [listener],
                stop,
                settings.grace,
                lambda: log.event("listening", url=url, admin=admin),
            )
    log.event("stopped")


async def work(settings: Settings) -> None:
    """Serve as one of several workers, until asked to stop or the supervisor has ended.

    Raises:
        ConfigError: the rules cannot be used in this process.
    """
    # Each role imports its own part: the channel takes memory that one process alone saves.
    from gateway.process.worker import SupervisorLostError, Worker

    stop = _stop_on_signals()
    _on_hangup(lambda: None)  # its supervisor loads the rules
    worker = Worker(os.environ)
    try:
        rules, in_force = await worker.join()
    except SupervisorLostError:
        return
    tasks = Tasks(worker.deliver)
    reloader = Reloader(settings.config, os.environ, None, rules)
    serving = Serving(reloader, in_force, worker.deliver, tasks)

    async def listen() -> None:
        await worker.listen(reloader.reload, serving.apply, serving.stand_in)
        stop.set()

    tasks.start("channel", listen)
    await serving.serve(worker.listeners, stop, settings.grace, worker.report_ready)
    await worker.leave()


async def supervise(settings: Settings, reloader: Reloader, count: int) -> None:
    """Have workers serve until asked to stop, then let them finish within the grace.

    Raises:
        StateError: the state cannot be used.
        ListenError: a port is taken, or an address is not one of this machine.
    """
    from gateway.process.supervisor import Supervisor

    stop = _stop_on_signals(lambda: log.event("stopping"))
    _on_hangup(reloader.reload)

    def unready() -> str | None:
        return _stopping(stop) or (None if supervisor.ready else "no worker is ready")

    async with _state(reloader.latest.state) as (writer, tasks):
        overrides = ActiveOverrides(writer)
        cutovers = CutoverController(writer, overrides, lambda: reloader.latest)
        operator = Operator(
            writer, overrides, cutovers, reloader, lambda: supervisor.ready, unready
        )
        async with _admin(settings, operator, tasks) as admin:
            listeners = _listen(settings.host, settings.port, count)
            supervisor = Supervisor(
                listeners,
                os.environ,
                tasks,
                writer.totals.absorb,
                reloader.content,
                overrides.in_force,
            )

            async def pass_on() -> None:
                async for _ in reloader.changes():
                    supervisor.reload(reloader.content)

            overrides.follow(supervisor.apply)
            await supervisor.start()
            log.event("listening", url=_url(listeners[0]), admin=admin, workers=count)
            reload = tasks.start("reload", pass_on)
            await stop.wait()
            reload.stop()
            await supervisor.stop(settings.grace)
    log.event("stopped")


def _on_hangup(act: Callable[[], None]) -> None:
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, act)


def _stop_on_signals(announce: Callable[[], None] = lambda: None) -> asyncio.Event:
    stop = asyncio.Event()

    def stop_once() -> None:
        if not stop.is_set():
            announce()
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop_once)
    return stop


def _stopping(stop: asyncio.Event) -> str | None:
    return "the gateway is stopping" if stop.is_set() else None


@asynccontextmanager
async def _state(path: str | None) -> AsyncIterator[tuple[StateWriter, Tasks]]:
    """Yield the writer of the state, and the tasks of this process, which it counts."""
    if path is None:
        writer = StateWriter(None)
    else:
        store = open_store(Path(path))
        writer = StateWriter(store, await store.read())
    tasks = Tasks(writer.totals.absorb)
    tasks.start("state", writer.run)
    try:
        yield writer, tasks
    finally:
        tasks.stop()
        await writer.close()


@asynccontextmanager
async def _admin(settings: Settings, operator: Operator, tasks: Tasks) -> AsyncIterator[str]:
    guard = AdminGuard([settings.admin_host, *settings.admin_hosts.replace(",", " ").split()])
    runner = web.AppRunner(admin_app(operator, guard), access_log=None, lingering_time=1.0)
    await runner.setup()
    server = runner.server
    assert server is not None  # it is set up
    (listener,) = _listen(settings.admin_host, settings.admin_port, 1)
    loop = asyncio.get_running_loop()
    accepting = await loop.create_server(lambda: guard(server), sock=listener)
    if not ip_address(listener.getsockname()[0]).is_loopback:
        reason = "the admin port has no password, and others than this machine can reach it"
        log.event("admin_exposed", "warning", url=_url(listener), reason=reason)
    tasks.start("cutovers", operator.cutovers.run)
    try:
        yield _url(listener)
    finally:
        accepting.close()
        await runner.cleanup()


def _listen(host: str, port: int, count: int) -> list[socket.socket]:
    try:
        return listening_sockets(host, port, count)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ListenError(f"cannot listen on {host}:{port}: {reason}") from None


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
