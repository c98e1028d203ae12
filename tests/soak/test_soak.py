"""The soak itself is tested: a short run passes, and planted errors and leaks are found."""

import asyncio
import subprocess
import sys
from math import inf, sin
from pathlib import Path
from random import Random
from time import monotonic
from types import SimpleNamespace
from typing import cast

import psutil
import pytest

from tests.gateway.kit import Program
from tests.gateway.talk import Reader, Writer, soon
from tests.soak.house import open_house
from tests.soak.leaks import CENSUS, Memory, held, slope
from tests.soak.load import Kill, Load, Question
from tests.soak.questions import is_json
from tests.soak.soak import Soak

pytestmark = pytest.mark.slow


async def test_a_short_soak_passes(tmp_path: Path) -> None:
    said: list[str] = []
    with open_house(tmp_path, **CENSUS) as house:
        processes = [house.supervisor, *house.workers]
        failures = await Soak(house, Random(3), said.append).run(10, least=501)
    assert not failures
    assert house.load.right > 500
    assert not any(process.is_running() for process in processes)


async def test_a_reload_completes_although_a_worker_dies(tmp_path: Path) -> None:
    """The worker is killed between the reload signal and the end of loading."""
    with open_house(tmp_path) as house:
        worker = house.workers[-1]
        worker.suspend()
        loaded = house.journal.read()["config_loaded"] + 1
        reload = asyncio.create_task(house.toggle())
        await soon(lambda: house.journal.read()["config_loaded"] == loaded)
        assert not reload.done()
        worker.kill()
        await reload
        assert house.journal.read()["config_loaded"] == loaded
        assert house.journal.counts["worker_replaced"] == 1


async def judged(answer: bytes, **load: object) -> Load:
    """Request 1 from a server that sends these bytes and closes; return the load."""

    async def connected(reader: Reader, writer: Writer) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        request_id = head.split(b"X-Request-Id: ")[1].split(b"\r\n")[0]
        writer.write(answer.replace(b"ID", request_id))
        writer.close()

    async with await asyncio.start_server(connected, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        asked = Load(cast(Program, SimpleNamespace(port=port)))
        for name, value in load.items():
            setattr(asked, name, value)
        async with asked.visit("") as visit:
            await visit.ask(Question("s", "GET /", lambda answer: is_json(answer, 1)))
    return asked


def answer(
    body: bytes, status: int = 200, request_id: str = "ID", kind: str = "application/json"
) -> bytes:
    fields = f"Content-Type: {kind}\r\nX-Request-Id: {request_id}\r\nContent-Length: {len(body)}"
    return f"HTTP/1.1 {status} X\r\n{fields}\r\n\r\n".encode() + body


REFUSED = answer(b'{"code":"upstream_unreachable"}', 502, kind="application/problem+json")


async def test_a_right_response_is_counted() -> None:
    load = await judged(answer(b"1"))
    assert (load.right, load.wrong, load.unexplained) == (1, [], [])


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(answer(b"2"), id="another body"),
        pytest.param(answer(b"1", request_id="other"), id="another's"),
        pytest.param(answer(b"1", 201), id="another status"),
        pytest.param(answer(b"1", kind="application/vnd.a-v1+json"), id="another type"),
        pytest.param(answer(b"1").replace(b"Type", b"Kind"), id="no type"),
        pytest.param(answer(b"one"), id="not JSON"),
        pytest.param(answer(b"1").replace(b"200", b"X"), id="not HTTP"),
        pytest.param(answer(b"{}", 500, kind="application/problem+json"), id="failed"),
    ],
)
async def test_a_wrong_response_is_reported(data: bytes) -> None:
    load = await judged(data)
    assert (load.right, len(load.wrong), load.unexplained) == (0, 1, [])


@pytest.mark.parametrize("data", [REFUSED, answer(b"11")[:-1]], ids=["refused", "broken off"])
@pytest.mark.parametrize(
    ("kill", "explained"),
    [
        (Kill(frozenset({"s"}), 0.0), True),
        (Kill(frozenset({"t"}), 0.0), False),
        (Kill(frozenset({"s"}), 0.0, monotonic() - 1), False),
        (Kill(frozenset({"s"}), 0.0, inf), True),
    ],
    ids=["while it is down", "another's", "long before", "for good"],
)
async def test_a_missing_response_is_explained_only_by_a_kill(
    data: bytes, kill: Kill, explained: bool
) -> None:
    load = await judged(data, kills=[kill])
    assert (load.right, load.wrong) == (0, [])
    assert (load.explained.total(), len(load.unexplained)) == ((1, 0) if explained else (0, 1))


def test_outliers_do_not_change_the_slope() -> None:
    line = [(float(n), 3.0 * n + sin(n)) for n in range(1000)]
    assert slope(line) == pytest.approx(3, abs=0.01)
    assert slope([(n, 1e9 if n % 10 == 0 else value) for n, value in line]) == pytest.approx(
        3, abs=0.5
    )
    assert slope([(0.0, 1.0)]) == 0


@pytest.mark.parametrize(("rate", "leak"), [(0, False), (5, False), (15, True), (-100, False)])
@pytest.mark.parametrize("figure", ["blocks", "bytes"])
def test_growing_memory_is_reported_as_a_leak(figure: str, rate: int, leak: bool) -> None:
    """Over ten minutes, memory grows by this much per second; the first minutes do not count."""
    memory = Memory(psutil.Process())
    scale = {"blocks": 2.5, "bytes": 1000}
    for name, growth in (("blocks", memory.blocks), ("bytes", memory.bytes)):
        more = rate * scale[name] if name == figure else 0.0
        growth.samples += [(n, 5e7 + more * n - 1e5 * max(0, 150 - n)) for n in range(600)]
    assert memory.leaks == leak


def test_tasks_and_descriptors_are_counted() -> None:
    script = """
import asyncio, os, sys
async def main():
    tasks = [asyncio.create_task(asyncio.sleep(60)) for _ in range(3)]
    descriptors = os.pipe()
    print(flush=True)
    await asyncio.sleep(60)
asyncio.run(main())
"""
    counts = []
    for program in (script, script.replace("range(3)", "range(5)").replace("os.pipe()", "1")):
        with subprocess.Popen(
            [sys.executable, "-c", program], stdout=subprocess.PIPE, env=CENSUS
        ) as process:
            assert process.stdout is not None
            process.stdout.readline()
            counts.append(held(psutil.Process(process.pid), ()))
            process.kill()
    assert [count.tasks for count in counts] == [4, 6]
    assert counts[0].descriptors == counts[1].descriptors + 2
