"""A whole body with too many elements is refused before its elements are created."""

import gzip
import tracemalloc

import pytest

from gateway.base.errors import FaultCode, FaultError
from gateway.conversion.formats.body_format import BodyFormat
from gateway.proxy import body_conversion
from gateway.proxy.conversion_budget import ConversionShare
from tests.gateway.proxy.body.rules import conversion

MANY = b"[" + b"{}," * 5_500_000 + b"{}]"
ELEMENTS = 200_000


@pytest.mark.parametrize("codings", [[], [b"gzip"], [b"gzip", b"gzip"]], ids=len)
async def test_a_body_with_too_many_elements_is_refused_with_little_memory(
    codings: list[bytes],
) -> None:
    body = MANY
    for _ in codings:
        body = gzip.compress(body)
    kind = (BodyFormat.JSON, codings, None)
    room = ConversionShare(len(MANY), ELEMENTS)
    tracemalloc.start()
    try:
        with pytest.raises(FaultError, match=f"more than {ELEMENTS} elements") as caught:
            await body_conversion.convert_request_body(body, kind, conversion(), room)
        assert tracemalloc.get_traced_memory()[1] < 6_000_000  # the body has 16.5 million bytes
    finally:
        tracemalloc.stop()
    assert caught.value.fault.code is FaultCode.BODY_TOO_LARGE
