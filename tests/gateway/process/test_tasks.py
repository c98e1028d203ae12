"""Long-running tasks: a failed task is restarted, counted, and shown on /readyz."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from gateway import app
from gateway.access.token_buckets import shared_memory
from gateway.base.overrides import NO_OVERRIDES
from gateway.process import running as tasks_module
from gateway.process import worker as work_module
from gateway.process.channel import ApplyOverrides, Channel, Counted, Ready, SetClock
from gateway.process.listening import BUCKETS, CHANNEL, LISTENERS
from gateway.process.reloader import Loaded, Reloader
from gateway.process.running import Tasks
from gateway.process.settings import Settings
from gateway.usage.delta import CounterDelta, Delta
from tests.gateway.admin.access.certificates import write_certificate
from tests.gateway.kit import StartUpstream, rules
from tests.gateway.talk import OK


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110  # there is no event to wait for
            await asyncio.sleep(0.01)


def failures(deltas: list[Delta]) -> list[CounterDelta]:
    return [count for delta in deltas for count in delta.counts]


async def test_a_failed_task_is_restarted_and_counted() -> None:
    deltas: list[Delta] = []
    tasks = Tasks(deltas.append)
    runs = 0

    async def run() -> None:
        nonlocal runs
        runs += 1
        match runs:
            case 1:
                raise ValueError("a mistake")
            case 2:
                raise MemoryError
            case _:
                await asyncio.sleep(3600)

    task = tasks.start("job", run)
    await until(lambda: runs == 3)
    assert failures(deltas) == [CounterDelta("task_failures", ("job",), 1)] * 2
    tasks.stop()
    await task.done.wait()
    await asyncio.sleep(0.3)
    assert runs == 3


async def test_a_task_whose_error_cannot_be_formatted_is_restarted() -> None:
    class MuteError(Exception):
        def __str__(self) -> str:
            raise ValueError

    runs = 0

    async def run() -> None:
        nonlocal runs
        runs += 1
        raise MuteError

    tasks = Tasks(lambda _: None)
    tasks.start("job", run)
    asyncio.get_running_loop().set_exception_handler(lambda *_: None)  # asyncio logs it itself
    await until(lambda: runs == 3)
    tasks.stop()


async def test_a_finished_task_is_not_restarted() -> None:
    deltas: list[Delta] = []
    runs = 0

    async def run() -> None:
        nonlocal runs
        runs += 1

    await Tasks(deltas.append).start("job", run).done.wait()
    await asyncio.sleep(0.2)
    assert (runs, deltas) == (1, [])


async def test_a_task_stopped_while_waiting_for_its_restart_is_not_restarted() -> None:
    runs = 0

    async def run() -> None:
        nonlocal runs
        runs += 1
        raise OSError

    task = Tasks(lambda _: None).start("job", run)
    await until(lambda: runs == 1)
    await asyncio.sleep(0)
    task.stop()
    await asyncio.sleep(0.3)
    assert runs == 1


class Running(NamedTuple):
    stop: asyncio.Event
    failures: Callable[[], set[str]]


def running() -> dict[str, list[asyncio.Task[Any]]]:
    found: dict[str, list[asyncio.Task[Any]]] = {}
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        if not task.get_name().startswith("test"):
            found.setdefault(task.get_name(), []).append(task)
    return found


def counts() -> dict[str, int]:
    return {name: len(tasks) for name, tasks in running().items()}


@pytest.fixture
def stop(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    event = asyncio.Event()
    for root in (app, work_module):
        monkeypatch.setattr(root, "stop_on_signals", lambda *_: event)
        monkeypatch.setattr(root, "on_hangup", lambda _: None)
    monkeypatch.setattr(tasks_module, "_FIRST_WAIT", 0.01)
    return event


@asynccontextmanager
async def role(
    name: str, content: str, path: Path, stop: asyncio.Event, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[list[Delta]]:
    deltas: list[Delta] = []
    settings = Settings(config=path, port=0, admin_port=0, grace=0.1)
    if name == "worker":
        ours, theirs = socket.socketpair()
        listener = socket.create_server(("127.0.0.1", 0))
        monkeypatch.setenv(LISTENERS, f"={listener.detach()}")
        monkeypatch.setenv(CHANNEL, str(theirs.detach()))
        monkeypatch.setenv(BUCKETS, str(shared_memory()))
        channel = await Channel.over(ours)
        channel.send(Loaded(content.encode(), {}))
        channel.send(ApplyOverrides(0, NO_OVERRIDES))
        channel.send(SetClock(0.0))
        work = work_module.work(settings)
    else:
        count = Tasks._count

        def counted(tasks: Tasks, name: str) -> None:
            deltas.append(Delta(0.0, [], [], [CounterDelta("task_failures", (name,), 1)], [], []))
            count(tasks, name)

        monkeypatch.setattr(Tasks, "_count", counted)
        reloader = Reloader(path, {})
        work = (
            app.serve(settings, reloader)
            if name == "alone"
            else app.supervise(settings, reloader, 2)
        )
    main = asyncio.create_task(work, name="test main")
    if name == "worker":
        assert isinstance(await channel.receive(), Ready)

        async def collect() -> None:
            while (message := await channel.receive()) is not None:
                if isinstance(message, Counted):
                    deltas.append(message.delta)

        collecting = asyncio.create_task(collect(), name="test collect")
    try:
        yield deltas
    finally:
        stop.set()
        await main
        if name == "worker":
            await collecting
            await channel.close()


# The tasks of the process with the admin port. A fleet has one more, which
# tests/fleet/prove_tasks.py tests.
ADMIN = {
    "admin": 1,
    "curves": 1,
    "cutovers": 1,
    "document_files": 1,
    "documents": 1,
    "notify": 1,
    "reload": 1,
    "spans": 1,
    "state": 1,
}
LONG_LIVED = {
    "alone": {**ADMIN, "health_check": 2, "targets": 1},
    "supervisor": {**ADMIN, "worker": 2},
    "worker": {
        "alive": 1,
        "channel": 1,
        "health_check": 2,
        "reload": 1,
        "documents": 1,
        "targets": 1,
    },
}


@pytest.mark.parametrize("name", LONG_LIVED)
async def test_each_long_running_task_is_restarted_after_it_was_cancelled(
    name: str,
    tmp_path: Path,
    upstream: StartUpstream,
    stop: asyncio.Event,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    port = (await upstream(OK)).port
    path = tmp_path / "gateway.yaml"
    files = write_certificate(tmp_path)
    content = f"state: {tmp_path}/state.db\n" + rules(port).replace(
        f'targets: ["http://127.0.0.1:{port}"]',
        f'targets: ["http://127.0.0.1:{port}", "http://localhost:{port}"], health: {{ path: / }}',
    )
    content += f"admin: {{ tls: {{ certificate: {files.certificate}, key: {files.key} }} }}\n"
    await asyncio.to_thread(path.write_text, content)
    await killed_and_back(name, content, path, stop, monkeypatch, LONG_LIVED[name])


async def killed_and_back(
    name: str,
    content: str,
    path: Path,
    stop: asyncio.Event,
    monkeypatch: pytest.MonkeyPatch,
    expected: dict[str, int],
) -> None:
    async with role(name, content, path, stop, monkeypatch) as deltas:
        await until(lambda: counts() == expected)
        killed = [task for tasks in running().values() for task in tasks]
        for task in killed:
            task.cancel()
        await until(lambda: all(task.done() for task in killed))
        await until(lambda: counts() == expected)
        await until(lambda: len(failures(deltas)) == sum(expected.values()))
        assert {count.labels[0] for count in failures(deltas)} == expected.keys()
