"""`brownout` in gateway.yaml: temporary refusals that warn clients before a version ends."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from functools import partial
from heapq import merge
from math import ceil, inf
from typing import Annotated, Literal, NamedTuple

# cronsim follows Debian's cron, including its handling of clock changes. The package is small,
# typed, and can also search backwards in time.
from cronsim import CronSim, CronSimError
from pydantic import Field

from gateway.access.clients import ClientNaming
from gateway.base.dates import format_date, parse_date, time_zone
from gateway.base.errors import Fault, FaultCode
from gateway.base.mistakes import Mistakes
from gateway.base.model import Date, NumberText, OneOrPair, Percent, SectionModel
from gateway.base.overrides import VersionKey
from gateway.base.request import RequestContext
from gateway.lifecycle.lifecycle import BrownoutExemption, compile_exemptions

Schedule = Callable[[float], tuple[float, float]]
"""Returns two scheduled times: the last one at or before the given time, and the first one after
it. All times are in seconds since 1970. Minus infinity and infinity mean that there is no such
time."""


_FIELDS = 5


_SOME_DAY = datetime(2026, 1, 1, tzinfo=UTC)


def cron_schedule(text: str, zone: tzinfo) -> Schedule:
    """Return the schedule of a five-field cron expression; its ValueError describes the form."""
    if len(text.split()) != _FIELDS:
        raise ValueError(_expected("does not have five fields"))
    try:
        CronSim(text, _SOME_DAY)
    except CronSimError as error:
        raise ValueError(_expected(f"has a {str(error).lower()}")) from None

    def times(second: int, *, reverse: bool = False) -> Iterator[float]:
        start = datetime.fromtimestamp(second, UTC).astimezone(zone)
        return (time.timestamp() for time in CronSim(text, start, reverse))

    # A cache: the next request usually falls between the same two times.
    before, after = inf, -inf

    def schedule(now: float) -> tuple[float, float]:
        nonlocal before, after
        if not before <= now < after:
            later = next(times(int(now)), inf)
            # CronSim excludes the time at which its search starts.
            before = next(times(int(now) + 1, reverse=True), -inf)
            after = later
        return before, after

    return schedule


def _expected(wrong: str) -> str:
    return f"the schedule {wrong}; write minute, hour, day, month and weekday, like '0 9 * * 1'"


Minutes = Annotated[float, Field(gt=0, le=10_080), NumberText]
_Range = tuple[float, float]
"""A pair of numbers: the value at the first of two dates, and the value that it reaches linearly at
the second."""

# Retry-After in seconds for a brownout without an end, since an operator may pause the brownout.
_RETRY_WITHOUT_END = 3600
_MAX_ADJACENT = 16


class BrownoutWindow(SectionModel):
    """A brownout window: a time in which requests for the version are refused."""

    at: str | None = None
    """The times at which the window opens, as a cron expression: minute, hour, day, month and
    weekday. Without it, the window is open all the time between `from` and `to`."""
    minutes: OneOrPair[Minutes] | None = None
    """The duration of each opening of the window, in minutes. A pair of numbers grows evenly from
    the first number on the date `from` to the second on the date `to`."""
    percent: OneOrPair[Percent] = 100.0
    """The percentage of requests that an open window refuses. A pair of numbers grows evenly from
    the first number on the date `from` to the second on the date `to`. The default is 100."""
    from_: Annotated[Date | None, Field(alias="from")] = None
    """The date before which the window is closed. Without it, the window has no first date."""
    to: Date | None = None
    """The date after which the window is closed. Without it, the window has no last date."""

    def compile(self, sunset: float, zone: tzinfo, mistakes: Mistakes) -> "CompiledWindow":
        begins = _date(self.from_, -inf, mistakes.below("from"))
        ends = _date(self.to, inf, mistakes.below("to"))
        if ends <= begins:
            mistakes.add(f"is not later than from, {self.from_}; swap them", "to")
        elif begins >= sunset:
            text = f"is not before the sunset, {format_date(sunset)}; use an earlier date"
            mistakes.add(text, "from")
        schedule = None
        if self.at is not None:
            schedule = mistakes.attempt(partial(cron_schedule, self.at, zone), "at")
        if (self.at is None) != (self.minutes is None):
            text = 'at and minutes require each other; write { at: "0 9 * * 1", minutes: 30 }'
            mistakes.add(text)
        elif self.at is None and ends == inf and self.percent == 100:
            mistakes.add("has no end; add to, or at and minutes, or percent")
        for name, value in (("minutes", self.minutes), ("percent", self.percent)):
            if not isinstance(value, tuple):
                continue
            if begins == -inf or ends == inf:
                mistakes.add("a pair needs two dates; add from and to", name)
            if value[0] >= value[1]:
                mistakes.add("does not grow; write the smaller number first", name)
        first, last = _range(inf if self.minutes is None else self.minutes)
        return CompiledWindow(begins, ends, schedule, (first * 60, last * 60), _range(self.percent))


class Brownout(SectionModel):
    """Temporary refusals of requests for the version, so that its clients notice before it ends."""

    windows: tuple[BrownoutWindow, ...] = ()
    """The windows in which requests are refused. By default, there are none."""
    percent: Percent = 0.0
    """The percentage of requests that are refused at any time. The default is 0."""
    zone: str = "UTC"
    """The time zone of the windows' `at`, such as Europe/Berlin. The default is UTC."""
    status: Annotated[Literal[503, 410], NumberText] = 503
    """The status of the response to a refused request: 503 with Retry-After, or 410. The default is
    503."""
    exempt: tuple[BrownoutExemption, ...] = ()
    """The clients whose requests are never refused in a brownout. By default, there are none."""

    def compile(
        self,
        key: VersionKey,
        sunset: float,
        naming: ClientNaming | None,
        mistakes: Mistakes,
    ) -> "VersionBrownout":
        """Return the brownouts of one version; `sunset` is in seconds since 1970, or infinity."""
        # An explicit percentage of 0 disables the brownout on purpose.
        if not self.windows and "percent" not in self.model_fields_set:
            mistakes.add("refuses nothing; add windows or percent")
        zone = mistakes.attempt(partial(time_zone, self.zone), "zone") or UTC
        windows = [
            window.compile(sunset, zone, mistakes.below("windows", index))
            for index, window in enumerate(self.windows)
        ]
        if self.percent:
            windows.append(CompiledWindow(percent=_range(self.percent)))
        exempt = compile_exemptions(self.exempt, naming, mistakes.below("exempt"))
        return VersionBrownout(key, tuple(windows), self.status, exempt)


