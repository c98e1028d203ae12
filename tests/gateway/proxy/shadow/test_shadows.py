"""Shadows: comparisons begin one by one, and the queue of waiting comparisons is limited."""

import asyncio
import time
from typing import Any, cast

import pytest

from gateway.proxy.shadows import Load, Shadows
from tests.gateway.kit import rules
from tests.gateway.proxy.wires import Gateway


class Comparisons:
    """Replaces captured requests, and records when the comparison of each begins.

    Attributes:
        over: Ends all comparisons that have begun.
    """

    validates = False

    def __init__(self) -> None:
        self.ended = time.monotonic()
        self.turn = 0
        self.begun: list[int] = []
        self.reasons: list[str] = []
        self.over = asyncio.Event()

    def shed(self, why: str) -> None:
        self.reasons.append(why)

    async def compare(self, made: float) -> None:
        self.begun.append(self.turn)
        await self.over.wait()

    async def turns(self, number: int) -> None:
        for _ in range(number):
            self.turn += 1
            await asyncio.sleep(0)


def shadows() -> Shadows:
    nothing = cast(Any, None)
    return Shadows(nothing, nothing, nothing, Load(lambda: 0.0, 1), nothing)


async def test_only_one_comparison_begins_in_an_iteration_of_the_event_loop() -> None:
    tested, given = shadows(), Comparisons()
    for _ in range(150):  # as if 150 requests ended in one iteration of the event loop
        tested.submit(cast(Any, given))
    assert given.reasons == ["queue"] * 22
    await given.turns(64)
    assert len(given.begun) == len(set(given.begun)) == 16
    given.over.set()
    await given.turns(200)
    assert len(given.begun) == len(set(given.begun)) == 128


async def test_waiting_comparisons_are_skipped_under_load_or_after_too_long() -> None:
    tested, given = shadows(), Comparisons()
    tested.submit(cast(Any, given))
    tested.load._high = True
    tested.load._due = float("inf")
    await given.turns(4)
    assert (given.begun, given.reasons) == ([], ["load"])
    given.ended -= 10
    tested.submit(cast(Any, given))
    await given.turns(4)
    assert given.reasons == ["load", "queue"]


async def test_no_more_requests_are_captured_while_many_comparisons_are_waiting() -> None:
    tested, given = shadows(), Comparisons()
    tested.load = Load(lambda: 0.0, 0.8)
    scaled = []
    for _ in range(20):
        scaled.append(tested.load.scaled_draw(0.5))
        tested.submit(cast(Any, given))
    assert scaled == [0.5] * 16 + [1.0] * 4
    await given.turns(10)  # one comparison began in each iteration
    assert tested.load.scaled_draw(0.5) == 0.5
    assert given.reasons == []
    tested.close()
    await given.turns(4)


async def test_close_cancels_running_and_waiting_comparisons() -> None:
    tested, given = shadows(), Comparisons()
    for _ in range(20):
        tested.submit(cast(Any, given))
    await given.turns(20)
    tested.close()
    await given.turns(4)
    assert not tested._running
    assert len(given.begun) == 16


async def test_a_comparison_that_takes_too_long_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """A service that sends a byte from time to time could otherwise block a comparison forever."""
    monkeypatch.setattr("gateway.proxy.shadows._LONGEST", 0.01, raising=False)
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n"
    text = rules(1).replace('"1": { service: s }', '"1": { service: s, shadow: { via: "2" } }')
    answers = iter((b"{}", b"{", b"{"))
    served = Gateway(text, {1: lambda _: head + next(answers)})
    async with asyncio.timeout(20):
        await served.ask(b"GET /v1/person HTTP/1.1\r\nHost: h\r\n\r\n")
    assert served.counted == [("shed", "person", "1", "time")]
    served.close()


async def test_a_timeout_error_inside_a_comparison_counts_as_a_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
    text = rules(1).replace('"1": { service: s }', '"1": { service: s, shadow: { via: "2" } }')
    served = Gateway(text, {1: lambda _: head})

    async def out_of_time(*_: object) -> None:
        raise TimeoutError

    monkeypatch.setattr("gateway.proxy.shadows.replay", out_of_time)
    async with asyncio.timeout(20):
        await served.ask(b"GET /v1/person HTTP/1.1\r\nHost: h\r\n\r\n")
    assert served.counted == [("shed", "person", "1", "failed")]
    served.close()


async def test_a_sample_is_created_only_if_the_recorder_has_room_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    body = b'{"name":{"firstName":"A","lastName":"B"}}'
    json = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
    text = rules(1).replace('"1": { service: s }', '"1": { service: s, shadow: { via: "2" } }')
    served = Gateway(text, {1: lambda _: json % (len(body), body)})
    made, show = [], served.shadows.show

    def note(*of: Any) -> Any:
        made.append(of)
        return show(*of)

    monkeypatch.setattr(served.shadows, "show", note)
    for served.takes_samples in (True, False):
        await served.ask(b"GET /v1/person HTTP/1.1\r\nHost: h\r\n\r\n")
    assert served.counted.count(("differing", "person", "1")) == 2
    assert len(made) == len(served.samples) == 1
    served.close()
