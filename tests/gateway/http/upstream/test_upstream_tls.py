"""Services reached over TLS, with real sockets."""

import asyncio
import socket
import ssl
import time
from contextlib import suppress
from pathlib import Path

import pytest
import uvloop

from gateway.base.errors import FaultError
from gateway.http.certificates import client_context, server_context
from gateway.http.upstream.pool import Pool
from gateway.http.upstream.service import Service, Target, Timeouts
from gateway.http.upstream.upstream import UpstreamRequest
from tests.gateway.authority import Authority, self_signed
from tests.gateway.dns import name_server
from tests.gateway.kit import Scripted, StartUpstream
from tests.gateway.talk import OK, Reader, Writer

GET = UpstreamRequest("GET", "/", [])


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "ca")


def secure(
    port: int, context: ssl.SSLContext, server_name: str | None = None, host: str = "localhost"
) -> Service:
    targets, patient = (Target(host, port, secure=True),), Timeouts(connect=60)
    return Service("s", targets, timeouts=patient, tls=context, server_name=server_name)


async def body(pool: Pool, service: Service) -> bytes:
    response = await pool.send(service, GET)
    found = b""
    while piece := await response.read():
        found += piece
    response.abandon()
    return found


async def failure(service: Service) -> str:
    pool = Pool(lambda *_: None, [])
    with pytest.raises(FaultError) as failed:
        await body(pool, service)
    pool.close()
    return failed.value.cause.partition(": ")[2]


