"""The brownouts of a version: windows by a schedule, growing or not, or a share of the requests."""

from dataclasses import dataclass
from datetime import UTC, tzinfo
from functools import partial
from math import inf

from gateway.config.sections.lifecycle_models import BrownoutConfig, WindowConfig, exemptions
from gateway.config.text.dates import format_date, parse_date
from gateway.config.text.mistakes import Location, Mistakes
from gateway.core.clients import ClientNaming
from gateway.core.lifecycle.brownout import Brownout, Growth, Window
from gateway.core.overrides import VersionKey


@dataclass(frozen=True, slots=True)
class BrownoutBuilder:
    """Builds the brownouts of one version; what is wrong goes to `mistakes`.

    Attributes:
        key: the version.
        config: what the rules say of it.
        sunset: when the version ends; infinite where it does not.
        naming: how clients are named, if they are.
        at: where it stands.
        mistakes: takes what is wrong.
    """

    key: VersionKey
    config: BrownoutConfig
    sunset: float
    naming: ClientNaming | None
    at: Location
    mistakes: Mistakes

    def build(self) -> Brownout:
        """Return the brownouts."""
        # Who turns a percentage down to 0 knows that it refuses nothing.
        if not self.config.windows and "percent" not in self.config.model_fields_set:
            self.mistakes.add("refuses nothing; add windows or percent", *self.at)
        # Not before a rule asks for it: time zones and cron take memory that most can save.
        from gateway.config.schedule import zone

        there = self.mistakes.attempt(partial(zone, self.config.zone), *self.at, "zone") or UTC
        windows = [
            self._window(window, there, (*self.at, "windows", index))
            for index, window in enumerate(self.config.windows)
        ]
        if self.config.percent:
            windows.append(Window(percent=_growth(self.config.percent)))
        exempt = exemptions(self.config.exempt, self.naming, (*self.at, "exempt"), self.mistakes)
        return Brownout(self.key, tuple(windows), self.config.status, exempt)

    def _window(self, config: WindowConfig, there: tzinfo, at: Location) -> Window:
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
            from gateway.config.schedule import CronSchedule

            schedule = self.mistakes.attempt(partial(CronSchedule, config.at, there), *at, "at")
        if (config.at is None) != (config.minutes is None):
            self.mistakes.add(
                "at says when it opens and minutes for how long;"
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
