"""Large bodies need little gateway memory, measured on the process itself."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psutil
import pytest

from tests.gateway.kit import IDLE, Program, Scripted, StartGateway, StartUpstream, rules
from tests.gateway.talk import OK, Reader, Writer, ask, connect, settled, soon

pytestmark = pytest.mark.slow

TOTAL = 200_000_000
PIECE = bytes(1_000_000)
RISE = 20e6


class Peak:
    def __init__(self, process: psutil.Process) -> None:
        self.process = process
        self.before = self.most = self.now()

    def now(self) -> int:
        """Return the resident memory, in bytes."""
        return int(self.process.memory_info().rss)

    @property
    def rise(self) -> int:
        return self.most - self.before


@contextmanager
def watch(program: Program) -> Iterator[Peak]:
    peak = Peak(psutil.Process(program.process.pid))
    over = threading.Event()

    def look() -> None:
        while not over.wait(0.005):
            peak.most = max(peak.most, peak.now())

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield peak
    finally:
        over.set()
        watcher.join()
        print(f"{peak.before / 1e6:.1f} MB before, at most {peak.rise / 1e6:.1f} MB more")  # noqa: T201


async def feed(writer: Writer, *, chunked: bool) -> None:
    for _ in range(TOTAL // len(PIECE)):
        writer.write(b"%x\r\n%b\r\n" % (len(PIECE), PIECE) if chunked else PIECE)
        await writer.drain()
    if chunked:
        writer.write(b"0\r\n\r\n")


async def drain(reader: Reader, *, slowly: bool = False) -> int:
    received = 0
    while received < TOTAL:
        data = await reader.read(1_000_000)
        assert data, f"ended after {received} bytes"
        received += len(data)
        if slowly and received < TOTAL / 10:
            await asyncio.sleep(0.001)
    return received


@pytest.mark.parametrize("framing", ["length", "chunked"])
async def test_a_large_response_takes_bounded_memory(
    framing: str, executed_gateway: StartGateway, upstream: StartUpstream
) -> None:
    chunked = framing == "chunked"
    line = b"Transfer-Encoding: chunked" if chunked else b"Content-Length: %d" % TOTAL

    async def script(scripted: Scripted, reader: Reader, writer: Writer) -> None:
        await scripted.take(reader)
        writer.write(b"HTTP/1.1 200 OK\r\n" + line + b"\r\n\r\n")
        await feed(writer, chunked=chunked)
        await reader.read()

    program = executed_gateway(rules((await upstream(script)).port))
    async with connect(program) as client:
        with watch(program) as peak:
            client.send(ask())
            await client.head()
            await drain(client.reader, slowly=not chunked)
    assert peak.before < IDLE
    assert peak.rise < RISE


@pytest.mark.parametrize("framing", ["length", "chunked"])
async def test_a_large_request_takes_bounded_memory(
    framing: str, executed_gateway: StartGateway, upstream: StartUpstream
) -> None:
    chunked = framing == "chunked"
    line = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {TOTAL}"

    async def script(scripted: Scripted, reader: Reader, writer: Writer) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await drain(reader, slowly=not chunked)
        writer.write(OK)
        await reader.read()

    program = executed_gateway(rules((await upstream(script)).port))
    async with connect(program) as client:
        with watch(program) as peak:
            client.send(ask("PUT /plain", line))
            await feed(client.writer, chunked=chunked)
            assert (await client.answer()).status == 200
    assert peak.before < IDLE
    assert peak.rise < RISE


async def test_many_large_unread_responses_take_bounded_memory(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    """Each client that does not read takes limited memory, however many bytes there are.

    There are so many clients that most get no share of the common budget.
    """

    async def script(scripted: Scripted, reader: Reader, writer: Writer) -> None:
        await scripted.take(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % TOTAL)
        with suppress(ConnectionError):
            await feed(writer, chunked=False)

    scripted = await upstream(script)
    program = gateway(rules(scripted.port))
    clients = 120
    async with asyncio.TaskGroup() as group:
        stop = asyncio.Event()

        async def ignore() -> None:
            async with connect(program, window=4096) as client:
                client.send(ask())
                await client.head()
                await stop.wait()

        with watch(program) as peak:
            for _ in range(clients):
                group.create_task(ignore())
            await soon(lambda: len(scripted.requests) == clients)
            await settled(peak.now)
            stop.set()
    assert peak.rise < clients * 1e6


def converted(number: int) -> str:
    versions = "".join(f'      "{each}": {{ via: "{each + 1}" }}\n' for each in range(1, 30))
    links = "".join(
        f'      - between: ["{each}", "{each + 1}"]\n'
        f"        changes: [ rename: {{ field: f{each}, to: f{each + 1} }} ]\n"
        for each in range(1, 30)
    )
    return f"""\
# {number}{"." * 70_000}
services: {{ s: {{ targets: ["http://127.0.0.1:1"] }} }}
apis:
  person:
    endpoints: [ {{ path: "/v{{version}}/person", version: {{ in: path }} }} ]
    versions:
{versions}      "30": {{ service: s }}
    conversions:
{links}"""


async def test_reloads_of_large_rules_take_no_more_memory(gateway: StartGateway) -> None:
    program = gateway(converted(0))
    for number in range(1, 9):
        await asyncio.to_thread(program.reload, converted(number))
    with watch(program) as peak:
        for number in range(9, 25):
            await asyncio.to_thread(program.reload, converted(number))
    assert peak.rise < RISE / 2
