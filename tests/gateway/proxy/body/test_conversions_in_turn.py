"""Conversions on the event loop: only a few in one iteration, even if many clients send bodies."""

import asyncio
import gzip
from collections.abc import Callable
from typing import Any

import pytest

from gateway.conversion.formats import json_body
from gateway.conversion.formats.body_format import described
from gateway.http import cooperative
from gateway.proxy import body_conversion
from gateway.proxy.conversion_budget import ConversionShare
from gateway.proxy.replay import CapturedResponse
from tests.gateway.proxy.body.rules import conversion

BODY = b'{"title":"a","x":"%b"}' % (b"x" * 1100)
LINES = b'{"title":"a","x":1}\n' * 60
JSON = (b"Content-Type", b"application/json")


async def asked(body: bytes, *fields: tuple[bytes, bytes]) -> None:
    room = ConversionShare(1_000_000, 1_000_000)
    await body_conversion.convert_request_body(body, described(fields), conversion(), room)


async def answered(body: bytes, *fields: tuple[bytes, bytes]) -> None:
    room = ConversionShare(1_000_000, 1_000_000)
    answer = CapturedResponse(200, [*fields], body)
    found, _ = await body_conversion.convert_response_body(answer, conversion(), room)
    if found is not None and not isinstance(found, bytes):
        assert [piece async for piece in found]


@pytest.mark.parametrize(
    ("convert", "body", "fields"),
    [
        (asked, BODY, [JSON]),
        (
            asked,
            gzip.compress(b'{"title":[%b{}]}' % (b"{}," * 9000)),
            [JSON, (b"Content-Encoding", b"gzip")],
        ),
        (answered, BODY, [JSON]),
        (answered, LINES, [(b"Content-Type", b"application/x-ndjson")]),
    ],
    ids=["request", "coded request", "answer", "stream"],
)
async def test_each_of_several_conversions_runs_in_its_own_iteration_of_the_event_loop(
    convert: Callable[..., asyncio.Future[None]],
    body: bytes,
    fields: list[tuple[bytes, bytes]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, turn, made = 1.0, 0, []
    plain = json_body.convert

    def note(*args: Any) -> bytes:
        nonlocal now
        now += 0.01
        made.append(turn)
        return plain(*args)

    monkeypatch.setattr(json_body, "convert", note)
    monkeypatch.setattr(cooperative, "perf_counter", lambda: now)
    conversions = asyncio.gather(*(convert(body, *fields) for _ in range(5)))
    while not conversions.done():
        turn += 1
        await asyncio.sleep(0)
    conversions.result()
    assert len(set(made)) == 5
