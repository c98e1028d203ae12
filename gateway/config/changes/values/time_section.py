"""`time`: the older version writes the same moment in another form."""

import re
from collections.abc import Iterator
from datetime import tzinfo
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from gateway.config.changes.change_section import Loss, Upgrade
from gateway.config.changes.change_site import ChangeSite
from gateway.config.changes.value_kinds import NUMBER, TEXT, ValueKinds
from gateway.config.changes.values.rewrite_section import (
    FormWays,
    RewriteSection,
    ways_between,
)
from gateway.config.schedule import zone as time_zone
from gateway.config.shape import NonEmptyText, NumberText
from gateway.core.conversion.scalars import Type

# The forms of time are imported when rules name them: they take memory that most can save.
if TYPE_CHECKING:
    from gateway.core.conversion.changes.values.moment import MomentForm

_UNIX = {"unix": 0, "unix_ms": 3}
_UNITS = ("years", "months", "days", "hours", "minutes", "seconds")

_OFFSET = re.compile(r"Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9]")


class TimeConfig(RewriteSection):
    """Write a moment in another form: as unix time, by RFC 3339, or by a pattern."""

    newer: NonEmptyText
    """The newer version's form: unix, unix_ms, rfc3339, or a pattern such as dd/MM/yyyy HH:mm."""
    older: NonEmptyText
    """The older version's form: unix, unix_ms, rfc3339, or a pattern such as dd/MM/yyyy HH:mm."""
    zone: NonEmptyText = "Z"
    """The offset from UTC of times that name none, and of those written anew, such as +02:00, or a
    time zone, such as Europe/Berlin. The default is Z."""
    other_zones: Literal["convert", "refuse"] = "convert"
    """What is done with a time that names another offset than `zone`. The default is convert."""
    digits: Annotated[int, Field(ge=0, le=18), NumberText] | None = None
    """The digits after the point that unix time has at most; without it, all that there are, but
    none between unix and unix_ms."""
    fraction: Literal["as_is", "unless_zero", "shortest"] = "as_is"
    """How rfc3339 is written where the other form has digits of a second: with all of them (the
    default), without them if they are zeros alone, or without the zeros at their end."""
    text: bool = False
    """Whether unix time is a text of digits in bodies, and no number. The default is false."""

    def upgrade(self) -> Upgrade:
        """Return the upgrade: it reads one form and leaves another."""
        return Upgrade.in_place(self.field, self._kinds(self.older), self._kinds(self.newer))

    def losses(self) -> Iterator[Loss]:
        """Yield what one form has and the other has not."""
        try:
            newer, older = self._form(self.newer), self._form(self.older)
        except ValueError:
            return  # a mistake, which is reported where the change is built
        for is_newer, source, target in ((False, newer, older), (True, older, newer)):
            if source.precision > target.precision:
                yield Loss(is_newer, f"'{self.field}' is cut to {_unit(target.precision)}")
            if source.names_zone and not target.names_zone and self.other_zones == "convert":
                text = f"'{self.field}' loses the offset that it names; the way back writes"
                yield Loss(is_newer, f"{text} {self.zone}")
            name = self.newer if is_newer else self.older
            repeats = self._place is not None and target.precision >= _UNITS.index("hours")
            if repeats and not target.names_zone and name not in _UNIX:
                text = f"'{self.field}' in an hour that clocks repeat comes back as in the first"
                yield Loss(is_newer, text)

    @property
    def _place(self) -> tzinfo | None:
        """The time zone, if it is that of a place; raises ValueError for one that is unknown."""
        return None if _OFFSET.fullmatch(self.zone) else time_zone(self.zone)

    def _kinds(self, form: str) -> ValueKinds:
        return NUMBER if form in _UNIX and not self.text else TEXT

    def _form(self, form: str) -> "MomentForm":
        from gateway.core.conversion.changes.values.moment import UnixTime
        from gateway.core.conversion.changes.values.time_pattern import (
            minutes_of,
            parse_pattern,
            rfc_3339,
        )

        if form in _UNIX:
            # Where one version counts whole milliseconds, the other counts whole seconds.
            both = self.digits is None and {self.newer, self.older} <= _UNIX.keys()
            digits = 0 if both else self.digits
            return UnixTime(_UNIX[form], digits, Type.TEXT if self.text else Type.NUMBER)
        place, only = self._place, self.other_zones == "refuse"
        zone = minutes_of(self.zone) if place is None else 0
        if form == "rfc3339":
            return rfc_3339(zone, only_zone=only, place=place, fraction=self.fraction)
        return parse_pattern(form, zone, only_zone=only, place=place)

    def ways(self, site: ChangeSite) -> FormWays | None:
        """Return the ways between the two forms, or None after recording a mistake."""
        if self.newer == self.older:
            site.complain("is the form that it has already; remove the change", "older")
            return None
        named = _OFFSET.fullmatch(self.zone) is None
        if named and site.attempt(partial(time_zone, self.zone), "zone") is None:
            return None
        newer = site.attempt(partial(self._form, self.newer), "newer")
        older = site.attempt(partial(self._form, self.older), "older")
        if newer is None or older is None:
            return None
        if newer.has_date != older.has_date:
            site.complain("one form has a date, and the other is a time of day; give both the same")
            return None
        for key in ("digits", "text"):
            if key in self.model_fields_set and not {self.newer, self.older} & _UNIX.keys():
                site.complain("goes with unix or unix_ms; remove it", key)
                return None
        if "fraction" in self.model_fields_set and "rfc3339" not in {self.newer, self.older}:
            site.complain("goes with rfc3339; remove it", "fraction")
            return None
        return ways_between(newer, older)


def _unit(precision: float) -> str:
    from gateway.core.conversion.changes.values.moment import SECONDS

    digits = int(precision) - SECONDS
    if digits <= 0:
        return _UNITS[int(precision)]
    return f"{digits} digit{'s' if digits > 1 else ''} of a second"
