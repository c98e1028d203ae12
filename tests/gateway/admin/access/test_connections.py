"""Connections to the admin port over real sockets: TLS, and which are closed at a bound."""

import asyncio
import itertools
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

import pytest
from aiohttp import web

from gateway.admin.access import connections
from gateway.admin.access.connections import (
    AdminConnection,
    AdminListener,
    Places,
    with_expectations,
)
from gateway.base.descriptors import max_admin_connections
from gateway.http.certificates import server_context
from tests.gateway.admin.access.certificates import CertificateFiles, write_certificate

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]
GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
LAST = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
CHUNKED = b"Transfer-Encoding: chunked"
LARGE = 32 * 1024 * 1024  # more than the kernel buffers for a connection


@asynccontextmanager
async def serving(
    count: Callable[[str], None] = lambda _: None,
    tls: Callable[[], ssl.SSLContext | None] = lambda: None,
) -> AsyncIterator[int]:
    async def answer(request: web.Request) -> web.Response:
        if request.path == "/slow":
            await asyncio.sleep(0.1)
            return web.Response(body=await request.read())
        return web.Response(text="o" * LARGE if request.path == "/large" else "ok")

    app = web.Application()
    app.add_routes([web.route("*", "/{path:.*}", answer)])
    runner = web.AppRunner(app)
    await runner.setup()
    assert runner.server is not None
    runner.server.request_handler = with_expectations(runner.server.request_handler)
    sock = socket.create_server(("127.0.0.1", 0))
    listener = AdminListener(sock, runner.server, tls, count)
    accepting = asyncio.create_task(listener.run())
    try:
        yield sock.getsockname()[1]
    finally:
        accepting.cancel()
        listener.close()
        await runner.cleanup()


@asynccontextmanager
async def connected(port: int, tls: ssl.SSLContext | None = None) -> AsyncIterator[Connection]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls)
    try:
        yield reader, writer
    finally:
        writer.close()
        with suppress(ConnectionError, ssl.SSLError):
            await writer.wait_closed()


async def read_all(reader: asyncio.StreamReader) -> bytes:
    """Return all bytes until the connection is closed; nothing if it is reset."""
    try:
        async with asyncio.timeout(30):
            return await reader.read()
    except ConnectionResetError:
        return b""


async def ask(port: int, files: CertificateFiles | None = None) -> bytes:
    tls = None if files is None else ssl.create_default_context(cafile=files.certificate)
    async with connected(port, tls) as (reader, writer):
        writer.write(LAST)
        return await read_all(reader)


async def test_new_connections_use_the_latest_certificate(tmp_path: Path) -> None:
    first, second = (write_certificate(tmp_path, name) for name in ("first", "second"))
    contexts = [server_context(first.pair)]
    async with serving(tls=lambda: contexts[-1]) as port:
        assert (await ask(port, first)).endswith(b"ok")
        contexts.append(server_context(second.pair))
        assert (await ask(port, second)).endswith(b"ok")
        with pytest.raises(ssl.SSLCertVerificationError):
            await ask(port, first)


async def test_at_the_bound_a_new_tls_handshake_replaces_the_oldest_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "max_admin_connections", lambda: 2)
    files, counted = write_certificate(tmp_path), list[str]()
    context = server_context(files.pair)
    async with serving(counted.append, lambda: context) as port, AsyncExitStack() as stack:
        silent = [await stack.enter_async_context(connected(port)) for _ in range(2)]
        assert (await ask(port, files)).endswith(b"ok")
        assert counted == ["handshakes"]
        async with asyncio.timeout(5):  # half the time limit of a handshake
            assert await silent[0][0].read() == b""


async def test_a_handshake_cancelled_before_it_begins_closes_its_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = server_context(write_certificate(tmp_path).pair)
    monkeypatch.setattr(Places, "take", lambda _, handshake, __: handshake)
    async with serving(tls=lambda: context) as port, connected(port) as (reader, _):
        assert await read_all(reader) == b""


async def test_a_slow_tls_handshake_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "REQUEST_SECONDS", 0.5)
    files = write_certificate(tmp_path)
    context = server_context(files.pair)
    async with serving(tls=lambda: context) as port:
        async with connected(port) as (reader, _):
            assert await read_all(reader) == b""
        assert (await ask(port, files)).endswith(b"ok")


