"""The composition root of the only process or the supervisor: assembles, runs and stops it."""

import asyncio
import os
import socket
import ssl
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from functools import partial
from ipaddress import ip_address
from pathlib import Path

from gateway.access.token_buckets import TokenBuckets, shared_memory
from gateway.admin.access.connections import AdminListener
from gateway.admin.admin_app import Load, start_admin
from gateway.base.overrides import Overrides
from gateway.findings.operator import Operator
from gateway.findings.refused_rules import rules_hash
from gateway.http.trace_parent import Tracing
from gateway.observe import log
from gateway.observe.failing_targets import FailingTarget
from gateway.observe.tracing import Ended, Sender, SpanExport
from gateway.process.listening import Listening, listening_sockets, open_listeners
from gateway.process.reloader import Reloader
from gateway.process.running import Tasks, on_hangup, run_with, stop_on_signals
from gateway.process.serving import Serving
from gateway.process.settings import Settings, unknown_variables
from gateway.rules.variables import names
from gateway.store.local import LocalState
from gateway.store.state import Membership, State, extra_missing
from gateway.usage.delta import Admitted
from gateway.verify.live.document_process import DocumentProcess
from gateway.verify.live.documented_operations import DocumentedOperations

# Seconds between two checks for events to notify webhooks of.
_NOTIFY_SECONDS = 5.0


def run() -> int:
    """Serve in this process or with workers; return the exit status of `run_with`."""
    return run_with(_main)


def _main(settings: Settings) -> Coroutine[None, None, None]:
    reloader = Reloader(settings.config, os.environ)
    used = names([reloader.content.decode(errors="replace")])
    for variable, reason in unknown_variables(os.environ, used).items():
        log.event("variable_unknown", "warning", variable=variable, reason=reason)
    count = settings.workers or reloader.latest.workers or _processors()
    return serve(settings, reloader) if count == 1 else supervise(settings, reloader, count)


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1  # macOS


async def serve(settings: Settings, reloader: Reloader) -> None:
    """Serve in this process until stopped; raises StateError, or ListenError for a port in use."""
    stop = stop_on_signals(lambda: log.event("stopping"))
    on_hangup(reloader.reload)
    async with _state(settings, reloader) as (state, tasks):
        export = _export(reloader, state, tasks)
        failing: list[FailingTarget] = []

        def report(latest: list[FailingTarget]) -> None:
            failing[:] = latest

        load = settings.shadow_load
        buckets = TokenBuckets(shared_memory())
        state.add_debt = partial(_add_debt, reloader, buckets)
        documents = DocumentProcess(reloader.folder, reloader.adopt)
        serving = Serving(
            reloader,
            state.in_force,
            state.absorb,
            export.export,
            tasks,
            load,
            report,
            buckets,
            documents,
        )
        serving.reloaded = documents.follow

        async def apply(overrides: Overrides) -> None:
            serving.apply(overrides)

        state.follow(apply, serving.set_ahead)
        operator = Operator(
            state,
            reloader,
            lambda: 1,
            lambda: _stopping(stop) or documents.unready(),
            serving.documented,
            failing.copy,
            documents.problems,
            docs=settings.docs,
        )
        async with _admin(settings, operator, tasks) as admin:
            (listeners,) = _listeners(settings, reloader, 1)
            documents.follow(reloader.latest)
            tasks.start("documents", documents.run)
            tasks.start("document_files", documents.read)
            await serving.serve(
                listeners,
                stop,
                settings.grace,
                lambda: _announce(listeners, reloader, admin=admin),
            )
            await export.finish()
    log.event("stopped")


async def supervise(settings: Settings, reloader: Reloader, count: int) -> None:
    """Serve with workers until stopped, then let them finish; raises as `serve` does."""
    # Imported only in this role, since a single process does not need the memory for the channel.
    from gateway.process.supervisor import Supervisor

    stop = stop_on_signals(lambda: log.event("stopping"))
    on_hangup(reloader.reload)

    def unready() -> str | None:
        no_worker = None if supervisor.ready else "no worker is ready"
        return _stopping(stop) or no_worker or documents.unready()

    async def adopt(location: str, document: bytes) -> str:
        problem = await reloader.adopt(location, document)
        supervisor.share_document(reloader.in_force, location)
        return problem

    async with _state(settings, reloader) as (state, tasks):
        documents = DocumentProcess(reloader.folder, adopt)
        documented = DocumentedOperations(documents)
        operator = Operator(
            state,
            reloader,
            lambda: supervisor.ready,
            unready,
            documented,
            lambda: supervisor.failing_targets,
            documents.problems,
            docs=settings.docs,
        )
        async with _admin(settings, operator, tasks) as admin:
            listeners = _listeners(settings, reloader, count)
            export = _export(reloader, state, tasks)
            memory = shared_memory()
            state.add_debt = partial(_add_debt, reloader, TokenBuckets(memory))
            supervisor = Supervisor(
                listeners,
                os.environ,
                tasks,
                state.absorb,
                export.export,
                documents,
                reloader.in_force,
                state.in_force,
                state.unheard,
                memory,
            )

            async def pass_on() -> None:
                async for rules in reloader.changes():
                    supervisor.reload(reloader.in_force)
                    documents.follow(rules)

            state.follow(supervisor.apply, supervisor.set_ahead)
            documents.follow(reloader.latest)  # before a worker is ready, as /readyz depends on it
            await supervisor.start()
            tasks.start("documents", documents.run)
            tasks.start("document_files", documents.read)
            _announce(listeners[0], reloader, admin=admin, workers=count)
            reload = tasks.start("reload", pass_on)
            await stop.wait()
            reload.stop()
            await supervisor.stop(settings.grace)
            await export.finish()
    log.event("stopped")


