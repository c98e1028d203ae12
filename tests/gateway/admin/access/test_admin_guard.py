"""The guard of the admin port, over real sockets: foreign pages, idle connections."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any, cast

import pytest
from aiohttp import web

from gateway.admin.access import admin_guard
from gateway.admin.access.admin_guard import AdminGuard, AdminProblemError
from gateway.base.descriptors import most_admin

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]
PLAIN = "Host: 127.0.0.1"
LARGE = 32 * 1024 * 1024  # more than the system keeps for a connection


@asynccontextmanager
async def guarded(*hosts: str, count: Callable[[str], None] = lambda _: None) -> AsyncIterator[int]:
    """Serve on a free port behind a guard; yield the port."""
    guard = AdminGuard(hosts, count)

    @web.middleware
    async def checked(request: web.Request, handler: admin_guard.Handle) -> web.StreamResponse:
        try:
            guard.check(request)
            await guard.read(request, large=request.path != "/login")
        except AdminProblemError as error:
            return web.Response(status=error.status, text=error.code)
        return await handler(request)

    async def answer(request: web.Request) -> web.Response:
        return web.Response(text="o" * LARGE if request.path == "/large" else "ok")

    app = web.Application(middlewares=[checked])
    app.add_routes([web.route("*", "/{path:.*}", answer)])
    runner = web.AppRunner(app, lingering_time=0.1)
    await runner.setup()
    server = runner.server
    assert server is not None
    loop = asyncio.get_running_loop()
    listening = await loop.create_server(lambda: guard(server), "127.0.0.1", 0)
    try:
        yield listening.sockets[0].getsockname()[1]
    finally:
        listening.close()
        await runner.cleanup()


@asynccontextmanager
async def connected(port: int) -> AsyncIterator[Connection]:
    """Connect, and close again."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield reader, writer
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


async def all_of(reader: asyncio.StreamReader) -> bytes:
    """Return what comes until the connection ends, be it by a reset."""
    try:
        async with asyncio.timeout(10):
            return await reader.read()
    except ConnectionResetError:
        return b""


async def status(port: int, *lines: str, line: str = "GET /overrides", body: bytes = b"") -> int:
    """Ask once; return the status, or 0 where there is no answer."""
    async with connected(port) as (reader, writer):
        head = "\r\n".join((f"{line} HTTP/1.1", *lines, "Connection: close", "", ""))
        writer.write(head.encode() + body)
        answer = await all_of(reader)
        return int(answer.split(b" ", 2)[1]) if answer else 0


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        *[(host, 200) for host in ("127.0.0.1:8090", "localhost", "[::1]:8090", "gateway:8090")],
        *[(host, 200) for host in ("a.localhost", "admin.example.com", "ADMIN.example.com:1")],
        *[(host, 421) for host in ("evil.example", "evil.example:8090", "127.0.0.1.evil.example")],
        ("example.com", 421),
        ("[::1", 400),
    ],
)
async def test_only_names_that_no_stranger_can_have(host: str, expected: int) -> None:
    async with guarded("admin.example.com") as port:
        assert await status(port, f"Host: {host}") == expected
        assert await status(port, f"Host: {host}", line="GET /readyz") == 200


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ("Origin: http://evil.example", 403),
        ("Origin: null", 403),
        ("Origin: http://127.0.0.1", 200),
        ("Origin: http://127.0.0.1:9", 403),
        ("Origin: http://[", 403),
        ("Sec-Fetch-Site: cross-site", 403),
        ("Sec-Fetch-Site: same-site", 403),
        ("Sec-Fetch-Site: same-origin", 200),
        ("Sec-Fetch-Site: none", 200),
    ],
)
async def test_no_page_of_another_site(field: str, expected: int) -> None:
    async with guarded() as port:
        for line in ("GET /overrides", "PUT /brownouts/person/1"):
            fields = (PLAIN, field, "Content-Length: 0")
            assert await status(port, *fields, line=line) == expected


@pytest.mark.parametrize(
    "sent",
    [b"", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n"],
    ids=["nothing", "half a head"],
)
async def test_a_connection_that_asks_nothing_is_closed(
    sent: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admin_guard, "REQUEST_SECONDS", 0.1)
    async with guarded() as port, connected(port) as (reader, writer):
        writer.write(sent)
        assert await all_of(reader) == b""


async def test_half_a_body_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admin_guard, "REQUEST_SECONDS", 0.1)
    async with guarded() as port:
        fields = (PLAIN, "Content-Length: 9")
        assert await status(port, *fields, line="PUT /x", body=b"half") == 408


@pytest.mark.parametrize(
    ("fields", "body", "expected"),
    [
        (["Content-Type: application/x-www-form-urlencoded; charset=none"], b"a=b", 400),
        (["Content-Type: application/x-www-form-urlencoded"], b"a=\xff", 400),
        (["Content-Type: multipart/form-data; boundary=x"], b"a", 400),
        (["Content-Type: multipart/form-data"], b"a", 400),
        (["Content-Encoding: gzip"], b"none", 400),
        (["Content-Type: application/x-www-form-urlencoded"], b"a=" + b"b" * 2**20, 413),
        (["Content-Type: application/x-www-form-urlencoded"], b"a=b", 200),
    ],
)
async def test_a_body_that_cannot_be_read(fields: list[str], body: bytes, expected: int) -> None:
    async with guarded() as port:
        sent = (PLAIN, f"Content-Length: {len(body)}", *fields)
        assert await status(port, *sent, line="POST /draft", body=body) == expected