class WindowOccurrence(NamedTuple):
    """One period in which a brownout window is open.

    Attributes:
        begins: The time at which the window opens, in seconds since 1970; minus infinity for a
            window without a first date.
        ends: The time at which the window closes; infinity for a window without an end.
        percent: The percentage of requests that are refused when the window opens, or now if it is
            open.
    """

    begins: float
    ends: float
    percent: float


@dataclass(frozen=True, slots=True)
class CompiledWindow:
    """The times of a brownout window, in seconds since 1970, and its percentages.

    Attributes:
        schedule: The times at which the window opens; None opens it from `begins` to `ends`.
        seconds: How many seconds the window stays open each time, at `begins` and at `ends`.
        percent: The percentage of requests that are refused, at `begins` and at `ends`.
    """

    begins: float = -inf
    ends: float = inf
    schedule: Schedule | None = None
    seconds: _Range = (inf, inf)
    percent: _Range = (100, 100)

    def open_until(self, now: float) -> float | None:
        if not self.begins <= now < self.ends:
            return None
        if self.schedule is None:
            return self.ends
        opened, _ = self.schedule(now)
        if now - opened >= self.seconds[1]:  # the fast path: no opening lasts longer
            return None
        end = self._end(opened)
        return end if now < end else None

    def share(self, now: float) -> float:
        """Return the share of requests that the window refuses while it is open, from 0 to 1."""
        return self._value(self.percent, now) / 100

    def occurrences(self, now: float) -> Iterator[WindowOccurrence]:
        """Yield the current and later periods in which the window is open, the earliest first."""
        if now >= self.ends:
            return
        start = max(now, self.begins)
        if self.schedule is None:
            yield WindowOccurrence(self.begins, self.ends, self._value(self.percent, start))
            return
        opens, following = self.schedule(start)
        if opens == -inf or self._end(opens) <= start:
            opens = following
        while opens < self.ends:
            begins = max(opens, self.begins)
            percent = self._value(self.percent, max(begins, now))
            yield WindowOccurrence(begins, self._end(opens), percent)
            _, opens = self.schedule(opens)

    def _end(self, opened: float) -> float:
        return min(opened + self._value(self.seconds, max(opened, self.begins)), self.ends)

    def _value(self, between: _Range, moment: float) -> float:
        first, last = between
        if first == last:  # the dates may be infinite
            return first
        return first + (last - first) * (moment - self.begins) / (self.ends - self.begins)


