"""Slow conversions end at the time limit, and block neither other requests nor the process."""

import asyncio
import json
import subprocess
import sys
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Event

import pytest

from gateway.base import function_process
from gateway.base.errors import FaultCode, FaultError
from gateway.conversion.chain import BodyConversion
from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.formats.body_format import described
from gateway.http.cooperative import Step
from gateway.proxy import body_conversion, timed_conversion
from gateway.proxy.conversion_budget import ConversionShare
from gateway.proxy.replay import CapturedResponse
from gateway.rules.load import load
from tests.gateway.kit import DEADLINE, ROOT

CODE = """\
import time

def forever(value):
    while True:
        try:
            while True:
                time.sleep(0)
        except Exception:
            pass

def back(value):
    return {"long": value}
"""
JSON_TYPE = [(b"Content-Type", b"application/json")]


async def test_run_returns_the_result_of_the_function_or_raises_its_error() -> None:
    assert await timed_conversion.run(lambda _: b"done", 10) == b"done"
    with pytest.raises(ZeroDivisionError):
        await timed_conversion.run(lambda _: bytes(1 // 0), 10)


async def ended() -> None:
    for thread in timed_conversion._running:
        await asyncio.to_thread(thread.join, DEADLINE)
        assert not thread.is_alive()


async def test_a_conversion_that_never_ends_is_stopped_at_the_time_limit() -> None:
    def forever(step: Step) -> bytes:
        while True:
            time.sleep(0)
            step()

    with pytest.raises(ConversionError) as caught:
        await timed_conversion.run(forever, 0.05)
    assert caught.value.reason == "the Python functions took longer than 0.05 s"
    assert "s, at test_slow_thread.py:" in caught.value.cause
    await ended()


async def test_conversions_that_end_near_the_time_limit_do_not_block_later_ones() -> None:
    def takes(seconds: float, step: Step) -> bytes:
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            step()
        return b"done"

    async with asyncio.timeout(DEADLINE):
        for number in range(300):
            with suppress(ConversionError):
                await timed_conversion.run(partial(takes, 0.0005 + number % 20 / 10_000), 0.0015)
        assert await timed_conversion.run(lambda _: b"again", DEADLINE) == b"again"


async def test_a_cancelled_conversion_stops_its_thread() -> None:
    began = asyncio.Event()
    loop = asyncio.get_running_loop()

    def waits(step: Step) -> bytes:
        loop.call_soon_threadsafe(began.set)
        while True:
            step()

    running = asyncio.create_task(timed_conversion.run(waits, DEADLINE))
    await began.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await ended()


async def test_the_number_of_threads_that_cannot_be_stopped_is_limited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(timed_conversion, "_MOST", 2)
    release = Event()
    for _ in range(2):
        with pytest.raises(ConversionError):
            await timed_conversion.run(lambda _: bytes(release.wait(DEADLINE)), 0.01)
    with pytest.raises(FaultError) as caught:
        await timed_conversion.run(lambda _: b"", 10)
    assert caught.value.fault.code is FaultCode.OVERLOADED
    release.set()
    await ended()
    assert await timed_conversion.run(lambda _: b"again", 10) == b"again"


def conversions(folder: Path, seconds: float) -> tuple[BodyConversion, BodyConversion]:
    (folder / "slow_code.py").write_text(CODE)
    change = {"up": "slow_code:forever", "down": "slow_code:back", "timeout": seconds}
    api = {
        "versions": {"1": {"via": "2"}, "2": {"service": "new"}},
        "conversions": [
            {"between": ["1", "2"], "changes": [{"python": {"field": "a", **change}}]},
            {"between": ["1", "2"], "changes": [{"python": {"field": "b", **change}}]},
        ],
        "endpoints": [{"path": "/v{version}/a", "version": {"in": "path"}}],
    }
    services = {"new": {"targets": ["http://127.0.0.1:8002"]}}
    rules = json.dumps({"services": services, "apis": {"a": api}}).encode()
    found = load(rules, "rules.yaml", {}, folder).router.find("/v1/a")
    assert found is not None
    (route,) = (one for one in found[0].routes.values() if one.request is not None)
    assert route.request is not None
    assert route.response is not None
    up = route.request.for_request("POST")
    down = route.response.for_response("GET", 200)
    assert up is not None
    assert down is not None
    return up, down


async def test_a_request_body_over_the_time_limit_is_refused_without_blocking_the_event_loop(
    tmp_path: Path,
) -> None:
    up, _ = conversions(tmp_path, 0.5)
    assert up.timeout == 1.0
    turns = 0

    async def turn() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0.01)

    turning = asyncio.create_task(turn())
    room = ConversionShare(1000, 1000)
    with pytest.raises(FaultError) as caught:
        await body_conversion.convert_request_body(b'{"a":1}', described(JSON_TYPE), up, room)
    turning.cancel()
    assert turns > 3
    assert caught.value.fault.code is FaultCode.UNCONVERTIBLE_REQUEST
    assert "longer than 1 s" in caught.value.fault.detail
    room.release()
    await ended()


async def test_a_response_body_within_the_time_limit_is_converted(tmp_path: Path) -> None:
    _, down = conversions(tmp_path, DEADLINE)
    room = ConversionShare(1000, 1000)
    response = CapturedResponse(200, JSON_TYPE, b'{"a":1}')
    converted, _ = await body_conversion.convert_response_body(response, down, room)
    assert converted == b'{"a":{"long":1}}'
    room.release()
    await ended()


def test_a_stopped_thread_does_not_keep_the_process_from_ending(tmp_path: Path) -> None:
    code = """
import asyncio, time
from gateway.proxy import timed_conversion
async def main():
    try:
        await timed_conversion.run(lambda _: bytes(time.sleep(600) or 0), 0.1)
    except Exception as error:
        print(error)
asyncio.run(main())
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=DEADLINE,
    )
    assert done.stdout == "the body: the Python functions took longer than 0.1 s\n"
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("line", "seconds", "reason"),
    [
        ("time.sleep(60)", 3, "is not imported within 3 s"),
        ("os._exit(1)", DEADLINE, "is not imported: the process has ended"),
    ],
)
async def test_the_error_names_a_module_that_is_not_imported_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, seconds: float, reason: str
) -> None:
    code = f"import os, sys, time\nif 'gateway.base.function_child' in sys.modules:\n    {line}\n"
    (tmp_path / "late.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(function_process, "_modules", {"late": None})
    monkeypatch.setattr(function_process, "_START", seconds)
    with pytest.raises(FaultError) as caught:
        await timed_conversion.run(lambda _: b"", 10)
    assert caught.value.fault.code is FaultCode.OVERLOADED
    assert "cannot be started" in caught.value.fault.detail
    assert caught.value.cause == f"the Python module 'late' {reason}"
    await ended()
