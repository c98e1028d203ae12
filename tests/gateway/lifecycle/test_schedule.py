"""Schedules: the times around a time, where clocks change as well."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.base.dates import parse_date, time_zone
from gateway.lifecycle.schedule import CronSchedule
from tests.gateway.world import LAW

BERLIN = time_zone("Europe/Berlin")


def around(text: str, now: str) -> tuple[str, str]:
    """Return the times of a schedule in Berlin around a time in UTC."""
    before, after = (
        datetime.fromtimestamp(seconds, UTC)
        for seconds in CronSchedule(text, BERLIN).around(parse_date(f"{now}Z"))
    )
    return f"{before:%m-%d %H:%M}", f"{after:%m-%d %H:%M}"


@pytest.mark.parametrize(
    ("text", "now", "expected"),
    [
        ("0 9 * * 1", "2026-03-29T12:00", ("03-23 08:00", "03-30 07:00")),
        ("0 9 * * 1", "2026-03-30T07:00", ("03-30 07:00", "04-06 07:00")),
        ("0 9 * * 1", "2026-03-30T06:59:59", ("03-23 08:00", "03-30 07:00")),
        ("30 2 * * *", "2026-03-29T01:00", ("03-29 01:00", "03-30 00:30")),  # 2:30 is skipped
        ("30 2 * * *", "2026-10-25T01:30", ("10-25 00:30", "10-26 01:30")),  # 2:30 comes twice
        ("*/5 * * * *", "2026-10-25T01:32", ("10-25 01:30", "10-25 01:35")),
        ("0 0 1 1 *", "2026-06-01T00:00", ("12-31 23:00", "12-31 23:00")),
    ],
)
def test_the_times_around(text: str, now: str, expected: tuple[str, str]) -> None:
    assert around(text, now) == expected


def test_a_day_that_comes_once_in_a_long_time() -> None:
    before, after = CronSchedule("0 0 29 2 *", UTC).around(parse_date("2026-01-01"))
    assert (before, after) == (parse_date("2024-02-29"), parse_date("2028-02-29"))


@LAW
@given(st.lists(st.integers(0, 4_000_000), min_size=1))
def test_what_is_remembered_is_what_would_be_found(offsets: list[int]) -> None:
    """Whatever came before: clocks go back, too."""
    schedule = CronSchedule("*/7 3-20 * * 1-5", BERLIN)
    for offset in offsets:
        now = 1_774_000_000 + offset
        found = schedule.around(now)
        assert found == CronSchedule("*/7 3-20 * * 1-5", BERLIN).around(now)
        assert found[0] <= now < found[1]


def test_within_a_second_it_is_the_second_that_counts() -> None:
    schedule = CronSchedule("* * * * *", UTC)
    assert schedule.around(59.999) == (0, 60)
    assert schedule.around(60.0) == (60, 120)
    assert schedule.around(60.001) == (60, 120)


@pytest.mark.parametrize("text", ["", "0 9 * *", "@daily", "0 0 9 * * 1", "x * * * *", "* * * * 8"])
def test_no_schedule(text: str) -> None:
    with pytest.raises(ValueError, match="write minute, hour, day, month and weekday"):
        CronSchedule(text, UTC)


@pytest.mark.parametrize("name", ["", "Berlin", "../UTC", "/etc/passwd", "Europe/"])
def test_no_time_zone(name: str) -> None:
    with pytest.raises(ValueError, match="write one like Europe/Berlin"):
        time_zone(name)


def test_time_zones() -> None:
    assert time_zone("UTC") is UTC
    assert datetime(2026, 7, 1, tzinfo=time_zone("Europe/Berlin")).utcoffset() == timedelta(hours=2)