async def test_a_certificate_matches_an_absolute_target_name_without_its_last_dot(
    authority: Authority, upstream: StartUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in SNI (RFC 6066, section 3); the dot only suppresses search domains."""
    scripted = await upstream(OK, tls=server_context(authority.issue("orders.test")))
    pool = Pool(lambda *_: None, [])
    context = client_context(ca=authority.pem)
    async with name_server(monkeypatch) as server:
        server.addresses["orders.test"] = ("127.0.0.1",)
        assert await body(pool, secure(scripted.port, context, host="orders.test.")) == b"ok"
        pool.close()


async def test_a_service_is_reached_over_tls_and_its_connection_is_kept(
    authority: Authority, upstream: StartUpstream
) -> None:
    scripted = await upstream(OK, tls=server_context(authority.issue("localhost")))
    pool = Pool(lambda *_: None, [])
    service = secure(scripted.port, client_context(ca=authority.pem))
    for _ in range(3):
        assert await body(pool, service) == b"ok"
    assert scripted.connections == 1
    pool.close()


async def test_large_bodies_arrive_complete_over_tls(
    authority: Authority, upstream: StartUpstream
) -> None:
    large = b"x" * 3_000_000
    response = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(large), large)
    scripted = await upstream(response, tls=server_context(authority.issue("localhost")))
    pool = Pool(lambda *_: None, [])
    assert await body(pool, secure(scripted.port, client_context(ca=authority.pem))) == large
    pool.close()


@pytest.mark.parametrize("framing", [b"Content-Length: 120000\r\n", b""], ids=["length", "close"])
def test_a_slowly_read_response_is_complete_although_the_service_has_closed(
    authority: Authority, framing: bytes
) -> None:
    head = b"HTTP/1.1 200 OK\r\nConnection: close\r\n%b\r\n" % framing
    context = server_context(authority.issue("localhost"))

    def answer(listener: socket.socket, loop: asyncio.AbstractEventLoop) -> None:
        connection, _ = listener.accept()
        with connection, context.wrap_socket(connection, True) as secured:
            secured.recv(1000)
            loop.call_soon_threadsafe(time.sleep, 0.2)  # busy until everything has arrived
            time.sleep(0.05)
            secured.sendall(head + b"x" * 120_000)
            secured.settimeout(0)
            with suppress(OSError):  # no wait for the close_notify of the gateway
                secured.unwrap()

    async def received(listener: socket.socket) -> int:
        pool = Pool(lambda *_: None, [])
        port = listener.getsockname()[1]
        answering = asyncio.to_thread(answer, listener, asyncio.get_running_loop())
        answered = asyncio.create_task(answering)
        response = await pool.send(secure(port, client_context(ca=authority.pem)), GET)
        size = 0
        while piece := await response.read():
            size += len(piece)
            await asyncio.sleep(0.01)
        await answered
        pool.close()
        return size

    with socket.create_server(("127.0.0.1", 0)) as listener:
        assert uvloop.run(received(listener)) == 120_000  # the loop of the gateway


@pytest.mark.parametrize(
    ("names", "server_name", "host"),
    [
        (("127.0.0.1",), None, "127.0.0.1"),
        (("orders.internal",), "orders.internal", "127.0.0.1"),
        (("orders.internal",), "ORDERS.internal.", "127.0.0.1"),
        (("*.example.com",), "orders.example.com", "localhost"),
    ],
)
async def test_a_certificate_must_match_the_host_or_the_server_name(
    authority: Authority,
    upstream: StartUpstream,
    names: tuple[str, ...],
    server_name: str | None,
    host: str,
) -> None:
    scripted = await upstream(OK, tls=server_context(authority.issue(*names)))
    pool = Pool(lambda *_: None, [])
    context = client_context(ca=authority.pem)
    assert await body(pool, secure(scripted.port, context, server_name, host)) == b"ok"
    pool.close()


async def test_the_cause_of_a_failed_tls_connection_is_reported(
    authority: Authority, upstream: StartUpstream, tmp_path: Path
) -> None:
    issue, trusting = authority.issue, client_context(ca=authority.pem)
    stranger = Authority(tmp_path / "stranger")
    for service, reason in (
        (server_context(issue("other.internal")), "its certificate is for another name"),
        (server_context(issue("localhost", expired=True)), "its certificate has expired"),
        (server_context(issue("localhost", early=True)), "its certificate is not valid yet"),
        (
            server_context(self_signed("localhost")),
            "its certificate is self-signed, and no configured authority",
        ),
        (
            server_context(stranger.issue("localhost")),
            "no trusted authority has signed its certificate",
        ),
        (None, "it does not speak TLS"),
    ):
        scripted = await upstream(OK if service else _plain, tls=service)
        assert await failure(secure(scripted.port, trusting)) == reason


def refuse(listener: socket.socket, context: ssl.SSLContext) -> None:
    """Accept one connection with the blocking `ssl`, which sends alerts, unlike asyncio's TLS."""
    connection, _ = listener.accept()
    with connection.dup() as kept, suppress(OSError):
        with suppress(OSError), connection, context.wrap_socket(connection, True) as secured:
            secured.recv(1)
        # Closing with unread bytes would reset the connection, and the alert could be lost.
        kept.shutdown(socket.SHUT_WR)
        while kept.recv(4096):
            pass


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1")
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_the_cause_is_reported_if_a_service_refuses_the_handshake(
    authority: Authority, tmp_path: Path, version: ssl.TLSVersion
) -> None:
    """With TLS 1.3, the service refuses only after the gateway has sent its request."""
    server = server_context(
        authority.issue("localhost"), client_ca=authority.pem, client_required=True
    )
    server.maximum_version = version
    stranger, late = Authority(tmp_path / "stranger"), authority.issue("gateway", expired=True)
    old = server_context(authority.issue("localhost"))
    old.minimum_version, old.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
    old.set_ciphers("DEFAULT@SECLEVEL=0")
    missing = "it requires a client certificate"
    if version is ssl.TLSVersion.TLSv1_2:  # its alert gives no more precise reason
        missing = "it refused the handshake: no common cipher suite, or no client certificate"
    for service, pair, reason in (
        (server, None, missing),
        (server, stranger.issue("gateway"), "it refused the gateway's certificate"),
        (server, late, "it refused the gateway's certificate"),
        (old, None, "no TLS version is common to both sides"),
    ):
        context = client_context(ca=authority.pem, pair=pair)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            refusal = asyncio.create_task(asyncio.to_thread(refuse, listener, service))
            assert await failure(secure(listener.getsockname()[1], context)) == reason
            await refusal


async def test_tls_at_a_target_configured_as_plain_http_is_reported(
    authority: Authority, upstream: StartUpstream
) -> None:
    async def alert(_: Scripted, reader: Reader, writer: Writer) -> None:
        await reader.read(1)
        writer.write(b"\x15\x03\x01\0\2\2\x46")  # protocol_version

    scripted = await upstream(alert)
    service = Service("s", (Target("localhost", scripted.port),))
    assert await failure(service) == "it uses TLS; use https:// in its target"


async def _plain(_: Scripted, reader: Reader, writer: Writer) -> None:
    await reader.read(1)
    writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")


async def test_without_verification_any_certificate_is_accepted(
    authority: Authority, upstream: StartUpstream
) -> None:
    scripted = await upstream(OK, tls=server_context(authority.issue("other", expired=True)))
    pool = Pool(lambda *_: None, [])
    assert await body(pool, secure(scripted.port, client_context(verify=False))) == b"ok"
    pool.close()


async def test_a_service_may_require_a_client_certificate_of_the_gateway(
    authority: Authority, upstream: StartUpstream
) -> None:
    server = server_context(
        authority.issue("localhost"), client_ca=authority.pem, client_required=True
    )
    scripted = await upstream(OK, tls=server)
    named = client_context(ca=authority.pem, pair=authority.issue("gateway.internal"))
    pool = Pool(lambda *_: None, [])
    assert await body(pool, secure(scripted.port, named)) == b"ok"
    pool.close()


async def test_later_connections_resume_the_session(
    authority: Authority, upstream: StartUpstream
) -> None:
    """The session of the first connection is used again and again, since reading one leaks."""
    resumed: list[bool] = []

    async def once(scripted: Scripted, reader: Reader, writer: Writer) -> None:
        resumed.append(writer.get_extra_info("ssl_object").session_reused)
        await scripted.take(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")

    scripted = await upstream(once, tls=server_context(authority.issue("localhost")))
    pool = Pool(lambda *_: None, [])
    service = secure(scripted.port, client_context(ca=authority.pem))
    for number in range(5):
        assert await body(pool, service) == b"ok"
        if not number:
            await asyncio.sleep(1.1)  # the session ticket has arrived by then
    # On a busy machine, the first attempt to connect may have timed out and been repeated.
    assert (resumed[0], resumed[-4:]) == (False, [True] * 4)
    pool.close()


async def test_a_body_that_ends_without_a_close_notify_counts_as_cut_off(
    authority: Authority, upstream: StartUpstream
) -> None:
    async def cut(scripted: Scripted, reader: Reader, writer: Writer) -> None:
        await scripted.take(reader)
        writer.write(b"HTTP/1.1 200 OK\r\n\r\nhalf of it")
        await writer.drain()
        writer.transport.abort()

    scripted = await upstream(cut, tls=server_context(authority.issue("localhost")))
    reason = await failure(secure(scripted.port, client_context(ca=authority.pem)))
    assert reason == "it broke off its response"
