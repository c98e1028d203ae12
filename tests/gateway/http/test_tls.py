"""TLS over memory buffers, tested against Python's own TLS and itself, over real sockets."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import uvloop

from gateway.http.certificates import client_context, server_context
from gateway.http.tls import TlsConnection
from gateway.http.tls_errors import TlsError
from tests.gateway.authority import Authority


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


class Recorder(asyncio.Protocol):
    """Records the events of a connection; with `upper`, sends received bytes back in upper case."""

    def __init__(self, *, upper: bool = False) -> None:
        self.upper = upper
        self.keeps = False  # whether it continues to write after the peer has ended its side
        self.data = b""
        self.events: list[str] = []
        self.made = asyncio.Event()
        self.ended = asyncio.Event()
        self.lost: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()
        self.transport: TlsConnection

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, TlsConnection)
        self.transport = transport
        self.made.set()

    def data_received(self, data: bytes) -> None:
        self.data += data
        if self.upper:
            self.transport.write(data.upper())

    def eof_received(self) -> bool:
        self.ended.set()
        return self.keeps

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.set_result(exc)


class Peers(NamedTuple):
    port: int
    servers: list[Recorder]
    failures: asyncio.Queue[TlsError]

    async def server(self) -> Recorder:
        await until(lambda: bool(self.servers))
        await self.servers[-1].made.wait()
        return self.servers[-1]

    async def failure(self) -> str:
        return (await self.failures.get()).reason


@asynccontextmanager
async def listening(context: ssl.SSLContext, *, seconds: float = 10.0) -> AsyncIterator[Peers]:
    loop = asyncio.get_running_loop()
    peers = Peers(0, [], asyncio.Queue())

    def shaken(_: TlsConnection, error: TlsError | None) -> None:
        if error is not None:
            peers.failures.put_nowait(error)

    def protocol() -> TlsConnection:
        peers.servers.append(Recorder(upper=True))
        return TlsConnection(loop, peers.servers[-1], context, seconds, shaken)

    server = await loop.create_server(protocol, "127.0.0.1", 0)  # type: ignore[arg-type]
    async with server:
        yield peers._replace(port=server.sockets[0].getsockname()[1])


async def connect(
    port: int,
    context: ssl.SSLContext,
    name: str,
    session: ssl.SSLSession | None = None,
    protocol: Recorder | None = None,
) -> Recorder:
    """Connect with the gateway's own client; raises TlsError."""
    loop = asyncio.get_running_loop()
    made = loop.create_future()

    def shaken(_: TlsConnection, error: TlsError | None) -> None:
        made.set_result(None) if error is None else made.set_exception(error)

    recorder = protocol or Recorder()
    connection: Any = TlsConnection(loop, recorder, context, 10.0, shaken, name, session)
    await loop.create_connection(lambda: connection, "127.0.0.1", port)
    await made
    return recorder


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not true():  # noqa: ASYNC110  # there is no event to wait for
            await asyncio.sleep(0.001)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_data_is_exchanged_with_a_client_of_the_standard_library(
    authority: Authority, version: ssl.TLSVersion
) -> None:
    client = client_context(ca=authority.pem)
    client.minimum_version = client.maximum_version = version
    async with listening(server_context(authority.issue("api.example"))) as peers:
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", peers.port, ssl=client, server_hostname="api.example"
        )
        writer.write(b"a" * 1_000_000)
        assert await reader.readexactly(1_000_000) == b"A" * 1_000_000
        writer.close()
        assert await (await peers.server()).lost is None


@pytest.mark.parametrize("size", [1, 16 * 1024, 16 * 1024 + 1, 3_000_000])
async def test_data_is_exchanged_with_the_gateways_own_client(
    authority: Authority, size: int
) -> None:
    async with listening(server_context(authority.issue("api.example"))) as peers:
        client = await connect(peers.port, client_context(ca=authority.pem), "api.example")
        client.transport.write(b"a" * size)
        await until(lambda: len(client.data) == size)
        assert client.data == b"A" * size
        client.transport.close()
        assert await client.lost is None
        assert await (await peers.server()).lost is None


