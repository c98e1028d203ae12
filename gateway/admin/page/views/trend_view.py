"""The trend of a version: its requests and callers over a year, and the day it reaches nobody."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from gateway.admin.page.charts import Mark, TimeLine, area, line, top_of
from gateway.admin.page.views.versions_view import time_line
from gateway.findings.formatting import duration_text
from gateway.findings.version_summary import VersionSummary
from gateway.http.turns.cooperation import turns
from gateway.usage.history import Interval, Resolution, UsageTrend, usage_trend

DAY = Resolution.DAY.seconds
BEFORE, AFTER = 365, 120
"""The days before and after today that a chart shows."""
HEIGHT = 60.0
"""The height of a chart."""
# The latest day is shown in parts of so many minutes.
_PART = 10


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart over time.

    Attributes:
        title: what it shows.
        latest: the latest value, as a text.
        top: the value at its upper edge.
        area: the area under its line, as an SVG path; empty for none.
        path: its line.
        second: a second line; empty for none.
        ahead: where it leads, as a dashed line; empty if that is not known.
    """

    title: str
    latest: str
    top: float
    area: str
    path: str
    second: str = ""
    ahead: str = ""


@dataclass(frozen=True, slots=True)
class Week:
    """The sums of seven days: when they begin, requests, errors, and the most callers of a day."""

    begin: int
    requests: int
    errors: int
    callers: int


@dataclass(frozen=True, slots=True)
class TrendPart:
    """What is shown of the trend.

    Attributes:
        year: the charts of the year.
        day: those of the latest 24 hours.
        span: the part of time that the charts of the year show.
        marks: notice, brownouts and end in it.
        usage: the trend of the number of callers; None if there are too few days.
        nobody: the day at which it reaches nobody if it goes on so, in seconds since 1970; None if
            it does not.
        weeks: the weeks with requests, the latest first.
    """

    year: list[Chart]
    day: list[Chart]
    span: TimeLine
    marks: list[Mark]
    usage: UsageTrend | None
    nobody: float | None
    weeks: list[Week]


async def trend_part(
    version: VersionSummary,
    days: Mapping[int, Interval],
    minutes: Mapping[int, Interval],
    now: float,
) -> TrendPart:
    """Return what is shown of the trend.

    Args:
        version: its summary.
        days: its history by the day.
        minutes: its history by the minute.
        now: the time, in seconds since 1970.
    """
    today = Resolution.DAY.start(now)
    span = TimeLine(today - BEFORE * DAY, today + AFTER * DAY)
    callers = _by_day(days, today, lambda each: each.callers.count)
    whole = [value for value in callers[:BEFORE] if value is not None]
    found = usage_trend(whole)
    nobody = None
    if found is not None and found.days is not None:
        nobody = today + (found.days if any(whole[-7:]) else -_quiet(whole)) * DAY
    return TrendPart(
        [chart async for chart in turns(_year(days, callers, today, found))],
        await _latest_day(minutes, now),
        span,
        list(time_line(version, now, span)),
        found,
        nobody,
        _weeks(days),
    )


def _by_day(
    days: Mapping[int, Interval], today: int, value: Callable[[Interval], float]
) -> list[float | None]:
    """Return a value of each day of the year and of those ahead; a day without requests has 0."""
    first = min(days, default=today)
    found: list[float | None] = []
    for at in range(today - BEFORE * DAY, today + (AFTER + 1) * DAY, DAY):
        if at < first or at > today:
            found.append(None)
        else:
            found.append(value(days[at]) if at in days else 0.0)
    return found


def _quiet(whole: Sequence[float]) -> int:
    """Return for how many days there was nobody."""
    quiet = 0
    for value in reversed(whole):
        if value:
            break
        quiet += 1
    return quiet


def _year(
    days: Mapping[int, Interval], callers: list[float | None], today: int, found: UsageTrend | None
) -> Iterator[Chart]:
    most = top_of(callers)
    yield Chart(
        "Callers a day",
        f"{callers[BEFORE] or 0:,.0f} today",
        most,
        area(callers, HEIGHT, most),
        line(callers, HEIGHT, most),
        ahead=_ahead(found, most),
    )
    requests = _by_day(days, today, lambda each: each.requests)
    errors = _by_day(days, today, lambda each: each.errors)
    yield _requests("Requests a day", f"{requests[BEFORE] or 0:,.0f} today", requests, errors)


def _ahead(found: UsageTrend | None, top: float) -> str:
    """Return the line from today to the day of zero, or to the edge of the chart."""
    if found is None or not found.days:
        return ""
    days = min(found.days, float(AFTER))
    left = max(found.level + found.slope * days, 0.0)
    values: list[float | None] = [None] * (BEFORE + AFTER + 1)
    for day in range(int(days) + 1):
        values[BEFORE + day] = found.level + (left - found.level) * day / max(days, 1.0)
    return line(values, HEIGHT, top)


async def _latest_day(minutes: Mapping[int, Interval], now: float) -> list[Chart]:
    """Return charts of the latest 24 hours, in parts of ten minutes."""
    # The present minute is not whole.
    end = Resolution.MINUTE.start(now) - Resolution.MINUTE.seconds
    count = 24 * 60 // _PART
    parts: list[list[Interval]] = [[] for _ in range(count)]
    async for start, each in turns(minutes.items()):
        place = count - 1 - (end - start) // (60 * _PART)
        if 0 <= place < count:
            parts[place].append(each)
    sums = [Interval.total(Resolution.MINUTE, part) async for part in turns(parts)]
    requests: list[float | None] = [each.requests / _PART for each in sums]
    errors: list[float | None] = [each.errors / _PART for each in sums]
    slow = [each.quantile(0.95) for each in sums]
    longest, mean, latest = top_of(slow), sums[-1].requests / _PART, slow[-1]
    lately = f"in the last {_PART} min"
    return [
        _requests(
            "Requests a minute",
            f"{format(mean, ',.0f' if mean >= 10 else '.2g')} {lately}",
            requests,
            errors,
        ),
        Chart(
            "95% answered within, ms",
            "not known" if latest is None else f"{duration_text(latest)} {lately}",
            longest * 1000,
            "",
            line(slow, HEIGHT, longest),
        ),
    ]


def _requests(
    title: str, latest: str, requests: Sequence[float | None], errors: Sequence[float | None]
) -> Chart:
    """Return the chart of requests, with a second line of errors if there are any."""
    top = top_of(requests)
    second = line(errors, HEIGHT, top) if any(errors) else ""
    return Chart(
        title, latest, top, area(requests, HEIGHT, top), line(requests, HEIGHT, top), second
    )


def _weeks(days: Mapping[int, Interval]) -> list[Week]:
    found: dict[int, Week] = {}
    for start, each in days.items():
        begin = start - (start // DAY + 3) % 7 * DAY  # the Monday; 1970 began on a Thursday
        week = found.get(begin, Week(begin, 0, 0, 0))
        found[begin] = Week(
            begin,
            week.requests + each.requests,
            week.errors + each.errors,
            max(week.callers, each.callers.count),
        )
    return [found[begin] for begin in sorted(found, reverse=True)]
