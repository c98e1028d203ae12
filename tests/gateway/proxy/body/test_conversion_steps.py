"""Large bodies are converted in steps, between which the thread that converts them may rest."""

import gzip
from collections.abc import Callable

import pytest

from gateway.proxy.body import body_conversion, conversion_thread
from gateway.proxy.body.body_format import described
from gateway.proxy.bounds.conversion_room import ConversionRoom
from gateway.proxy.shadow.replay import CapturedAnswer
from gateway.proxy.turns.thread_pace import Step
from tests.gateway.proxy.body.formats.rules import conversion

JSON = (b"Content-Type", b"application/json")
GZIP = (b"Content-Encoding", b"gzip")
FORM = (b"Content-Type", b"application/x-www-form-urlencoded")
ELEMENTS = 20_000
MEBIBYTE = 1024 * 1024


@pytest.mark.parametrize(
    ("fields", "body", "least"),
    [
        # Each object is opened by a step of its own, and 64 elements are written by one.
        ([JSON], b"[%b]" % b",".join([b'{"title":1}'] * ELEMENTS), ELEMENTS + ELEMENTS // 64),
        # 64 KiB are decoded by a step, and parsed, and 64 members are written.
        ([JSON], b"{%b}" % b",".join(b'"%d":1' % n for n in range(ELEMENTS)), ELEMENTS // 64),
        ([JSON, GZIP], gzip.compress(b'{"a":"%b"}' % (b"x" * 4 * MEBIBYTE)), 64),
        ([FORM], b"&".join(b"a%d=1" % n for n in range(ELEMENTS)), ELEMENTS),
    ],
    ids=["an array", "an object", "a content coding", "a form"],
)
async def test_no_step_is_long(
    fields: list[tuple[bytes, bytes]],
    body: bytes,
    least: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    steps: list[None] = []

    async def run(convert: Callable[[Step], bytes], network: str = "") -> bytes:
        return convert(lambda: steps.append(None))

    monkeypatch.setattr(conversion_thread, "run", run)
    room = ConversionRoom(16 * MEBIBYTE, 1_000_000)
    answer = CapturedAnswer(200, fields, body)
    kind = described(answer.fields)
    await body_conversion.convert_request_body(body, kind, conversion(), room)
    assert len(steps) >= least
    room.release()
