"""Large bodies are converted in short steps, between which other threads can run."""

import gzip
from collections.abc import Callable

import pytest

from gateway.conversion.formats.body_format import described
from gateway.http.cooperative import Step
from gateway.proxy import body_conversion, conversion_threads
from gateway.proxy.conversion_budget import ConversionShare
from gateway.proxy.replay import CapturedResponse
from tests.gateway.proxy.body.rules import conversion

JSON = (b"Content-Type", b"application/json")
EVENTS = (b"Content-Type", b"text/event-stream")
GZIP = (b"Content-Encoding", b"gzip")
FORM = (b"Content-Type", b"application/x-www-form-urlencoded")
ELEMENTS = 20_000
MEBIBYTE = 1024 * 1024


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """Return a list with one entry for each step. Conversions run without a thread."""
    made: list[None] = []

    async def run(convert: Callable[[Step], bytes], network: str = "", **_: bool) -> bytes:
        return convert(lambda: made.append(None))

    monkeypatch.setattr(conversion_threads, "run", run)
    return made


@pytest.mark.parametrize(
    ("fields", "body", "least"),
    [
        # Each object is opened in a separate step, and 64 elements are written in one step.
        ([JSON], b"[%b]" % b",".join([b'{"title":1}'] * ELEMENTS), ELEMENTS + ELEMENTS // 64),
        # In one step, 64 KiB are decoded or parsed, or 64 members are written.
        ([JSON], b"{%b}" % b",".join(b'"%d":1' % n for n in range(ELEMENTS)), ELEMENTS // 64),
        ([JSON, GZIP], gzip.compress(b'{"a":"%b"}' % (b"x" * 4 * MEBIBYTE)), 64),
        # In one step, 64 KiB are decoded, or searched for the end of the event.
        ([EVENTS, GZIP], gzip.compress(b'data: "%b"\n\n' % (b"x" * 4 * MEBIBYTE)), 128),
        # In one step, 64 KiB are searched for the end of a long element.
        ([JSON], b'{"a":[%b1]}' % (b'"%b",' % (b"x" * 61) * 32 * 1024), 32),
        ([FORM], b"&".join(b"a%d=1" % n for n in range(ELEMENTS)), ELEMENTS),
    ],
    ids=["an array", "an object", "a content coding", "coded events", "a long element", "a form"],
)
async def test_a_large_body_is_converted_in_many_short_steps(
    fields: list[tuple[bytes, bytes]], body: bytes, least: int, steps: list[None]
) -> None:
    room = ConversionShare(16 * MEBIBYTE, 1_000_000)
    answer = CapturedResponse(200, fields, body)
    kind = described(answer.fields)
    await body_conversion.convert_request_body(body, kind, conversion(), room)
    assert len(steps) >= least
    room.release()


@pytest.mark.parametrize(
    ("media_type", "body", "least"),
    [
        (b"application/x-ndjson", b'{"title":1}\n' * ELEMENTS, ELEMENTS),
        (b"application/x-ndjson", b"\n" * ELEMENTS, ELEMENTS),
        (b"application/x-ndjson", b"[%b]" % b",".join([b'{"title":1}'] * ELEMENTS), ELEMENTS),
        (b"text/event-stream", b"data:{}\n\n" * ELEMENTS, ELEMENTS),
        # There is one step for each line that is read, and for each line that is written.
        (b"text/event-stream", b"data: {}\n%b\n" % (b":\n" * ELEMENTS), 2 * ELEMENTS),
    ],
    ids=["lines", "empty lines", "a long line", "events", "an event of many lines"],
)
async def test_a_large_stream_is_converted_in_many_short_steps(
    media_type: bytes, body: bytes, least: int, steps: list[None]
) -> None:
    room = ConversionShare(16 * MEBIBYTE, 1_000_000)
    answer = CapturedResponse(200, [(b"Content-Type", media_type)], body)
    pieces, _ = await body_conversion.convert_response_body(answer, conversion(), room)
    assert pieces is not None
    assert not isinstance(pieces, bytes)
    assert b"".join([piece async for piece in pieces])
    assert len(steps) >= least
    room.release()
