"""Streaming in both directions; interim responses, HTTP/1.0 clients, early ends, slow readers."""

import asyncio
import json
from contextlib import suppress

import pytest

from tests.gateway.kit import DEADLINE, Program, Scripted, StartUpstream
from tests.gateway.talk import (
    OK,
    Reader,
    Writer,
    ask,
    connect,
    end,
    get,
    logged,
    reset,
    settled,
    soon,
)

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


async def until(event: asyncio.Event) -> None:
    async with asyncio.timeout(10):
        await event.wait()


async def gone(reader: Reader) -> bool:
    async with asyncio.timeout(10):
        try:
            return await reader.read() == b""
        except ConnectionError:
            return True


# Pieces of bodies.


@pytest.mark.parametrize(
    "head",
    [CHUNKED, b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 21\r\n\r\n"],
    ids=["chunked", "until the end", "of a length"],
)
@pytest.mark.parametrize("http", ["1.1", "1.0"])
async def test_an_event_is_forwarded_before_the_next_one_is_sent(
    head: bytes, http: str, standing: Program, through: StartUpstream
) -> None:
    seen = asyncio.Event()
    events = [b"data: 1", b"data: 2", b"data: 3"]

    async def script(scripted: Scripted, reader: Reader, writer: Writer) -> None:
        await scripted.take(reader)
        writer.write(head)
        for event in events:
            writer.write(chunk(event) if head == CHUNKED else event)
            await until(seen)
            seen.clear()
        if head == CHUNKED:
            writer.write(chunk(b""))

    await through(script)
    async with connect(standing) as client, asyncio.timeout(10):
        client.send(ask(http=http))
        answer = await client.head()
        framed = answer.all("transfer-encoding") == ["chunked"]
        assert framed == (http == "1.1" and b"Length" not in head)
        for event in events:
            got = await client.chunk() if framed else await client.reader.readexactly(len(event))
            assert got == event
            seen.set()
        if framed:
            assert await client.chunk() == b""
        elif b"Length" not in head:
            assert await client.rest() == b""


@pytest.mark.parametrize("framing", ["chunked", "length"])
async def test_a_piece_of_a_request_is_forwarded_before_the_next_one_is_sent(
    framing: str, standing: Program, through: StartUpstream
) -> None:
    seen: asyncio.Queue[bytes] = asyncio.Queue()

    async def script(scripted: Scripted, reader: Reader, writer: Writer) -> None:
        seen.put_nowait(await reader.readuntil(b"\r\n\r\n"))
        while data := await reader.read(1000):
            seen.put_nowait(data)

    await through(script)
    line = "Transfer-Encoding: chunked" if framing == "chunked" else "Content-Length: 15"
    async with connect(standing) as client, asyncio.timeout(10):
        client.send(ask("POST /plain", line))
        head = await seen.get()
        assert line.encode() in head
        for piece in (b"piece", b"after", b"piece"):
            sent = chunk(piece) if framing == "chunked" else piece
            client.send(sent)
            assert await seen.get() == sent


async def test_a_response_streams_while_its_request_is_still_arriving(
    standing: Program, through: StartUpstream
) -> None:
    async def script(scripted: Scripted, reader: Reader, writer: Writer) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(CHUNKED)
        while size := int(await reader.readline(), 16):
            writer.write(chunk((await reader.readexactly(size + 2))[:-2].upper()))
        writer.write(chunk(b""))

    await through(script)
    async with connect(standing) as client:
        client.send(ask("POST /plain", "Transfer-Encoding: chunked"))
        assert (await client.head()).status == 200
        for word in (b"one", b"two", b"three"):
            client.send(chunk(word))
            assert await client.chunk() == word.upper()
        client.send(chunk(b""))
        assert await client.chunk() == b""


# Interim responses.


async def test_interim_responses_are_forwarded_to_the_client(
    standing: Program, through: StartUpstream
) -> None:
    await through(
        b"HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\nConnection: x-hop\r\nX-Hop: 1\r\n"
        b"Keep-Alive: 5\r\nContent-Length: 7\r\n\r\n"
        b"HTTP/1.1 102 Processing\r\n\r\n" + OK
    )
    async with connect(standing) as client:
        for _ in range(2):
            client.send(ask())
            hints = await client.answer()
            assert (hints.status, hints.fields) == (103, [("Link", "</a>; rel=preload")])
            assert (await client.answer()).status == 102
            answer = await client.answer()
            assert (answer.status, answer.body) == (200, b"ok")


async def test_a_client_of_http_1_0_gets_no_interim_response(
    standing: Program, through: StartUpstream
) -> None:
    await through(b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n" + OK)
    async with connect(standing) as client:
        client.send(ask(http="1.0"))
        assert (await client.answer()).body == b"ok"
        assert await client.rest() == b""


@pytest.mark.parametrize("final", [OK, b"HTTP/1.1 417 Expectation Failed\r\n\r\n"])
async def test_the_service_decides_about_expect_100_continue(
    final: bytes, standing: Program, through: StartUpstream
) -> None:
    accepted = final is OK

    async def script(scripted: Scripted, reader: Reader, writer: Writer) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        assert b"\r\nExpect: 100-continue\r\n" in head
        if accepted:
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            assert await reader.readexactly(4) == b"body"
        writer.write(final)

    await through(script)
    async with connect(standing) as client:
        client.send(ask("POST /plain", "Expect: 100-continue", "Content-Length: 4"))
        answer = await client.answer()
        if accepted:
            assert answer.status == 100
            client.send(b"body")
            answer = await client.answer()
        assert answer.status == (200 if accepted else 417)
        assert answer.all("connection") == ([] if accepted else ["close"])


async def test_a_connection_closes_if_its_client_may_withhold_a_body(
    standing: Program, through: StartUpstream
) -> None:
    """Without 100, the next bytes may be the next request instead of the body."""
    await through(OK)
    for line, length, closes in (
        ("POST /nowhere", 4, True),
        ("POST /v9/person", 4, True),
        ("POST /nowhere", 0, False),
        ("GET /plain", 0, False),
    ):
        async with connect(standing) as client:
            client.send(ask(line, "Expect: 100-continue", f"Content-Length: {length}"))
            answer = await client.final()
            assert answer.all("connection") == (["close"] if closes else [])
            client.send(ask())
            if closes:
                assert await client.rest() == b""
            else:
                assert (await client.answer()).status == 200


# HTTP/1.0 clients, and bodies that end with the connection.


@pytest.mark.parametrize(
    ("response", "keeps"),
    [
        (OK, True),
        (CHUNKED + chunk(b"ok") + chunk(b""), False),
        (b"HTTP/1.1 204 No Content\r\n\r\n", True),
    ],
    ids=["length", "chunked", "no content"],
)
@pytest.mark.parametrize("asks", [True, False], ids=["keep-alive", "close"])
async def test_a_client_of_http_1_0_gets_no_chunked_coding(
    response: bytes, keeps: bool, asks: bool, standing: Program, through: StartUpstream
) -> None:
    await through(response)
    async with connect(standing) as client:
        client.send(ask("GET /plain", *(["Connection: keep-alive"] if asks else []), http="1.0"))
        answer = await client.answer()
        assert answer.body == (b"" if answer.status == 204 else b"ok")
        assert answer.all("transfer-encoding") == []
        if asks and keeps:
            assert answer["connection"] == "keep-alive"
            client.send(ask(http="1.0"))
            await client.answer()
        assert await client.rest() == b""


async def test_a_body_that_ends_with_its_connection_is_forwarded(
    standing: Program, through: StartUpstream
) -> None:
    body = bytes(range(256)) * 1000

    async def script(scripted: Scripted, reader: Reader, writer: Writer) -> None:
        await scripted.take(reader)
        writer.write(b"HTTP/1.0 200 OK\r\nContent-Type: a/b\r\n\r\n" + body)

    scripted = await through(script)
    async with connect(standing) as client:
        for _ in range(2):
            client.send(ask())
            answer = await client.answer()
            assert answer["transfer-encoding"] == "chunked"
            assert answer.body == body
    assert scripted.connections == 2


@pytest.mark.parametrize("head", [b"HTTP/1.1 200 OK\r\n", b"HTTP/1.0 200 OK\r\n"])
async def test_an_empty_body_that_ends_with_its_connection_is_forwarded(
    head: bytes, standing: Program, through: StartUpstream
) -> None:
    async def script(scripted: Scripted, reader: Reader, writer: Writer) -> None:
        await scripted.take(reader)
        writer.write(head + b"\r\n")

    await through(script)
    async with connect(standing) as client:
        for _ in range(2):
            client.send(ask())
            assert (await client.answer()).body == b""


async def test_a_204_response_has_no_content_length(
    standing: Program, through: StartUpstream
) -> None:
    """Otherwise a client could wait for a body (RFC 9110, section 8.6)."""
    await through(b"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n")
    answer = await get(standing)
    assert (answer.status, answer.all("content-length")) == (204, [])


@pytest.mark.parametrize("status", [b"304 Not Modified", b"200 OK"])
async def test_a_length_without_a_body_is_kept(
    status: bytes, standing: Program, through: StartUpstream
) -> None:
    """For HEAD and 304, Content-Length is the length that the body would have."""
    await through(b"HTTP/1.1 " + status + b"\r\nContent-Length: 5\r\n\r\n")
    async with connect(standing) as client:
        for _ in range(2):
            client.send(ask("HEAD /plain"))
            assert (await client.answer(bodiless=True))["content-length"] == "5"


# Responses before the end of the request.


@pytest.mark.parametrize("framing", ["chunked", "length"])
@pytest.mark.parametrize("closes", [True, False], ids=["client closes", "client stays"])
async def test_an_early_response_reaches_the_client_completely(
    framing: str, closes: bool, standing: Program, through: StartUpstream
) -> None:
    """The client gets the complete response, although the rest of its request is discarded."""
    early = b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nno!"

    async def script(scripted: Scripted, reader: Reader, writer: Writer) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(1000)
        writer.write(early)
        await gone(reader)

    await through(script)
    piece = bytes(50_000)
    line = "Transfer-Encoding: chunked" if framing == "chunked" else "Content-Length: 10000000"
    async with connect(standing) as client:
        client.send(ask("POST /plain", line, *(["Connection: close"] if closes else [])))
        for _ in range(200):
            client.send(chunk(piece) if framing == "chunked" else piece)
        await client.writer.drain()  # sends everything before it reads the response
        if framing == "chunked":
            client.send(chunk(b""))
        answer = await client.answer()
        assert (answer.status, answer.body) == (413, b"no!")
        if not closes and framing == "length":  # after chunks, pipelined bytes are dropped
            client.send(ask("GET /nowhere"))
            assert (await client.answer()).status == 404


@pytest.mark.parametrize("keeps", [True, False], ids=["service stays", "service closes"])
async def test_the_rest_of_a_request_may_follow_its_response(
    keeps: bool, standing: Program, through: StartUpstream
) -> None:
    end = b"" if keeps else b"Connection: close\r\n"
    early = b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n%b\r\nno!" % end

    async def script(scripted: Scripted, reader: Reader, writer: Writer) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(1000)
        writer.write(early)
        await gone(reader)

    await through(script)
    async with connect(standing) as client:
        client.send(ask("POST /plain", "Content-Length: 2000", body=bytes(1000)))
        assert (await client.answer()).status == 413
        client.send(bytes(1000) + ask("GET /nowhere"))
        assert (await client.answer()).status == 404


async def test_an_early_refusal_reaches_a_client_that_still_sends(standing: Program) -> None:
    async with connect(standing) as client:
        client.send(ask("POST /nowhere", "Content-Length: 10000000", "Connection: close"))
        client.send(bytes(10_000_000))
        await client.writer.drain()
        assert (await client.answer()).status == 404


# Clients that disconnect, and requests that end early.


async def waiting(through: StartUpstream) -> tuple[Scripted, asyncio.Event]:
    """Start a service that never responds; return it and an event for its lost connection."""
    left = asyncio.Event()

    async def script(scripted: Scripted, reader: Reader, writer: Writer) -> None:
        await scripted.take(reader)
        if await gone(reader):
            left.set()

    scripted = await through(script)
    return scripted, left


async def test_a_client_that_leaves_ends_its_request(
    standing: Program, through: StartUpstream
) -> None:
    scripted, left = await waiting(through)
    async with connect(standing) as client:
        client.send(ask("GET /plain", "X-Request-Id: left-waiting"))
        await soon(lambda: scripted.requests)
    await until(left)
    line = await logged(standing, "left-waiting")
    assert (line["aborted"], line["status"], line["cause"]) == (True, 0, "the client left")


@pytest.mark.parametrize("how", ["close", "half", "reset"])
async def test_a_client_that_leaves_with_pipelined_requests_ends_the_first_one(
    standing: Program, through: StartUpstream, how: str
) -> None:
    """Earlier, the gateway did not detect this, and the request kept its place at the service."""
    scripted, left = await waiting(through)
    async with connect(standing) as client:
        client.send(ask("GET /plain", f"X-Request-Id: ahead-{how}") + ask() * 2)
        await soon(lambda: scripted.requests)
        {"close": client.writer.close, "half": client.writer.write_eof, "reset": client.cut}[how]()
        await until(left)
    line = await logged(standing, f"ahead-{how}")
    assert (line["aborted"], line["status"], line["cause"]) == (True, 0, "the client left")
    assert len(scripted.requests) == 1


async def test_a_client_that_leaves_a_blocked_upload_ends_its_request(
    standing: Program, through: StartUpstream
) -> None:
    over = asyncio.Event()

    async def script(scripted: Scripted, reader: Reader, writer: Writer) -> None:
        scripted.requests.append(await reader.readuntil(b"\r\n\r\n"))
        await over.wait()
        reset(writer)

    scripted = await through(script)
    async with connect(standing) as client:
        client.send(ask("POST /plain", "X-Request-Id: untaken", "Content-Length: 50000000"))
        client.send(bytes(30_000_000))
        await soon(lambda: scripted.requests)
        await settled(client.writer.transport.get_write_buffer_size)
        client.cut()
        line = await logged(standing, "untaken")
    over.set()
    assert (line["aborted"], line["status"], line["cause"]) == (True, 0, "the client left")


@pytest.mark.parametrize("how", ["close", "reset"])
async def test_a_client_that_leaves_ends_its_response(
    how: str, standing: Program, through: StartUpstream
) -> None:
    left = asyncio.Event()

    async def script(scripted: Scripted, reader: Reader, writer: Writer) -> None:
        await scripted.take(reader)
        writer.write(CHUNKED)
        try:
            while True:
                writer.write(chunk(bytes(10_000)))
                await writer.drain()
        except ConnectionError:
            left.set()

    await through(script)
    async with connect(standing) as client:
        client.send(ask())
        await client.head()
        await client.chunk()
        if how == "reset":
            reset(client.writer)
    await until(left)


@pytest.mark.parametrize("framing", ["chunked", "length"])
@pytest.mark.parametrize("how", ["close", "reset"])
async def test_a_client_that_leaves_within_its_body_ends_its_request(
    framing: str, how: str, standing: Program, through: StartUpstream
) -> None:
    got: asyncio.Queue[bytes] = asyncio.Queue()

    async def script(scripted: Scripted, reader: Reader, writer: Writer) -> None:
        await reader.readuntil(b"\r\n\r\n")
        received = await reader.readexactly(4)
        got.put_nowait(received)
        with suppress(ConnectionError):
            received += await reader.read()
        got.put_nowait(received)

    await through(script)
    line = "Transfer-Encoding: chunked" if framing == "chunked" else "Content-Length: 10"
    async with connect(standing) as client, asyncio.timeout(10):
        client.send(ask("POST /plain", line))
        client.send(chunk(b"body") if framing == "chunked" else b"body")
        await got.get()
        if how == "reset":
            reset(client.writer)
    async with asyncio.timeout(10):
        assert await got.get() == (chunk(b"body") if framing == "chunked" else b"body")


@pytest.mark.parametrize("bad", [b"zz\r\n", b"3\r\nfour\r\n", b"-1\r\n", b"f" * 17 + b"\r\n"])
async def test_a_body_with_invalid_framing_ends_its_request(
    bad: bytes, standing: Program, through: StartUpstream
) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def script(scripted: Scripted, reader: Reader, writer: Writer) -> None:
        await reader.readuntil(b"\r\n\r\n")
        assert await reader.readexactly(9) == chunk(b"good")
        begun.set()
        assert not (await reader.read()).endswith(b"0\r\n\r\n")
        ended.set()

    await through(script)
    async with connect(standing) as client:
        client.send(ask("POST /plain", "Transfer-Encoding: chunked"))
        client.send(chunk(b"good"))
        await until(begun)
        client.send(bad)
        answer = await client.answer()
        assert answer.status == 400
        assert json.loads(answer.body)["code"] == "bad_request"
        assert await client.rest() == b""
    await until(ended)


async def test_pipelined_requests_are_answered_in_order(
    standing: Program, through: StartUpstream
) -> None:
    async def script(scripted: Scripted, reader: Reader, writer: Writer) -> None:
        while True:
            request = await scripted.take(reader)
            body = request.split(b" ")[1]
            if body.endswith(b"0"):
                await asyncio.sleep(0.01)  # a later response could overtake here
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))

    await through(script)
    async with connect(standing) as client:
        lines = [f"{'POST' if n % 3 == 0 else 'GET'} /tail/{n}" for n in range(100)]
        client.send(
            b"".join(
                ask(line, "Content-Length: 2", body=b"ok") if line[0] == "P" else ask(line)
                for line in lines
            )
        )
        for n in range(100):
            assert (await client.answer()).body == b"/tail/%d" % n


