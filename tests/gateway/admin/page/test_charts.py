"""Charts: SVG paths of lines and areas, rounded maximums, and time lines."""

import pytest

from gateway.admin.page.charts import Mark, TimeLine, area, line, top_of


@pytest.mark.parametrize(
    ("values", "path"),
    [
        ([], ""),
        ([5], "M0.00 5.00m-0.5 0h1"),
        ([0, 10], "M0.00 10.00L100.00 0.00"),
        ([10, None, 0], "M0.00 0.00m-0.5 0h1M100.00 10.00m-0.5 0h1"),
        ([99, -1], "M0.00 0.00L100.00 10.00"),
    ],
)
def test_a_line_has_gaps_where_values_are_missing(values: list[float | None], path: str) -> None:
    assert line(values, 10, 10) == path


def test_an_area_extends_down_to_the_base_line() -> None:
    assert area([0, 10], 10, 10) == "M0 10L0.00 10.00L100.00 0.00L100 10Z"
    assert area([], 10, 10) == ""


@pytest.mark.parametrize(
    ("values", "top"),
    [([], 1), ([None, 0], 1), ([1], 1), ([3], 5), ([7, 60], 100), ([999], 1000), ([0.03], 0.05)],
)
def test_the_top_of_a_chart_is_a_round_number(values: list[float | None], top: float) -> None:
    assert top_of(values) == pytest.approx(top)


def test_marks_outside_the_time_line_are_clamped_to_its_edges() -> None:
    span = TimeLine(100, 300)
    assert [span.x(moment) for moment in (0, 100, 200, 400)] == [0, 0, 50, 100]
    assert span.mark("end", "ends", 200) == Mark(50, 0, "end", "ends")
    assert span.mark("notice", "noticed", 50, 200) == Mark(0, 50, "notice", "noticed")
    assert TimeLine(1, 1).x(1) == 0
