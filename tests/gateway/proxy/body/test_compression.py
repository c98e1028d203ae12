"""Compression: what is worth it, and that equal bodies become equal bytes."""

from hashlib import blake2b

import pytest

from gateway.core.answers.accepted_coding import CODINGS
from gateway.proxy.body.compression import LEAST, compressed
from gateway.proxy.body.content_coding import decode

FIELDS = [(b"Content-Type", b"application/json"), (b"Content-Length", b"9")]


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("size", [LEAST, 100_000])
async def test_there_and_back(coding: str, size: int) -> None:
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
async def test_what_gains_nothing_stays(coding: str) -> None:
    noise = b"".join(blake2b(b"%d" % number).digest() for number in range(LEAST // 64))
    assert len(noise) == LEAST
    assert await compressed(FIELDS, noise, coding) is None
    assert await compressed(FIELDS, b"x" * (LEAST - 1), coding) is None


async def test_a_body_that_must_not_be_transformed_stays() -> None:
    fields = [*FIELDS, (b"cache-control", b"private, NO-TRANSFORM")]
    assert await compressed(fields, b"x" * LEAST, "gzip") is None
