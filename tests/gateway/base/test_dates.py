"""Dates: a day begins at midnight UTC, and a time has a UTC offset."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.base.dates import format_date, parse_date
from tests.gateway.world import LAW


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1970-01-01", 0),
        ("2026-12-31", 1_798_675_200),
        ("2026-12-31T00:00:00Z", 1_798_675_200),
        ("2026-12-31t00:00z", 1_798_675_200),
        ("2026-12-31T01:00+01:00", 1_798_675_200),
        ("2026-12-30T18:30:00-05:30", 1_798_675_200),
        ("2028-02-29", 1_835_395_200),
    ],
)
def test_a_day_or_a_time_with_an_offset_is_parsed(text: str, seconds: int) -> None:
    assert parse_date(text) == seconds


@pytest.mark.parametrize("text", ["2026-02-29", "2026-00-01", "2026-01-01T25:00Z", "0000-01-01"])
def test_an_invalid_date_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=f"^'{text}' is not a date; write one like 2026-12-31$"):
        parse_date(text)


def test_a_time_without_an_offset_is_refused() -> None:
    with pytest.raises(ValueError, match="write 2026-12-31T18:00Z for UTC"):
        parse_date("2026-12-31T18:00")


@LAW
@given(st.integers(0, 4_000_000_000))
def test_a_formatted_date_is_parsed_back(seconds: int) -> None:
    assert parse_date(format_date(seconds)) == seconds


def test_midnight_utc_is_formatted_as_a_day() -> None:
    assert format_date(1_798_675_200) == "2026-12-31"
    assert format_date(1_798_675_201) == "2026-12-31T00:00:01Z"