@dataclass(frozen=True, slots=True)
class VersionBrownout:
    """The brownouts of one version.

    `exempt` has the end of each client's exemption in seconds since 1970, which may be infinity.
    """

    key: VersionKey
    windows: tuple[CompiledWindow, ...]
    status: int = 503
    exempt: Mapping[str, float] = field(default_factory=dict)

    def retry_at(self, context: RequestContext) -> float | None:
        """Return the time of the next attempt if the request is refused, else None.

        The time is in seconds since 1970; infinity if the refusal has no end.
        """
        now = context.now
        latest = -inf
        for window in self.windows:
            end = window.open_until(now)
            if end is None:
                continue
            share = window.share(now)
            if share >= 1:
                latest = max(latest, self._last_end(end))
            elif context.brownout_draw < share:
                # A retry gets a new random draw, so it may succeed before the window closes.
                latest = max(latest, now + 1)
        return None if latest == -inf or self.exempts(context) else latest

    def _last_end(self, end: float) -> float:
        for _ in range(_MAX_ADJACENT):
            ends = [window.open_until(end) for window in self.windows if window.share(end) >= 1]
            later = max((each for each in ends if each is not None), default=end)
            if later == end:
                break
            end = later
        return end

    def share(self, now: float) -> float:
        open_now = (window for window in self.windows if window.open_until(now) is not None)
        return max((window.share(now) for window in open_now), default=0.0)

    def exempts(self, context: RequestContext) -> bool:
        if self.key in context.overrides.paused:
            return True
        return context.now < self.exempt.get(context.client, -inf)

    def occurrences(self, now: float) -> Iterator[WindowOccurrence]:
        """Yield the current and later periods in which any window is open, the earliest first."""
        return merge(*(window.occurrences(now) for window in self.windows))

    def refusal(
        self,
        retry_at: float,
        now: float,
        offered: tuple[str, ...],
        successor: dict[str, object] | None,
    ) -> Fault:
        _, label = self.key
        instead = "a later version" if successor is None else f"version {successor['version']}"
        # Rounded up, so that a client that retries after this time is not refused again.
        seconds = ceil(retry_at - now) if retry_at < inf else _RETRY_WITHOUT_END
        return Fault(
            FaultCode.VERSION_BROWNOUT,
            f"Version {label} is being withdrawn and refused for a while; use {instead}.",
            supported=offered,
            fields=((b"Retry-After", b"%d" % seconds),) if self.status == 503 else (),
            status_override=self.status,
            successor=successor,
        )


def _range(value: float | _Range) -> _Range:
    return value if isinstance(value, tuple) else (value, value)


def _date(text: str | None, default: float, mistakes: Mistakes) -> float:
    found = None if text is None else mistakes.attempt(partial(parse_date, text))
    return default if found is None else found
