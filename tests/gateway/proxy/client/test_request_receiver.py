"""What is parsed of a body in one turn of the event loop."""

import asyncio
from itertools import pairwise

import pytest
from aiohttp.web import RequestHandler

from tests.gateway.kit import rules
from tests.gateway.proxy.wires import Gateway
from tests.gateway.talk import OK, ask

CHUNKS = 5000


async def test_parsing_is_resumed_once_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reader asks for it at each chunk, and each time copies all that waits to be parsed."""
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


async def test_few_chunks_are_parsed_in_a_turn() -> None:
    """Others wait meanwhile, and a chunk of one byte costs as much as a large one."""
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
