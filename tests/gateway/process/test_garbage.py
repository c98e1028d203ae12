"""Objects of a finished request are freed at once, not by the garbage collector.

The collector runs rarely, and until then buffered data would stay in memory as well.
"""

import asyncio
import gc
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from gateway.access.token_buckets import TokenBuckets, shared_memory
from gateway.base.errors import FaultError
from gateway.base.overrides import NO_OVERRIDES
from gateway.base.path_templates import Router
from gateway.conversion.conversion_error import ConversionError
from gateway.http.client.connection import ClientConnection
from gateway.http.content_coding import ContentCodingError
from gateway.http.upstream.connection import StreamedResponse, UpstreamConnection
from gateway.process.listening import Listening
from gateway.process.reloader import Reloader
from gateway.process.running import Tasks
from gateway.process.serving import Serving
from gateway.routing.endpoint import ApiParts, EndpointModel
from gateway.routing.snapshot import Endpoint
from gateway.rules.load import load
from gateway.verify.live.document_jobs import JobQueue
from tests.gateway.kit import Program, Scripted, StartUpstream, rules
from tests.gateway.talk import OK, Client, Reader, Writer, ask, connect, reset, soon

pytestmark = pytest.mark.slow


async def misbehave(upstream: Scripted, reader: Reader, writer: Writer) -> None:
    head = await upstream.take(reader)
    match head.split(b" ")[1]:
        case b"/tail/broken":
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok")
        case b"/tail/garbage":
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\nok")
        case b"/tail/long":
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n" + bytes(4_000_000))
            await writer.drain()
            await reader.read()
        case b"/tail/reset":
            reset(writer)
        case b"/tail/stale":
            writer.write(OK)
            await upstream.take(reader)
        case b"/socket":
            writer.write(b"HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
        case _:
            writer.write(OK)


async def asks(client: Client, *paths: str) -> None:
    for path in paths:
        client.send(ask(f"GET /tail/{path}"))
        await client.final()


async def breaks(client: Client) -> None:
    client.send(ask("GET /tail/broken"))
    with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
        await client.final()


async def leaves(client: Client) -> None:
    client.send(ask("GET /tail/long"))
    await client.head()
    client.cut()


async def babbles(client: Client) -> None:
    client.send(b"x\r\n\r\n")
    await client.final()


async def posts(client: Client) -> None:
    client.send(ask("POST /plain", "Transfer-Encoding: chunked", body=b"2\r\nok\r\n0\r\n\r\n"))
    await client.final()


async def posts_to_be_converted(client: Client, body: bytes) -> None:
    fields = ("Content-Type: application/json", f"Content-Length: {len(body)}")
    client.send(ask("POST /v1/person", *fields, body=body))
    assert (await client.answer()).status in (400, 413)


TOO_MANY, NO_JSON = b"[" + b"{}," * 600_000 + b"{}]", b"[" + b"0," * 60_000 + b"]"
VISITS: dict[str, Callable[[Client], Awaitable[None]]] = {
    "an answer": lambda client: asks(client, "x"),
    "several": lambda client: asks(client, "x", "y", "z"),
    "no such path": lambda client: asks(client, "%00"),
    "a reset": lambda client: asks(client, "reset"),
    "a protocol error": lambda client: asks(client, "garbage"),
    "closed when taken up": lambda client: asks(client, "stale", "x"),
    "broken off": breaks,
    "a client that leaves": leaves,
    "no HTTP": babbles,
    "a body": posts,
    "too many elements": lambda client: posts_to_be_converted(client, TOO_MANY),
    "a large body that is no JSON": lambda client: posts_to_be_converted(client, NO_JSON),
}


@asynccontextmanager
async def serving(folder: Path, port: int) -> AsyncIterator[Program]:
    path = folder / "gateway.yaml"
    path.write_text(rules(port, via=True, changes="- rename: { field: name, to: title }"))
    listener = socket.create_server(("127.0.0.1", 0))
    stop, ready = asyncio.Event(), asyncio.Event()
    reloader, tasks = Reloader(path, {}, None), Tasks(lambda _: None)
    buckets = TokenBuckets(shared_memory())
    served = Serving(
        reloader,
        NO_OVERRIDES,
        lambda _: None,
        lambda _: True,
        tasks,
        1.0,
        lambda _: None,
        buckets,
        JobQueue(),
    )
    task = asyncio.create_task(served.serve([Listening("", listener)], stop, 1.0, ready.set))
    await ready.wait()
    try:
        yield cast(Program, SimpleNamespace(port=listener.getsockname()[1]))
    finally:
        stop.set()
        await task


def left() -> list[object]:
    return [
        each
        for each in gc.get_objects()
        if isinstance(
            each,
            ClientConnection | StreamedResponse | ConversionError | ContentCodingError | FaultError,
        )
        or (isinstance(each, UpstreamConnection) and not each.is_usable())
    ]


def test_a_replaced_configuration_is_freed_at_once() -> None:
    def routed() -> int:
        return sum(isinstance(each, Router | Endpoint) for each in gc.get_objects())

    gc.collect()
    gc.disable()
    try:
        before = routed()
        snapshot = load(rules(1).encode(), "gateway.yaml", {})
        assert routed() > before
        snapshot.router.find("/tail/x")
        del snapshot
        assert routed() == before
    finally:
        gc.enable()


def test_loading_keeps_no_models_of_the_file() -> None:
    def read() -> int:
        return sum(isinstance(each, ApiParts | EndpointModel) for each in gc.get_objects())

    gc.collect()
    gc.disable()
    try:
        before = read()
        snapshot = load(rules(1).encode(), "gateway.yaml", {})
        assert snapshot.apis
        assert read() == before
    finally:
        gc.enable()


@pytest.mark.parametrize("visit", VISITS.values(), ids=VISITS)
async def test_finished_requests_leave_nothing_to_the_garbage_collector(
    tmp_path: Path, upstream: StartUpstream, visit: Callable[[Client], Awaitable[None]]
) -> None:
    backend = await upstream(misbehave)
    async with serving(tmp_path, backend.port) as gateway:
        gc.collect()
        gc.disable()
        try:
            async with connect(gateway) as client:
                await visit(client)
            await soon(lambda: not left())
        finally:
            gc.enable()