async def test_no_data_is_delivered_while_reading_is_paused(authority: Authority) -> None:
    async with listening(server_context(authority.issue("api.example"))) as peers:
        client = await connect(peers.port, client_context(ca=authority.pem), "api.example")
        client.transport.pause_reading()
        client.transport.write(b"a" * 100_000)
        await until(lambda: len(peers.servers[0].data) == 100_000)
        await asyncio.sleep(0.05)
        assert client.data == b""
        client.transport.resume_reading()
        await until(lambda: len(client.data) == 100_000)
        client.transport.close()


class SlowReader(Recorder):
    """Pauses reading after each piece of data, and resumes it in the next iteration.

    Its tests run on uvloop, as the gateway does: unlike asyncio's loop, uvloop reads from sockets
    before it calls back.
    """

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self.transport.pause_reading()
        asyncio.get_running_loop().call_soon(self.transport.resume_reading)


def test_tcp_is_paused_until_all_received_records_are_read(authority: Authority) -> None:
    async def largest_buffer() -> int:
        async with listening(server_context(authority.issue("api.example"))) as peers:
            context = client_context(ca=authority.pem)
            client = await connect(peers.port, context, "api.example", protocol=SlowReader())
            server = await peers.server()
            server.transport.write(b"a" * 8_000_000)
            largest = 0
            while len(client.data) < 8_000_000:
                largest = max(largest, client.transport._incoming.pending)
                await asyncio.sleep(0)
            client.transport.abort()
            return largest

    assert uvloop.run(largest_buffer()) <= 256 * 1024  # uvloop reads at most so much at a time


@pytest.mark.parametrize("notify", [True, False], ids=["close_notify", "end of TCP"])
def test_data_before_the_end_is_delivered_to_a_slow_reader(
    authority: Authority, notify: bool
) -> None:
    async def received() -> None:
        async with listening(server_context(authority.issue("api.example"))) as peers:
            context = client_context(ca=authority.pem)
            client = await connect(peers.port, context, "api.example", protocol=SlowReader())
            server = await peers.server()
            client.transport.pause_reading()
            server.transport.write(b"a" * 200_000)
            tcp = server.transport._tcp
            assert tcp is not None
            server.transport.close() if notify else tcp.write_eof()
            await asyncio.sleep(0.05)  # everything arrives
            client.transport.resume_reading()
            error = await client.lost
            assert len(client.data) == 200_000
            assert client.ended.is_set()
            assert (error is None) == notify
            server.transport.abort()

    uvloop.run(received())


async def test_no_data_is_delivered_after_the_connection_is_aborted(authority: Authority) -> None:
    async with listening(server_context(authority.issue("api.example"))) as peers:
        client = await connect(peers.port, client_context(ca=authority.pem), "api.example")
        server = await peers.server()
        pieces: list[bytes] = []

        def received(data: bytes) -> None:
            pieces.append(data)
            server.transport.abort()

        server.data_received = received  # type: ignore[method-assign]
        client.transport.write(b"a" * 100_000)  # seven records
        await server.lost
        assert [len(piece) for piece in pieces] == [16 * 1024]


async def test_data_after_a_close_notify_is_dropped(authority: Authority) -> None:
    async with listening(server_context(authority.issue("api.example"))) as peers:
        client = await connect(peers.port, client_context(ca=authority.pem), "api.example")
        server = await peers.server()
        server.keeps = True
        client.transport._notify()
        await server.ended.wait()
        tcp = client.transport._tcp
        assert tcp is not None
        tcp.write(b"x" * 1_000_000)
        tcp.write_eof()
        await asyncio.sleep(0.05)
        assert server.transport._incoming.pending == 0
        client.transport.abort()
        server.transport.abort()


