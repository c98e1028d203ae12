"""A thread waits for the event loop in proportion to what it computed (`GilThrottle`)."""

import asyncio
from threading import Event

import pytest

from gateway.http import cooperative
from gateway.http.cooperative import AbandonedError, GilThrottle, Step, no_step, until


class Turns:
    """An event loop of which a test says how long its turns take, and a clock.

    Attributes:
        now: the time.
        turn: how long a turn takes.
        asked: how often somebody has waited for one.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, turn: float) -> None:
        self.now = 100.0
        self.turn = turn
        self.asked = 0
        monkeypatch.setattr(cooperative, "perf_counter", lambda: self.now)
        monkeypatch.setattr(cooperative, "Lock", lambda: _Turn(self))

    def in_one(self, callback: Step) -> None:
        """Call a function in the next turn."""
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
    """Have a thread compute in steps; return how long it took in all."""
    began = loop.now
    step = GilThrottle(loop.in_one, Event()).step
    for _ in range(round(seconds / each)):
        loop.now += each
        step()
    return loop.now - began


@pytest.mark.parametrize(
    ("turn", "each", "took"),
    [
        (0.0, 0.0001, 1.0),  # nothing else is to be done
        (0.0005, 0.0001, 2.0),
        (0.002, 0.0001, 5.0),
        (60.0, 0.0001, 5.0),  # the loop is never idle, or hangs
        (60.0, 0.01, 5.0),  # long steps
    ],
)
def test_the_loop_has_its_turns(
    monkeypatch: pytest.MonkeyPatch, turn: float, each: float, took: float
) -> None:
    assert computed(Turns(monkeypatch, turn), 1.0, each) == pytest.approx(took, rel=0.2)


def test_it_asks_for_few_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step is called for each element of a body."""
    loop = Turns(monkeypatch, 0.0)
    computed(loop, 0.1, 0.000_001)
    assert loop.asked == pytest.approx(0.1 / 0.0005, rel=0.05)


def test_it_stops_when_nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = Turns(monkeypatch, 0.0)
    abandoned = Event()
    pace = GilThrottle(loop.in_one, abandoned)
    abandoned.set()
    pace.step()  # it does not look at every step
    loop.now += 0.003
    with pytest.raises(AbandonedError):
        pace.step()
    assert not loop.asked


async def test_a_loop_that_has_nothing_to_do_has_its_turn_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
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


def test_one_with_a_time_limit_never_waits() -> None:
    abandoned = Event()
    step = until(abandoned)
    step()
    no_step()
    abandoned.set()
    with pytest.raises(AbandonedError):
        step()
