"""Clients that misuse TLS or the PROXY protocol do not disturb others."""

import asyncio
import socket
import ssl
import struct
from asyncio.subprocess import PIPE, STDOUT
from contextlib import ExitStack, suppress
from pathlib import Path
from shutil import which

import psutil
import pytest

from tests.gateway.authority import Authority
from tests.gateway.kit import DEADLINE, Program, StartGateway, StartUpstream, assert_sound, rules
from tests.gateway.live.bounds import metric
from tests.gateway.talk import OK, ask, connect, logged, reset, soon

NAME = "localhost"
CLOSING = b"GET /plain HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
FAILED = 'gateway_client_handshake_failures_total{{reason="{}"}}'


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    made = Authority(tmp_path / "tls")
    made.write("api", NAME)
    made.write("shop", "shop.example.com")
    return made


def listen(authority: Authority, proxies: str = "") -> str:
    folder = authority.folder
    pairs = ", ".join(
        f"{{ certificate: {folder}/{name}.pem, key: {folder}/{name}.key }}"
        for name in ("api", "shop")
    )
    more = f", proxy_protocol: [{proxies}]" if proxies else ""
    return f'listen: [ {{ address: "127.0.0.1:0", tls: {{ certificates: [{pairs}] }}{more} }} ]\n'


def trusting(authority: Authority) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=authority.file)


async def status(program: Program, context: ssl.SSLContext) -> int:
    async with connect(program, tls=context) as client:
        client.send(ask("GET /plain"))
        return (await client.answer()).status


