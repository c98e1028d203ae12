"""`time`: the older version writes the same moment in another form."""

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import tzinfo
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from gateway.base.dates import time_zone
from gateway.base.model import NonEmptyText, NumberText, SectionModel
from gateway.conversion.changes.change_section import Loss, Upgrade
from gateway.conversion.changes.change_site import ChangeSite
from gateway.conversion.changes.rewrite_section import (
    FormWays,
    RewriteSection,
    ways_between,
)
from gateway.conversion.changes.value_kinds import NUMBER, TEXT, ValueKinds
from gateway.conversion.scalars import Type

# The forms of time are imported when rules name them: they take memory that most can save.
if TYPE_CHECKING:
    from gateway.conversion.changes.moment import MomentForm

_UNIX = {"unix": 0, "unix_ms": 3}
_UNITS = ("years", "months", "days", "hours", "minutes", "seconds")

_OFFSET = re.compile(r"Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9]")


class ZonesConfig(SectionModel):
    """The zones in which the versions write times, each an offset from UTC or a time zone."""

    newer: NonEmptyText
    """The zone of the newer version's times, such as +02:00 or Europe/Berlin."""
    older: NonEmptyText
    """The zone of the older version's times, such as Z."""


class TimeConfig(RewriteSection):
    """Write a moment in another form: as unix time, by RFC 3339, or by a pattern."""

    newer: NonEmptyText
    """The newer version's form: unix, unix_ms, rfc3339, or a pattern such as dd/MM/yyyy HH:mm."""
    older: NonEmptyText
    """The older version's form: unix, unix_ms, rfc3339, or a pattern such as dd/MM/yyyy HH:mm."""
    zone: NonEmptyText | ZonesConfig = "Z"
    """The offset from UTC of times that name none, and of those written anew, such as +02:00, or a
    time zone, such as Europe/Berlin; or one for each version, such as `{ newer: "+02:00", older: Z
    }`, in which it then has all of its times. The default is Z."""
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
            newer, older = self._form(newer=True), self._form(newer=False)
        except ValueError:
            return  # a mistake, which is reported where the change is built
        for is_newer, source, target in ((False, newer, older), (True, older, newer)):
            if source.precision > target.precision:
                yield Loss(is_newer, f"'{self.field}' is cut to {_unit(target.precision)}")
            kept = target.names_zone and isinstance(self.zone, str)
            if source.names_zone and not kept and self.other_zones == "convert":
                text = f"'{self.field}' loses the offset that it names; the way back writes"
                yield Loss(is_newer, f"{text} {self._zone(newer=not is_newer)}")
            name = self.newer if is_newer else self.older
            in_place = _place(self._zone(newer=is_newer)) is not None
            repeats = in_place and target.precision >= _UNITS.index("hours")
            if repeats and not target.names_zone and name not in _UNIX:
                text = f"'{self.field}' in an hour that clocks repeat comes back as in the first"
                yield Loss(is_newer, text)

    def _zone(self, *, newer: bool) -> str:
        if isinstance(self.zone, str):
            return self.zone
        return self.zone.newer if newer else self.zone.older

    def _kinds(self, form: str) -> ValueKinds:
        return NUMBER if form in _UNIX and not self.text else TEXT

    def _form(self, *, newer: bool) -> "MomentForm":
        from gateway.conversion.changes.moment import UnixTime
        from gateway.conversion.changes.time_pattern import (
            minutes_of,
            parse_pattern,
            rfc_3339,
        )

        form = self.newer if newer else self.older
        if form in _UNIX:
            # Where one version counts whole milliseconds, the other counts whole seconds.
            both = self.digits is None and {self.newer, self.older} <= _UNIX.keys()
            digits = 0 if both else self.digits
            return UnixTime(_UNIX[form], digits, Type.TEXT if self.text else Type.NUMBER)
        name, only = self._zone(newer=newer), self.other_zones == "refuse"
        place, own = _place(name), not isinstance(self.zone, str)
        zone = minutes_of(name) if place is None else 0
        if form == "rfc3339":
            pattern = rfc_3339(zone, only_zone=only, place=place, fraction=self.fraction)
        else:
            pattern = parse_pattern(form, zone, only_zone=only, place=place)
        return replace(pattern, own_zone=own)

    def ways(self, site: ChangeSite) -> FormWays | None:
        """Return the ways between the two forms, or None after recording a mistake."""
        if self.newer == self.older and self._zone(newer=True) == self._zone(newer=False):
            site.complain(
                "is the form that it has already; remove the change, or give each version a zone",
                "older",
            )
            return None
        if isinstance(self.zone, ZonesConfig) and {self.newer, self.older} & _UNIX.keys():
            site.complain("unix time is in no zone; give that of the other version alone", "zone")
            return None
        zones = dict.fromkeys((self._zone(newer=True), self._zone(newer=False)))
        if any(site.attempt(partial(_checked, zone), "zone") is None for zone in zones):
            return None
        newer = site.attempt(partial(self._form, newer=True), "newer")
        older = site.attempt(partial(self._form, newer=False), "older")
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


def _place(zone: str) -> tzinfo | None:
    """Return the time zone, if it is that of a place; raises ValueError for one that is unknown."""
    return None if _OFFSET.fullmatch(zone) else time_zone(zone)


def _checked(zone: str) -> str:
    _place(zone)
    return zone


def _unit(precision: float) -> str:
    from gateway.conversion.changes.moment import SECONDS

    digits = int(precision) - SECONDS
    if digits <= 0:
        return _UNITS[int(precision)]
    return f"{digits} digit{'s' if digits > 1 else ''} of a second"
