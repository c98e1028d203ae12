"""One connection to a service, in cases whose timing is too fine for tests over sockets."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterable
from itertools import pairwise
from typing import Any

import pytest

from gateway.base.errors import FaultCode, FaultError
from gateway.http.transport import SLICE
from gateway.http.upstream.connection import LOOK_AFTER, StreamedResponse, UpstreamConnection
from gateway.http.upstream.service import Timeouts
from gateway.http.upstream.upstream import StaleConnectionError, UpstreamRequest
from tests.gateway.live.test_bad_services import CASES

GET = UpstreamRequest("GET", "/", [])
ODD = {name: case.data for name, case in CASES.items() if len(case.data) < 1000}
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Wire(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.sent = b""
        self.flow: list[str] = []
        self.gone = asyncio.Event()
        self.socket: socket.socket | None = None

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self.socket if name == "socket" else default

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
    """A connection under test; counts how often it became free."""

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
        self.freed += 1

    def lost(self, _: UpstreamConnection) -> None:
        """Record the end, which must occur only once."""
        assert not self.gone
        self.gone = True

    async def ask(
        self, pieces: Iterable[bytes], request: UpstreamRequest = GET
    ) -> StreamedResponse:
        asked = asyncio.create_task(self.connection.send(request, Timeouts()).arrived())
        await asyncio.sleep(0)
        for piece in pieces:
            self.connection.data_received(piece)
        return await asked


async def whole(response: StreamedResponse) -> bytes:
    pieces = []
    while piece := await response.read():
        pieces.append(piece)
    return b"".join(pieces)


async def test_a_response_that_arrives_byte_by_byte_is_complete() -> None:
    kept = Kept()
    response = await kept.ask(bytes([byte]) for byte in OK)
    assert (response.status, response.reason, await whole(response)) == (200, b"OK", b"ok")
    assert kept.freed == 1
    assert kept.wire.sent == b"GET / HTTP/1.1\r\nHost: service\r\n\r\n"


async def meaning(pieces: Iterable[bytes]) -> tuple[list[int], int, bytes | str]:
    """Return the interim statuses, and the final status with the body or the fault code."""
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
async def test_an_unusual_response_means_the_same_byte_by_byte_and_in_one_piece(
    data: bytes,
) -> None:
    assert await meaning(bytes([byte]) for byte in data) == await meaning([data])


async def test_a_large_body_does_not_count_as_a_large_head() -> None:
    """This includes body bytes that arrive together with the head."""
    kept = Kept()
    start = b"HTTP/1.1 200 OK\r\nContent-Length: 250000\r\nA: " + b"a" * 20_000
    response = await kept.ask([start, b"\r\n\r\n" + bytes(250_000)])
    assert len(await whole(response)) == 250_000


async def test_a_head_of_many_fields_is_limited() -> None:
    kept = Kept()
    pieces = [b"HTTP/1.1 200 OK\r\n", *[b"A: " + b"a" * 1000 + b"\r\n"] * 300]
    with pytest.raises(FaultError) as failed:
        await kept.ask(pieces)
    assert failed.value.fault.code is FaultCode.UPSTREAM_PROTOCOL
    assert kept.wire.is_closing()


@pytest.mark.parametrize("size", [256 * 1024, 260 * 1024 + 1])
async def test_a_head_is_limited_however_it_is_split(size: int) -> None:
    """The head begins with a length, after which a body would be read without slicing."""
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
async def test_bytes_after_a_response_that_is_parsed_in_slices_close_the_connection(
    behind: bytes,
) -> None:
    kept = Kept()
    rest = SLICE - len(CHUNKED) - len(b"XXX\r\n" + b"\r\n0\r\n\r\n")
    response = await kept.ask([CHUNKED + b"%x\r\n%b\r\n0\r\n\r\n" % (rest, bytes(rest)) + behind])
    assert await whole(response) == bytes(rest)
    assert kept.freed == (not behind)
    assert kept.wire.is_closing() is bool(behind)


async def test_chunks_of_one_byte_are_parsed_over_several_iterations() -> None:
    kept = Kept()
    response = await kept.ask([CHUNKED + b"1\r\nx\r\n" * 10_000, b"1\r\ny\r\n0\r\n\r\n"])
    assert len(await response.read()) < SLICE
    assert kept.freed == 0
    assert (await whole(response))[-2:] == b"xy"
    assert (kept.freed, kept.wire.flow[-1]) == (1, "resume")


@pytest.mark.parametrize(("line", "most"), [(b"T:\r\n", 2048), (b"T: %b\r\n" % (b"t" * 507), 511)])
async def test_trailer_fields_including_their_framing_are_limited(line: bytes, most: int) -> None:
    """A line of four bytes takes much more memory. The lines are parsed over several iterations."""
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


async def test_unread_bytes_pause_reading_from_the_service() -> None:
    kept = Kept()
    piece = bytes(30_000)
    response = await kept.ask([b"HTTP/1.1 200 OK\r\nContent-Length: 120000\r\n\r\n", piece, piece])
    kept.connection.data_received(piece)
    assert len(await response.read()) == 90_000
    assert kept.wire.flow == ["pause"]  # reading stays paused until the next read
    rest = asyncio.create_task(whole(response))
    await asyncio.sleep(0)
    assert kept.wire.flow == ["pause", "resume"]
    kept.connection.data_received(piece)
    assert await rest == piece


async def test_a_pause_ends_with_its_response() -> None:
    """The response may be read when the connection already serves another exchange."""
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
async def test_using_an_idle_connection_stops_its_idle_timeout(length: int | None) -> None:
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


async def test_an_idle_connection_is_closed_after_its_idle_time() -> None:
    kept = Kept()
    await whole(await kept.ask([OK]))
    kept.connection.expire(0.05)
    async with asyncio.timeout(10):
        await kept.wire.gone.wait()
    assert not kept.connection.is_usable()


async def test_unread_bytes_make_a_kept_connection_unusable_but_not_a_fresh_one() -> None:
    """On a fresh connection, they may be the tickets of TLS 1.3."""
    kept = Kept()
    own, service = socket.socketpair()
    with own, service:
        kept.wire.socket = own
        service.send(b"x")
        assert kept.connection.is_usable(look=True)
        kept.connection.expire(60)
        kept.connection.rested_since -= 2 * LOOK_AFTER  # the process was busy, or it was idle
        assert kept.connection.is_usable(look=True, idle=False)
        assert not kept.connection.is_usable()
        await whole(await kept.ask([OK]))
        assert not kept.connection.is_usable(look=True, idle=False)
        own.recv(1)
        assert kept.connection.is_usable(look=True)


async def test_a_response_before_the_end_of_its_request_closes_the_connection() -> None:
    kept = Kept()
    response = await kept.ask([OK], UpstreamRequest("POST", "/", [], body=slowly(60), length=8))
    assert await whole(response) == b"ok"
    assert (kept.freed, kept.wire.is_closing()) == (0, True)


async def test_a_closing_connection_reads_no_more_of_a_request_body() -> None:
    """Pieces that wait for the service would keep the connection half open after its end."""
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
    assert not kept.wire.sent.endswith(b"0\r\n\r\n")  # the body is not marked as complete either
    kept.connection.connection_lost(None)
    with pytest.raises(FaultError):
        await response.arrived()


async def test_an_unexpected_error_in_a_request_body_ends_the_exchange() -> None:
    """Otherwise the service would wait for the rest of the body until the timeout `whole`."""

    async def body() -> AsyncIterator[bytes]:
        yield b"a"
        raise LookupError("unforeseen")

    kept = Kept()
    response = kept.connection.send(UpstreamRequest("POST", "/", [], body=body()), Timeouts())
    await asyncio.sleep(0.01)
    assert kept.wire.is_closing()
    with pytest.raises(LookupError):
        await response.arrived()


async def test_an_empty_piece_does_not_end_a_chunked_body() -> None:
    """An empty chunk would: the service would read the next chunks as another request."""

    async def body() -> AsyncIterator[bytes]:
        for piece in (b"", b"a", b"", b"bc"):
            yield piece

    kept = Kept()
    kept.connection.send(UpstreamRequest("POST", "/", [], body=body()), Timeouts())
    await asyncio.sleep(0.01)
    sent = kept.wire.sent.partition(b"\r\n\r\n")[2]
    assert sent == b"1\r\na\r\n2\r\nbc\r\n0\r\n\r\n"
    kept.connection.close()


async def test_the_first_byte_timeout_starts_when_the_request_is_sent() -> None:
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
async def test_losing_a_connection_raises_the_error_for_its_state(
    used: bool, came: bytes, raised: type[Exception]
) -> None:
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


async def test_a_small_body_is_awaited_together_with_its_head() -> None:
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


async def test_a_small_body_is_awaited_only_briefly() -> None:
    kept = Kept()
    response = await kept.ask([HALF])
    assert (response.complete, await response.read()) == (False, b"bo")
    kept.connection.data_received(b"dy")
    assert await whole(response) == b"dy"


async def test_a_small_body_that_is_cut_off_is_returned_as_far_as_it_arrived() -> None:
    kept = Kept()
    asked = asyncio.create_task(kept.connection.send(GET, Timeouts()).arrived())
    await asyncio.sleep(0)
    kept.connection.data_received(HALF)
    kept.connection.connection_lost(None)
    response = await asked
    assert await response.read() == b"bo"
    with pytest.raises(FaultError):
        await response.read()
