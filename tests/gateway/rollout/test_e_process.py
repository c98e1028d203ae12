"""E-values: they rarely grow by chance, and grow fast if the new route fails."""

import random
from math import exp, log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.rollout.e_process import EProcess, Units, log_sum, penalties
from tests.gateway.world import LAW

MARGIN = 0.01
CLEAN = 0.001
KNOWN = penalties(1000, CLEAN)


def blocks_until(
    convincing: float, new: list[Units], old: list[Units], known: list[float] = KNOWN
) -> int | None:
    """Return the number of equal blocks after which the e-value is convincing, at most 100."""
    process = EProcess()
    for block in range(100):
        if process.log_value(block, new, old, MARGIN, known, keep=True) >= log(convincing):
            return block + 1
    return None


def failing(number: int, bad: float = 1.0, size: int = 1) -> Units:
    return Units(number, bad, CLEAN, size)


@pytest.mark.parametrize(
    ("new", "old", "blocks"),
    [
        ([failing(1)], [failing(40, 0)], 4),
        ([failing(1)], [failing(5, 0)], 6),
        ([failing(1)], [], 4),
        ([failing(10)], [failing(40, 0)], 1),
        ([failing(10)], [], 3),
        ([failing(10, 0.2)], [failing(40, 0)], 5),
        ([failing(3, 1, 7), failing(12, 0, 7)], [failing(45, 0, 7)], 13),
        ([failing(10, 0.01)], [failing(40, 0)], None),
        ([failing(1)], [failing(4)], None),
        ([failing(10, 0.5)], [failing(10, 0.5)], None),
        ([], [failing(40)], None),
    ],
    ids=[
        "one client of 41 fails",
        "one client of six fails",
        "one client fails, and the old route has no requests",
        "all of ten clients fail",
        "all of ten clients fail, and the old route has no requests",
        "a fifth of all requests fails",
        "a few requests of several clients fail",
        "failures are within the limit",
        "all clients fail on both routes",
        "half of all requests fail on both routes",
        "the new route has no requests",
    ],
)
def test_a_fault_is_significant_after_a_number_of_blocks(
    new: list[Units], old: list[Units], blocks: int | None
) -> None:
    assert blocks_until(100_000, new, old) == blocks


@pytest.mark.parametrize("share", [0.002, 0.05, 0.4])
@pytest.mark.parametrize("controls", [0, 10])
def test_a_new_route_at_its_limit_rarely_exceeds_20(share: float, controls: int) -> None:
    """By Ville's inequality, at most one of 20 processes ever exceeds 20."""
    chance = random.Random(share + controls)
    known, exceeded = penalties(1000, share), 0

    def block(number: int, likely: float) -> list[Units]:
        bad = sum(chance.random() < likely for _ in range(number))
        return [Units(bad, 1.0, share), Units(number - bad, 0.0, share)]

    for _ in range(100):
        process = EProcess()
        for number in range(40):
            drift = (
                chance.choice([0.0, 0.3]) if controls else 0.0
            )  # a simulated outage of both routes
            old = block(controls, share + drift) if controls else []
            new = block(5, share + drift + MARGIN)
            if process.log_value(number, new, old, MARGIN, known, keep=True) > log(20):
                exceeded += 1
                break
    assert exceeded <= 5


def test_a_fault_that_begins_late_is_found_in_spite_of_many_good_blocks() -> None:
    process, good, old = EProcess(), [failing(10, 0)], [failing(40, 0)]
    for block in range(500):
        process.log_value(block, good, old, MARGIN, KNOWN, keep=True)
    first, second = (
        process.log_value(block, [failing(10)], old, MARGIN, KNOWN, keep=True)
        for block in (500, 501)
    )
    assert log(1000) < first < log(10_000_000) < second


def test_an_incomplete_block_does_not_change_the_process() -> None:
    process, old = EProcess(), [failing(40, 0)]
    for _ in range(5):
        first = process.log_value(0, [failing(3)], old, MARGIN, KNOWN, keep=False)
        assert first == process.log_value(0, [failing(3)], old, MARGIN, KNOWN, keep=False)


@LAW
@given(st.lists(st.floats(-50, 50), min_size=1))
def test_logarithms_are_summed(logs: list[float]) -> None:
    assert log_sum(logs) == pytest.approx(log(sum(map(exp, logs))))


@LAW
@given(st.floats(0, 5000), st.floats(0.0001, 0.999))
def test_a_longer_history_contradicts_each_shift_more(units: float, usual: float) -> None:
    few, many = penalties(units, usual), penalties(units + 1, usual)
    assert few[0] == many[0] == 0
    assert all(0 <= before <= after for before, after in zip(few, many, strict=True))
