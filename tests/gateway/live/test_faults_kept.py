"""Kept connections to services are reused only if that is certainly safe."""

import asyncio

import pytest

from tests.gateway.kit import Program, Scripted, StartUpstream
from tests.gateway.talk import OK, Reader, Writer, ask, connect, get, reset

HEAD_OF_TWO = OK.removesuffix(b"ok")
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"
HEAD_OF_CHUNKS = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
NO_CONTENT = b"HTTP/1.1 204 No Content\r\n\r\n"
NOT_MODIFIED = b'HTTP/1.1 304 Not Modified\r\nETag: "a"\r\nContent-Length: 2\r\n\r\n'
FORGED = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged"


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("GET /plain", OK),
        ("POST /plain", OK),
        ("HEAD /plain", HEAD_OF_TWO),
        ("HEAD /plain", HEAD_OF_CHUNKS),
        ("GET /plain", NO_CONTENT),
        ("GET /plain", NOT_MODIFIED),
        ("GET /plain", b"HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n"),
        ("GET /plain", b"HTTP/1.1 205 Reset Content\r\nContent-Length: 0\r\n\r\n"),
        ("GET /plain", b"HTTP/1.1 103 Early Hints\r\n\r\n" + OK),
        ("GET /plain", b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok"),
        ("GET /plain", HEAD_OF_CHUNKS + b"2;a=b\r\nok\r\n0\r\nT: x\r\n\r\n"),
    ],
)
async def test_a_service_connection_is_reused(
    line: str, answer: bytes, standing: Program, through: StartUpstream
) -> None:
    scripted = await through(answer)
    for _ in range(4):
        async with connect(standing) as client:
            client.send(ask(line, "Content-Length: 0"))
            while (await client.answer(bodiless=line.startswith("HEAD"))).status < 200:
                pass
    assert (len(scripted.requests), scripted.connections) == (4, 1)


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nConnection: x, CLOSE\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
    ],
    ids=["close", "close in a list", "HTTP/1.0"],
)
async def test_a_connection_that_the_service_closes_is_not_reused(
    answer: bytes, standing: Program, through: StartUpstream
) -> None:
    scripted = await through(answer)
    for _ in range(3):
        reply = await get(standing)
        assert (reply.status, reply.body, reply.all("connection")) == (200, b"ok", [])
    assert scripted.connections == 3


async def test_simultaneous_requests_use_separate_connections(
    standing: Program, through: StartUpstream
) -> None:
    all_there = asyncio.Event()

    async def script(scripted: Scripted, reader: Reader, writer: Writer) -> None:
        while True:
            request = await scripted.take(reader)
            if len(scripted.requests) == 5:
                all_there.set()
            await all_there.wait()
            body = request.split(b" ")[1]
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))

    scripted = await through(script)
    for _ in range(3):
        answers = await asyncio.gather(*(get(standing, f"GET /tail/{n}") for n in range(5)))
        assert [answer.body for answer in answers] == [b"/tail/%d" % n for n in range(5)]
    assert scripted.connections == 5


@pytest.mark.parametrize("late", [False, True], ids=["at once", "later"])
@pytest.mark.parametrize(
    ("line", "whole", "more"),
    [
        ("GET /plain", OK, FORGED),
        ("GET /plain", OK, b"garbage"),
        ("GET /plain", OK, b"\r\n" + FORGED),
        ("GET /plain", CHUNKED, FORGED),
        ("GET /plain", NO_CONTENT, b"body"),
        ("GET /plain", NO_CONTENT, FORGED),
        ("GET /plain", NOT_MODIFIED, b"ok"),
        ("GET /plain", NOT_MODIFIED, FORGED),
        ("HEAD /plain", HEAD_OF_TWO, b"ok"),
        ("HEAD /plain", HEAD_OF_TWO, FORGED),
        ("HEAD /plain", HEAD_OF_CHUNKS, b"2\r\nok\r\n0\r\n\r\n"),
    ],
)
async def test_unsolicited_bytes_are_never_the_next_response(
    line: str, whole: bytes, more: bytes, late: bool, standing: Program, through: StartUpstream
) -> None:
    answered, gone = asyncio.Event(), asyncio.Event()

    async def script(scripted: Scripted, reader: Reader, writer: Writer) -> None:
        await scripted.take(reader)
        writer.write(whole if late else whole + more)
        if scripted.connections == 1:
            await answered.wait()
            if late:
                writer.write(more)
        assert await reader.read() == b""
        gone.set()

    scripted = await through(script)
    right = b"ok" if whole in (OK, CHUNKED) else b""
    assert (await get(standing, line)).body == right
    answered.set()
    async with asyncio.timeout(10):
        await gone.wait()
    assert (await get(standing, line)).body == right
    assert scripted.connections == 2