def client_hello(name: bytes = NAME.encode()) -> bytes:
    """Return the first message of a client, with any bytes as the name of the host (RFC 6066)."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    usual = "placeholder.test"
    session = ssl.create_default_context().wrap_bio(incoming, outgoing, server_hostname=usual)
    with suppress(ssl.SSLWantReadError):
        session.do_handshake()
    hello = bytearray(outgoing.read())
    more, at = len(name) - len(usual), hello.index(usual.encode())
    after_session = 44 + hello[43]  # RFC 8446, section 4.1.2
    suites = int.from_bytes(hello[after_session : after_session + 2])
    extensions = after_session + 2 + suites + 1 + hello[after_session + 2 + suites]
    for place, size in ((3, 2), (6, 3), (extensions, 2), (at - 7, 2), (at - 5, 2), (at - 2, 2)):
        length = int.from_bytes(hello[place : place + size]) + more
        hello[place : place + size] = length.to_bytes(size)
    hello[at : at + len(usual)] = name
    return bytes(hello)


@pytest.mark.slow
@pytest.mark.parametrize("steps", [0, 20], ids=["stopped", "byte by byte"])
async def test_slow_handshakes_are_bounded_and_delay_nobody(
    gateway: StartGateway, upstream: StartUpstream, authority: Authority, steps: int
) -> None:
    """A worker has at most 1,024 handshakes; each takes at most `header_seconds`."""
    limits = "limits: { header_seconds: 5 }\n"
    program = gateway(limits + listen(authority) + rules((await upstream(OK)).port))
    context, process = trusting(authority), psutil.Process(program.process.pid)
    for _ in range(20):
        assert await status(program, context) == 200
    before = process.memory_info().rss
    begun = client_hello()[:100]
    with ExitStack() as stack:
        attackers = []
        for _ in range(1100):
            attacker = stack.enter_context(
                socket.create_connection(("127.0.0.1", program.port), DEADLINE)
            )
            attacker.sendall(begun)
            attackers.append(attacker)
        for step in range(20):
            assert await status(program, context) == 200
            if step < steps:
                for attacker in attackers:
                    with suppress(OSError):
                        attacker.sendall(b"\0")
        grown = process.memory_info().rss - before
        for attacker in attackers:
            with suppress(ConnectionError):
                while await asyncio.to_thread(attacker.recv, 4096):
                    pass  # an alert
    assert grown < 100e6
    failed = [FAILED.format(reason) for reason in ("slow", "crowded")]
    await soon(lambda: sum(metric(program, each) for each in failed) == 1100)
    assert metric(program, failed[0]) > 0
    assert await status(program, context) == 200
    assert_sound(program)


async def test_odd_host_names_and_messages_fail_only_their_own_handshake(
    gateway: StartGateway, upstream: StartUpstream, authority: Authority
) -> None:
    program = gateway(listen(authority) + rules((await upstream(OK)).port))
    context = trusting(authority)
    odd = {
        "a long name": client_hello(b"a" * 300),
        "a name with NUL": client_hello(b"local\0host"),
        "a name that is not ASCII": client_hello(b"\xff\xfe.example.com"),
        "an empty name": client_hello(b""),
        "an address": client_hello(b"127.0.0.1"),
        "a wildcard": client_hello(b"*.example.com"),
        "a message of 16 MB": b"\x16\3\1\x40\0\1\xff\xff\xff\3\3" + bytes(16_000),
        "an alert": b"\x15\3\1\0\2\2\x28",
        "application data": b"\x17\3\3\0\x10" + bytes(16),
        "an empty record": b"\x16\3\1\0\0" * 1000,
        "SSL 2": b"\x80\x2e\1\3\1\0\x15\0\0\0\x10" + bytes(35),
    }
    for data in odd.values():
        with (
            socket.create_connection(("127.0.0.1", program.port), DEADLINE) as client,
            suppress(ConnectionError),
        ):
            client.sendall(data)
            client.shutdown(socket.SHUT_WR)
            while await asyncio.to_thread(client.recv, 65536):
                pass
        assert await status(program, context) == 200
    assert program.log()  # every line is JSON
    assert_sound(program)


@pytest.mark.skipif(not which("openssl"), reason="needs openssl")
async def test_renegotiation_is_refused(
    gateway: StartGateway, upstream: StartUpstream, authority: Authority
) -> None:
    program = gateway(listen(authority) + rules((await upstream(OK)).port))
    words = ["openssl", "s_client", "-tls1_2", "-connect", f"127.0.0.1:{program.port}"]
    process = await asyncio.create_subprocess_exec(*words, stdin=PIPE, stdout=PIPE, stderr=STDOUT)
    assert process.stdin is not None
    assert process.stdout is not None
    await process.stdout.readuntil(b"Verify return code")
    process.stdin.write(b"R\n")
    output = await process.stdout.read()
    await process.wait()
    assert b"RENEGOTIATING" in output
    assert b"no renegotiation" in output
    assert_sound(program)


@pytest.mark.parametrize("how", ["reset", "no close_notify", "bad record"])
async def test_a_connection_that_ends_badly_ends_its_request_only(
    gateway: StartGateway, upstream: StartUpstream, authority: Authority, how: str
) -> None:
    scripted = await upstream(OK)
    program = gateway(listen(authority) + rules(scripted.port))
    context = trusting(authority)
    async with connect(program, tls=context) as client:
        client.send(ask("GET /plain"))
        assert (await client.answer()).status == 200
        own = client.writer.get_extra_info("socket")
        if how == "reset":
            reset(client.writer)
        elif how == "no close_notify":
            own.shutdown(socket.SHUT_WR)
        else:
            with socket.socket(fileno=socket.dup(own.fileno())) as raw:
                raw.send(b"\x17\3\3\0\x20" + bytes(32))
        with suppress(OSError, asyncio.IncompleteReadError):
            assert await client.rest() == b""
    assert await status(program, context) == 200
    assert_sound(program)


async def test_a_client_that_ends_its_side_has_left_by_tls_as_without(
    gateway: StartGateway, upstream: StartUpstream, authority: Authority
) -> None:
    async def never(_: object, reader: asyncio.StreamReader, __: object) -> None:
        await reader.read()  # until the gateway closes the connection

    scripted = await upstream(never)
    secure = gateway(listen(authority) + rules(scripted.port))
    plain = gateway(rules(scripted.port))
    for program, context in ((secure, trusting(authority)), (plain, None)):
        async with connect(program, tls=context) as client:
            client.send(ask("GET /plain", "X-Request-Id: half"))
            await client.writer.drain()
            await asyncio.sleep(0.2)
            client.writer.get_extra_info("socket").shutdown(socket.SHUT_WR)
            with suppress(OSError):
                assert await client.rest() == b""
        line = await logged(program, "half")
        assert (line["status"], line["cause"]) == (0, "the client left")


SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
ADDRESSES = b"\xcb\0\x71\x07\x7f\0\0\1\1\2\3\4"


def version_2(command: int, family: int, content: bytes, size: int | None = None) -> bytes:
    length = len(content) if size is None else size
    return SIGNATURE + struct.pack(">BBH", command, family, length) + content


# The header, and the address of the client; None if the connection is refused.
PROXY = {
    "version 1": (b"PROXY TCP4 203.0.113.7 127.0.0.1 40000 443\r\n", "203.0.113.7"),
    "version 2": (version_2(0x21, 0x11, ADDRESSES), "203.0.113.7"),
    "LOCAL": (version_2(0x20, 0x00, b""), "127.0.0.1"),
    "LOCAL with addresses": (version_2(0x20, 0x11, ADDRESSES), "127.0.0.1"),
    "UNIX": (version_2(0x21, 0x31, bytes(216)), "127.0.0.1"),
    "further values": (version_2(0x21, 0x11, ADDRESSES + b"\x20\0\3abc"), "203.0.113.7"),
    "a further value that is cut off": (
        version_2(0x21, 0x11, ADDRESSES + b"\x20\xff\xffa"),
        "203.0.113.7",
    ),
    "a length that is too small": (version_2(0x21, 0x11, ADDRESSES, 8), None),
    "a length of 64 KiB": (version_2(0x21, 0x11, ADDRESSES, 65535), None),
    "another version": (version_2(0x31, 0x11, ADDRESSES), None),
    "another command": (version_2(0x2F, 0x11, ADDRESSES), None),
    "no header": (b"", None),
}


async def test_headers_of_the_proxy_protocol_before_tls(
    gateway: StartGateway, upstream: StartUpstream, authority: Authority
) -> None:
    scripted = await upstream(OK)
    limits = "limits: { header_seconds: 0.5 }\n"
    program = gateway(limits + listen(authority, "127.0.0.0/8") + rules(scripted.port))
    context = trusting(authority)

    def response(header: bytes) -> bytes:
        plain = socket.create_connection(("127.0.0.1", program.port), DEADLINE)
        with plain, suppress(OSError):
            plain.sendall(header)
            with context.wrap_socket(plain, server_hostname=NAME) as secured:
                secured.sendall(CLOSING)
                return b"".join(iter(lambda: secured.recv(65536), b""))
        return b""

    for half in (b"PROXY TCP4 203.0.113.7 127.0", version_2(0x21, 0x11, ADDRESSES)[:20]):
        async with connect(program) as client:
            client.send(half)
            with suppress(ConnectionError):
                assert await client.rest() == b""
    for name, (header, address) in PROXY.items():
        found = await asyncio.to_thread(response, header)
        assert found.startswith(b"HTTP/1.1 200") == (address is not None), name
        if address is not None:
            assert b"X-Forwarded-For: %b\r\n" % address.encode() in scripted.requests[-1], name
    refused = sum(address is None for _, address in PROXY.values())
    await soon(lambda: metric(program, FAILED.format("proxy_header")) == refused + 2)
    assert_sound(program)
