"""Other protocols through the gateway: WebSocket, and the streams of Docker and kubectl."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest
from aiohttp import ClientSession, WSMsgType, web

from tests.gateway.kit import Scripted, StartGateway, StartUpstream, rules
from tests.gateway.talk import OK, Reader, Writer, ask, connect, logged


@pytest.fixture
async def echo() -> AsyncIterator[int]:
    async def handle(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(protocols=("chat",), max_msg_size=0)
        await socket.prepare(request)
        async for message in socket:
            if message.type is WSMsgType.BINARY:
                await socket.send_bytes(message.data)
            elif message.data == "bye":
                await socket.close(code=4000, message=b"so long")
            else:
                await socket.send_str(f"{request.path_qs} {message.data}")
        return socket

    app = web.Application()
    app.router.add_get("/{any:.*}", handle)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield runner.addresses[0][1]
    await runner.cleanup()


async def test_websocket_messages_are_forwarded_both_ways(
    reloaded: StartGateway, echo: int
) -> None:
    program = reloaded(rules(echo))
    async with (
        ClientSession(program.url) as client,
        client.ws_connect("/tail/x?y=1", protocols=("chat",), max_msg_size=0) as socket,
    ):
        assert socket.protocol == "chat"
        await socket.send_str("hello")
        assert await socket.receive_str() == "/tail/x?y=1 hello"
        large = bytes(range(256)) * 40_000
        await socket.send_bytes(large)
        assert await socket.receive_bytes() == large
        await socket.send_str("bye")
        end = await socket.receive()
        assert (end.type, end.data, end.extra) == (WSMsgType.CLOSE, 4000, "so long")


@pytest.mark.parametrize("path", ["/v2/person", "/param?version=1"])
async def test_endpoints_with_versions_forward_websockets_too(
    reloaded: StartGateway, echo: int, path: str
) -> None:
    program = reloaded(rules(echo))
    async with ClientSession(program.url) as client, client.ws_connect(path) as socket:
        await socket.send_str("hello")
        assert (await socket.receive_str()).startswith("/person")


CONVERTED = """\
services:
  s: {{ targets: ["http://127.0.0.1:{port}"] }}
apis:
  chat:
    endpoints:
      - {{ path: "/v{{version}}/rooms", version: {{ in: path }} }}
      - {{ path: "/v{{version}}/feed", version: {{ in: path }} }}
      - {{ path: "/v{{version}}/asked", version: {{ in: path }} }}
    versions:
      "1": {{ via: "2" }}
      "2": {{ service: s }}
    conversions:
      - between: ["1", "2"]
        paths: ["/v{{version}}/rooms"]
        changes: [ rename: {{ field: total, to: amount }} ]
      - between: ["1", "2"]
        paths: ["/v{{version}}/asked"]
        "on": requests
        changes: [ rename: {{ field: total, to: amount }} ]
      - between: ["1", "2"]
        paths: ["/v{{version}}/feed"]
        methods: [POST]
        changes: [ rename: {{ field: total, to: amount }} ]
      - between: ["1", "2"]
        query: [ rename: {{ field: topic, to: subject }} ]
        headers: [ rename: {{ field: X-Topic, to: X-Subject }} ]