async def test_a_side_that_has_ended_still_receives_data(authority: Authority) -> None:
    async with listening(server_context(authority.issue("api.example"))) as peers:
        client = await connect(peers.port, client_context(ca=authority.pem), "api.example")
        server = await peers.server()
        server.keeps = True
        client.transport.write_eof()
        await server.ended.wait()
        server.transport.write(b"late")
        server.transport.close()
        await client.lost
        assert client.data == b"late"


async def test_an_end_without_a_close_notify_is_an_error(authority: Authority) -> None:
    async with listening(server_context(authority.issue("api.example"))) as peers:
        client = await connect(peers.port, client_context(ca=authority.pem), "api.example")
        server = await peers.server()
        client.keeps = True
        tcp = server.transport._tcp
        assert tcp is not None
        tcp.write_eof()
        await client.ended.wait()
        client.transport.abort()
        assert "close_notify" in str(await client.lost)
        server.transport.abort()


async def test_a_session_is_resumed(authority: Authority) -> None:
    context = client_context(ca=authority.pem)
    async with listening(server_context(authority.issue("api.example"))) as peers:
        first = await connect(peers.port, context, "api.example")
        first.transport.write(b"a")
        await until(lambda: first.data == b"A")
        again = await connect(peers.port, context, "api.example", first.transport.tls.session)
        assert not first.transport.tls.session_reused
        assert again.transport.tls.session_reused
        first.transport.close()
        again.transport.close()


async def refused(port: int, context: ssl.SSLContext, name: str = "api.example") -> str:
    with pytest.raises(TlsError) as error:
        await connect(port, context, name)
    return error.value.reason


async def test_a_client_that_refuses_a_server_reports_the_cause(authority: Authority) -> None:
    trusting, strangers = client_context(ca=authority.pem), client_context()
    async with listening(server_context(authority.issue("api.example"))) as peers:
        for context, name, reason in (
            (trusting, "other.example", "wrong_name"),
            (strangers, "api.example", "unknown_authority"),
        ):
            assert await refused(peers.port, context, name) == reason
            assert await peers.failure() == "certificate_refused"
    async with listening(server_context(authority.issue("api.example", expired=True))) as peers:
        assert await refused(peers.port, trusting) == "expired"


async def test_a_server_that_refuses_a_client_reports_the_cause(
    authority: Authority, tmp_path: Path
) -> None:
    pair = authority.issue("api.example")
    context = server_context(pair, client_ca=authority.pem, client_required=True)
    stranger = Authority(tmp_path)
    for own, reason in (
        (None, "no_certificate"),
        (stranger.issue("client.example"), "unknown_authority"),
        (authority.issue("client.example", expired=True), "expired"),
    ):
        async with listening(context) as peers:
            client = client_context(ca=authority.pem, pair=own)
            try:  # with TLS 1.3, the client learns of the refusal only after its own handshake
                connection = await connect(peers.port, client, "api.example")
            except TlsError:
                pass
            else:
                lost = await connection.lost
                assert isinstance(lost, TlsError)
                assert lost.reason == (
                    "certificate_required" if own is None else "certificate_refused"
                )
            assert await peers.failure() == reason


async def test_plain_http_to_a_tls_server_is_refused(authority: Authority) -> None:
    async with listening(server_context(authority.issue("api.example"))) as peers:
        reader, writer = await asyncio.open_connection("127.0.0.1", peers.port)
        writer.write(b"GET / HTTP/1.1\r\nHost: api.example\r\n\r\n")
        await reader.read()
        writer.close()
        assert await peers.failure() == "not_tls"


async def test_a_slow_handshake_is_aborted(authority: Authority) -> None:
    async with listening(server_context(authority.issue("api.example")), seconds=0.05) as peers:
        reader, writer = await asyncio.open_connection("127.0.0.1", peers.port)
        writer.write(b"\x16\x03\x01")
        assert await reader.read() == b""
        writer.close()
        assert await peers.failure() == "slow"


async def test_a_server_without_tls_is_reported_as_not_tls(authority: Authority) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        assert await refused(port, client_context(ca=authority.pem)) == "not_tls"