async def test_an_invalid_request_after_valid_ones_is_refused_last(
    standing: Program, through: StartUpstream
) -> None:
    await through(OK)
    async with connect(standing) as client:
        client.send(ask() + ask())
        statuses = [(await client.answer()).status for _ in range(2)]
        client.send(b"no request\r\n\r\n" + ask())
        statuses.append((await client.answer()).status)
        assert statuses == [200, 200, 400]
        assert await client.rest() == b""


async def test_a_declined_upgrade_request_ends_its_connection(
    standing: Program, through: StartUpstream
) -> None:
    await through(OK)
    async with connect(standing) as client:
        client.send(ask("GET /plain", "Connection: upgrade", "Upgrade: h2c") + ask())
        answer = await client.answer()
        assert (answer["connection"], answer.body) == ("close", b"ok")
        assert await client.rest() == b""


# Readers slower than writers.


async def test_a_slow_client_makes_the_service_wait(
    standing: Program, through: StartUpstream
) -> None:
    total, piece = 64 * 1024 * 1024, bytes(1024 * 1024)
    sent = 0

    async def script(scripted: Scripted, reader: Reader, writer: Writer) -> None:
        nonlocal sent
        await scripted.take(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % total)
        while sent < total:
            writer.write(piece)
            await writer.drain()
            sent += len(piece)

    await through(script)
    async with connect(standing, window=4096) as client:
        client.send(ask())
        await client.head()
        assert await settled(lambda: sent) < total / 2
        async with asyncio.timeout(DEADLINE):
            left = total
            while left:
                left -= len(await client.reader.read(2**20))


