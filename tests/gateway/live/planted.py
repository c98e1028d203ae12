"""Shared code of tests with a faulty new route: load until each cutover is rolled back."""

import asyncio
import time
from collections.abc import Callable, Collection, Iterable
from typing import Any

import pytest

from tests.gateway.kit import DEADLINE, Program
from tests.gateway.live.shifting import admin
from tests.gateway.talk import connect

WINDOW = 7
_RATE = 12  # requests a second on each connection


def left(program: Program) -> dict[str, dict[str, Any]]:
    return {line["api"]: line for line in program.log("cutover_set")}


async def call_until_left(
    program: Program,
    requests: Iterable[bytes],
    faults: Collection[str],
    statuses: Collection[int] | None = None,
    beside: Callable[[], Collection[bytes]] = tuple,
    until: Callable[[], bool] = lambda: True,
) -> dict[str, dict[str, Any]]:
    """Send requests until the cutover of each faulty API is rolled back; return `left`.

    Args:
        requests: requests that are each sent repeatedly on a separate connection.
        statuses: the allowed response statuses; by default, all.
        beside: returns requests to send once at each check of the log.
        until: returns whether all other expected results are available.
    """

    async def call(request: bytes, *, once: bool = False) -> None:
        async with connect(program) as client:
            while True:
                client.send(request)
                answer = await client.answer()
                assert statuses is None or answer.status in statuses
                if once:
                    return
                await asyncio.sleep(1 / _RATE)

    began = time.time()
    callers = [asyncio.create_task(call(request)) for request in requests]
    try:
        while not (
            left(program).keys() >= set(faults) and time.time() > began + WINDOW and until()
        ):
            if time.time() > began + DEADLINE:
                late = (set(faults) - left(program).keys()) or faults
                pytest.fail(str([admin(program, "GET", f"/cutovers/{api}/1") for api in late]))
            callers += [asyncio.create_task(call(request, once=True)) for request in beside()]
            await asyncio.sleep(0.2)
        broken = [caller.exception() for caller in callers if caller.done()]
        assert not any(broken), broken
    finally:
        for caller in callers:
            caller.cancel()
        await asyncio.gather(*callers, return_exceptions=True)
    return left(program)
