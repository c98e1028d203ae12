"""Recurring times of cron expressions, computed once and cached."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, tzinfo
from math import inf

# cronsim: follows Debian's cron, clock changes included; small, typed, and also runs backwards.
from cronsim import CronSim, CronSimError

Schedule = Callable[[float], tuple[float, float]]
"""Returns the last scheduled time at or before a time, and the first one after it.

All times are in seconds since 1970. Without such a time, the first is minus infinity and the second
infinity.
"""
_FIELDS = 5
_SOME_DAY = datetime(2026, 1, 1, tzinfo=UTC)


def cron_schedule(text: str, zone: tzinfo) -> Schedule:
    """Return the schedule of a cron expression of five fields in a time zone.

    Raises:
        ValueError: The text is not a cron expression; the message describes the correct form.
    """
    if len(text.split()) != _FIELDS:
        raise ValueError(_expected("does not have five fields"))
    try:
        CronSim(text, _SOME_DAY)
    except CronSimError as error:
        raise ValueError(_expected(f"has a {str(error).lower()}")) from None

    def times(second: int, *, reverse: bool = False) -> Iterator[float]:
        start = datetime.fromtimestamp(second, UTC).astimezone(zone)
        return (time.timestamp() for time in CronSim(text, start, reverse))

    # The times around the latest request: the next request usually needs one comparison.
    before, after = inf, -inf

    def schedule(now: float) -> tuple[float, float]:
        nonlocal before, after
        if not before <= now < after:
            later = next(times(int(now)), inf)
            # One second later, as the search excludes its start.
            before = next(times(int(now) + 1, reverse=True), -inf)
            after = later
        return before, after

    return schedule


def _expected(wrong: str) -> str:
    return f"the schedule {wrong}; write minute, hour, day, month and weekday, like '0 9 * * 1'"
