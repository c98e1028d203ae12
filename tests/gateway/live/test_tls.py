"""TLS from clients and to services, the PROXY protocol and HTTP/2, over real sockets."""

import asyncio
import socket
import ssl
import struct
import time
from contextlib import suppress
from pathlib import Path

import pytest

from gateway.http.certificates import server_context
from tests.gateway.authority import Authority
from tests.gateway.kit import DEADLINE, Program, StartGateway, StartUpstream, rules
from tests.gateway.live.bounds import metric
from tests.gateway.talk import OK, soon

GET = b"GET /plain HTTP/1.1\r\nHost: api.test\r\nConnection: close\r\n\r\n"


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    made = Authority(tmp_path / "tls")
    made.write("api", "api.example.com")
    return made


def listen(authority: Authority, *names: str, clients: str = "") -> str:
    pairs = ", ".join(
        f"{{ certificate: {authority.folder}/{name}.pem, key: {authority.folder}/{name}.key }}"
        for name in names or ("api",)
    )
    return (
        f'listen: [ {{ address: "127.0.0.1:0", tls: {{ certificates: [{pairs}]{clients} }} }} ]\n'
    )


def client(authority: Authority, certificate: str = "") -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=authority.file)
    if certificate:
        path = authority.folder / certificate
        context.load_cert_chain(f"{path}.pem", f"{path}.key")
    return context


async def ask(
    program: Program,
    context: ssl.SSLContext | None,
    request: bytes = GET,
    name: str | None = "api.example.com",
    pieces: int = 1,
) -> bytes:
    """Return all bytes on a connection until it is closed.

    Args:
        name: the host name that the client requests (SNI).
        pieces: the number of pieces in which the request is sent.
    """
    return await asyncio.to_thread(_ask, program, context, request, name, pieces)


