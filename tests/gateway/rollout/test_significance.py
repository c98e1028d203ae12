"""Strength of evidence: compared with exact probabilities, and checked by general laws."""

from math import comb, exp, inf, log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.rollout.significance import (
    CONVINCING,
    design_effect,
    mean_above,
    share_above,
    share_beyond,
)
from tests.gateway.world import LAW


@pytest.mark.parametrize(
    ("count", "total", "limit", "found"),
    [
        (0, 0, 0.01, 0.0),
        (1, 100, 0.01, 0.0),
        (3, 3, 0.01, 3 * log(100)),
        (1, 1000, 0.0, inf),
        (2, 2, 1.0, 0.0),
    ],
)
def test_evidence_against_a_fixed_limit_grows_with_the_sample(
    count: int, total: int, limit: float, found: float
) -> None:
    assert share_beyond(count, total, limit) == pytest.approx(found)


@pytest.mark.parametrize(
    ("new", "old", "margin", "found"),
    [
        ((0, 0), (0, 9), 0.01, 0.0),
        ((9, 9), (0, 0), 0.01, 0.0),
        ((10, 100), (10, 100), 0.0, 0.0),
        ((12, 100), (10, 100), 0.02, 0.0),
        # 9 of 9 compared with 0 of 9: the likeliest common share is one half.
        ((9, 9), (0, 9), 0.0, 18 * log(2)),
        ((20, 100), (20, 200), 0.0, 2.788),
        ((20, 100), (20, 200), 0.02, 1.788),
        ((3, 3), (0, 1000), 0.01, 13.8),
        # The shares are as close to the limit as floating-point numbers allow.
        ((2, 2), (29, 59), 0.5, 0.0),
        ((1, 1), (1, 2), 0.5, 0.0),
        ((1, 1), (0, 10**9), 0.0, 21.7),
    ],
)
def test_evidence_against_another_share_grows_with_both_samples(
    new: tuple[int, int], old: tuple[int, int], margin: float, found: float
) -> None:
    assert share_above(new, old, margin) == pytest.approx(found, abs=0.1)


def test_chance_alone_is_not_convincing() -> None:
    """The probability is computed exactly, for several totals and for shares at the limit."""
    for total in (1, 3, 10, 30, 100, 300):
        for share in (0.001, 0.01, 0.05, 0.3):
            chance = sum(
                comb(total, count) * share**count * (1 - share) ** (total - count)
                for count in range(total + 1)
                if share_beyond(count, total, share) >= CONVINCING
            )
            assert chance <= exp(-CONVINCING)


@LAW
@given(st.integers(0, 60), st.integers(1, 60), st.integers(0, 60), st.integers(1, 60))
def test_more_failures_are_stronger_evidence(
    bad: int, good: int, old_bad: int, old_good: int
) -> None:
    old = old_bad, old_bad + old_good
    found = share_above((bad, bad + good), old, 0.01)
    assert found >= 0
    assert share_above((bad + 1, bad + good), old, 0.01) >= found - 1e-6
    assert share_above((bad, bad + good + 1), old, 0.01) <= found + 1e-6


def sample(number: int, mean: float, spread: float) -> tuple[int, float, float]:
    return number, number * mean, number * (mean**2 + spread**2)


@pytest.mark.parametrize(
    ("new", "old", "low", "high"),
    [
        (sample(100, 0.010, 0.001), sample(100, 0.010, 0.001), 0, 0),
        (sample(100, 0.015, 0.001), sample(100, 0.010, 0.001), 0, 0),
        (sample(1, 9.0, 0), sample(100, 0.010, 0.001), 0, 0),
        (sample(100, 9.0, 1), sample(1, 0.010, 0.0), 0, 0),
        (sample(100, 0.060, 0.005), sample(100, 0.010, 0.005), 100, inf),
        (sample(9, 0.060, 0), sample(9, 0.010, 0), inf, inf),
        # One request in a hundred took a second, which may be due to chance.
        (sample(100, 0.02, 0.1), sample(100, 0.010, 0.001), 0, 1),
        (sample(3, 0.060, 0.010), sample(3, 0.010, 0.001), 0, CONVINCING),
    ],
)
def test_evidence_of_means_follows_welchs_test(
    new: tuple[int, float, float], old: tuple[int, float, float], low: float, high: float
) -> None:
    assert low <= mean_above(new, old, 1.5) <= high


@pytest.mark.parametrize(
    ("clusters", "variance", "effect"),
    [
        ([], 0.25, 1),
        ([(1, 2)], 0.25, 1),
        ([(0, 10), (0, 20)], 0.0, 1),
        # Equal clusters are as strong as independent elements, never stronger.
        ([(5, 10)] * 8, 0.25, 1),
        # The elements of a cluster are all 1 or all 0, so ten elements are as strong as one.
        ([(10, 10), (0, 10)] * 50, 0.25, 10 * 100 / 99),
        ([(10, 10), (0, 10), (0, 0)] * 50, 0.25, 10 * 100 / 99),
    ],
)
def test_clusters_that_differ_weaken_the_evidence(
    clusters: list[tuple[int, int]], variance: float, effect: float
) -> None:
    assert design_effect(clusters, variance) == pytest.approx(effect)
