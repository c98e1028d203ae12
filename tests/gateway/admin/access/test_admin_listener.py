"""The listener of the admin port: TLS with the newest certificate, and a bound on handshakes."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from gateway.access.admin_rules import TlsFiles
from gateway.access.tls_files import server_context
from gateway.admin.access import admin_listener, connection_places
from gateway.admin.access.admin_listener import AdminListener
from tests.gateway.admin.access.certificates import write_certificate


class Greeting(asyncio.Protocol):
    """Greets, and closes."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.write(b"hello")
        transport.close()


@asynccontextmanager
async def listening(
    tls: Callable[[], ssl.SSLContext | None], count: Callable[[str], None] = lambda _: None
) -> AsyncIterator[int]:
    """Listen on a free port; yield it."""
    listener = socket.create_server(("127.0.0.1", 0))
    admin = AdminListener(listener, Greeting, tls, count)
    accepting = asyncio.create_task(admin.run())
    try:
        yield listener.getsockname()[1]
    finally:
        accepting.cancel()
        admin.close()


async def greeted(port: int, files: TlsFiles | None) -> bytes:
    """Connect, with TLS by a certificate or without; return what comes."""
    tls = None if files is None else ssl.create_default_context(cafile=files.certificate)
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls)
    try:
        async with asyncio.timeout(20):
            return await reader.read()
    except ConnectionResetError:
        return b""
    finally:
        writer.close()


async def test_without_tls() -> None:
    async with listening(lambda: None) as port:
        assert await greeted(port, None) == b"hello"


async def test_the_newest_certificate(tmp_path: Path) -> None:
    first, second = (write_certificate(tmp_path, name) for name in ("first", "second"))
    contexts = [server_context(first)]
    async with listening(lambda: contexts[-1]) as port:
        assert await greeted(port, first) == b"hello"
        contexts.append(server_context(second))
        assert await greeted(port, second) == b"hello"
        with pytest.raises(ssl.SSLCertVerificationError):
            await greeted(port, first)


async def test_handshakes_that_do_not_go_on_give_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_places, "most_admin", lambda: 2)
    files = write_certificate(tmp_path)
    context = server_context(files)
    counted = list[str]()
    async with listening(lambda: context, counted.append) as port:
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
        assert await greeted(port, files) == b"hello"
        assert counted == ["handshakes"]
        async with asyncio.timeout(5):  # half of what a handshake may take
            assert await silent[0][0].read() == b""
        for _, writer in silent:
            writer.close()


async def test_a_handshake_that_has_to_go_before_it_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its connection is closed at once, not when the garbage collector comes by."""
    context = server_context(write_certificate(tmp_path))
    loop, accepted = asyncio.get_running_loop(), list[socket.socket]()
    accept = loop.sock_accept

    async def noted(listener: socket.socket) -> tuple[socket.socket, object]:
        found = await accept(listener)
        accepted.append(found[0])
        return found

    monkeypatch.setattr(loop, "sock_accept", noted)
    monkeypatch.setattr(connection_places.ConnectionPlaces, "take", lambda _, begin, __: begin)
    async with listening(lambda: context) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        async with asyncio.timeout(60):
            assert await reader.read() == b""
        writer.close()
    assert [connection.fileno() for connection in accepted] == [-1]


async def test_a_handshake_that_takes_too_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admin_listener, "REQUEST_SECONDS", 0.5)
    files = write_certificate(tmp_path)
    context = server_context(files)
    async with listening(lambda: context) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        async with asyncio.timeout(60):
            assert await reader.read() == b""
        writer.close()
        assert await greeted(port, files) == b"hello"
