"""Who is slow to take an answer, by what is left of it at each look."""

from collections.abc import Iterable
from itertools import pairwise

import pytest

from gateway.http.bounds import LOOK_SECONDS, SLOW_BYTES, SLOW_SECONDS, SlowReadDetector

MANY = 10_000_000
# For how many looks a client may take too little.
LOOKS = int(SLOW_SECONDS / LOOK_SECONDS)


def slow_at(taken: Iterable[int]) -> list[bool]:
    """Return whether a client is slow at each look, by what it took before each."""
    left, found = MANY, []
    taking = SlowReadDetector(left)
    for size in taken:
        left -= size
        taking.look(left)
        found.append(taking.slow)
    return found


def test_who_takes_nothing_is_slow_at_the_first_look() -> None:
    assert slow_at([0, 0]) == [True, True]


def test_a_byte_at_a_time_is_too_little_in_the_end() -> None:
    assert slow_at([1] * LOOKS) == [False] * (LOOKS - 1) + [True]


def test_who_takes_enough_again_is_slow_no_more() -> None:
    assert slow_at([0, SLOW_BYTES - 1, 1]) == [True, True, False]


def test_each_share_gives_the_time_anew() -> None:
    assert slow_at([SLOW_BYTES, *([1] * (LOOKS - 1))] * 3) == [False] * 3 * LOOKS


def test_what_came_before_a_share_does_not_count_for_the_next() -> None:
    assert slow_at([SLOW_BYTES + 1, *([1] * LOOKS)])[-1]


@pytest.mark.parametrize("bits", [200_000, 1_000_000])
def test_a_slow_link_is_not_slow(bits: int) -> None:
    """A round trip takes 300 ms: what is sent is taken in windows, each three or four to a look."""
    window = bits / 8 * 0.3
    rounds = [int(seconds / 0.3) for seconds in range(61)]
    assert not any(slow_at(int(window * (end - begin)) for begin, end in pairwise(rounds)))