async def test_a_pipelining_client_that_does_not_read_is_paused(
    standing: Program, through: StartUpstream
) -> None:
    """Complete small responses accumulate only up to the size of the buffers."""
    body, asked = bytes(20_000), 2000
    scripted = await through(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    async with connect(standing, window=4096) as client:
        client.send(ask() * asked)
        assert await settled(lambda: len(scripted.requests)) < asked / 2
        for _ in range(asked):
            assert (await client.answer()).body == body


async def test_a_slow_service_makes_the_client_wait(
    standing: Program, through: StartUpstream
) -> None:
    total, piece = 64 * 1024 * 1024, bytes(1024 * 1024)
    go = asyncio.Event()

    async def script(scripted: Scripted, reader: Reader, writer: Writer) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await go.wait()
        left = total
        while left:
            left -= len(await reader.read(2**20))
        writer.write(OK)
        await end(reader, writer, "hold")

    await through(script)
    async with connect(standing) as client:
        client.send(ask("PUT /plain", f"Content-Length: {total}"))
        sent = 0

        async def upload() -> None:
            nonlocal sent
            while sent < total:
                client.send(piece)
                await client.writer.drain()
                sent += len(piece)

        uploading = asyncio.create_task(upload())
        assert await settled(lambda: sent) < total / 2
        go.set()
        assert (await client.answer()).status == 200
        await uploading
