"""Trailer fields (RFC 9110, section 6.5): which clients get them, and which are dropped."""

import asyncio

import pytest

from tests.gateway.kit import Program, Scripted, StartUpstream
from tests.gateway.talk import Client, Reader, Writer, ask, connect

HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
BODY = b"2\r\nok\r\n0\r\n"
TRAILERS = (
    b"X-Sum: 1\r\nX-Sum: \xe9\r\nSet-Cookie: a=b\r\nCache-Control: no-store\r\nHost: evil\r\n"
)


async def behind_the_head(client: Client) -> bytes:
    await client.head()
    async with asyncio.timeout(10):
        lines = [await client.reader.readuntil(b"0\r\n")]
        while lines[-1] != b"\r\n":
            lines.append(await client.reader.readline())
    return b"".join(lines)


TAKERS = {
    "trailers": (["TE: trailers"], True),
    "among others": (["TE: gzip;q=0.5, Trailers"], True),
    "in a second line": (["TE: gzip", "TE: trailers;q=1"], True),
    "others": (["TE: gzip"], False),
    "nothing": ([], False),
}


@pytest.mark.parametrize(("lines", "passed"), TAKERS.values(), ids=TAKERS)
async def test_trailers_go_to_clients_that_accept_them(
    standing: Program, through: StartUpstream, lines: list[str], passed: bool
) -> None:
    await through(HEAD + BODY + TRAILERS + b"\r\n")
    async with connect(standing) as client:
        for _ in range(2):  # the connections stay usable
            client.send(ask("GET /plain", *lines))
            expected = b"X-Sum: 1\r\nX-Sum: \xe9\r\n" if passed else b""
            assert await behind_the_head(client) == BODY + expected + b"\r\n"


async def test_trailers_follow_a_streamed_body(standing: Program, through: StartUpstream) -> None:
    async def in_pieces(scripted: Scripted, reader: Reader, writer: Writer) -> None:
        while True:
            await scripted.take(reader)
            for piece in (HEAD, b"2\r\nok\r\n", b"0\r\nX-Sum", b": 1\r\n", b"\r\n"):
                writer.write(piece)
                await asyncio.sleep(0.02)

    await through(in_pieces)
    async with connect(standing) as client:
        for _ in range(2):
            client.send(ask("GET /plain", "TE: trailers"))
            assert await behind_the_head(client) == BODY + b"X-Sum: 1\r\n\r\n"


async def test_http_1_0_clients_get_no_trailers(standing: Program, through: StartUpstream) -> None:
    await through(HEAD + BODY + TRAILERS + b"\r\n")
    async with connect(standing) as client:
        client.send(ask("GET /plain", "TE: trailers", http="1.0"))
        assert (await client.rest()).endswith(b"\r\n\r\nok")


@pytest.mark.parametrize("trailers", [b"X-A: " + b"a" * 300_000 + b"\r\n", b"X-A:\r\n" * 2049])
async def test_trailers_above_the_limit_cut_the_response(
    standing: Program, through: StartUpstream, trailers: bytes
) -> None:
    await through(HEAD + BODY + trailers + b"\r\n")
    async with connect(standing) as client:
        client.send(ask("GET /plain", "TE: trailers"))
        with pytest.raises(ConnectionResetError):
            assert b"X-A" not in await client.rest()