def _ask(
    program: Program, context: ssl.SSLContext | None, request: bytes, name: str | None, pieces: int
) -> bytes:
    # A blocking socket, since asyncio's may leave a transport open if a handshake fails.
    plain = socket.create_connection(("127.0.0.1", program.port), DEADLINE)
    with plain if context is None else context.wrap_socket(plain, server_hostname=name) as opened:
        for number in range(pieces):
            if number:
                time.sleep(0.05)
            begin, end = (len(request) * each // pieces for each in (number, number + 1))
            opened.sendall(request[begin:end])
        return b"".join(iter(lambda: opened.recv(65536), b""))


async def counted(program: Program, series: str) -> None:
    async with asyncio.timeout(DEADLINE):
        while not await asyncio.to_thread(metric, program, series):  # noqa: ASYNC110  # polled
            await asyncio.sleep(0.05)


async def failures(program: Program, reason: str) -> None:
    await counted(program, f'gateway_client_handshake_failures_total{{reason="{reason}"}}')


async def test_tls_works_with_clients_and_services(
    gateway: StartGateway, upstream: StartUpstream, authority: Authority
) -> None:
    """X-Forwarded-Proto shows the service that the client used https."""
    scripted = await upstream(OK, tls=server_context(authority.issue("localhost")))
    service = rules(scripted.port, extra=f", tls: {{ ca: {authority.file} }}")
    service = service.replace("http://127.0.0.1", "https://localhost")
    program = gateway(listen(authority) + service)
    assert program.log("listening")[0]["url"] == f"https://127.0.0.1:{program.port}"
    for _ in range(3):
        assert (await ask(program, client(authority))).endswith(b"\r\n\r\nok")
    assert scripted.connections == 1
    assert b'host="api.test";proto=https\r\n' in scripted.requests[0]
    assert b"X-Forwarded-Proto: https\r\n" in scripted.requests[0]


async def test_metrics_have_the_scheme_that_the_client_used(
    gateway: StartGateway, upstream: StartUpstream, authority: Authority
) -> None:
    port = (await upstream(OK)).port
    forwarded = GET.replace(b"\r\n\r\n", b"\r\nX-Forwarded-Proto: https\r\n\r\n")
    trusting = "trusted_proxies: [127.0.0.1]\n"
    for section, context, request, scheme in (
        (listen(authority), client(authority), GET, "https"),
        (trusting, None, forwarded, "https"),
        (trusting, None, GET, "http"),
        ("", None, forwarded, "http"),
    ):
        program = gateway(section + rules(port))
        assert (await ask(program, context, request)).endswith(b"ok")
        await counted(
            program,
            'http_server_request_duration_seconds_count{gateway_api_name="plain",'
            'http_request_method="GET",http_response_status_code="200",http_route="/plain",'
            f'url_scheme="{scheme}"}}',
        )


async def test_a_certificate_is_selected_by_the_requested_server_name(
    gateway: StartGateway, upstream: StartUpstream, authority: Authority
) -> None:
    authority.write("shops", "*.shops.example.com")
    program = gateway(listen(authority, "api", "shops") + rules((await upstream(OK)).port))
    for name in ("api.example.com", "one.shops.example.com"):
        assert (await ask(program, client(authority), name=name)).endswith(b"ok")
    with pytest.raises(ssl.SSLCertVerificationError):
        await ask(program, client(authority), name="a.b.shops.example.com")
    unchecked = client(authority)
    unchecked.check_hostname = False
    without_name = await ask(program, unchecked, name=None)
    assert without_name.endswith(b"ok")


async def test_a_client_certificate_is_required_or_optional(
    gateway: StartGateway, upstream: StartUpstream, authority: Authority, tmp_path: Path
) -> None:
    port = (await upstream(OK)).port
    authority.write("client", "client.example.com")
    authority.write("late", "client.example.com", expired=True)
    stranger = Authority(tmp_path / "stranger")
    stranger.write("client", "client.example.com")
    strange = client(authority)
    path = stranger.folder / "client"
    strange.load_cert_chain(f"{path}.pem", f"{path}.key")
    for required in (True, False):
        clients = (
            f", client_certificates: {{ ca: {authority.file}, required: {str(required).lower()} }}"
        )
        program = gateway(listen(authority, clients=clients) + rules(port))
        assert (await ask(program, client(authority, "client"))).endswith(b"ok")
        for context, reason in (
            (client(authority), "no_certificate"),
            (client(authority, "late"), "expired"),
            (strange, "unknown_authority"),
        ):
            if reason == "no_certificate" and not required:
                assert (await ask(program, context)).endswith(b"ok")
                continue
            with pytest.raises((ssl.SSLError, ConnectionError)):
                await ask(program, context)
            await failures(program, reason)


async def test_changed_certificates_take_effect_at_once_unless_they_are_invalid(
    gateway: StartGateway, upstream: StartUpstream, authority: Authority
) -> None:
    text = listen(authority) + rules((await upstream(OK)).port)
    program = gateway(text, GATEWAY_WORKERS="2")

    def certificate() -> set[str]:
        plain = socket.create_connection(("127.0.0.1", program.port), DEADLINE)
        with client(authority).wrap_socket(plain, server_hostname="api.example.com") as opened:
            opened.sendall(GET)
            assert opened.recv(65536).startswith(b"HTTP/1.1 200")
            found = opened.getpeercert()
        assert found is not None
        return {str(pair[1]) for pair in found["subjectAltName"]}

    async def names() -> set[str]:
        return set().union(*[await asyncio.to_thread(certificate) for _ in range(8)])

    assert await names() == {"api.example.com"}
    authority.write("api", "api.example.com", "renewed.example.com")
    async with asyncio.timeout(DEADLINE):
        while await names() != {"api.example.com", "renewed.example.com"}:  # noqa: ASYNC110  # polled
            await asyncio.sleep(0.1)
    (authority.folder / "api.key").write_text("no key")
    await soon(lambda: program.log("config_rejected"))
    (entry, *_) = program.log("config_rejected")
    assert "the certificate and the key cannot be used" in entry["issue"]
    assert await names() == {"api.example.com", "renewed.example.com"}


async def test_tls_sessions_of_clients_are_resumed_after_a_reload(
    gateway: StartGateway, upstream: StartUpstream, authority: Authority
) -> None:
    text = "workers: 1\n" + listen(authority) + rules((await upstream(OK)).port)
    program, context = gateway(text), client(authority)

    def resumed(session: ssl.SSLSession | None) -> tuple[bool, ssl.SSLSession | None]:
        plain = socket.create_connection(("127.0.0.1", program.port), DEADLINE)
        name = "api.example.com"
        with context.wrap_socket(plain, server_hostname=name, session=session) as opened:
            opened.sendall(GET)
            assert opened.recv(65536).startswith(b"HTTP/1.1 200")
            return bool(opened.session_reused), opened.session

    _, session = await asyncio.to_thread(resumed, None)
    await asyncio.to_thread(program.rewrite, text + "# a comment\n")
    assert (await asyncio.to_thread(resumed, session))[0]
    authority.write("api", "api.example.com")
    await soon(lambda: len(program.log("config_loaded")) > 1)
    assert not (await asyncio.to_thread(resumed, session))[0]


def header_1(address: str) -> bytes:
    return f"PROXY TCP4 {address} 127.0.0.1 40000 443\r\n".encode()


def header_2(address: str) -> bytes:
    numbers = bytes(map(int, address.split(".")))
    return b"\r\n\r\n\0\r\nQUIT\n\x21\x11" + struct.pack(
        ">H4s4sHH", 12, numbers, b"\x7f\0\0\1", 1, 2
    )


@pytest.mark.parametrize("header", [header_1, header_2], ids=["version 1", "version 2"])
async def test_the_client_address_from_a_load_balancer_is_used(
    gateway: StartGateway, upstream: StartUpstream, header: object
) -> None:
    scripted = await upstream(OK)
    section = 'listen: [ { address: "127.0.0.1:0", proxy_protocol: [127.0.0.0/8] } ]\n'
    program = gateway(section + rules(scripted.port))
    sent = header("203.0.113.7")  # type: ignore[operator]
    assert (await ask(program, None, sent + GET)).endswith(b"ok")
    assert b"X-Forwarded-For: 203.0.113.7\r\n" in scripted.requests[0]
    with suppress(ConnectionError):
        assert await ask(program, None) == b""
    await failures(program, "proxy_header")


async def test_a_forged_proxy_protocol_header_is_refused(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    """It comes from an address that is not a load balancer's, or the protocol is not used."""
    scripted = await upstream(OK)
    section = 'listen: [ { address: "127.0.0.1:0", proxy_protocol: [10.0.0.0/8] } ]\n'
    for program in (gateway(section + rules(scripted.port)), gateway(rules(scripted.port))):
        with suppress(ConnectionError):
            assert b" 200 " not in await ask(program, None, header_1("203.0.113.7") + GET)
    assert not scripted.requests


async def test_an_http_2_client_gets_an_error_that_requires_http_1_1(
    gateway: StartGateway, upstream: StartUpstream, authority: Authority
) -> None:
    port = (await upstream(OK)).port
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"
    for program, context in (
        (gateway(rules(port)), None),
        (gateway(listen(authority) + rules(port)), client(authority)),
    ):
        frames = await ask(program, context, preface)
        assert await ask(program, context, preface, pieces=3) == frames
        size = int.from_bytes(frames[9:12])
        assert frames[:9] == b"\0\0\0\4\0\0\0\0\0"  # SETTINGS
        assert frames[12:26] == b"\7\0\0\0\0\0" + b"\0\0\0\0" + b"\0\0\0\x0d"  # GOAWAY
        assert (
            frames[26:]
            == b"This gateway speaks HTTP/1.1; put a proxy that speaks HTTP/2 before it."
        )
        assert size == len(frames) - 18
        await counted(program, 'gateway_client_bounds_total{bound="http_2"}')


async def test_the_gateway_listens_on_several_addresses(
    gateway: StartGateway, upstream: StartUpstream, authority: Authority
) -> None:
    """One address uses TLS. GATEWAY_PORT then has no effect, and a warning says so."""
    port = (await upstream(OK)).port
    section = listen(authority).replace("listen: [", 'listen: [ { address: "127.0.0.2:0" },')
    program = gateway(section + rules(port), GATEWAY_PORT="1")
    (entry,) = program.log("listening")
    plain, secure = entry["url"], entry["others"][0]
    assert plain.startswith("http://127.0.0.2:")
    assert secure.startswith("https://127.0.0.1:")
    assert program.log("variable_ignored")[0]["variable"] == "GATEWAY_PORT"
    program.port = int(secure.rpartition(":")[2])
    assert (await ask(program, client(authority))).endswith(b"ok")
