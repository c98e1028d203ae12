"""`GilThrottle`: a thread waits for the event loop in proportion to its computing time."""

import asyncio
from threading import Event

import pytest

from gateway.http import cooperative
from gateway.http.cooperative import AbandonedError, GilThrottle, Step, no_step, until


class Turns:
    """A fake event loop with a set duration of its iterations, and a fake clock.

    Attributes:
        asked: how often a thread has waited for an iteration.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, turn: float) -> None:
        self.now = 100.0
        self.turn = turn
        self.asked = 0
        monkeypatch.setattr(cooperative, "perf_counter", lambda: self.now)
        monkeypatch.setattr(cooperative, "Lock", lambda: _Turn(self))

    def in_one(self, callback: Step) -> None:
        self.asked += 1
        callback()


class _Turn:
    def __init__(self, loop: Turns) -> None:
        self._loop = loop
        self._taken = False

    def acquire(self, timeout: float = -1) -> None:
        if self._taken:
            self._loop.now += min(self._loop.turn, timeout)
        self._taken = True

    def release(self) -> None:
        assert self._taken


def computed(loop: Turns, seconds: float, each: float) -> float:
    began = loop.now
    step = GilThrottle(loop.in_one, Event()).step
    for _ in range(round(seconds / each)):
        loop.now += each
        step()
    return loop.now - began


@pytest.mark.parametrize(
    ("turn", "each", "took"),
    [
        (0.0, 0.0001, 1.0),  # the loop is idle
        (0.0005, 0.0001, 2.0),
        (0.002, 0.0001, 5.0),
        (60.0, 0.0001, 5.0),  # the loop is never idle, or hangs
        (60.0, 0.01, 5.0),  # long steps
    ],
)
def test_a_thread_waits_in_proportion_to_its_computing_time(
    monkeypatch: pytest.MonkeyPatch, turn: float, each: float, took: float
) -> None:
    assert computed(Turns(monkeypatch, turn), 1.0, each) == pytest.approx(took, rel=0.2)


def test_a_thread_waits_only_once_per_time_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    """`step` is called for each element of a body."""
    loop = Turns(monkeypatch, 0.0)
    computed(loop, 0.1, 0.000_001)
    assert loop.asked == pytest.approx(0.1 / 0.0005, rel=0.05)


def test_an_abandoned_thread_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = Turns(monkeypatch, 0.0)
    abandoned = Event()
    pace = GilThrottle(loop.in_one, abandoned)
    abandoned.set()
    pace.step()  # abandonment is checked only once per time slice
    loop.now += 0.003
    with pytest.raises(AbandonedError):
        pace.step()
    assert not loop.asked


async def test_an_idle_event_loop_runs_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cooperative, "_PART", 0.0)
    monkeypatch.setattr(cooperative, "_MOST", 1e7)
    loop = asyncio.get_running_loop()
    turns: list[str] = []

    def compute() -> None:
        step = GilThrottle(loop.call_soon_threadsafe, Event()).step
        for _ in range(3):
            loop.call_soon_threadsafe(turns.append, "loop")
            step()
            turns.append("thread")

    await asyncio.to_thread(compute)
    assert turns == ["loop", "thread"] * 3


def test_a_step_with_a_time_limit_only_checks_for_abandonment() -> None:
    abandoned = Event()
    step = until(abandoned)
    step()
    no_step()
    abandoned.set()
    with pytest.raises(AbandonedError):
        step()
