"""Rounds: each system runs once per round in a fair order, and ratios are taken within rounds."""

from collections import Counter

import pytest

from benchmarks.comparison import Comparison, judge, run_rounds, turns
from benchmarks.measure import Sample, cpu, rate
from tests.benchmarks.results import CLAIMS, OURS, ROUNDS, ROUTED, THEIRS


@pytest.mark.parametrize("names", ["ab", "abc", "abcdefghij"])
def test_each_round_has_each_run_once(names: str) -> None:
    for number in range(25):
        assert sorted(turns(names, number)) == sorted(names)


@pytest.mark.parametrize("names", ["ab", "abc", "abcd"])
def test_each_run_precedes_each_other_run_equally_often(names: str) -> None:
    orders = [turns(names, number) for number in range(2 * len(names))]
    before = Counter(
        (one, other)
        for order in orders
        for one in names
        for other in names
        if order.index(one) < order.index(other)
    )
    assert set(before.values()) == {len(names)}


def test_runs_take_place_in_order_and_are_reported() -> None:
    ran: list[str] = []

    def run(name: str, speed: float) -> Sample:
        ran.append(name)
        return Sample(speed, 1, 1, 1)

    reported: list[str] = []
    comparison = Comparison({"a": lambda: run("a", 1), "b": lambda: run("b", 2)}, ())

    rounds = run_rounds(comparison, 2, lambda name, _: reported.append(name))

    assert ran == reported == ["a", "b", "b", "a"]
    assert [(each["a"].rate, each["b"].rate) for each in rounds] == [(1, 2), (1, 2)]
    assert list(rounds[1]) == ["a", "b"]


def test_a_pair_runs_in_each_round_along_with_single_runs() -> None:
    reported: list[str] = []
    pair = {"a": Sample(1, 1, 1, 1), "b": Sample(2, 1, 1, 1)}
    comparison = Comparison({"c": lambda: Sample(3, 1, 1, 1)}, (), pairs=[lambda: pair])

    rounds = run_rounds(comparison, 2, lambda name, _: reported.append(name))

    assert reported == ["a", "b", "c"] * 2
    assert [[one.rate for one in each.values()] for each in rounds] == [[1, 2, 3]] * 2


def test_a_comparison_can_consist_of_pairs_only() -> None:
    comparison = Comparison({}, (), pairs=[lambda: {"a": Sample(1, 1, 1, 1)}])
    assert [list(each) for each in run_rounds(comparison, 2, lambda *_: None)] == [["a"], ["a"]]


def test_two_claims_with_the_same_name_are_refused() -> None:
    """They would be two table rows and two bars of the chart with the same label."""
    Comparison({}, [rate("a", "b"), rate("a", "c", text="a ÷ c"), cpu("a", "b")])
    with pytest.raises(ValueError, match="2 claims are named 'a', × rate"):
        Comparison({}, [rate("a", "b"), rate("a", "c")])


def test_a_ratio_is_taken_within_a_round() -> None:
    """The third round was slow for both systems, so it does not affect the ratio."""
    (verdict, _) = judge(CLAIMS, ROUNDS)
    assert verdict.values == (1.2, 1.3, 0.8)
    assert verdict.median == 1.2


def test_a_claim_is_judged_by_its_goal() -> None:
    (without,) = judge([rate(OURS, THEIRS)], ROUNDS)
    assert [verdict.met for verdict in (*ROUTED.verdicts, without)] == [True, False, True]
