"""Schedules: the times of a cron expression, computed once and cached."""

from collections.abc import Iterator
from datetime import UTC, datetime, tzinfo
from math import inf

# cronsim: Debian's cron to the letter, changes of the clock included; small, typed, runs backwards.
from cronsim import CronSim, CronSimError

_FIELDS = 5
_SOME_DAY = datetime(2026, 1, 1, tzinfo=UTC)


class CronSchedule:
    """The times of a cron expression.

    The times around `now` are cached until the next of them, so a request needs one comparison.
    """

    __slots__ = ("_after", "_before", "_text", "_zone")

    def __init__(self, text: str, zone: tzinfo) -> None:
        """Parse a cron expression of five fields.

        Raises:
            ValueError: the text is not a cron expression; the message has what would be right.
        """
        self._text = text
        self._zone = zone
        self._before, self._after = inf, -inf
        if len(text.split()) != _FIELDS:
            raise ValueError(_expected("has not five fields"))
        try:
            CronSim(text, _SOME_DAY)
        except CronSimError as error:
            raise ValueError(_expected(f"has a {str(error).lower()}")) from None

    def around(self, now: float) -> tuple[float, float]:
        """Return the last time at or before `now` and the first one after it."""
        if not self._before <= now < self._after:
            second = datetime.fromtimestamp(int(now), UTC)
            later = next(self._times(second), inf)
            # One second later, so that a time counts as past from its own second on.
            following = datetime.fromtimestamp(int(now) + 1, UTC)
            self._before = next(self._times(following, reverse=True), -inf)
            self._after = later
        return self._before, self._after

    def _times(self, start: datetime, *, reverse: bool = False) -> Iterator[float]:
        return (
            time.timestamp() for time in CronSim(self._text, start.astimezone(self._zone), reverse)
        )


def _expected(wrong: str) -> str:
    return f"the schedule {wrong}; write minute, hour, day, month and weekday, like '0 9 * * 1'"
