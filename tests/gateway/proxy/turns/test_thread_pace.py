"""ThreadPace: a thread that computes rests while others want to, and stops if nobody waits."""

from threading import Event
from unittest.mock import Mock

import pytest

from gateway.proxy.turns import thread_pace
from gateway.proxy.turns.thread_pace import AbandonedError, ThreadPace, no_step, until


class Clock:
    """Time that goes by as a test tells it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = self.computed = 100.0
        self.rests: list[float] = []
        monkeypatch.setattr(thread_pace, "perf_counter", lambda: self.now)
        monkeypatch.setattr(thread_pace, "thread_time", lambda: self.computed)
        monkeypatch.setattr(thread_pace, "sleep", self._rest)

    def go(self, computed: float, waited: float = 0.0) -> None:
        self.computed += computed
        self.now += computed + waited

    def _rest(self, seconds: float) -> None:
        self.rests.append(seconds)
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


@pytest.mark.parametrize(
    ("computed", "waited", "rests"),
    [
        (0.0005, 0.0, []),  # nobody else wanted to compute
        (0.0005, 0.0001, []),
        (0.0005, 0.0002, [0.002]),
        (0.0001, 0.0003, []),  # it is not yet time to look
        (0.0001, 0.0004, [0.0004]),
        (0.01, 0.01, [0.04]),  # a long step
        (0.0, 0.01, [0.0]),  # it has waited for others all the time
    ],
)
def test_it_rests_while_others_want_to_compute(
    clock: Clock, computed: float, waited: float, rests: list[float]
) -> None:
    step = ThreadPace(Event()).step
    clock.go(computed, waited)
    step()
    assert clock.rests == pytest.approx(rests)


def test_it_takes_a_fifth_of_the_time_beside_one_that_always_computes(clock: Clock) -> None:
    step = ThreadPace(Event()).step
    began, computed = clock.now, clock.computed
    for _ in range(10_000):
        clock.go(0.0001, 0.0001)
        step()
    assert (clock.computed - computed) / (clock.now - began) == pytest.approx(1 / 6, rel=0.01)


def test_it_never_rests_alone(clock: Clock) -> None:
    step = ThreadPace(Event()).step
    for _ in range(10_000):
        clock.go(0.0001)
        step()
    assert not clock.rests


def test_it_looks_rarely(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step is called for each element of a body."""
    step = ThreadPace(Event()).step
    looks = Mock(side_effect=lambda: clock.computed)
    monkeypatch.setattr(thread_pace, "thread_time", looks)
    for _ in range(10_000):
        clock.go(0.000_001)
        step()
    assert looks.call_count == pytest.approx(2 * 10_000 * 0.000_001 / 0.0005, abs=2)


def test_it_stops_when_nobody_waits(clock: Clock) -> None:
    abandoned = Event()
    pace = ThreadPace(abandoned)
    abandoned.set()
    pace.step()  # it has not looked yet
    clock.go(0.001, 0.001)
    with pytest.raises(AbandonedError):
        pace.step()
    assert not clock.rests


def test_one_with_a_time_limit_never_rests(clock: Clock) -> None:
    abandoned = Event()
    step = until(abandoned)
    for each in (step, no_step):
        clock.go(1.0, 1.0)
        each()
    abandoned.set()
    with pytest.raises(AbandonedError):
        step()
    assert not clock.rests
