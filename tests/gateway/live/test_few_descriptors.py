"""A gateway that may open few files lets in as many clients as it can serve, and no more."""

import asyncio
import os
import resource
import subprocess
import sys
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.gateway.kit import ROOT, Program, Scripted, StartUpstream, rules
from tests.gateway.live.bounds import bound
from tests.gateway.talk import OK, Reader, Writer, ask, connect, soon

pytestmark = pytest.mark.slow

FILES = 256
CLIENTS = (FILES - 64) // 2


def start(folder: Path, output: Path) -> subprocess.Popen[bytes]:
    """Start a gateway that may open few files."""
    own = {"GATEWAY_PORT": "0", "GATEWAY_ADMIN_PORT": "0", "GATEWAY_WORKERS": "1"}
    with output.open("wb") as stream:
        return subprocess.Popen(
            [sys.executable, "-m", "gateway"],
            cwd=folder,
            env={**os.environ, **own, "PYTHONPATH": str(ROOT)},
            stdout=stream,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, FILES)),
        )


async def test_each_client_that_is_let_in_is_served(
    upstream: StartUpstream, tmp_path: Path
) -> None:
    """All of them at once: none gets a 502 because a file for its service is lacking."""

    async def late(scripted: Scripted, reader: Reader, writer: Writer) -> None:
        await scripted.take(reader)
        await asyncio.sleep(1)
        writer.write(OK)
        await reader.read()

    scripted = await upstream(late)
    config, output = tmp_path / "gateway.yaml", tmp_path / "gateway.log"
    config.write_text(rules(scripted.port))
    process = start(tmp_path, output)
    program = Program(process, output)
    try:
        (entry,) = await soon(lambda: program.log("listening"))
        program.port, program.admin = (
            int(entry[each].rpartition(":")[2]) for each in ("url", "admin")
        )
        async with AsyncExitStack() as stack:
            clients = [await stack.enter_async_context(connect(program)) for _ in range(300)]
            for client in clients[:CLIENTS]:
                client.send(ask())
            answers = [await client.answer() for client in clients]
            await asyncio.sleep(1.1)
        assert Counter(each.status for each in answers) == {200: CLIENTS, 503: 300 - CLIENTS}
        await soon(lambda: bound(program, "connections") == 300 - CLIENTS)
    finally:
        process.kill()
        process.wait()
