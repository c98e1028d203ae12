"""Limits on clients over sockets: those in `limits` and those of an endpoint."""

import asyncio
import json
import socket
import time
from contextlib import ExitStack

import pytest

from tests.gateway.kit import Program, Scripted, StartGateway, StartUpstream, rules
from tests.gateway.talk import OK, Answer, Reader, Writer, ask, connect, logged, soon

SMALL = """
limits:
  body: 10
  target: 256
  header_bytes: 1024
  header_fields: 8
  header_seconds: 1
  idle_seconds: 1.5
  stall_seconds: 0.5
"""


def code(answer: Answer) -> tuple[int, str]:
    return answer.status, json.loads(answer.body)["code"]


def detail(answer: Answer) -> str:
    return str(json.loads(answer.body)["detail"])


async def drained(scripted: Scripted, reader: Reader, writer: Writer) -> None:
    """A service that reads all bytes and responds to everything that it can parse as a request."""
    while True:
        await scripted.take(reader)
        writer.write(OK)


@pytest.fixture
async def small(standing: Program, upstream: StartUpstream) -> Program:
    scripted = await upstream(drained)
    large = "{ path: /large, max_body: 20 }"
    text = rules(scripted.port, via=True).replace(
        "{ path: /plain }", f"{{ path: /plain }}, {large}"
    )
    standing.reload(SMALL + text)
    return standing


def length(size: int) -> tuple[str, bytes]:
    return f"Content-Length: {size}", b"x" * size


def chunks(size: int) -> tuple[str, bytes]:
    return "Transfer-Encoding: chunked", b"1\r\nx\r\n" * size + b"0\r\n\r\n"


BODIES = {
    "just right": ("/plain", length(10), 200),
    "just right in chunks": ("/plain", chunks(10), 200),
    "too long": ("/plain", length(11), 413),
    "too long in chunks": ("/plain", chunks(11), 413),
    "just right for the endpoint": ("/large", length(20), 200),
    "too long for the endpoint": ("/large", length(21), 413),
    "too long in chunks for the endpoint": ("/large", chunks(21), 413),
    "too long where it is converted": ("/v1/person", length(11), 413),
    "too long in chunks where it is converted": ("/v1/person", chunks(11), 413),
}


@pytest.mark.parametrize(("path", "body", "status"), BODIES.values(), ids=BODIES)
async def test_a_body_above_the_limit_of_its_endpoint_is_413(
    small: Program, path: str, body: tuple[str, bytes], status: int
) -> None:
    async with connect(small) as client:
        kind = "Content-Type: application/json"
        client.send(ask(f"POST {path}", body[0], kind, body=body[1]))
        answer = await client.answer()
        assert answer.status == status
        if status == 413:
            assert code(answer) == (413, "body_too_large")
            assert answer["connection"] == "close"
            assert f"may have at most {20 if path == '/large' else 10} bytes" in detail(answer)


async def without_content(scripted: Scripted, reader: Reader, writer: Writer) -> None:
    while True:
        await scripted.take(reader)
        writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")


@pytest.mark.parametrize(("size", "status"), [(20, 204), (21, 413)], ids=["just right", "too long"])
@pytest.mark.parametrize("chunked", [False, True], ids=["with its length", "in chunks"])
async def test_a_converted_body_has_the_same_limit_with_its_head_and_streamed(
    standing: Program, upstream: StartUpstream, size: int, status: int, chunked: bool
) -> None:
    scripted = await upstream(without_content)
    standing.reload("limits: { convert: 20 }\n" + rules(scripted.port, via=True))
    body, framing = b'{"a": 1}'.ljust(size), f"Content-Length: {size}"
    if chunked:
        body, framing = b"%x\r\n%b\r\n0\r\n\r\n" % (size, body), "Transfer-Encoding: chunked"
    async with connect(standing) as client:
        client.send(ask("POST /v1/person", framing, "Content-Type: application/json", body=body))
        answer = await client.answer()
        assert answer.status == status
        if status == 413:
            assert code(answer) == (413, "body_too_large")
            assert "20 bytes" in detail(answer)


HEADS = {
    "a target that is just right": (f"GET /plain?{'a' * 249}", [], 200, ""),
    "a target that is too long": (f"GET /plain?{'a' * 250}", [], 414, "may have at most 256 bytes"),
    "fields that are just right": ("GET /plain", [f"X-A: {'a' * 1001}"], 200, ""),
    "fields that are too large": ("GET /plain", [f"X-A: {'a' * 1002}"], 431, "1024 bytes in total"),
    "one far too large": ("GET /plain", [f"X-A: {'a' * 9950}"], 431, "1024 bytes in total"),
    "just enough fields": ("GET /plain", ["X-A: a"] * 7, 200, ""),
    "too many fields": ("GET /plain", ["X-A: a"] * 9, 431, "may have at most 8 header fields"),
}


