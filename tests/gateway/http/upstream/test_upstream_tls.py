"""Services that are reached by TLS, over real sockets."""

import ssl
from pathlib import Path

import pytest

from gateway.base.errors import FaultError
from gateway.http.certificates import client_context, server_context
from gateway.http.upstream.pool import Pool
from gateway.http.upstream.service import Service, Target
from gateway.http.upstream.upstream import UpstreamRequest
from tests.gateway.authority import Authority
from tests.gateway.kit import Scripted, StartUpstream
from tests.gateway.talk import OK, Reader, Writer

GET = UpstreamRequest("GET", "/", [])


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "ca")


def secure(
    port: int, context: ssl.SSLContext, server_name: str | None = None, host: str = "localhost"
) -> Service:
    return Service("s", (Target(host, port, secure=True),), tls=context, server_name=server_name)


async def body(pool: Pool, service: Service) -> bytes:
    response = await pool.send(service, GET)
    found = b""
    while piece := await response.read():
        found += piece
    response.abandon()
    return found


async def failure(service: Service) -> str:
    """Return why a service cannot be reached."""
    pool = Pool(lambda *_: None, [])
    with pytest.raises(FaultError) as failed:
        await body(pool, service)
    pool.close()
    return failed.value.cause.partition(": ")[2]


async def test_a_service_is_reached_by_tls_and_its_connection_is_kept(
    authority: Authority, upstream: StartUpstream
) -> None:
    scripted = await upstream(OK, tls=server_context(authority.issue("localhost")))
    pool = Pool(lambda *_: None, [])
    service = secure(scripted.port, client_context(ca=authority.pem))
    for _ in range(3):
        assert await body(pool, service) == b"ok"
    assert scripted.connections == 1
    pool.close()


async def test_large_bodies_arrive_whole(authority: Authority, upstream: StartUpstream) -> None:
    large = b"x" * 3_000_000
    response = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(large), large)
    scripted = await upstream(response, tls=server_context(authority.issue("localhost")))
    pool = Pool(lambda *_: None, [])
    assert await body(pool, secure(scripted.port, client_context(ca=authority.pem))) == large
    pool.close()


@pytest.mark.parametrize(
    ("names", "server_name", "host"),
    [
        (("127.0.0.1",), None, "127.0.0.1"),
        (("orders.internal",), "orders.internal", "127.0.0.1"),
        (("*.example.com",), "orders.example.com", "localhost"),
    ],
)
async def test_a_certificate_is_for_the_host_or_the_server_name(
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


async def test_the_cause_of_a_refused_certificate_is_named(
    authority: Authority, upstream: StartUpstream, tmp_path: Path
) -> None:
    trusting = client_context(ca=authority.pem)
    other = server_context(authority.issue("other.internal"))
    expired = server_context(authority.issue("localhost", expired=True))
    strange = server_context(Authority(tmp_path / "stranger").issue("localhost"))
    for context, reason in (
        (other, "its certificate is for another name"),
        (expired, "its certificate has expired"),
        (strange, "no trusted authority has signed its certificate"),
        (None, "it does not speak TLS"),
    ):
        scripted = await upstream(OK if context else _plain, tls=context)
        assert await failure(secure(scripted.port, trusting)) == reason


async def _plain(_: Scripted, reader: Reader, writer: Writer) -> None:
    await reader.read(1)
    writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")


async def test_an_unchecked_certificate_may_be_any(
    authority: Authority, upstream: StartUpstream
) -> None:
    scripted = await upstream(OK, tls=server_context(authority.issue("other", expired=True)))
    pool = Pool(lambda *_: None, [])
    assert await body(pool, secure(scripted.port, client_context(verify=False))) == b"ok"
    pool.close()


async def test_a_service_may_ask_for_the_certificate_of_the_gateway(
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


async def test_a_body_that_ends_without_a_close_notify_is_broken(
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
