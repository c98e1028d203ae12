"""The report of the benchmarks: its page and its data."""

import json
from itertools import pairwise

import pytest

from benchmarks.report import data, number, page
from tests.benchmarks.results import OURS, ROUTED, SKIPPED

FACTS = {"CPU": "a fast one, 2 cores", "Envoy": "1.2.3"}
PAGE = page(FACTS, "3 rounds.", [ROUTED, SKIPPED])


@pytest.mark.parametrize(
    "line",
    [
        f"| Routed, against Envoy | {OURS} | **1.20** × rate | 0.80 … 1.30 | ≥ 1 | met |",
        f"| Routed, against Envoy | {OURS}: p99 | **60** ms | 2.00 … 70 | ≤ 50 | missed |",
        "Two workers: skipped, needs a third core.",
        "| CPU | a fast one, 2 cores |",
        "| Envoy | 1.2.3 |",
        f"| {OURS} | 1,200 | 31 | 98% | 1.00 | 60 | 51 |",
        "| Envoy | 1,000 | 41 | 90% | – | – | 71 |",
        "wrk -c32",
    ],
)
def test_the_page_has_a_line(line: str) -> None:
    assert line in PAGE.splitlines()


def test_all_rows_of_a_table_have_the_same_number_of_cells() -> None:
    lines = PAGE.splitlines()
    for above, line in pairwise(lines):
        if above.startswith("|") and line.startswith("|"):
            assert above.count("|") == line.count("|")


def test_the_data_has_every_sample() -> None:
    whole = json.loads(data(FACTS, "3 rounds.", [ROUTED, SKIPPED]))
    routed, skipped = whole["results"]
    assert whole["machine"] == FACTS
    assert [each[OURS]["rate"] for each in routed["rounds"]] == [1200, 2600, 800]
    assert routed["verdicts"][0]["median"] == 1.2
    assert routed["verdicts"][0]["goal"] == {"bound": 1.0, "at_least": True}
    assert skipped["skipped"] == "needs a third core"


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.8449, "0.84"), (1.0, "1.00"), (12.34, "12.3"), (99.96, "100"), (25400.4, "25,400")],
)
def test_numbers_are_rounded_to_three_digits(value: float, shown: str) -> None:
    assert number(value) == shown
