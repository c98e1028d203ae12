"""One connection to a service, where the timing is too fine for a test over sockets."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from itertools import pairwise
from typing import Any

import pytest

from gateway.base.errors import FaultCode, FaultError
from gateway.http.transport import SLICE
from gateway.http.upstream.connection import StreamedResponse, UpstreamConnection
from gateway.http.upstream.service import Timeouts
from gateway.http.upstream.upstream import StaleConnectionError, UpstreamRequest
from tests.gateway.live.test_bad_services import CASES

GET = UpstreamRequest("GET", "/", [])
ODD = {name: case.data for name, case in CASES.items() if len(case.data) < 1000}
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Wire(asyncio.Transport):
    """The other end: notes what is sent, and how reading is paused and resumed."""

    def __init__(self) -> None:
        super().__init__()
        self.sent = b""
        self.flow: list[str] = []
        self.gone = asyncio.Event()

    def write(self, data: Any) -> None:
        self.sent += data

    def pause_reading(self) -> None:
        self.flow.append("pause")

    def resume_reading(self) -> None:
        self.flow.append("resume")

    def is_closing(self) -> bool:
        return self.gone.is_set()

    def abort(self) -> None:
        self.gone.set()


class Kept:
    """A connection under test, and how often it was free again."""

    def __init__(self) -> None:
        self.freed = 0
        self.gone = False
        self.wire = Wire()
        loop = asyncio.get_running_loop()
        self.connection = UpstreamConnection(
            loop, "service", "service", b"service", self.free, self.lost, []
        )
        self.connection.connection_made(self.wire)

    def free(self, _: UpstreamConnection) -> None:
        """Count."""
        self.freed += 1

    def lost(self, _: UpstreamConnection) -> None:
        """Count, once only."""
        assert not self.gone
        self.gone = True

    async def ask(
        self, pieces: Iterable[bytes], request: UpstreamRequest = GET
    ) -> StreamedResponse:
        """Send a request, let the pieces of an answer come, and return it."""
        asked = asyncio.create_task(self.connection.send(request, Timeouts()).arrived())
        await asyncio.sleep(0)
        for piece in pieces:
            self.connection.data_received(piece)
        return await asked


async def whole(response: StreamedResponse) -> bytes:
    """Return the body."""
    pieces = []
    while piece := await response.read():
        pieces.append(piece)
    return b"".join(pieces)


async def test_byte_by_byte() -> None:
    kept = Kept()
    response = await kept.ask(bytes([byte]) for byte in OK)
    assert (response.status, response.reason, await whole(response)) == (200, b"OK", b"ok")
    assert kept.freed == 1
    assert kept.wire.sent == b"GET / HTTP/1.1\r\nHost: service\r\n\r\n"


async def meaning(pieces: Iterable[bytes]) -> tuple[list[int], int, bytes | str]:
    """Return the interim statuses, and the final one with the body or the code of the fault."""
    kept, interim = Kept(), list[int]()
    request = UpstreamRequest(
        "GET", "/", [], informational=lambda status, _: interim.append(status)
    )
    asked = asyncio.create_task(kept.connection.send(request, Timeouts()).arrived())
    await asyncio.sleep(0)
    for piece in pieces:
        if not kept.wire.gone.is_set():
            kept.connection.data_received(piece)
    kept.connection.connection_lost(None)
    try:
        response = await asked
        return interim, response.status, await whole(response)
    except FaultError as error:
        return interim, 0, error.fault.code


@pytest.mark.parametrize("data", ODD.values(), ids=ODD)
async def test_odd_answers_byte_by_byte(data: bytes) -> None:
    """They mean the same as in one piece."""
    assert await meaning(bytes([byte]) for byte in data) == await meaning([data])


async def test_a_large_body_is_no_large_head() -> None:
    """The bound on heads does not count the body that comes in the same piece."""
    kept = Kept()
    start = b"HTTP/1.1 200 OK\r\nContent-Length: 250000\r\nA: " + b"a" * 20_000
    response = await kept.ask([start, b"\r\n\r\n" + bytes(250_000)])
    assert len(await whole(response)) == 250_000


async def test_a_head_is_bounded() -> None:
    kept = Kept()
    pieces = [b"HTTP/1.1 200 OK\r\n", *[b"A: " + b"a" * 1000 + b"\r\n"] * 300]
    with pytest.raises(FaultError) as failed:
        await kept.ask(pieces)
    assert failed.value.fault.code is FaultCode.UPSTREAM_PROTOCOL
    assert kept.wire.is_closing()


@pytest.mark.parametrize("size", [256 * 1024, 260 * 1024 + 1])
async def test_a_head_is_bounded_however_it_comes(size: int) -> None:
    """Also with a length at its begin, after which a body is read as it comes."""
    begin, end = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nA: ", b"\r\n\r\n"
    rest = b"a" * (size - len(begin) - len(end)) + end
    kept = Kept()
    asked = kept.ask([begin, rest[:200_000], rest[200_000:] + b"ok"])
    if size == 256 * 1024:
        assert await whole(await asked) == b"ok"
        return
    with pytest.raises(FaultError, match="head is too large"):
        await asked
    assert kept.wire.is_closing()


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize("behind", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged"])
async def test_what_follows_a_response_that_is_parsed_in_slices(behind: bytes) -> None:
    kept = Kept()
    rest = SLICE - len(CHUNKED) - len(b"XXX\r\n" + b"\r\n0\r\n\r\n")
    response = await kept.ask([CHUNKED + b"%x\r\n%b\r\n0\r\n\r\n" % (rest, bytes(rest)) + behind])
    assert await whole(response) == bytes(rest)
    assert kept.freed == (not behind)
    assert kept.wire.is_closing() is bool(behind)


async def test_chunks_of_a_byte_have_turns() -> None:
    kept = Kept()
    response = await kept.ask([CHUNKED + b"1\r\nx\r\n" * 10_000, b"1\r\ny\r\n0\r\n\r\n"])
    assert len(await response.read()) < SLICE
    assert kept.freed == 0
    assert (await whole(response))[-2:] == b"xy"
    assert (kept.freed, kept.wire.flow[-1]) == (1, "resume")


@pytest.mark.parametrize(("line", "most"), [(b"T:\r\n", 2048), (b"T: %b\r\n" % (b"t" * 507), 511)])
async def test_trailer_fields_are_bounded_with_their_framing(line: bytes, most: int) -> None:
    """A line of four bytes takes much more memory, and they have turns."""
    for more, fails in ((0, False), (1, True)):
        kept = Kept()
        response = await kept.ask([CHUNKED])
        kept.connection.data_received(b"0\r\n" + line * (most + more) + b"\r\n")
        parsed = []
        while not response.complete and response.error is None:
            parsed.append(len(response.trailers))
            await asyncio.sleep(0)
        steps = [after - before for before, after in pairwise(parsed)]
        assert 0 < max(steps) <= SLICE // 4
        assert (response.error is not None) is fails


async def test_what_waits_unread_pauses_the_service() -> None:
    kept = Kept()
    piece = bytes(30_000)
    response = await kept.ask([b"HTTP/1.1 200 OK\r\nContent-Length: 120000\r\n\r\n", piece, piece])
    kept.connection.data_received(piece)
    assert len(await response.read()) == 90_000
    assert kept.wire.flow == ["pause"]  # until the reader, who may have them for long, wants more
    rest = asyncio.create_task(whole(response))
    await asyncio.sleep(0)
    assert kept.wire.flow == ["pause", "resume"]
    kept.connection.data_received(piece)
    assert await rest == piece


async def test_a_pause_ends_with_its_response() -> None:
    """However late it is read: the connection is another's by then."""
    kept = Kept()
    piece = bytes(50_000)
    response = await kept.ask([b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", piece, piece])
    assert (kept.freed, kept.wire.flow) == (1, ["pause", "resume"])
    assert len(await whole(response)) == 100_000
    assert await whole(await kept.ask([OK])) == b"ok"


async def slowly(seconds: float) -> AsyncIterator[bytes]:
    yield b"slow"
    await asyncio.sleep(seconds)
    yield b"body"


@pytest.mark.parametrize("length", [8, None], ids=["length", "chunked"])
async def test_the_clock_of_an_idle_connection_stops_when_it_is_used(length: int | None) -> None:
    kept = Kept()
    await whole(await kept.ask([OK]))
    kept.connection.expire(0.05)
    asked = asyncio.create_task(
        kept.connection.send(
            UpstreamRequest("POST", "/", [], body=slowly(0.2), length=length), Timeouts()
        ).arrived()
    )
    while not kept.wire.sent.endswith((b"body", b"\r\n0\r\n\r\n")):
        await asyncio.sleep(0.01)
        assert not kept.wire.is_closing()
    await asyncio.sleep(0)
    kept.connection.data_received(OK)
    assert await whole(await asked) == b"ok"


async def test_an_idle_connection_is_closed_in_the_end() -> None:
    kept = Kept()
    await whole(await kept.ask([OK]))
    kept.connection.expire(0.05)
    async with asyncio.timeout(10):
        await kept.wire.gone.wait()
    assert not kept.connection.is_usable()


async def test_an_answer_before_the_end_of_its_request_ends_the_connection() -> None:
    kept = Kept()
    response = await kept.ask([OK], UpstreamRequest("POST", "/", [], body=slowly(60), length=8))
    assert await whole(response) == b"ok"
    assert (kept.freed, kept.wire.is_closing()) == (0, True)


async def test_a_closing_connection_asks_for_no_more_of_a_body() -> None:
    """What waits for the service keeps the connection half open after the end that it has sent."""
    taken: list[bytes] = []

    async def body() -> AsyncIterator[bytes]:
        for piece in (b"a", b"b", b"c"):
            taken.append(piece)
            yield piece
            await asyncio.sleep(0)

    kept = Kept()
    response = kept.connection.send(UpstreamRequest("POST", "/", [], body=body()), Timeouts())
    await asyncio.sleep(0)
    kept.wire.gone.set()
    for _ in range(10):
        await asyncio.sleep(0)
    assert taken == [b"a", b"b"]
    assert not kept.wire.sent.endswith(b"0\r\n\r\n")  # nor is the body said to be complete
    kept.connection.connection_lost(None)
    with pytest.raises(FaultError):
        await response.arrived()


async def test_a_body_that_fails_in_an_unforeseen_way_ends_the_exchange() -> None:
    """Nobody else would: the service waits for the rest, and has all the time of `whole`."""

    async def body() -> AsyncIterator[bytes]:
        yield b"a"
        raise LookupError("unforeseen")

    kept = Kept()
    response = kept.connection.send(UpstreamRequest("POST", "/", [], body=body()), Timeouts())
    await asyncio.sleep(0.01)
    assert kept.wire.is_closing()
    with pytest.raises(LookupError):
        await response.arrived()


async def test_an_empty_piece_does_not_end_a_body() -> None:
    """A chunk of no bytes would: the service would take those behind it for the next request."""

    async def body() -> AsyncIterator[bytes]:
        for piece in (b"", b"a", b"", b"bc"):
            yield piece

    kept = Kept()
    kept.connection.send(UpstreamRequest("POST", "/", [], body=body()), Timeouts())
    await asyncio.sleep(0.01)
    sent = kept.wire.sent.partition(b"\r\n\r\n")[2]
    assert sent == b"1\r\na\r\n2\r\nbc\r\n0\r\n\r\n"
    kept.connection.close()


async def test_the_clock_for_the_answer_starts_when_the_request_is_sent() -> None:
    kept = Kept()
    request = UpstreamRequest("POST", "/", [], body=slowly(0.2), length=8)
    asked = asyncio.create_task(kept.connection.send(request, Timeouts(first_byte=0.1)).arrived())
    while not kept.wire.sent.endswith(b"body"):
        await asyncio.sleep(0.01)
        assert not asked.done()
    with pytest.raises(FaultError) as failed:
        await asked
    assert failed.value.fault.code is FaultCode.UPSTREAM_TIMEOUT


@pytest.mark.parametrize(
    ("used", "came", "raised"),
    [(False, b"", FaultError), (True, b"", StaleConnectionError), (True, b"H", FaultError)],
    ids=["a new one", "a used one", "a used one that began to answer"],
)
async def test_a_connection_that_is_lost(used: bool, came: bytes, raised: type[Exception]) -> None:
    kept = Kept()
    if used:
        await whole(await kept.ask([OK]))
    asked = asyncio.create_task(kept.connection.send(GET, Timeouts()).arrived())
    await asyncio.sleep(0)
    if came:
        kept.connection.data_received(came)
    kept.connection.connection_lost(None)
    with pytest.raises(raised):
        await asked
    assert kept.gone
    assert not kept.connection.is_usable()


HALF = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbo"


async def test_a_small_body_is_awaited_with_its_head() -> None:
    kept = Kept()
    asked = asyncio.create_task(kept.connection.send(GET, Timeouts()).arrived())
    await asyncio.sleep(0)
    kept.connection.data_received(HALF)
    await asyncio.sleep(0)
    assert not asked.done()
    kept.connection.data_received(b"dy")
    response = await asked
    assert response.complete
    assert await response.read() == b"body"


async def test_a_small_body_is_not_awaited_for_long() -> None:
    kept = Kept()
    response = await kept.ask([HALF])
    assert (response.complete, await response.read()) == (False, b"bo")
    kept.connection.data_received(b"dy")
    assert await whole(response) == b"dy"


async def test_a_small_body_that_breaks_off_is_handed_on_as_far_as_it_came() -> None:
    kept = Kept()
    asked = asyncio.create_task(kept.connection.send(GET, Timeouts()).arrived())
    await asyncio.sleep(0)
    kept.connection.data_received(HALF)
    kept.connection.connection_lost(None)
    response = await asked
    assert await response.read() == b"bo"
    with pytest.raises(FaultError):
        await response.read()
