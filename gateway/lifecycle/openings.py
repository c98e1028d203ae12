"""Openings: when the windows of a brownout open next, for people who plan for them."""

from collections.abc import Iterator
from heapq import merge
from math import inf
from typing import NamedTuple

from gateway.lifecycle.brownout import Brownout, Window


class Opening(NamedTuple):
    """A time in which a window of a brownout is open.

    Attributes:
        begins: When it opens, in seconds since 1970; minus infinity where it always was open.
        ends: When it closes; infinite where it stays open.
        percent: The percentage of requests that it refuses when it opens.
    """

    begins: float
    ends: float
    percent: float


def openings(brownout: Brownout, now: float) -> Iterator[Opening]:
    """Yield the openings of all windows, the earliest first, from those that are open now on."""
    yield from merge(*(_of_window(window, now) for window in brownout.windows))


def _of_window(window: Window, now: float) -> Iterator[Opening]:
    if now >= window.ends:
        return
    if window.schedule is None:
        yield Opening(window.begins, window.ends, _percent(window, max(window.begins, now)))
        return
    begins, following = window.schedule.around(max(now, window.begins))
    if begins == -inf or _closes(window, begins) <= max(now, window.begins):
        begins = following
    while begins < window.ends:
        opens = max(begins, window.begins)
        yield Opening(opens, _closes(window, begins), _percent(window, max(opens, now)))
        _, begins = window.schedule.around(begins)


def _closes(window: Window, opened: float) -> float:
    length = window.seconds.at(max(opened, window.begins), window.begins, window.ends)
    return min(opened + length, window.ends)


def _percent(window: Window, moment: float) -> float:
    return window.percent.at(moment, window.begins, window.ends)
