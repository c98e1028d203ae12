"""The chart: valid SVG with bars as long as their ratios."""

from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from benchmarks.chart import chart
from benchmarks.measure import RATE, Result, Verdict, at_least
from tests.benchmarks.results import OURS, ROUTED, SKIPPED

SVG = "{http://www.w3.org/2000/svg}"


def drawn(*ratios: float) -> ET.Element:
    verdicts = tuple(Verdict(f"run {ratio}", RATE, at_least(1.0), (ratio,)) for ratio in ratios)
    return parsed(replace(ROUTED, verdicts=verdicts))


def parsed(*results: Result) -> ET.Element:
    return ET.fromstring(chart(results))  # noqa: S314  # our own, just made


def test_the_length_of_a_bar_is_proportional_to_its_ratio() -> None:
    one, two, three = (
        float(bar.attrib["width"]) for bar in drawn(1.0, 2.0, 0.5).iter(f"{SVG}rect")
    )
    assert two == pytest.approx(2 * one, abs=0.1)
    assert three == pytest.approx(one / 2, abs=0.1)


def test_the_line_is_at_the_end_of_a_bar_of_ratio_1() -> None:
    picture = drawn(1.0, 2.0)
    bar = next(picture.iter(f"{SVG}rect"))
    dotted = [line for line in picture.iter(f"{SVG}line") if "stroke-dasharray" in line.attrib]
    end = float(bar.attrib["x"]) + float(bar.attrib["width"])
    assert [float(line.attrib["x1"]) for line in dotted] == [pytest.approx(end, abs=0.1)]


def test_a_bar_that_misses_its_goal_has_another_colour() -> None:
    met, missed = (bar.attrib["fill"] for bar in drawn(1.0, 0.99).iter(f"{SVG}rect"))
    assert met != missed


@pytest.mark.parametrize("ratios", [(0.1,), (1.0, 30.0)])
def test_all_shapes_are_inside_the_picture(ratios: tuple[float, ...]) -> None:
    picture = drawn(*ratios)
    _, _, width, height = (float(number) for number in picture.attrib["viewBox"].split())
    for bar in picture.iter(f"{SVG}rect"):
        assert float(bar.attrib["x"]) + float(bar.attrib["width"]) < width
    for text in picture.iter(f"{SVG}text"):
        assert 0 < float(text.attrib["x"]) < width or text.attrib["text-anchor"] == "start"
        assert 0 < float(text.attrib["y"]) < height


def test_only_rates_are_drawn_and_names_are_escaped() -> None:
    words = [text.text for text in parsed(ROUTED, SKIPPED).iter(f"{SVG}text")]
    assert words == ["Routed, against Envoy", OURS, "1.20 ×   goal ≥ 1"]


def test_a_chart_without_results_has_no_bars() -> None:
    assert not list(parsed(SKIPPED).iter(f"{SVG}rect"))
