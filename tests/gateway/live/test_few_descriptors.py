"""A gateway with few file descriptors accepts only as many clients as it can serve."""

import asyncio
import os
import resource
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from tests.gateway.kit import ROOT, Program, Scripted, StartUpstream, rules
from tests.gateway.live.bounds import bound, metric
from tests.gateway.talk import OK, Reader, Writer, ask, connect, get, soon

pytestmark = pytest.mark.slow

FILES = 256
ADMIN = FILES // 16
CLIENTS = (FILES - 64 - 2 * ADMIN) // 2


@asynccontextmanager
async def few_files(port: int, folder: Path) -> AsyncIterator[Program]:
    config, output = folder / "gateway.yaml", folder / "gateway.log"
    config.write_text(rules(port))
    own = {"GATEWAY_PORT": "0", "GATEWAY_ADMIN_PORT": "0", "GATEWAY_WORKERS": "1"}
    with output.open("wb") as stream:
        process = subprocess.Popen(  # noqa: ASYNC220  # Popen returns at once
            [sys.executable, "-m", "gateway"],
            cwd=folder,
            env={**os.environ, **own, "PYTHONPATH": str(ROOT)},
            stdout=stream,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, FILES)),
        )
    program = Program(process, output, config)
    try:
        (entry,) = await soon(lambda: program.log("listening"))
        program.port, program.admin = (
            int(entry[each].rpartition(":")[2]) for each in ("url", "admin")
        )
        yield program
    finally:
        process.kill()
        process.wait()


async def test_every_accepted_client_is_served(upstream: StartUpstream, tmp_path: Path) -> None:
    """With all clients at once, none gets a 502 for lack of a descriptor for its service."""

    async def late(scripted: Scripted, reader: Reader, writer: Writer) -> None:
        await scripted.take(reader)
        await asyncio.sleep(1)
        writer.write(OK)
        await reader.read()

    scripted = await upstream(late)
    async with few_files(scripted.port, tmp_path) as program:
        async with AsyncExitStack() as stack:
            clients = [await stack.enter_async_context(connect(program)) for _ in range(300)]
            for client in clients[:CLIENTS]:
                client.send(ask())
            answers = [await client.answer() for client in clients]
            await asyncio.sleep(1.1)
        assert Counter(each.status for each in answers) == {200: CLIENTS, 503: 300 - CLIENTS}
        await soon(lambda: bound(program, "connections") == 300 - CLIENTS)


async def test_many_admin_connections_do_not_block_clients(
    upstream: StartUpstream, tmp_path: Path
) -> None:
    scripted = await upstream(OK)
    async with few_files(scripted.port, tmp_path) as program, AsyncExitStack() as stack:
        for _ in range(FILES):
            _, writer = await asyncio.open_connection("127.0.0.1", program.admin)
            stack.callback(writer.close)
        assert (await get(program)).status == 200
        program.reload(rules(scripted.port, via=True))
        assert metric(program, 'gateway_admin_bounds_total{bound="connections"}') >= FILES - ADMIN
