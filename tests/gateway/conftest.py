"""Fixtures: the gateway as a real process, the complete stack, and scripted upstreams."""

import asyncio
import signal
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gateway.findings.operator import Operator
from gateway.observe import log
from gateway.process import reloader
from gateway.rules import draft
from tests.fork_server import fork_server
from tests.gateway.kit import (
    DEADLINE,
    ROOT,
    Program,
    Script,
    Scripted,
    Stack,
    StartGateway,
    StartUpstream,
    assert_sound,
    execute_program,
    rules,
    start_program,
)
from tests.gateway.operating import MakeOperator, make_operator

# A shell makes its background jobs ignore Ctrl-C, and the programs that they start inherit this.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Otherwise each Reloader would collect the garbage of all tests, which takes a third of a second.
_collect = reloader._collect
reloader._collect = lambda: None


@pytest.fixture
def collecting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let reloaders collect garbage, as they do outside tests."""
    monkeypatch.setattr(reloader, "_collect", _collect)


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Collect the names of events instead of logging them."""
    names: list[str] = []
    monkeypatch.setattr(log, "event", lambda name, *_, **__: names.append(name))
    return names


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[StartGateway]:
    """Start separate gateways for a test, given gateway.yaml and environment variables."""
    with ExitStack() as stack:
        yield partial(_start_gateway, start_program, stack, tmp_path)


@pytest.fixture(scope="module")
def module_gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartGateway]:
    """Start gateways as `gateway` does, for all tests of a module."""
    with ExitStack() as stack:
        yield partial(_start_gateway, start_program, stack, tmp_path_factory.mktemp("module"))


@pytest.fixture
def executed_gateway(tmp_path: Path) -> Iterator[StartGateway]:
    """Start gateways as `gateway` does, but as new processes whose memory can be measured."""
    with ExitStack() as stack:
        yield partial(_start_gateway, execute_program, stack, tmp_path)


def _start_gateway(
    start: Callable[..., Program], stack: ExitStack, parent: Path, rules: str, **variables: str
) -> Program:
    folder = parent / f"gateway{len(list(parent.iterdir()))}"
    folder.mkdir()
    config = folder / "gateway.yaml"
    config.write_text(rules)
    program = start(stack, folder, "gateway", **variables)
    program.config = config
    return program


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    folder = tmp_path_factory.mktemp("stack")
    with ExitStack() as resources:
        backends = {
            name: start_program(resources, folder / name, name)
            for name in ("backend_v1", "backend_v2", "users_service")
        }
        config = folder / "gateway" / "gateway.yaml"
        config.parent.mkdir()
        config.write_text((ROOT / "gateway.yaml").read_text())
        gateway = start_program(
            resources,
            config.parent,
            "gateway",
            PERSON_V1=f"127.0.0.1:{backends['backend_v1'].port}",
            PERSON_V2=f"127.0.0.1:{backends['backend_v2'].port}",
            USERS=f"127.0.0.1:{backends['users_service'].port}",
        )
        gateway.config = config
        yield Stack(gateway, *backends.values())


@pytest.fixture
async def upstream() -> AsyncIterator[StartUpstream]:
    """Start scripted upstreams, which run a script for every connection.

    If bytes are given instead of a script, they are the response to every request.
    """
    servers: list[asyncio.Server] = []
    tasks: set[asyncio.Task[Any]] = set()
    connections: list[tuple[asyncio.WriteTransport, socket.socket]] = []

    async def start(
        script: bytes | Script,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        tls: ssl.SSLContext | None = None,
    ) -> Scripted:
        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            tasks.add(task)
            connections.append((writer.transport, writer.get_extra_info("socket")))
            scripted.connections += 1
            try:
                if isinstance(script, bytes):
                    while True:
                        await scripted.take(reader)
                        writer.write(script)
                        await writer.drain()
                else:
                    await script(scripted, reader, writer)
            except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                pass
            finally:
                writer.close()

        scripted = Scripted()
        # On a busy machine, a shorter queue is full when a test connects 120 clients at once.
        server = await asyncio.start_server(connected, host, port, ssl=tls, backlog=1024)
        servers.append(server)
        scripted.port = server.sockets[0].getsockname()[1]
        return scripted

    yield start
    for server in servers:
        server.close()
    for _ in range(10):  # connections that were just accepted get their tasks
        await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    for transport, connection in connections:
        # A transport that was closed and has sent its last bytes since cannot be aborted.
        if connection.fileno() != -1:
            transport.abort()  # `close` would wait until the client has read everything
    await asyncio.sleep(0)


@pytest.fixture(scope="module")
def standing(module_gateway: StartGateway) -> Iterator[Program]:
    """Start one gateway for all tests of a module; `through` connects it to their upstreams.

    No test may make it log a traceback or end it.
    """
    program = module_gateway(rules(1))
    yield program
    assert_sound(program)


@pytest.fixture
def reloaded(standing: Program) -> StartGateway:
    """Load rules into the module's gateway instead of starting one; its log begins with them."""

    def reload(rules: str) -> Program:
        standing.reload(rules)
        log = standing.output.read_bytes()
        return replace(standing, since=log.index(b"\n", log.rindex(b'"config_loaded"')) + 1)

    return reload


@pytest.fixture
def configured(standing: Program) -> StartGateway:
    """Load a configuration into the module's gateway if needed; its log includes earlier tests."""

    def configure(rules: str) -> Program:
        assert standing.config is not None
        if standing.config.read_text() != rules:
            standing.reload(rules)
        return standing

    return configure


@pytest.fixture
def through(standing: Program, upstream: StartUpstream) -> StartUpstream:
    """Start a scripted upstream for the module's gateway; takes the arguments of `rules`."""

    async def start(script: bytes | Script, **more: Any) -> Scripted:
        scripted = await upstream(script)
        standing.reload(rules(scripted.port, **more))
        return scripted

    return start


@pytest.fixture
def forked_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fork the child processes of this process, since imports take most of their time.

    The fork server ends if a child is killed before it runs, so checks of drafts get more time.
    """
    monkeypatch.setattr("sys.executable", fork_server().python)
    monkeypatch.setattr(draft, "SECONDS", int(DEADLINE))


@pytest.fixture
def operating(tmp_path: Path) -> MakeOperator:
    return partial(make_operator, tmp_path)


@pytest.fixture
def operator(operating: MakeOperator) -> Operator:
    return operating("")
