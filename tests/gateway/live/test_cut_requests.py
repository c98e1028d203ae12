"""Requests split into segments at any byte are parsed as if they had arrived in one piece."""

import asyncio

import pytest

from tests.gateway.kit import StartGateway, StartUpstream, rules
from tests.gateway.talk import OK, ask, connect

PLAIN = ask("GET /plain")
LATER = ask("POST /plain", "Content-Length: 4", body=b"1234").replace(b"1.1", b"1.2", 1)
CHUNKED = ask("POST /plain", "Transfer-Encoding: chunked", body=b"2\r\nab\r\n0\r\nA: b\r\n\r\n")
BAD = b"GET /plain HTTP/1.1\r\nHost: a\r\nno field\r\n\r\n"
SEGMENTS = {
    # The segments, the statuses, and the number of requests that reach the service.
    "later version behind another request": ([PLAIN + LATER[:9], LATER[9:]], [200] * 2, 2),
    "later version behind its first byte": ([PLAIN + LATER[:1], LATER[1:]], [200] * 2, 2),
    "later version cut in its body": ([LATER + LATER[:-1], LATER[-1:] + LATER], [200] * 3, 3),
    "good ones, then a bad one": ([PLAIN + PLAIN[:5], PLAIN[5:] + BAD], [200, 200, 400], 2),
    "a body, then a bad one": ([LATER[:-2], LATER[-2:] + PLAIN + BAD], [200, 200, 400], 2),
    "behind chunks": ([CHUNKED + PLAIN], [200] * 2, 2),
    "behind chunks in pieces": ([CHUNKED[:-9], CHUNKED[-9:-2], b"\r\n" + CHUNKED], [200] * 2, 2),
    "behind chunks, a later version": ([CHUNKED + LATER[:7], LATER[7:]], [200] * 2, 2),
    "other protocol": ([PLAIN + PLAIN.replace(b"HTTP/", b"RTSP/")], [200, 400], 1),
    "bad chunk with the end of another": (
        [CHUNKED[: CHUNKED.index(b"2\r\nab") + 4], b"b\r\n-1\r\n\r\n"],
        *([400], 0),
    ),
}


@pytest.mark.parametrize(("segments", "statuses", "asked"), SEGMENTS.values(), ids=SEGMENTS)
async def test_requests_split_at_any_byte_get_their_responses(
    segments: list[bytes],
    statuses: list[int],
    asked: int,
    reloaded: StartGateway,
    upstream: StartUpstream,
) -> None:
    scripted = await upstream(OK)
    program = reloaded(rules(scripted.port))
    async with connect(program) as client:
        for segment in segments:
            client.send(segment)
            await asyncio.sleep(0.05)
        answers = [await client.answer() for _ in statuses]
        if statuses[-1] == 400:
            assert await client.rest() == b""
    assert [each.status for each in answers] == statuses
    whole = [each for each in scripted.requests if bytes(each).endswith((b"\r\n\r\n", b"1234"))]
    assert len(whole) == asked


async def test_a_shutdown_does_not_wait_for_clients_that_got_their_last_response(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    """The connection stays open for some seconds, so that late bytes do not reset it."""
    scripted = await upstream(OK)
    program = gateway(rules(scripted.port))
    async with connect(program) as client:
        client.send(ask("GET /plain", "Connection: Upgrade", "Upgrade: websocket"))
        assert (await client.answer()).status == 200
        loop = asyncio.get_running_loop()
        begun = loop.time()
        program.process.terminate()
        await asyncio.to_thread(program.process.wait)
        assert loop.time() - begun < 4