@pytest.mark.parametrize(("line", "fields", "status", "says"), HEADS.values(), ids=HEADS)
@pytest.mark.parametrize("split", [False, True], ids=["at once", "in two"])
async def test_a_head_above_a_limit_is_refused(
    small: Program, line: str, fields: list[str], status: int, says: str, split: bool
) -> None:
    async with connect(small) as client:
        request = ask(line, *fields)
        half = len(request) - 10 if split else 0
        client.send(request[:half])
        if half:
            await asyncio.sleep(0.05)
        client.send(request[half:])
        answer = await client.answer()
        assert answer.status == status
        if says:
            assert says in detail(answer)


async def test_the_limit_applies_to_each_head_separately(small: Program) -> None:
    async with connect(small) as client:
        for _ in range(3):
            request = ask("GET /plain", f"X-A: {'a' * 900}")
            client.send(request[:500])
            await asyncio.sleep(0.02)
            client.send(request[500:])
            assert (await client.answer()).status == 200


async def test_a_head_that_never_ends_is_refused_after_its_time_limit(small: Program) -> None:
    async with connect(small) as client:

        async def trickle() -> None:
            client.send(b"GET /plain HTTP/1.1\r\nHost: a\r\nX-More:")
            while True:
                client.send(b" a")
                await asyncio.sleep(0.05)

        trickling = asyncio.create_task(trickle())  # slow bytes do not extend the time limit
        answer = await client.answer()
        trickling.cancel()
        assert code(answer) == (408, "request_timeout")
        assert answer["connection"] == "close"
        assert await client.rest() == b""


async def test_bytes_after_the_last_response_are_not_a_request_head(small: Program) -> None:
    before = small.log("log")
    async with connect(small) as client:
        client.send(ask("POST /plain", "Connection: close", "Content-Length: 999", body=b"x"))
        assert (await client.answer()).status == 413
        end = time.monotonic() + 2  # twice header_seconds
        while time.monotonic() < end:
            client.send(b"x")
            await asyncio.sleep(0.05)
        assert await client.rest() == b""
    assert small.log("log") == before


async def test_a_connection_without_a_request_is_closed_without_a_response(small: Program) -> None:
    async with connect(small) as client:
        assert await client.rest() == b""
    async with connect(small) as client:
        client.send(ask())
        assert (await client.answer()).status == 200
        began = time.monotonic()
        assert await client.rest() == b""
        assert time.monotonic() - began > 1


@pytest.mark.parametrize("path", ["/plain", "/v1/person"], ids=["passed on", "converted"])
async def test_a_missing_request_body_is_408(small: Program, path: str) -> None:
    async with connect(small) as client:
        kind = "Content-Type: application/json"
        client.send(ask(f"POST {path}", "Content-Length: 8", kind, body=b"1234"))
        answer = await client.answer()
        assert code(answer) == (408, "request_timeout")
        assert "0.5 seconds" in detail(answer)


async def test_a_client_that_does_not_read_is_cut(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    async def endless(scripted: Scripted, reader: Reader, writer: Writer) -> None:
        await scripted.take(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
        while True:
            writer.write(b"x" * 65536)
            await writer.drain()

    scripted = await upstream(endless)
    program = gateway("limits: { stall_seconds: 0.5 }\n" + rules(scripted.port))
    async with connect(program, window=4096) as client:
        client.send(ask("GET /plain", "X-Request-Id: stalled"))
        await client.head()
        line = await logged(program, "stalled")
    assert line["aborted"] is True
    assert line["cause"] == "the client read too little of the response"


async def test_a_client_above_the_limit_of_connections_is_refused(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    scripted = await upstream(OK)
    small = gateway("limits: { connections: 4 }\n" + rules(scripted.port))
    with ExitStack() as stack:
        held = [
            stack.enter_context(socket.create_connection(("127.0.0.1", small.port)))
            for _ in range(4)
        ]
        async with connect(small) as client:
            answer = await client.answer()
            assert code(answer) == (503, "overloaded")
            assert answer["retry-after"] == "1"
            assert await client.rest() == b""
        held[0].close()

        async def served() -> bool:
            async with connect(small) as client:
                client.send(ask())
                return (await client.answer()).status == 200

        for _ in range(500):
            if await served():
                break
            await asyncio.sleep(0.02)
        else:
            pytest.fail("the place that became free was not given away")


async def test_slow_heads_do_not_delay_other_clients(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    scripted = await upstream(OK)
    program = gateway("limits: { header_seconds: 1 }\n" + rules(scripted.port))
    with ExitStack() as stack:
        slow = [
            stack.enter_context(socket.create_connection(("127.0.0.1", program.port)))
            for _ in range(300)
        ]
        for each in slow:
            each.sendall(b"GET /plain HTTP/1.1\r\nHost:")
        async with connect(program) as client:
            for _ in range(50):
                client.send(ask())
                assert (await client.answer()).status == 200
        for each in slow:
            each.settimeout(10)
        assert all(b" 408 " in each.recv(4096) for each in slow)
    await soon(lambda: len(program.log("request")) >= 350)
