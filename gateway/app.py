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
from functools import partial
from ipaddress import ip_address

# uvloop: libuv's event loop, on which moving bytes costs least.
import uvloop

from gateway.admin.access.admin_guard import AdminGuard
from gateway.admin.access.admin_listener import AdminListener
from gateway.admin.admin_app import admin_runner
from gateway.admin.operator import Operator
from gateway.config.load import rules_hash
from gateway.config.text.mistakes import ConfigError
from gateway.core.overrides import Overrides
from gateway.descriptors import open_standard_streams, raise_limit
from gateway.process.listening import is_worker, listening_sockets
from gateway.process.reloader import Reloader
from gateway.process.serving import Serving
from gateway.process.tasks import Tasks
from gateway.settings import SettingError, Settings
from gateway.state.open_state import open_state
from gateway.state.state_access import StateAccess
from gateway.state.state_changes import StateError
from gateway.telemetry import log
from gateway.telemetry.span_export import SpanExport
from gateway.telemetry.target_watch import FailingTarget
from gateway.verify.live.documented_operations import DocumentedOperations

# After how many seconds Python has a running thread give way to another. By default it is 5 ms, and
# each turn of the event loop would wait so long while a thread converts or loads; a request takes
# several turns.
_THREAD_TURN = 0.0005
# Between two looks at whether anybody gets word of what happens, in seconds.
_NOTIFY_SECONDS = 5.0


class ListenError(Exception):
    """An address that cannot be listened on; the text names it and the reason."""


