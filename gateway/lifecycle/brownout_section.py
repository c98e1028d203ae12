"""`brownout` in gateway.yaml: when requests for a version are refused, before it ends."""

from dataclasses import dataclass
from datetime import UTC, tzinfo
from functools import partial
from math import inf
from typing import Annotated, Literal

from pydantic import Field

from gateway.access.clients import ClientNaming
from gateway.base.dates import format_date, parse_date, time_zone
from gateway.base.mistakes import Location, Mistakes
from gateway.base.model import Date, NumberText, OneOrPair, Percent, SectionModel
from gateway.base.overrides import VersionKey
from gateway.lifecycle.brownout import Brownout, Growth, Window
from gateway.lifecycle.exemptions import BrownoutExemptionConfig, build_exemptions
from gateway.lifecycle.schedule import CronSchedule

Minutes = Annotated[float, Field(gt=0, le=10_080), NumberText]


class WindowConfig(SectionModel):
    """A brownout window: a time in which requests for the version are refused."""

    at: str | None = None
    """The times at which the window opens, as a cron expression: minute, hour, day, month and
    weekday. Without it, the window is open all the time between `from` and `to`."""
    minutes: OneOrPair[Minutes] | None = None
    """How long the window is open each time, in minutes. A pair of numbers grows evenly from the
    first on `from` to the second on `to`."""
    percent: OneOrPair[Percent] = 100.0
    """The percentage of requests that an open window refuses. A pair of numbers grows evenly from
    the first on `from` to the second on `to`. The default is 100."""
    from_: Annotated[Date | None, Field(alias="from")] = None
    """The date before which the window stays closed. Without it, there is no such date."""
    to: Date | None = None
    """The date from which on the window stays closed. Without it, there is no such date."""


class BrownoutConfig(SectionModel):
    """When requests for the version are refused, so that its clients notice before it ends."""

    windows: tuple[WindowConfig, ...] = ()
    """The windows in which requests are refused. By default, there are none."""
    percent: Percent = 0.0
    """The percentage of requests that is refused at any time. The default is 0."""
    zone: str = "UTC"
    """The time zone of the windows' `at`, such as Europe/Berlin. The default is UTC."""
    status: Annotated[Literal[503, 410], NumberText] = 503
    """The status of a refused request: 503, with Retry-After, or 410. The default is 503."""
    exempt: tuple[BrownoutExemptionConfig, ...] = ()
    """The clients whose requests are never refused in a brownout. By default, there are none."""


@dataclass(frozen=True, slots=True)
class BrownoutBuilder:
    """Builds the brownouts of one version; mistakes go to `mistakes`.

    Attributes:
        key: the API and the version.
        config: the brownouts as configured.
        sunset: when the version ends; infinite where it does not.
        naming: how clients get their names; None where they have none.
        at: the location of the brownouts.
        mistakes: collects the mistakes.
    """

    key: VersionKey
    config: BrownoutConfig
    sunset: float
    naming: ClientNaming | None
    at: Location
    mistakes: Mistakes

    def build(self) -> Brownout:
        """Return the brownouts."""
        # A percentage of 0 that is written out is meant to refuse nothing.
        if not self.config.windows and "percent" not in self.config.model_fields_set:
            self.mistakes.add("refuses nothing; add windows or percent", *self.at)
        # Imported only for a brownout: time zones and cron take memory that most gateways save.

        zone = self.mistakes.attempt(partial(time_zone, self.config.zone), *self.at, "zone") or UTC
        windows = [
            self._window(window, zone, (*self.at, "windows", index))
            for index, window in enumerate(self.config.windows)
        ]
        if self.config.percent:
            windows.append(Window(percent=_growth(self.config.percent)))
        exempt = build_exemptions(
            self.config.exempt, self.naming, (*self.at, "exempt"), self.mistakes
        )
        return Brownout(self.key, tuple(windows), self.config.status, exempt)

    def _window(self, config: WindowConfig, timezone: tzinfo, at: Location) -> Window:
        begins = self._date(config.from_, -inf, *at, "from")
        ends = self._date(config.to, inf, *at, "to")
        if ends <= begins:
            self.mistakes.add(f"is no later than from, {config.from_}; swap the two", *at, "to")
        elif begins >= self.sunset:
            self.mistakes.add(
                f"the version ends on {format_date(self.sunset)}, before that;"
                " name an earlier date",
                *(*at, "from"),
            )
        schedule = None
        if config.at is not None:
            schedule = self.mistakes.attempt(partial(CronSchedule, config.at, timezone), *at, "at")
        if (config.at is None) != (config.minutes is None):
            self.mistakes.add(
                "at names when it opens and minutes for how long;"
                ' write { at: "0 9 * * 1", minutes: 30 }',
                *at,
            )
        elif config.at is None and ends == inf and config.percent == 100:
            self.mistakes.add("has no end; add to, or at and minutes, or percent", *at)
        for name, growing in (("minutes", config.minutes), ("percent", config.percent)):
            self._check_growth(growing, begins, ends, (*at, name))
        minutes = _growth(config.minutes or inf)
        seconds = Growth(minutes.first * 60, minutes.last * 60)
        return Window(begins, ends, schedule, seconds, _growth(config.percent))

    def _check_growth(
        self,
        growing: float | tuple[float, float] | None,
        begins: float,
        ends: float,
        at: Location,
    ) -> None:
        if not isinstance(growing, tuple):
            return
        if begins == -inf or ends == inf:
            self.mistakes.add("grows from one date to another; add from and to", *at)
        if growing[0] >= growing[1]:
            self.mistakes.add("does not grow; write the smaller number first", *at)

    def _date(self, text: str | None, otherwise: float, *location: str | int) -> float:
        if text is None:
            return otherwise
        found = self.mistakes.attempt(partial(parse_date, text), *location)
        return otherwise if found is None else found


def _growth(growing: float | tuple[float, float]) -> Growth:
    return Growth(*growing) if isinstance(growing, tuple) else Growth(growing, growing)