"""
WEBSOCKET = ("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13")


@pytest.mark.parametrize("path", ["/v1/rooms", "/v1/asked"])
async def test_a_websocket_whose_messages_would_be_converted_is_refused(
    reloaded: StartGateway, upstream: StartUpstream, path: str
) -> None:
    service = await upstream(OK)
    program = reloaded(CONVERTED.format(port=service.port))
    async with connect(program) as client:
        client.send(ask(f"GET {path}", *WEBSOCKET))
        answer = await client.answer()
    problem = json.loads(answer.body)
    assert (answer.status, problem["code"]) == (400, "unconvertible_request")
    assert "it requests a WebSocket, whose messages cannot be converted" in problem["detail"]
    assert service.requests == []


async def test_a_websocket_is_tunnelled_where_no_change_of_bodies_applies(
    reloaded: StartGateway, upstream: StartUpstream
) -> None:
    async def script(scripted: Scripted, reader: Reader, writer: Writer) -> None:
        await scripted.take(reader)
        writer.write(b"HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n")
        writer.write(b"X-Topic: c\r\n\r\nfirst")
        writer.write(await reader.readexactly(4))

    service = await upstream(script)
    program = reloaded(CONVERTED.format(port=service.port))
    async with connect(program) as client:
        client.send(ask("GET /v1/feed?subject=a", *WEBSOCKET, "X-Subject: b"))
        head = await client.head()
        assert (head.status, head["upgrade"], head["x-subject"]) == (101, "websocket", "c")
        client.send(b"last")
        assert await client.reader.readexactly(9) == b"firstlast"
    (asked,) = service.requests
    assert asked.startswith(b"GET /v2/feed?topic=a HTTP/1.1\r\n")
    assert b"\r\nUpgrade: websocket\r\n" in asked
    assert b"\r\nX-Topic: b\r\n" in asked


@pytest.mark.parametrize("line", ["Content-Length: 2", "Transfer-Encoding: chunked"])
@pytest.mark.parametrize("protocol", ["tcp", "SPDY/3.1"])
async def test_streams_of_docker_and_kubectl_are_tunnelled_after_the_body_of_their_request(
    reloaded: StartGateway, upstream: StartUpstream, protocol: str, line: str
) -> None:
    async def script(scripted: Scripted, reader: Reader, writer: Writer) -> None:
        assert b"{}" in await scripted.take(reader)
        fields = f"Connection: Upgrade\r\nUpgrade: {protocol}\r\n\r\n"
        writer.write(b"HTTP/1.1 101 UPGRADED\r\n" + fields.encode() + b"output")
        assert await reader.readexactly(10) == b"earlylater"
        writer.write(b"end")

    program = reloaded(rules((await upstream(script)).port))
    body = b"{}" if "Length" in line else b"2\r\n{}\r\n0\r\n\r\n"
    async with connect(program) as client, asyncio.timeout(10):
        asked = ask("POST /plain", line, "Connection: Upgrade", f"Upgrade: {protocol}")
        client.send(asked + body + b"early")
        head = await client.head()
        assert (head.status, head["upgrade"]) == (101, protocol)
        assert await client.reader.readexactly(6) == b"output"
        client.send(b"later")
        assert await client.rest() == b"end"


async def test_a_converted_request_ignores_an_upgrade_that_is_no_websocket_handshake(
    reloaded: StartGateway, upstream: StartUpstream
) -> None:
    """A WebSocket handshake is a GET request (RFC 6455, section 4.1)."""
    body = b"Content-Type: application/json\r\nContent-Length: 11\r\n\r\n" + b'{"total":1}'
    service = await upstream(b"HTTP/1.1 200 OK\r\n" + body)
    program = reloaded(CONVERTED.format(port=service.port))
    for line, *fields in (
        ("POST /v1/rooms", *WEBSOCKET, "Content-Length: 0"),
        ("GET /v1/rooms", "Connection: Upgrade", "Upgrade: h2c"),
    ):
        async with connect(program) as client:
            client.send(ask(line, *fields))
            assert (await client.answer()).body == b'{"amount":1}'
    assert not any(b"upgrade" in request.lower() for request in service.requests)


async def test_a_service_notices_that_a_websocket_client_has_left(
    reloaded: StartGateway, upstream: StartUpstream
) -> None:
    left = asyncio.Event()

    async def script(scripted, reader, writer) -> None:  # type: ignore[no-untyped-def]
        await scripted.take(reader)
        writer.write(
            b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\n"
            b"Upgrade: websocket\r\n\r\nfirst"
        )
        assert await reader.read(100) == b"from the client"
        assert await reader.read(100) == b""
        left.set()

    scripted = await upstream(script)
    program = reloaded(rules(scripted.port))
    async with connect(program) as client:
        client.send(ask("GET /plain", "Connection: upgrade", "Upgrade: websocket"))
        head = await client.head()
        assert (head.status, head["upgrade"]) == (101, "websocket")
        assert await client.reader.readexactly(5) == b"first"
        client.send(b"from the client")
        await asyncio.sleep(0)
    await asyncio.wait_for(left.wait(), 10)
    assert b"Upgrade: websocket\r\n" in scripted.requests[0]


NOT_ASKED_FOR = {
    "another protocol": (b"Connection: Upgrade", b"Upgrade: chat"),
    "one more protocol": (b"Connection: Upgrade", b"Upgrade: websocket, chat"),
    "two lines": (b"Connection: Upgrade", b"Upgrade: websocket", b"Upgrade: chat"),
    "no protocol": (b"Connection: Upgrade",),
    "no option": (b"Upgrade: websocket",),
    "neither": (b"X: y",),
}


@pytest.mark.parametrize("case", NOT_ASKED_FOR)
@pytest.mark.parametrize("asked", [(), ("Connection: Upgrade", "Upgrade: websocket")])
async def test_an_unrequested_protocol_switch_is_502(
    reloaded: StartGateway, upstream: StartUpstream, case: str, asked: tuple[str, ...]
) -> None:
    """Bytes after an unknown protocol are not forwarded (RFC 9110, section 7.8)."""
    lines = b"\r\n".join(NOT_ASKED_FOR[case])
    followed = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno"
    scripted = await upstream(b"HTTP/1.1 101 X\r\n" + lines + b"\r\n\r\n" + followed)
    program = reloaded(rules(scripted.port))
    async with connect(program) as client:
        client.send(ask("GET /plain", *asked))
        answer = await client.answer()
    assert answer.status == 502
    entry = await logged(program, answer["x-request-id"])
    assert "it switched protocols without a request" in entry["cause"]


@pytest.mark.parametrize("line", ["Content-Length: 5", "Transfer-Encoding: chunked"])
async def test_a_switch_before_the_end_of_the_body_forwards_the_rest(
    reloaded: StartGateway, upstream: StartUpstream, line: str
) -> None:
    """The client's next bytes are the rest of its body (RFC 9110, section 7.8)."""

    async def script(scripted: Scripted, reader: Reader, writer: Writer) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
        await reader.read()

    program = reloaded(rules((await upstream(script)).port))
    async with connect(program) as client:
        client.send(ask("PUT /plain", line, "Connection: Upgrade", "Upgrade: websocket"))
        client.send(b"5\r\n")
        answer = await client.answer()
    assert answer.status == 502
    entry = await logged(program, answer["x-request-id"])
    assert "SWITCH cannot happen in EARLY_HEAD" in entry["cause"]


