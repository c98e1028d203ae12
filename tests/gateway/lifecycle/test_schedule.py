"""Cron schedules: the scheduled times around a time, clock changes included."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.base.dates import parse_date, time_zone
from gateway.lifecycle.brownout import cron_schedule
from tests.gateway.world import LAW

BERLIN = time_zone("Europe/Berlin")


@pytest.mark.parametrize(
    ("text", "now", "before", "after"),
    [
        ("0 9 * * 1", "2026-03-29T12:00", "2026-03-23T08:00", "2026-03-30T07:00"),
        ("0 9 * * 1", "2026-03-30T07:00", "2026-03-30T07:00", "2026-04-06T07:00"),
        ("0 9 * * 1", "2026-03-30T06:59:59", "2026-03-23T08:00", "2026-03-30T07:00"),
        # 2:30 is skipped in March, and comes twice in October.
        ("30 2 * * *", "2026-03-29T01:00", "2026-03-29T01:00", "2026-03-30T00:30"),
        ("30 2 * * *", "2026-10-25T01:30", "2026-10-25T00:30", "2026-10-26T01:30"),
        ("*/5 * * * *", "2026-10-25T01:32", "2026-10-25T01:30", "2026-10-25T01:35"),
        ("0 0 1 1 *", "2026-06-01T00:00", "2025-12-31T23:00", "2026-12-31T23:00"),
        ("0 1 29 2 *", "2026-01-01T00:00", "2024-02-29T00:00", "2028-02-29T00:00"),
    ],
)
def test_scheduled_times_before_and_after(text: str, now: str, before: str, after: str) -> None:
    expected = parse_date(f"{before}Z"), parse_date(f"{after}Z")
    assert cron_schedule(text, BERLIN)(parse_date(f"{now}Z")) == expected


@LAW
@given(st.lists(st.integers(0, 4_000_000), min_size=1))
def test_the_cache_does_not_change_results(offsets: list[int]) -> None:
    """Whatever came before: clocks go back, too."""
    schedule = cron_schedule("*/7 3-20 * * 1-5", BERLIN)
    for offset in offsets:
        now = 1_774_000_000 + offset
        before, after = schedule(now)
        assert (before, after) == cron_schedule("*/7 3-20 * * 1-5", BERLIN)(now)
        assert before <= now < after


def test_a_scheduled_time_counts_as_past_from_its_own_second_on() -> None:
    schedule = cron_schedule("* * * * *", UTC)
    assert [schedule(now) for now in (59.999, 60.0, 60.001)] == [(0, 60), (60, 120), (60, 120)]


@pytest.mark.parametrize("text", ["", "0 9 * *", "@daily", "0 0 9 * * 1", "x * * * *", "* * * * 8"])
def test_an_invalid_expression_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="write minute, hour, day, month and weekday"):
        cron_schedule(text, UTC)


@pytest.mark.parametrize("name", ["", "Berlin", "../UTC", "/etc/passwd", "Europe/"])
def test_an_unknown_time_zone_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="write one like Europe/Berlin"):
        time_zone(name)


def test_a_time_zone_has_its_summer_time() -> None:
    assert time_zone("UTC") is UTC
    assert datetime(2026, 7, 1, tzinfo=BERLIN).utcoffset() == timedelta(hours=2)