@pytest.mark.parametrize("leave", ["close", "reset"])
@pytest.mark.parametrize(
    ("line", "body", "again"),
    [
        ("GET /plain", b"", True),
        ("HEAD /plain", b"", True),
        ("OPTIONS /plain", b"", True),
        ("DELETE /plain", b"", True),
        ("PUT /plain", b"", True),
        ("POST /plain", b"", False),
        ("PATCH /plain", b"", False),
        ("POST /plain", b"body", False),
        ("PUT /plain", b"body", True),
        pytest.param("PUT /plain", b"body" * 8192, False, id="PUT of a large body"),
    ],
)
async def test_a_request_on_a_closed_connection_is_retried_if_that_is_safe(
    leave: str, line: str, body: bytes, again: bool, standing: Program, through: StartUpstream
) -> None:
    """Only idempotent requests are sent a second time.

    A large or streamed body is not stored, so such a request is not sent a second time either.
    """

    async def script(scripted: Scripted, reader: Reader, writer: Writer) -> None:
        await scripted.take(reader)
        writer.write(HEAD_OF_TWO if scripted.requests[-1].startswith(b"HEAD") else OK)
        await scripted.take(reader)  # the connection closes without a response
        if leave == "reset":
            reset(writer)

    scripted = await through(script)
    await get(standing)
    method = line.split()[0]
    async with connect(standing) as client:
        client.send(ask(line, f"Content-Length: {len(body)}", body=body))
        answer = await client.answer(bodiless=method == "HEAD")
    methods = [request.split()[0].decode() for request in scripted.requests]
    if again:
        assert answer.status == 200
        assert (methods, scripted.connections) == (["GET", method, method], 2)
    else:
        assert answer.status == 502
        assert (methods, scripted.connections) == (["GET", method], 1)


@pytest.mark.parametrize(
    ("line", "fields", "again"),
    [
        ("GET /plain", "Connection: close\r\n", True),
        ("PUT /plain", "Connection: x, Close\r\n", True),
        ("POST /plain", "Connection: close\r\n", False),
        ("GET /plain", "", False),
    ],
    ids=["GET", "PUT", "POST", "a 408 that keeps the connection"],
)
async def test_a_408_on_an_idle_connection_is_retried_if_that_is_safe(
    line: str, fields: str, again: bool, standing: Program, through: StartUpstream
) -> None:
    """Such a 408 crosses the next request on an idle connection (RFC 9110, section 15.5.9)."""
    gave_up = f"HTTP/1.1 408 Request Timeout\r\n{fields}Content-Length: 0\r\n\r\n".encode()

    async def script(scripted: Scripted, reader: Reader, writer: Writer) -> None:
        await scripted.take(reader)
        writer.write(OK)
        await scripted.take(reader)
        writer.write(gave_up)
        await reader.read()

    scripted = await through(script)
    assert (await get(standing)).status == 200
    answer = await get(standing, line, "Content-Length: 0")
    assert (answer.status, scripted.connections) == ((200, 2) if again else (408, 1))


async def test_a_408_on_a_new_connection_is_forwarded(
    standing: Program, through: StartUpstream
) -> None:
    scripted = await through(
        b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
    )
    for _ in range(2):
        assert (await get(standing)).status == 408
    assert len(scripted.requests) == 2


async def test_a_request_is_retried_only_once_on_a_new_connection(
    standing: Program, through: StartUpstream
) -> None:
    async def script(scripted: Scripted, reader: Reader, writer: Writer) -> None:
        await scripted.take(reader)
        if scripted.connections == 1:
            writer.write(OK)
            await scripted.take(reader)

    scripted = await through(script)
    assert (await get(standing)).status == 200
    assert (await get(standing)).status == 502
    assert (len(scripted.requests), scripted.connections) == (3, 2)


async def test_a_kept_connection_that_breaks_in_the_head_is_not_replaced(
    standing: Program, through: StartUpstream
) -> None:
    async def script(scripted: Scripted, reader: Reader, writer: Writer) -> None:
        await scripted.take(reader)
        writer.write(OK)
        await scripted.take(reader)
        writer.write(b"HTTP/1.1 200")

    scripted = await through(script)
    assert (await get(standing)).status == 200
    assert (await get(standing)).status == 502
    assert (len(scripted.requests), scripted.connections) == (2, 1)


async def test_idle_connections_that_the_service_closes_are_not_reused(
    standing: Program, through: StartUpstream
) -> None:
    closed = asyncio.Event()

    async def script(scripted: Scripted, reader: Reader, writer: Writer) -> None:
        await scripted.take(reader)
        writer.write(OK)
        await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
        assert await reader.read() == b""  # the gateway has also closed its side
        closed.set()

    await through(script)
    for _ in range(3):
        closed.clear()
        answer = await get(standing, "POST /plain", "Content-Length: 0")
        assert answer.status == 200
        async with asyncio.timeout(10):
            await closed.wait()


@pytest.mark.parametrize("size", [400_000, 600_000, 900_000, 1_100_000])
async def test_a_service_connection_is_reused_after_a_large_response(
    size: int, standing: Program, through: StartUpstream
) -> None:
    """The large body arrives faster than the client reads it, so reading is paused in between."""
    body = bytes(size)
    scripted = await through(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size + body)
    for _ in range(3):
        async with connect(standing) as client, asyncio.timeout(10):
            client.send(ask())
            assert (await client.answer()).body == body
    assert scripted.connections == 1
