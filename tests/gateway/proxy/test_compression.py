"""Bodies are compressed if that saves bytes. Equal bodies have equal compressed bytes."""

import zlib
from collections.abc import AsyncIterator
from hashlib import blake2b

import pytest

from gateway.http.content_coding import CODINGS, decode
from gateway.proxy.compression import LEAST, compressed, compressed_stream

FIELDS = [(b"Content-Type", b"application/json"), (b"Content-Length", b"9")]


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("size", [LEAST, 100_000])
async def test_a_compressed_body_decodes_to_the_original(coding: str, size: int) -> None:
    body = b'"%b"' % (b"x" * (size - 2))
    got = await compressed(FIELDS, body, coding)
    assert got is not None
    assert got == await compressed(FIELDS, body, coding)
    fields, coded = got
    assert decode(coded, [coding], size) == body
    assert fields == [
        FIELDS[0],
        (b"Content-Encoding", coding.encode()),
        (b"Content-Length", b"%d" % len(coded)),
    ]


@pytest.mark.parametrize("coding", CODINGS)
async def test_a_small_or_incompressible_body_stays_uncompressed(coding: str) -> None:
    noise = b"".join(blake2b(b"%d" % number).digest() for number in range(LEAST // 64))
    assert len(noise) == LEAST
    assert await compressed(FIELDS, noise, coding) is None
    assert await compressed(FIELDS, b"x" * (LEAST - 1), coding) is None


async def test_a_body_with_cache_control_no_transform_stays_uncompressed() -> None:
    fields = [*FIELDS, (b"cache-control", b"private, NO-TRANSFORM")]
    assert await compressed(fields, b"x" * LEAST, "gzip") is None


async def pieces(*given: bytes) -> AsyncIterator[bytes]:
    for piece in given:
        yield piece


LINES = [(b"Content-Type", b"application/x-ndjson")]


@pytest.mark.parametrize("coding", CODINGS)
async def test_a_compressed_stream_decodes_to_the_original(coding: str) -> None:
    given = b'{"a":1}\n', b'{"a":2}\n' * 10_000
    fields, coded = compressed_stream(LINES, pieces(*given), coding)
    assert fields == [*LINES, (b"Content-Encoding", coding.encode())]
    made = [piece async for piece in coded]
    assert sum(map(len, made)) < 1000
    assert decode(b"".join(made), [coding], 100_000) == b"".join(given)


async def test_the_client_can_decode_each_line_of_a_stream_when_it_arrives() -> None:
    _, coded = compressed_stream(LINES, pieces(b"1\n", b"2\n"), "gzip")
    assert zlib.decompressobj(31).decompress(await anext(coded)) == b"1\n"


@pytest.mark.parametrize(
    "fields",
    [[(b"Content-Type", b"text/event-stream")], [*LINES, (b"Cache-Control", b"no-transform")]],
)
async def test_event_streams_and_streams_with_cache_control_no_transform_stay_uncompressed(
    fields: list[tuple[bytes, bytes]],
) -> None:
    given = pieces(b"1")
    assert compressed_stream(fields, given, "gzip") == (fields, given)