@pytest.mark.parametrize("protocol", ["websocket", "WebSocket"])
async def test_upgrade_protocol_names_are_case_insensitive(
    reloaded: StartGateway, upstream: StartUpstream, protocol: str
) -> None:
    switched = b"HTTP/1.1 101 X\r\nConnection: keep-alive, UPGRADE\r\nUpgrade: WEBSOCKET\r\n\r\nhi"
    scripted = await upstream(switched)
    program = reloaded(rules(scripted.port))
    async with connect(program) as client:
        client.send(ask("GET /plain", "Connection: Upgrade", f"Upgrade: {protocol}"))
        assert (await client.head()).status == 101
        assert await client.reader.readexactly(2) == b"hi"


@pytest.mark.parametrize("length", [0, 2, 9])
@pytest.mark.parametrize("first", [b"", b"hi"], ids=["the client", "the service"])
async def test_a_content_length_in_a_101_response_is_dropped(
    reloaded: StartGateway, upstream: StartUpstream, length: int, first: bytes
) -> None:
    """The gateway waits for no body, since a 101 has no length (RFC 9110, section 8.6)."""

    async def script(scripted: Scripted, reader: Reader, writer: Writer) -> None:
        await scripted.take(reader)
        fields = b"Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: %d" % length
        writer.write(b"HTTP/1.1 101 X\r\n" + fields + b"\r\n\r\n" + first)
        assert await reader.readexactly(3) == b"you"
        writer.write(b"bye")

    program = reloaded(rules((await upstream(script)).port))
    async with connect(program) as client, asyncio.timeout(10):
        client.send(ask("GET /plain", "Connection: Upgrade", "Upgrade: websocket"))
        switched = await client.head()
        assert (switched.status, switched.all("content-length")) == (101, [])
        client.send(b"you")
        assert await client.rest() == first + b"bye"


async def test_an_http_1_0_client_cannot_switch_protocols(
    reloaded: StartGateway, upstream: StartUpstream
) -> None:
    """Upgrade is ignored in a request of HTTP/1.0 (RFC 9110, section 7.8)."""
    scripted = await upstream(OK)
    program = reloaded(rules(scripted.port))
    async with connect(program) as client:
        client.send(ask("GET /plain", "Connection: Upgrade", "Upgrade: websocket", http="1.0"))
        assert (await client.answer()).status == 200
    assert b"upgrade" not in scripted.requests[0].lower()


@pytest.mark.parametrize("side", ["client", "service"])
async def test_the_end_of_one_side_ends_the_other(
    reloaded: StartGateway, upstream: StartUpstream, side: str
) -> None:
    left = asyncio.Event()

    async def script(scripted: Scripted, reader: Reader, writer: Writer) -> None:
        await scripted.take(reader)
        writer.write(b"HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
        writer.write(bytes(100_000))
        if side == "service":
            writer.write_eof()
        while await reader.read(65536):
            pass
        left.set()

    scripted = await upstream(script)
    program = reloaded(rules(scripted.port))
    async with connect(program) as client:
        client.send(ask("GET /plain", "Connection: Upgrade", "Upgrade: websocket"))
        assert (await client.head()).status == 101
        assert await client.reader.readexactly(100_000) == bytes(100_000)
        if side == "client":
            client.writer.write_eof()
        with suppress(ConnectionResetError):
            assert await client.rest() == b""
        await asyncio.wait_for(left.wait(), 10)


async def test_a_declined_upgrade_returns_an_ordinary_response(
    reloaded: StartGateway, upstream: StartUpstream
) -> None:
    scripted = await upstream(b"HTTP/1.1 426 Upgrade Required\r\nContent-Length: 2\r\n\r\nno")
    program = reloaded(rules(scripted.port))
    async with connect(program) as client:
        client.send(ask("GET /plain", "Connection: upgrade", "Upgrade: websocket"))
        answer = await client.answer()
        assert (answer.status, answer.body) == (426, b"no")
        assert await client.rest() == b""
