"""A deadline is missed exactly once, at the earlier of the movable and the final deadline."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import cast

import pytest

from gateway.http.bounds import Deadline


class Clock:
    """A fake event loop with a clock that the test advances."""

    def __init__(self) -> None:
        self.now = 0.0
        self.timers: list[Timer] = []
        self.rung = 0

    def time(self) -> float:
        return self.now

    def call_at(self, when: float, callback: Callable[[], object]) -> "Timer":
        timer = Timer(self, when, callback)
        self.timers.append(timer)
        return timer

    def pass_to(self, now: float) -> None:
        while due := [timer for timer in self.timers if timer.when <= now]:
            timer = min(due, key=lambda each: each.when)
            self.timers.remove(timer)
            self.now = timer.when
            self.rung += 1
            timer.callback()
        self.now = now


@dataclass(eq=False)
class Timer:
    clock: Clock
    when: float
    callback: Callable[[], object]

    def cancel(self) -> None:
        self.clock.timers.remove(self)


def deadline_of(clock: Clock, missed: Callable[[], None]) -> Deadline:
    return Deadline(cast(asyncio.AbstractEventLoop, clock), missed)


@pytest.mark.parametrize(
    ("steps", "missed_at"),
    [
        ([(0, "set", 5)], 5),
        ([(0, "set", 5), (3, "set", 5)], 8),
        ([(0, "set", 5), (1, "set", 1)], 2),
        ([(0, "set", 5), (4, "clear", 0)], None),
        ([(0, "set", 5), (4, "cancel", 0)], None),
        ([(0, "begin", 10), (2, "set", 20)], 10),
        ([(0, "begin", 10), (2, "set", 3), (4, "clear", 0)], 10),
        ([(0, "begin", 10), (2, "begin", inf)], None),
        ([(0, "begin", inf), (2, "set", 3)], 5),
        ([(0, "set", 5), (4, "clear", 0), (6, "set", 2)], 8),
    ],
)
def test_a_deadline_is_missed_at_the_expected_time(
    steps: list[tuple[float, str, float]], missed_at: float | None
) -> None:
    clock, missed = Clock(), list[float]()
    deadline = deadline_of(clock, lambda: missed.append(clock.now))
    for at, name, seconds in steps:
        clock.pass_to(at)
        getattr(deadline, name)(*([seconds] if name in ("set", "begin") else []))
    clock.pass_to(100)
    assert missed == ([] if missed_at is None else [missed_at])


def test_postponing_a_deadline_schedules_no_further_timer() -> None:
    clock = Clock()
    deadline = deadline_of(clock, lambda: None)
    for now in range(1000):
        clock.pass_to(now)
        deadline.set(100)
    assert clock.rung <= 10
    assert len(clock.timers) == 1