def _add_debt(reloader: Reloader, buckets: TokenBuckets, rows: Sequence[Admitted]) -> None:
    """Take the tokens of requests that another replica has admitted."""
    limits = (reloader.latest.rate_limits or {}).values()
    known = {limit.bucket.name: limit.bucket for several in limits for limit in several}
    for name, number, count in rows:
        if name in known and known[name].shared:
            buckets.add_debt(known[name], number, count, time.monotonic())


def _listeners(settings: Settings, reloader: Reloader, count: int) -> list[list[Listening]]:
    """Open the listening sockets of each worker; raises ListenError."""
    listen = reloader.latest.listen
    ignored = [name for name in ("GATEWAY_HOST", "GATEWAY_PORT") if os.environ.get(name)]
    if listen and ignored:
        reason = (
            "'listen' in the configuration has precedence; unset the variables, or remove 'listen'"
        )
        log.event("variable_ignored", "warning", variable=", ".join(ignored), reason=reason)
    return open_listeners(listen, settings.host, settings.port, count)


def _announce(listeners: Sequence[Listening], reloader: Reloader, **fields: object) -> None:
    secure = {each.address for each in reloader.latest.listen if each.context is not None}
    url, *others = (
        _url(each.own, "https" if each.address in secure else "http") for each in listeners
    )
    if others:
        fields["others"] = others
    log.event("listening", "info", url=url, **fields)


def _export(reloader: Reloader, state: State, tasks: Tasks) -> SpanExport:
    def connect(tracing: Tracing, ended: Ended) -> Sender:
        # The OpenTelemetry SDK takes 9 MB, so it is imported only if tracing is configured.
        from gateway.observe.otlp_sender import OtlpSender

        return OtlpSender(state.replica, tracing, ended)

    export = SpanExport(lambda: reloader.latest.tracing, state.absorb, connect)
    tasks.start("spans", export.run)
    return export


def _stopping(stop: asyncio.Event) -> str | None:
    return "the gateway is stopping" if stop.is_set() else None


@asynccontextmanager
async def _state(settings: Settings, reloader: Reloader) -> AsyncIterator[tuple[State, Tasks]]:
    """Yield the state, and the tasks of this process, whose failures the state counts."""
    state = await open_state(
        Membership(
            settings.replica,
            lambda: reloader.latest,
            lambda: rules_hash(reloader.content),
            lambda: "" if reloader.refused is None else reloader.refused.summary,
            settings.overrides_file,
        )
    )
    tasks = Tasks(state.absorb)
    log.count_dropped(state.absorb)
    try:
        yield state, tasks
    finally:
        tasks.stop()
        await state.close()


async def open_state(membership: Membership) -> State:
    """Open the state in memory, in a file or in PostgreSQL; raises StateError."""
    location = membership.rules().state
    # SQLAlchemy takes 14 MB, so it is imported only if `state` is configured. FleetState also
    # imports asyncpg.
    try:
        if location is not None and "://" in location:
            from gateway.store.fleet import FleetState

            return await FleetState.open(location, membership)
        if location is None:
            return LocalState(membership)
        from gateway.store.sqlite import SqliteFile

        file = SqliteFile(Path(location))
        return LocalState(membership, file, await file.read())
    except ModuleNotFoundError as error:
        raise extra_missing(location or "", error) from None


@asynccontextmanager
async def _admin(settings: Settings, operator: Operator, tasks: Tasks) -> AsyncIterator[str]:
    hosts = settings.admin_host, *settings.admin_hosts.replace(",", " ").split()
    count = partial(operator.count, "admin_bounds")
    parts: dict[str, Load] = {"metrics": _metrics, "api": _api, "page": _page}
    runner = await start_admin(operator, parts, hosts)
    server = runner.server
    assert server is not None  # `start_admin` has set it up
    (listener,) = listening_sockets(
        settings.admin_host, settings.admin_port, 1, "GATEWAY_ADMIN_PORT"
    )
    first = operator.rules.admin.tls

    def tls() -> ssl.SSLContext | None:
        return first and (operator.rules.admin.tls or first)

    admin = AdminListener(listener, server, tls, count)
    url = _url(listener, "http" if first is None else "https")
    foreign = not ip_address(listener.getsockname()[0]).is_loopback
    if foreign and operator.rules.admin.open:
        reason = "other machines can read this port; configure tokens in 'admin'"
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


# Each part of the admin port is imported when the first request needs it, to save memory: the
# Prometheus library, the reports, and the templates of the page.
def _metrics() -> Callable[[Operator], object]:
    from gateway.admin.metrics import Metrics

    return Metrics


def _api() -> Callable[[Operator], object]:
    from gateway.admin.api import AdminApi

    return AdminApi


def _page() -> Callable[[Operator], object]:
    from gateway.admin.page.page_app import Page

    return Page


async def _notify(operator: Operator) -> None:
    while True:
        if operator.rules.notify.webhooks:
            # Imported only if needed, since its HTTP client takes memory.
            from gateway.findings.notifier import notify

            await notify(operator)
        await asyncio.sleep(_NOTIFY_SECONDS)


def _url(listener: socket.socket, scheme: str = "http") -> str:
    host, port = listener.getsockname()[:2]
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"
