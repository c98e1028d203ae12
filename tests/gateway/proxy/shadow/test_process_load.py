"""The load of a process, which is measured at intervals, limits shadows."""

from dataclasses import dataclass
from math import inf

import pytest

from gateway.proxy import shadows
from gateway.proxy.shadows import Load, time_used


@dataclass
class Clock:
    now: float = 0.0
    used: float = 0.0

    def monotonic(self) -> float:
        return self.now


def test_the_load_is_high_if_the_process_used_most_of_the_measured_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock()
    monkeypatch.setattr(shadows, "time", clock)
    load = Load(lambda: clock.used, 0.8)
    for now, used, high in [
        (0.05, 0.05, False),
        (0.1, 0.1, True),
        (0.15, 0.1, True),
        (0.2, 0.1, False),
        (1.2, 0.8, False),
        (2.2, 1.7, True),
    ]:
        clock.now, clock.used = now, used
        assert load.high is high, now


def test_the_load_is_never_high_if_the_limit_is_1(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(shadows, "time", clock)
    limited, free = (Load(lambda: clock.used, most) for most in (0.8, 1))
    clock.now, clock.used = 1, 2
    assert (limited.high, free.high) == (True, False)
    assert limited.longest_lag < free.longest_lag == inf


def test_the_share_of_background_work_shrinks_fast_and_grows_slowly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A process close to its limit then does not alternate between all background work and none."""
    clock = Clock()
    monkeypatch.setattr(shadows, "time", clock)
    load = Load(lambda: clock.used, 0.8)
    draws = [step / 1000 for step in range(1000)]

    def after(passed: float, used: float) -> float:
        clock.now += passed
        clock.used += used
        scaled = [load.scaled_draw(draw) for draw in draws]
        assert all(draw <= thin <= 1 for draw, thin in zip(draws, scaled, strict=True))
        return sum(thin < 1 for thin in scaled) / len(draws)

    assert after(0.0, 0.0) == 1
    assert after(0.1, 0.1) == 0
    assert after(0.05, 0.05) == 0  # too early for a new measurement
    assert after(0.1, 0.1) == 0
    assert after(0.1, 0.0) == pytest.approx(0.3, abs=0.001)
    assert after(1.0, 0.5) == pytest.approx(0.8, abs=0.001)
    assert after(10.0, 0.0) == 1
    for _ in range(20):
        assert after(0.1, 0.1) == 0
    assert after(0.1, 0.0) == pytest.approx(0.05, abs=0.001)


def test_no_more_comparisons_are_planned_while_many_are_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If comparisons are planned faster than they begin, they would wait too long."""
    monkeypatch.setattr(shadows, "time", Clock())
    limited, free = (Load(lambda: 0.0, most) for most in (0.8, 1))
    for load, waiting, expected in [
        (limited, 15, 0.5),
        (limited, 16, 1.0),
        (limited, 0, 0.5),
        (free, 128, 0.5),
    ]:
        load.set_waiting(waiting)
        assert load.scaled_draw(0.5) == expected
        assert not load.high  # comparisons that are already waiting are not skipped


def test_time_used_grows_while_the_thread_computes() -> None:
    measure = time_used()
    before = measure()
    sum(range(1_000_000))
    assert before < measure() < before + 60
