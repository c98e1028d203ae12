"""The amount of a body that is parsed per event loop iteration, and requests in one piece."""

import asyncio
from itertools import pairwise

import pytest
from aiohttp.web import RequestHandler

from tests.gateway.kit import rules
from tests.gateway.proxy.wires import Gateway, Wire
from tests.gateway.talk import OK, ask

CHUNKS = 5000


async def test_parsing_resumes_once_per_event_loop_iteration(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The reader requests it for each chunk. Each time, the parser copies all unparsed bytes."""
    served = Gateway(rules(1), {1: lambda _: OK})
    protocol = served.client.protocol
    resumed, resume = [], RequestHandler.resume_reading

    def count(self: RequestHandler, resume_parser: bool = True) -> None:
        resumed.append(resume_parser)
        resume(self, resume_parser)

    monkeypatch.setattr(RequestHandler, "resume_reading", count)
    protocol.data_received(ask("POST /nowhere", "Transfer-Encoding: chunked"))
    body = protocol._arriving
    protocol.data_received(b"1\r\nx\r\n" * CHUNKS)
    while body.total_bytes < CHUNKS:
        before = len(resumed)
        await asyncio.sleep(0)
        assert len(resumed) <= before + 1
    assert 0 < len(resumed) <= CHUNKS // 64 + 2
    protocol.data_received(b"0\r\n\r\n")
    await served._recorded.wait()
    assert served.client.data.startswith(b"HTTP/1.1 404")
    served.close()


async def test_few_chunks_are_parsed_per_event_loop_iteration() -> None:
    """Other connections wait meanwhile, and a chunk of one byte costs as much as a large one."""
    served = Gateway(rules(1), {1: lambda _: OK})
    protocol = served.client.protocol
    protocol.data_received(ask("POST /nowhere", "Transfer-Encoding: chunked"))
    parsed = [0]
    body = protocol._arriving
    protocol.data_received(b"1\r\nx\r\n" * CHUNKS)
    while body.total_bytes < CHUNKS:
        parsed.append(body.total_bytes)
        await asyncio.sleep(0)
    steps = [after - before for before, after in pairwise(parsed)]
    assert 0 < max(steps) <= 2 * 128
    protocol.data_received(b"0\r\n\r\n")
    await served._recorded.wait()
    assert served.client.data.startswith(b"HTTP/1.1 404")
    served.close()


async def test_the_end_of_a_body_is_found_after_chunks_that_were_delayed() -> None:
    """A pause that begins at the last byte of earlier chunks must not hide the end of the body."""
    served = Gateway(rules(1), {1: lambda _: OK})
    protocol = served.client.protocol
    protocol.data_received(ask("POST /nowhere", "Transfer-Encoding: chunked"))
    body = protocol._arriving
    while not protocol._reading_paused:
        protocol.data_received(b"1\r\nx\r\n")
    for _ in range(10):
        await asyncio.sleep(0)  # the chunks are read, and the pause is over
    assert not protocol._reading_paused
    protocol.data_received(b"1\r\nx\r\n0\r\n\r\n")
    assert body.is_eof()
    await served._recorded.wait()
    served.close()


WRITE = ask("POST /v2/person", "Content-Length: 4") + b"1234"


@pytest.mark.parametrize(
    ("pieces", "writes"),
    [
        ([WRITE], 1),
        ([WRITE[:-4], WRITE[-4:]], 2),  # the body is streamed
        ([WRITE[:-1], WRITE[-1:]], 3),
        # The service decides whether it needs the body.
        ([WRITE.replace(b"Host", b"Expect: 100-continue\r\nHost")], 2),
    ],
)
async def test_a_body_that_arrives_with_its_head_is_sent_together_with_it(
    pieces: list[bytes], writes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = Gateway(rules(1), {1: lambda _: OK})
    written, write = [], Wire.write

    def note(self: Wire, data: bytes) -> None:
        if self is not served.client:
            written.append(data)
        write(self, data)

    monkeypatch.setattr(Wire, "write", note)
    for piece in pieces:
        served.client.protocol.data_received(piece)
        for _ in range(9):
            await asyncio.sleep(0)
    await served._recorded.wait()
    assert served.client.data.startswith(b"HTTP/1.1 200")
    assert (len(written), b"".join(written)[-8:]) == (writes, b"\r\n\r\n1234")
    served.close()


@pytest.mark.parametrize(
    "behind", [b"", b"POST /v2/person HT", b"\r\n\r\n"], ids=["nothing", "a head", "empty lines"]
)
async def test_bytes_after_a_body_belong_to_the_next_request(behind: bytes) -> None:
    served = Gateway(rules(1), {1: lambda _: OK})
    protocol = served.client.protocol
    protocol.data_received(WRITE + behind)
    assert protocol._unfinished == len(behind.strip())
    await served._recorded.wait()
    await asyncio.sleep(0)
    if behind.strip():
        protocol.data_received(WRITE[len(behind) :])
    else:
        protocol.data_received(WRITE)
    for _ in range(20):
        await asyncio.sleep(0)
    assert served.client.data.count(b"HTTP/1.1 200") == 2
    assert [each[-4:] for each in served.requests[1]] == [b"1234", b"1234"]
    served.close()


@pytest.mark.parametrize("method", ["GET", "HEAD", "BREW"])
async def test_a_request_with_a_too_large_head_is_recorded_with_its_method(method: str) -> None:
    served = Gateway("limits: { header_bytes: 1024 }\n" + rules(1), {1: lambda _: OK})
    answer = await served.ask(ask(f"{method} /plain", "A: " + "a" * 600, "B: " + "b" * 600))
    assert answer.startswith(b"HTTP/1.1 431")
    assert [exchange.method for exchange in served.exchanges] == [method]
    served.close()
