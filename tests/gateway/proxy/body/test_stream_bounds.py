"""Streams of documents: each document has the same limits as a whole body."""

import pytest

from gateway.base.errors import FaultCode, FaultError
from gateway.conversion.formats.body_format import BodyFormat
from gateway.proxy import body_conversion, conversion_budget
from gateway.proxy.conversion_budget import ConversionShare
from gateway.proxy.replay import CapturedResponse
from tests.gateway.proxy.body.rules import conversion

LINES = [(b"Content-Type", b"application/x-ndjson")]
LINE = b'{"title":1}\n'
LARGE = b'{"x":[' + b"{}," * 30_000 + b"{}]}\n"


async def converted(body: bytes, room: ConversionShare) -> bytes:
    answer = CapturedResponse(200, LINES, body)
    found, _ = await body_conversion.convert_response_body(answer, conversion(), room)
    assert found is not None
    assert not isinstance(found, bytes)
    return b"".join([piece async for piece in found])


async def test_a_large_line_reserves_bytes_of_the_memory_budget() -> None:
    room = ConversionShare(len(LARGE), 100_000)
    assert await converted(LINE, room) == (b'{"name":1,"channel":"web","tries":3}\n')
    assert room.held == 0
    assert b"{},{}" in await converted(LARGE, room)
    assert room.held == len(LARGE)
    room.release()


async def test_a_document_with_too_many_elements_fails_the_stream() -> None:
    room = ConversionShare(len(LARGE), 30_000)
    with pytest.raises(FaultError, match="a document of more than 30000 elements"):
        await converted(LARGE, room)
    room.release()


async def test_a_request_with_a_line_over_the_size_limit_is_refused() -> None:
    pieces = body_conversion.convert_request_stream(
        LINE, BodyFormat.JSON_LINES, conversion(), ConversionShare(len(LINE) - 2, 1), None
    )
    with pytest.raises(FaultError, match="A line of more than 10 bytes") as caught:
        _ = [piece async for piece in pieces]
    assert caught.value.fault.code is FaultCode.BODY_TOO_LARGE


async def test_a_large_line_is_refused_if_the_memory_budget_has_no_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(conversion_budget, "PATIENCE", 0.01)
    full, room = ConversionShare(conversion_budget._ALL, 1), ConversionShare(len(LARGE), 100_000)
    await full.grow(conversion_budget._ALL)
    pieces = body_conversion.convert_request_stream(
        LARGE, BodyFormat.JSON_LINES, conversion(), room, None
    )
    with pytest.raises(FaultError) as caught:
        _ = [piece async for piece in pieces]
    assert caught.value.fault.code is FaultCode.OVERLOADED
    full.release()