@pytest.mark.parametrize("sent", [b"", GET[:20]], ids=["nothing", "half a head"])
async def test_a_connection_without_a_request_is_closed(
    sent: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "REQUEST_SECONDS", 0.1)
    async with serving() as port, connected(port) as (reader, writer):
        writer.write(sent)
        assert await read_all(reader) == b""


async def test_an_idle_connection_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "IDLE_SECONDS", 0.1)
    async with serving() as port, connected(port) as (reader, writer):
        writer.write(GET)
        await reader.readuntil(b"ok")
        writer.write(GET[:20])
        assert await read_all(reader) == b""


async def test_connections_take_turns_in_parsing_small_pieces(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Parsing a full socket buffer of one-byte chunks at once would block the loop for 0.2 s."""
    parsed, parse = list[tuple[int, int]](), AdminConnection.data_received

    def record(connection: AdminConnection, data: bytes) -> None:
        parsed.append((id(connection), len(data)))
        parse(connection, data)

    monkeypatch.setattr(AdminConnection, "data_received", record)
    head = b"POST / HTTP/1.1\r\nHost: localhost\r\n%s\r\n\r\n" % CHUNKED
    async with serving() as port, AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(connected(port)) for _ in range(2)]
        for _, writer in clients:
            writer.write(head + b"1\r\na\r\n" * 2000 + b"0\r\n\r\n")
        for reader, _ in clients:
            async with asyncio.timeout(30):
                await reader.readuntil(b"ok")
    pieces = [(connection, length) for connection, length in parsed if length]
    assert sum(length for _, length in pieces) == 2 * (len(head) + 12005)
    assert max(length for _, length in pieces) <= 2048
    turns = [connection for connection, _ in pieces]
    assert all(one != other for one, other in itertools.pairwise(turns[2:-2]))


async def test_a_large_body_for_a_slow_handler_arrives_complete_and_in_order() -> None:
    body = bytes(number % 251 for number in range(200_000))
    chunks = [body[start : start + 700] for start in range(0, len(body), 700)]
    chunked = b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in [*chunks, b""])
    async with serving() as port, connected(port) as (reader, writer):
        for head, sent in ((b"Content-Length: 200000", body), (CHUNKED, chunked)):
            writer.write(b"POST /slow HTTP/1.1\r\nHost: localhost\r\n%s\r\n\r\n" % head + sent)
            async with asyncio.timeout(30):
                await reader.readuntil(b"\r\n\r\n")
                assert await reader.readexactly(len(body)) == body


async def test_at_the_bound_a_new_connection_closes_the_oldest_one() -> None:
    counted = list[str]()
    async with serving(counted.append) as port, AsyncExitStack() as stack:
        held: list[Connection] = []
        for _ in range(max_admin_connections()):
            held.append(await stack.enter_async_context(connected(port)))
            held[-1][1].write(GET)
        for reader, _ in held:
            async with asyncio.timeout(60):
                assert b" 200 " in await reader.readuntil(b"ok")
        assert not counted
        assert (await ask(port)).endswith(b"ok")
        assert counted == ["connections"]
        assert await read_all(held[0][0]) == b""
        assert (await ask(port)).endswith(b"ok")  # the previous one has ended
        assert counted == ["connections"]


def test_places_replace_the_oldest_connection_of_the_address_with_the_most() -> None:
    places = Places[int](5)
    for number, address in enumerate(["operator", "probe", "stranger", "stranger", "stranger"]):
        assert places.take(number, address) is None
    assert [places.take(number, "probe") for number in (10, 11, 12)] == [2, 1, 3]
    places.leave(10)
    places.leave(10)
    assert places.take(13, "stranger") is None
    assert [*places] == [0, 4, 11, 12, 13]


async def test_a_client_that_does_not_read_its_response_is_disconnected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "STALL_SECONDS", 0.1)
    counted = asyncio.Queue[str]()
    async with serving(counted.put_nowait) as port, connected(port) as (reader, writer):
        writer.write(LAST.replace(b"/ ", b"/large "))
        async with asyncio.timeout(60):
            assert await counted.get() == "stall_seconds"
        assert len(await read_all(reader)) < LARGE


async def test_a_client_that_starts_reading_late_gets_its_whole_response() -> None:
    async with serving() as port, connected(port) as (reader, writer):
        writer.write(LAST.replace(b"/ ", b"/large "))
        await asyncio.sleep(0.3)  # the socket buffers become full
        assert len(await read_all(reader)) > LARGE