@pytest.mark.parametrize(
    ("field", "body", "expected"),
    [
        ("Content-Length: 16384", b"a" * 16384, 200),
        ("Content-Length: 16385", b"", 413),
        ("Transfer-Encoding: chunked", b"", 413),
    ],
)
async def test_what_anybody_may_send_is_small(field: str, body: bytes, expected: int) -> None:
    async with guarded() as port:
        assert await status(port, PLAIN, field, line="POST /login", body=body) == expected


async def test_few_large_bodies_are_held() -> None:
    """An unfinished one gives way to a new one; small ones need no place."""
    counted = list[str]()
    head = f"POST /draft HTTP/1.1\r\n{PLAIN}\r\nContent-Length:"
    async with guarded(count=counted.append) as port, AsyncExitStack() as stack:
        held = [await stack.enter_async_context(connected(port)) for _ in range(6)]
        for _, writer in held:
            writer.write(f"{head} 500000\r\n\r\n".encode() + b"a" * 100_000)
            await asyncio.sleep(0.05)  # the order of arrival
        for _, writer in [await stack.enter_async_context(connected(port)) for _ in range(20)]:
            writer.write(f"{head} 500\r\n\r\nhalf".encode())
        for reader, _ in held[:2]:
            assert await all_of(reader) == b""
        assert counted == ["bodies"] * 2
        for reader, writer in held[2:]:
            writer.write(b"a" * 400_000)
            async with asyncio.timeout(60):
                assert b" 200 " in await reader.readuntil(b"ok")
        assert await status(port, PLAIN, "Content-Length: 20000", line="POST /", body=b"b" * 20000)
        assert counted == ["bodies"] * 2


class Parser(asyncio.Protocol):
    """Notes what it gets, and when it does."""

    def __init__(self, seen: list[tuple[str, int]], name: str) -> None:
        self.seen, self.name = seen, name

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self.seen.append((self.name, len(data)))

    def eof_received(self) -> None:
        self.seen.append((self.name, 0))


class Transport(asyncio.Transport):
    """Reads, or does not."""

    def __init__(self, extra: dict[str, Any] | None = None) -> None:
        super().__init__(extra)
        self.reads, self.closed = True, False

    def pause_reading(self) -> None:
        self.reads = False

    def resume_reading(self) -> None:
        self.reads = True

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True


async def test_connections_are_parsed_in_turns() -> None:
    """So many chunks of one byte as come at once would take the event loop for 0.2 s."""
    guard, seen = AdminGuard(), list[tuple[str, int]]()
    transports = Transport(), Transport()
    parsers = [Parser(seen, name) for name in "ab"]
    first, second = (guard(iter([each]).__next__) for each in parsers)
    for connection, transport in zip((first, second), transports, strict=True):
        connection.connection_made(transport)
    first.data_received(b"x" * 5000)
    second.data_received(b"y" * 3000)
    assert seen == []
    assert [each.reads for each in transports] == [False, False]
    turns = []
    while not all(each.reads for each in transports):
        before = len(seen)
        await asyncio.sleep(0)
        turns.append(len(seen) - before)
    assert max(turns) == 1
    assert seen == [("a", 2048), ("b", 2048), ("a", 2048), ("b", 952), ("a", 904)]


async def test_a_parser_that_takes_no_more_is_given_no_more() -> None:
    guard, seen = AdminGuard(), list[tuple[str, int]]()
    outer, parser = Transport(), Parser(seen, "a")
    connection = guard(lambda: parser)
    connection.connection_made(outer)
    connection.data_received(b"x" * 3000)
    connection.eof_received()
    await asyncio.sleep(0)
    parser.transport.pause_reading()
    for _ in range(5):
        await asyncio.sleep(0)
    assert seen == [("a", 2048)]
    assert not outer.reads
    parser.transport.resume_reading()
    for _ in range(5):
        await asyncio.sleep(0)
    assert seen == [("a", 2048), ("a", 952), ("a", 0)]
    assert outer.closed


@pytest.mark.parametrize("tls", [False, True])
async def test_what_a_client_that_sends_no_more_has_sent_is_answered(tls: bool) -> None:
    """With TLS, asyncio closes the connection in any case, and warns if that is unasked."""
    outer = Transport({"sslcontext": object()} if tls else {})
    connection = AdminGuard()(lambda: Parser([], "a"))
    connection.connection_made(outer)
    assert connection.eof_received() is not tls


async def test_kept_connections_give_way_to_a_probe() -> None:
    """Whoever asks on as many connections as there may be loses the oldest of them."""
    counted = list[str]()
    async with guarded(count=counted.append) as port, AsyncExitStack() as stack:
        held = [await stack.enter_async_context(connected(port)) for _ in range(most_admin())]
        for reader, writer in held:
            writer.write(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            async with asyncio.timeout(60):
                assert b" 200 " in await reader.readuntil(b"ok")
        assert not counted
        assert await status(port, PLAIN) == 200
        assert counted == ["connections"]
        assert await all_of(held[0][0]) == b""
        assert await status(port, PLAIN) == 200  # in the place of the former one
        assert counted == ["connections"]


async def test_an_answer_that_nobody_takes_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admin_guard, "STALL_SECONDS", 0.1)
    counted = asyncio.Queue[str]()
    async with guarded(count=counted.put_nowait) as port, connected(port) as (reader, writer):
        writer.write(b"GET /large HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        async with asyncio.timeout(60):
            assert await counted.get() == "stall_seconds"
        assert len(await all_of(reader)) < LARGE


async def test_an_answer_that_is_taken_late_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admin_guard, "STALL_SECONDS", 60.0)
    async with guarded() as port, connected(port) as (reader, writer):
        writer.write(b"GET /large HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        await asyncio.sleep(0.3)  # as long as it takes to fill what lies between
        assert len(await all_of(reader)) > LARGE