def run() -> int:
    """Serve until asked to stop; return the exit status: 0 done, 1 refused, 2 wrongly set."""
    sys.setswitchinterval(_THREAD_TURN)
    open_standard_streams()
    raise_limit()
    try:
        log.configure()
        uvloop.run(_main(Settings.from_environment(os.environ)))
    except (ConfigError, StateError, ListenError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except SettingError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    finally:
        log.finish()
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
    async with _state(settings, reloader) as (state, tasks):
        export = _export(reloader, state, tasks)
        failing: list[FailingTarget] = []

        def report(latest: list[FailingTarget]) -> None:
            failing[:] = latest

        load = settings.shadow_load
        serving = Serving(reloader, state.in_force, export.absorb, tasks, load, report)

        async def apply(overrides: Overrides) -> None:
            serving.apply(overrides)

        state.follow(apply, serving.set_ahead)
        documented = DocumentedOperations(reloader.folder)
        unready = partial(_stopping, stop)
        operator = Operator(state, reloader, lambda: 1, unready, documented, failing.copy)
        async with _admin(settings, operator, tasks) as admin:
            (listener,) = _listen(settings.host, settings.port, 1)
            url = _url(listener)
            await serving.serve(
                [listener],
                stop,
                settings.grace,
                lambda: log.event("listening", url=url, admin=admin),
            )
            await export.finish()
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
        rules, in_force, ahead = await worker.join()
    except SupervisorLostError:
        return
    tasks = Tasks(worker.deliver)
    log.count_dropped(worker.deliver)
    reloader = Reloader(settings.config, os.environ, None, rules)
    load, report = settings.shadow_load, worker.report_targets
    serving = Serving(reloader, in_force, worker.deliver, tasks, load, report)
    serving.set_ahead(ahead)

    async def listen() -> None:
        set_ahead, stand_in = serving.set_ahead, serving.stand_in
        await worker.listen(reloader.reload, serving.apply, set_ahead, stand_in)
        stop.set()

    tasks.start("channel", listen)
    tasks.start("alive", worker.report_alive)
    await serving.serve(worker.listeners, stop, settings.grace, worker.report_ready)
    tasks.stop()
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

    async with _state(settings, reloader) as (state, tasks):
        documented = DocumentedOperations(reloader.folder)
        operator = Operator(
            state,
            reloader,
            lambda: supervisor.ready,
            unready,
            documented,
            lambda: supervisor.failing_targets,
        )
        async with _admin(settings, operator, tasks) as admin:
            listeners = _listen(settings.host, settings.port, count)
            export = _export(reloader, state, tasks)
            supervisor = Supervisor(
                listeners,
                os.environ,
                tasks,
                export.absorb,
                reloader.content,
                state.in_force,
                state.unheard,
            )

            async def pass_on() -> None:
                async for _ in reloader.changes():
                    supervisor.reload(reloader.content)

            state.follow(supervisor.apply, supervisor.set_ahead)
            await supervisor.start()
            log.event("listening", url=_url(listeners[0]), admin=admin, workers=count)
            reload = tasks.start("reload", pass_on)
            await stop.wait()
            reload.stop()
            await supervisor.stop(settings.grace)
            await export.finish()
    log.event("stopped")


def _export(reloader: Reloader, state: StateAccess, tasks: Tasks) -> SpanExport:
    export = SpanExport(lambda: reloader.latest.tracing, state.absorb, state.replica)
    tasks.start("spans", export.run)
    return export


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
async def _state(
    settings: Settings, reloader: Reloader
) -> AsyncIterator[tuple[StateAccess, Tasks]]:
    """Yield the state, and the tasks of this process, which it counts."""
    state = await open_state(
        settings.replica,
        lambda: reloader.latest,
        lambda: rules_hash(reloader.content),
        lambda: "" if reloader.refused is None else reloader.refused.summary,
        settings.overrides_file,
    )
    tasks = Tasks(state.absorb)
    log.count_dropped(state.absorb)
    try:
        yield state, tasks
    finally:
        tasks.stop()
        await state.close()


@asynccontextmanager
async def _admin(settings: Settings, operator: Operator, tasks: Tasks) -> AsyncIterator[str]:
    hosts = settings.admin_host, *settings.admin_hosts.replace(",", " ").split()
    count = partial(operator.count, "admin_bounds")
    guard = AdminGuard(hosts, count)
    runner = admin_runner(operator, guard)
    await runner.setup()
    server = runner.server
    assert server is not None  # it is set up
    (listener,) = _listen(settings.admin_host, settings.admin_port, 1)
    files = operator.rules.admin.tls
    tls = None
    if files is not None:
        from gateway.admin.access.admin_tls import AdminTls  # few files

        tls = AdminTls(files)
        tasks.start("admin_tls", tls.run)
    protocol = partial(guard, server)
    admin = AdminListener(listener, protocol, lambda: None if tls is None else tls.context, count)
    url = _url(listener, "http" if tls is None else "https")
    foreign = not ip_address(listener.getsockname()[0]).is_loopback
    if foreign and operator.rules.admin.open:
        reason = "others than this machine can read; name tokens in 'admin' in the rules"
        log.event("admin_exposed", "warning", url=url, reason=reason)
    state = operator.state
    state.admin, state.failing = url, operator.failing_services
    accepting = tasks.start("admin", admin.run)
    tasks.start("notify", partial(_notify, operator))
    for name, run in state.tasks.items():
        tasks.start(name, run)
    tasks.start("curves", partial(operator.curves.run, state, lambda: operator.rules))
    try:
        yield state.admin
    finally:
        accepting.stop()
        admin.close()
        await runner.cleanup()


async def _notify(operator: Operator) -> None:
    """Send word of what happens, while the rules name somebody who gets it."""
    while True:
        if operator.rules.notify.webhooks:
            # Imported for rules that need it: its client and its sources are memory.
            from gateway.admin.notify.notifier import Notifier

            await Notifier(operator).run()
        await asyncio.sleep(_NOTIFY_SECONDS)


def _listen(host: str, port: int, count: int) -> list[socket.socket]:
    try:
        return listening_sockets(host, port, count)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ListenError(f"cannot listen on {host}:{port}: {reason}") from None


def _url(listener: socket.socket, scheme: str = "http") -> str:
    host, port = listener.getsockname()[:2]
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"
