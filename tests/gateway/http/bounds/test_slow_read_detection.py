"""When a client counts as reading too slowly, given its unread bytes at each check."""

from collections.abc import Iterable
from itertools import pairwise

import pytest

from gateway.http.bounds import LOOK_SECONDS, SLOW_BYTES, SLOW_SECONDS, SlowReadDetector

MANY = 10_000_000
# The number of checks during which a client may read too little.
LOOKS = int(SLOW_SECONDS / LOOK_SECONDS)


def slow_at(taken: Iterable[int]) -> list[bool]:
    left, found = MANY, []
    taking = SlowReadDetector(left)
    for size in taken:
        left -= size
        taking.look(left)
        found.append(taking.slow)
    return found


def test_a_client_that_reads_nothing_is_slow_at_the_first_check() -> None:
    assert slow_at([0, 0]) == [True, True]


def test_a_client_that_reads_one_byte_per_check_becomes_slow() -> None:
    assert slow_at([1] * LOOKS) == [False] * (LOOKS - 1) + [True]


def test_a_client_that_reads_enough_again_is_no_longer_slow() -> None:
    assert slow_at([0, SLOW_BYTES - 1, 1]) == [True, True, False]


def test_each_share_of_bytes_restarts_the_time_limit() -> None:
    assert slow_at([SLOW_BYTES, *([1] * (LOOKS - 1))] * 3) == [False] * 3 * LOOKS


def test_bytes_beyond_one_share_do_not_count_for_the_next() -> None:
    assert slow_at([SLOW_BYTES + 1, *([1] * LOOKS)])[-1]


@pytest.mark.parametrize("bits", [200_000, 1_000_000])
def test_a_low_bandwidth_client_is_not_slow(bits: int) -> None:
    """With a round trip of 300 ms, data arrives in windows, three or four of them per check."""
    window = bits / 8 * 0.3
    rounds = [int(seconds / 0.3) for seconds in range(61)]
    assert not any(slow_at(int(window * (end - begin)) for begin, end in pairwise(rounds)))
