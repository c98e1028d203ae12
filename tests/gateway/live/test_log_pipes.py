"""A log on a pipe: a missing reader blocks nothing, and the lines of workers do not mix."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import psutil
import pytest

from tests.gateway.kit import DEADLINE, ROOT, Program, StartUpstream, rules
from tests.gateway.talk import OK, ask, connect, get

pytestmark = pytest.mark.slow

LONG = "x" * 7000


class Piped:
    def __init__(self, process: asyncio.subprocess.Process, log: int) -> None:
        self.process = process
        self.log = log
        self.program = Program(None, Path())  # type: ignore[arg-type]  # only its ports are used

    async def line(self) -> bytes:
        return await asyncio.to_thread(os.read, self.log, 1_000_000)

    async def lines(self, seconds: float) -> list[dict[str, object]]:
        """Return the lines that arrive within some seconds; each must be JSON."""
        os.set_blocking(self.log, False)
        text = b""
        end = asyncio.get_running_loop().time() + seconds
        while asyncio.get_running_loop().time() < end:
            with suppress(BlockingIOError):
                text += os.read(self.log, 1_000_000)
            await asyncio.sleep(0.005)
        assert text.endswith(b"\n")
        return [json.loads(line) for line in text.splitlines()]


@asynccontextmanager
async def piped(folder: Path, port: int, workers: int) -> AsyncIterator[Piped]:
    (folder / "gateway.yaml").write_text(rules(port))
    log, end = os.pipe()
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "gateway",
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "GATEWAY_PORT": "0",
            "GATEWAY_ADMIN_PORT": "0",
            "GATEWAY_WORKERS": str(workers),
        },
        stdout=end,
    )
    os.close(end)
    started = Piped(process, log)
    try:
        entry = json.loads(await started.line())
        started.program.port = int(entry["url"].rpartition(":")[2])
        started.program.admin = int(entry["admin"].rpartition(":")[2])
        yield started
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        os.close(log)


async def dropped(program: Program) -> float:
    reader, writer = await asyncio.open_connection("127.0.0.1", program.admin)
    writer.write(
        ask("GET /metrics", "Host: localhost", "Connection: close").replace(
            b"Host: api.test\r\n", b""
        )
    )
    async with asyncio.timeout(DEADLINE):
        lines = (await reader.read()).decode().splitlines()
    writer.close()
    start = 'gateway_log_dropped_total{line="request"} '
    return sum(float(line.removeprefix(start)) for line in lines if line.startswith(start))


@pytest.mark.parametrize("workers", [1, 2])
async def test_a_log_pipe_without_a_reader_blocks_nothing(
    tmp_path: Path, upstream: StartUpstream, workers: int
) -> None:
    async with piped(tmp_path, (await upstream(OK)).port, workers) as started:
        program = started.program
        line = f"GET /nowhere/{LONG}"
        while not await dropped(program):  # the pipe buffers 64 KiB, and the process 1 MiB more
            async with connect(program) as client:
                for _ in range(100):
                    client.send(ask(line))
                    assert (await client.answer()).status == 404
            held = [psutil.Process(started.process.pid)]
            held += held[0].children()
            assert max(each.memory_info().rss for each in held) < 100e6
        reading = asyncio.create_task(started.lines(3.0))
        lines = await reading
        assert any(entry["event"] == "log_dropped" for entry in lines)
        os.set_blocking(started.log, True)
        assert (await get(program, f"GET /nowhere/{LONG}")).status == 404
        started.process.terminate()
        async with asyncio.timeout(DEADLINE):
            assert await started.process.wait() == 0


async def test_lines_of_several_workers_do_not_mix(tmp_path: Path, upstream: StartUpstream) -> None:
    """Lines longer than an atomic pipe write (PIPE_BUF) are shortened."""
    async with piped(tmp_path, (await upstream(OK)).port, 2) as started:
        reading = asyncio.create_task(started.lines(2.0))

        async def visit() -> None:
            async with connect(started.program) as client:
                while not reading.done():
                    client.send(ask(f"GET /nowhere/{LONG}"))
                    assert (await client.answer()).status == 404

        visits = [asyncio.create_task(visit()) for _ in range(8)]
        lines = await reading
        await asyncio.gather(*visits)
    requests = [entry for entry in lines if entry["event"] == "request"]
    assert len(requests) > 20
    for entry in requests:
        path = str(entry["path"])
        assert path.startswith("/nowhere/xxx")
        assert "xxx\u2026xxx" in path
        assert 3000 < len(path) < 4096
