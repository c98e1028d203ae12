"""`time`: the older version writes the same moment in another form."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import partial
from math import inf
from typing import Annotated, ClassVar, Literal, NamedTuple

from pydantic import Field

from gateway.base.dates import time_zone
from gateway.base.model import NonEmptyText, NumberText, SectionModel
from gateway.conversion.changes.change_section import (
    BuildContext,
    FormWays,
    Loss,
    RewriteSection,
)
from gateway.conversion.scalars import Type, exact

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST = int((datetime(1, 1, 1, tzinfo=UTC) - _EPOCH).total_seconds())
_LAST = int((datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC) - _EPOCH).total_seconds())


def _without_exponent(text: str) -> str:
    """Return a number such as 1.7E9 as 1700000000; Java writes large fractions with exponents."""
    number = exact(text) if "e" in text.lower() else None
    return text if number is None or not -30 < number.adjusted() < 18 else f"{number:f}"


class Moment(NamedTuple):
    """A point in time.

    Attributes:
        second: Whole seconds since 1970-01-01T00:00:00Z, rounded down.
        fraction: The digits of the fraction of a second; empty if there is no fraction.
        offset: The offset from UTC, in minutes east, with which the moment was written; None if it
            was written without an offset.
    """

    second: int
    fraction: str = ""
    offset: int | None = None


SECONDS = 5
"""The precision of whole seconds; see `UnixTime.precision`."""

_UNIX = re.compile(r"(-?)(0|[1-9][0-9]{0,17})(?:\.([0-9]{1,30}))?\Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class UnixTime:
    """Unix time: the seconds or milliseconds since 1970-01-01T00:00:00Z (POSIX).

    Attributes:
        places: The unit as a number of decimal places of a second: 0 for seconds, 3 for
            milliseconds.
        digits: The maximum number of written digits after the decimal point; None writes all
            digits. A fraction of zeros only is not written, so that whole units stay whole numbers.
        type: NUMBER, or TEXT for a string of digits.
    """

    places: int = 0
    digits: int | None = None
    type: Type = Type.NUMBER
    names_zone: ClassVar[bool] = False
    has_date: ClassVar[bool] = True

    @property
    def precision(self) -> float:
        """The precision of written times: 0 for years, 1 for months, up to 5 for seconds.

        Each digit after the decimal point of a second adds 1.
        """
        return inf if self.digits is None else SECONDS + self.places + self.digits

    def read(self, text: str) -> Moment:
        match = _UNIX.match(text) or _UNIX.match(_without_exponent(text))
        if match is None:
            unit = "milliseconds" if self.places else "seconds"
            raise ValueError(f"expected unix time in {unit}, found something else")
        sign, whole, decimals = match.groups("")
        digits = len(decimals) + self.places
        second, rest = divmod(int(f"{sign}{whole}{decimals}"), 10**digits)
        if not _FIRST <= second <= _LAST:
            raise ValueError("expected a time in the years 1 to 9999, found another")
        return Moment(second, str(rest).zfill(digits) if digits else "")

    def write(self, moment: Moment) -> str:
        if not _FIRST <= moment.second <= _LAST:
            raise ValueError("expected a time in the years 1 to 9999, found another")
        fraction = moment.fraction.ljust(self.places, "0")
        if self.digits is not None:
            fraction = fraction[: self.places + self.digits]
        if not fraction[self.places :].strip("0"):
            fraction = fraction[: self.places]
        units = moment.second * 10 ** len(fraction) + int(fraction or "0")
        sign, count = ("-", -units) if units < 0 else ("", units)
        decimals = len(fraction) - self.places
        text = str(count).zfill(decimals + 1)
        return f"{sign}{text[:-decimals]}.{text[-decimals:]}" if decimals else f"{sign}{text}"


_PARTS = ("year", "month", "day", "hour", "minute", "second")
_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August"),
    *("September", "October", "November", "December"),
)
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


class _PatternField(NamedTuple):
    name: str
    writing: str
    reading: str


def _named(names: Sequence[str]) -> str:
    return f"(?i:{'|'.join(names)})"


def _short(names: Sequence[str]) -> list[str]:
    return [name[:3] for name in names]


_TWO, _ONE_OR_TWO = "[0-9]{2}", "[0-9]{1,2}"
_HOURS = "[+-](?:[01][0-9]|2[0-3])"
# The pattern letters of Unicode UTS #35, part 4.
_FIELDS: Mapping[str, _PatternField] = {
    "yyyy": _PatternField("year", "{local.year:04}", "[0-9]{4}"),
    "yy": _PatternField("year", "{local:%y}", _TWO),
    "MMMM": _PatternField("month", "{local:%B}", _named(_MONTHS)),
    "MMM": _PatternField("month", "{local:%b}", _named(_short(_MONTHS))),
    "MM": _PatternField("month", "{local.month:02}", _TWO),
    "M": _PatternField("month", "{local.month}", _ONE_OR_TWO),
    "dd": _PatternField("day", "{local.day:02}", _TWO),
    "d": _PatternField("day", "{local.day}", _ONE_OR_TWO),
    "EEEE": _PatternField("weekday", "{local:%A}", _named(_DAYS)),
    "EEE": _PatternField("weekday", "{local:%a}", _named(_short(_DAYS))),
    "HH": _PatternField("hour", "{local.hour:02}", _TWO),
    "H": _PatternField("hour", "{local.hour}", _ONE_OR_TWO),
    "hh": _PatternField("hour", "{local:%I}", _TWO),
    "h": _PatternField("hour", "{hour_12}", _ONE_OR_TWO),
    "a": _PatternField("half", "{local:%p}", _named(("AM", "PM"))),
    "mm": _PatternField("minute", "{local.minute:02}", _TWO),
    "ss": _PatternField("second", "{local.second:02}", _TWO),
    "XXX": _PatternField("zone", "{zone}", f"[Zz]|{_HOURS}:[0-5][0-9]"),
    "XX": _PatternField("zone", "{zone}", f"[Zz]|{_HOURS}[0-5][0-9]"),
    "xxx": _PatternField("zone", "{zone}", f"{_HOURS}:[0-5][0-9]"),
    "xx": _PatternField("zone", "{zone}", f"{_HOURS}[0-5][0-9]"),
    "Z": _PatternField("zone", "{zone}", f"{_HOURS}[0-5][0-9]"),
}
_CHANGING_WIDTH = frozenset({"M", "d", "H", "h"})
_TWELVE_HOURS = frozenset({"hh", "h"})
_PIECE = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']", re.DOTALL)
_OFFSET = re.compile(r"(?:[Zz]|([+-])([01][0-9]|2[0-3])(?::?([0-5][0-9]))?)\Z", re.ASCII)
# Two-digit years are those of POSIX (strptime, %y).
_FIRST_SHORT_YEAR, _LAST_SHORT_YEAR = 1969, 2068


FractionStyle = Literal["as_is", "unless_zero", "shortest"]
"""The style of the fraction of a second: with all its digits, with all its digits unless all are
zeros, or without trailing zeros."""


@dataclass(frozen=True, slots=True)
class TimePattern:
    """A pattern for a date, a time of day, or both.

    Attributes:
        digits: The number of digits of the fraction of a second; None allows any number, after a
            decimal point.
        zone: The offset from UTC, in minutes east, for written times and for times without offset.
        place: A time zone such as Europe/Berlin, whose offset depends on the moment. It replaces
            `zone`.
        fraction: How the fraction of a second is written if `digits` is None.
        own_zone: Whether every time is written in the zone. If false, a time keeps the offset with
            which it was read, if the pattern has an offset.
    """

    template: str
    reading: re.Pattern[str]
    digits: int | None
    zone: int
    only_zone: bool
    name: str
    place: tzinfo | None = None
    fraction: FractionStyle = "as_is"
    own_zone: bool = False
    offsets: str = "XXX"
    short_year: bool = False
    type: ClassVar[Type] = Type.TEXT

    @property
    def precision(self) -> float:
        if self.digits is None:
            return inf
        finest = max(_PARTS.index(part) for part in _PARTS if part in self.reading.groupindex)
        return finest + self.digits

    @property
    def names_zone(self) -> bool:
        return "zone" in self.reading.groupindex

    @property
    def has_date(self) -> bool:
        return "year" in self.reading.groupindex

    def read(self, text: str) -> Moment:
        match = self.reading.match(text)
        if match is None:
            raise ValueError(f"expected a time written as {self.name}, found something else")
        found = match.groupdict()
        offset = minutes_of(found["zone"]) if self.names_zone else None
        zone = self.place if offset is None else None
        if zone is None:
            zone = timezone(timedelta(minutes=self.zone if offset is None else offset))
        parts = {
            part: _value(part, text) for part, text in found.items() if text and part in _PARTS
        }
        if "half" in found:
            self._add_half(parts, found["half"])
        year, month, day = parts.get("year", 1970), parts.get("month", 1), parts.get("day", 1)
        hour, minute, second = (parts.get(part, 0) for part in ("hour", "minute", "second"))
        leap, reason = int(second == _LEAP_SECOND), "a day or hour that does not exist"
        try:
            local = datetime(year, month, day, hour, minute, second - leap, tzinfo=zone)
            passed = local - _EPOCH
            if leap and passed.seconds != _LAST_OF_DAY:
                reason = "a second 60 that is not at the end of a day in UTC"
                raise ValueError
            weekday = found.get("weekday")
            if weekday and not _DAYS[local.weekday()].lower().startswith(weekday.lower()):
                reason = "another day of the week than that of the date"
                raise ValueError
            # An hour that the clocks skip when they are put forward does not exist.
            if (
                zone is self.place
                and "hour" in parts
                and (_EPOCH + passed).astimezone(zone) != local
            ):
                raise ValueError
        except (ValueError, OverflowError):
            raise ValueError(f"expected a time written as {self.name}, found {reason}") from None
        passed_seconds = passed.days * 86_400 + passed.seconds + leap
        if offset is not None and self.only_zone and offset != self._minutes(passed_seconds):
            name = self.place or offset_text(self.zone)
            raise ValueError(f"expected a time in the zone {name}, found another")
        return Moment(passed_seconds, found.get("fraction") or "", offset)

    def write(self, moment: Moment) -> str:
        try:
            offset = self._minutes(moment.second)
            if self.names_zone and moment.offset is not None and not self.own_zone:
                offset = moment.offset
            local = _EPOCH + timedelta(seconds=moment.second, minutes=offset)
        except OverflowError:
            raise ValueError("expected a time in the years 1 to 9999, found another") from None
        fraction = moment.fraction
        if self.digits is not None:
            fraction = fraction[: self.digits].ljust(self.digits, "0")
        elif self.fraction == "shortest" or (self.fraction != "as_is" and not fraction.strip("0")):
            fraction = fraction.rstrip("0")
        if self.short_year and not _FIRST_SHORT_YEAR <= local.year <= _LAST_SHORT_YEAR:
            years = f"{_FIRST_SHORT_YEAR} to {_LAST_SHORT_YEAR}"
            raise ValueError(f"expected a time in the years {years}, found another")
        return self.template.format(
            local=local,
            hour_12=local.hour % 12 or 12,
            fraction=fraction,
            point="." if fraction else "",
            zone=offset_text(offset, self.offsets),
        )

    def _add_half(self, parts: dict[str, int], half: str) -> None:
        if not 1 <= parts["hour"] <= 12:
            raise ValueError(
                f"expected a time written as {self.name}, found a day or hour that does not exist"
            )
        parts["hour"] = parts["hour"] % 12 + 12 * (half.upper() == "PM")

    def _minutes(self, second: int) -> int:
        """Return the zone's offset from UTC at a moment, in minutes; may raise OverflowError."""
        if self.place is None:
            return self.zone
        shift = (_EPOCH + timedelta(seconds=second)).astimezone(self.place).utcoffset()
        return self.zone if shift is None else int(shift.total_seconds() // 60)


_LEAP_SECOND = 60
# Leap seconds are inserted at the end of a day in UTC (RFC 3339, appendix D). As unix time, a leap
# second equals the following second (POSIX).
_LAST_OF_DAY = 86_399


def _value(part: str, text: str) -> int:
    if part == "month" and not text.isdigit():
        return _short(_MONTHS).index(text[:3].capitalize()) + 1
    number = int(text)
    if part == "year" and len(text) == 2:
        number += 1900 if number >= _FIRST_SHORT_YEAR % 100 else 2000
    return number


MomentForm = UnixTime | TimePattern


def rfc_3339(
    zone: int = 0,
    *,
    only_zone: bool = False,
    place: tzinfo | None = None,
    fraction: FractionStyle = "as_is",
) -> TimePattern:
    """Return the pattern of RFC 3339, section 5.6, with any number of digits after the second.

    It also reads common variants of ISO 8601: a space instead of the T, no seconds, and offsets
    without a colon or without minutes.
    """
    date = "{local.year:04}-{local.month:02}-{local.day:02}"
    time = "{local.hour:02}:{local.minute:02}:{local.second:02}{point}{fraction}{zone}"
    reading = re.compile(
        r"(?P<year>[0-9]{4})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})[Tt ]"
        r"(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2})"
        r"(?::(?P<second>[0-9]{2})(?:\.(?P<fraction>[0-9]{1,30}))?)?"
        rf"(?P<zone>[Zz]|{_HOURS}(?::?[0-5][0-9])?)\Z",
        re.ASCII,
    )
    example = "2026-12-31T18:00:00Z"
    return TimePattern(f"{date}T{time}", reading, None, zone, only_zone, example, place, fraction)


def parse_pattern(
    pattern: str, zone: int = 0, *, only_zone: bool = False, place: tzinfo | None = None
) -> TimePattern:
    """Parse a pattern; its ValueError explains the mistake to the operator.

    Args:
        pattern: Consists of the letters in `_FIELDS`, S for each digit of the fraction of a second,
            text in single quotes, and punctuation.
    """
    template, reading, fields, before = "", "", dict[str, str](), ""
    for run, literal in _pieces(pattern):
        if run is None:
            template += literal.replace("{", "{{").replace("}", "}}")
            reading += re.escape(literal)
            before = ""
            continue
        field = _field_of(run)
        if field.name in fields:
            raise ValueError(f"'{run}' occurs twice in the pattern; name each field once")
        if before in _CHANGING_WIDTH and field.reading.startswith("[0-9]"):
            text = f"'{before}' has one or two digits, so a separator must follow it; write one"
            raise ValueError(f"{text}, or '{before * 2}'")
        fields[field.name], before = run, run
        template += field.writing
        reading += f"(?P<{field.name}>{field.reading})"
    _check(pattern, fields)
    return TimePattern(
        template,
        re.compile(rf"{reading}\Z", re.ASCII),
        len(fields.get("fraction", "")),
        zone,
        only_zone,
        pattern,
        place,
        offsets=fields.get("zone", "XXX"),
        short_year=fields.get("year") == "yy",
    )


def _field_of(run: str) -> _PatternField:
    if set(run) == {"S"}:
        return _PatternField("fraction", "{fraction}", f"[0-9]{{{len(run)}}}")
    field = _FIELDS.get(run)
    if field is None:
        raise ValueError(
            f"'{run}' is not a field of a time; write yyyy, MM, dd, HH, mm, ss, SSS, XXX or another"
            " of the documented fields, and text in 'single quotes'"
        )
    return field


def minutes_of(offset: str) -> int:
    """Parse an offset from UTC, such as Z or +02:00, to minutes east; raises ValueError."""
    match = _OFFSET.match(offset)
    if match is None:
        raise ValueError("not an offset from UTC; write Z, or one such as +02:00")
    sign, hours, minutes = match.groups("0")
    return int(f"{sign.strip('0')}1") * (int(hours) * 60 + int(minutes))


def offset_text(minutes: int, letters: str = "XXX") -> str:
    if not minutes and letters in ("XXX", "XX"):
        return "Z"
    hours, rest = divmod(abs(minutes), 60)
    colon = ":" * (len(letters) == 3)
    return f"{'-' if minutes < 0 else '+'}{hours:02}{colon}{rest:02}"


def _pieces(pattern: str) -> Iterator[tuple[str | None, str]]:
    """Yield each run of one pattern letter as `(run, "")`, and literal text as `(None, text)`."""
    at = 0
    while at < len(pattern):
        match = _PIECE.match(pattern, at)
        if match is None:
            raise ValueError("a single quote is not closed; write two for a quote itself")
        at = match.end()
        if match[2]:
            yield match[0], ""
        else:
            quoted = match[1]
            yield None, match[0] if quoted is None else quoted.replace("''", "'") or "'"


def _check(pattern: str, fields: Mapping[str, str]) -> None:
    if (fields.get("hour") in _TWELVE_HOURS) is not ("half" in fields):
        raise ValueError(f"'{pattern}' needs both hh and a for a 12-hour clock; write HH otherwise")
    if "weekday" in fields and "day" not in fields:
        raise ValueError(f"'{pattern}' has a day of the week without a date; add dd, MM and yyyy")
    order = [*_PARTS, "fraction"]
    found = [field in fields for field in order]
    if True not in found:
        raise ValueError(f"'{pattern}' has no field of a time; write one such as yyyy-MM-dd")
    first = found.index(True)
    wanted = order[first : first + sum(found)]
    if first not in (0, 3) or not all(field in fields for field in wanted):
        raise ValueError(
            f"'{pattern}' skips a field; begin with yyyy, or with HH for a time of"
            " day, and name every field down to the smallest"
        )
    if first and "zone" in fields:
        raise ValueError(
            f"'{pattern}' is a time of day, which has no offset; remove {fields['zone']}"
        )


_UNIX_FIGURES = {"unix": 0, "unix_ms": 3}
_UNITS = ("years", "months", "days", "hours", "minutes", "seconds")

_FIXED_OFFSET = re.compile(r"Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9]")


class Zones(SectionModel):
    """The zone of each version's times: an offset from UTC or a time zone."""

    newer: NonEmptyText
    """The zone of times in the newer version, such as +02:00 or Europe/Berlin."""
    older: NonEmptyText
    """The zone of times in the older version, such as Z."""


class Time(RewriteSection):
    """Write a moment in another form: as unix time, as in RFC 3339, or with a pattern."""

    keyword = "time"

    newer: NonEmptyText
    """The form in the newer version: unix, unix_ms, rfc3339, or a pattern, as dd/MM/yyyy HH:mm."""
    older: NonEmptyText
    """The form in the older version: unix, unix_ms, rfc3339, or a pattern, as dd/MM/yyyy HH:mm."""
    zone: NonEmptyText | Zones = "Z"
    """The zone of times that are written without an offset, and of converted times: an offset from
    UTC, such as +02:00, or a time zone, such as Europe/Berlin. With one zone for each version, such
    as `{ newer: "+02:00", older: Z }`, all times of a version are in its zone. The default is Z."""
    other_zones: Literal["convert", "refuse"] = "convert"
    """Whether a time with another offset than `zone` is converted or refused. The default is
    convert."""
    digits: Annotated[int, Field(ge=0, le=18), NumberText] | None = None
    """The maximum number of digits after the decimal point in unix time; the default is all, or
    none between unix and unix_ms."""
    fraction: FractionStyle = "as_is"
    """The fraction of a second in rfc3339: as_is (the default) keeps all digits of the other form,
    unless_zero omits a fraction of zeros only, and shortest omits trailing zeros."""
    text: bool = False
    """Whether unix time in bodies is a string of digits instead of a number. The default is
    false."""

    def own_losses(self) -> Iterator[Loss]:
        try:
            newer, older = self._form(newer=True), self._form(newer=False)
        except ValueError:
            return  # a mistake, which is reported where the change is built
        for is_newer, source, target in ((False, newer, older), (True, older, newer)):
            if source.precision > target.precision:
                yield Loss(is_newer, f"'{self.field}' is cut to {_unit(target.precision)}", True)
            kept = target.names_zone and isinstance(self.zone, str)
            if source.names_zone and not kept and self.other_zones == "convert":
                text = f"'{self.field}' loses its own offset; the reverse direction writes"
                yield Loss(is_newer, f"{text} {self._zone(newer=not is_newer)}", True)
            name = self.newer if is_newer else self.older
            in_place = _place(self._zone(newer=is_newer)) is not None
            repeats = in_place and target.precision >= _UNITS.index("hours")
            if repeats and not target.names_zone and name not in _UNIX_FIGURES:
                text = (
                    f"'{self.field}' in an hour that clocks repeat comes back as the"
                    " first of the two"
                )
                yield Loss(is_newer, text, True)

    def _zone(self, *, newer: bool) -> str:
        if isinstance(self.zone, str):
            return self.zone
        return self.zone.newer if newer else self.zone.older

    def _form(self, *, newer: bool) -> MomentForm:
        form = self.newer if newer else self.older
        if form in _UNIX_FIGURES:
            # Between unix and unix_ms, both versions have whole numbers.
            both = self.digits is None and {self.newer, self.older} <= _UNIX_FIGURES.keys()
            digits = 0 if both else self.digits
            return UnixTime(_UNIX_FIGURES[form], digits, Type.TEXT if self.text else Type.NUMBER)
        name, only = self._zone(newer=newer), self.other_zones == "refuse"
        place, own = _place(name), not isinstance(self.zone, str)
        zone = minutes_of(name) if place is None else 0
        if form == "rfc3339":
            pattern = rfc_3339(zone, only_zone=only, place=place, fraction=self.fraction)
        else:
            pattern = parse_pattern(form, zone, only_zone=only, place=place)
        return replace(pattern, own_zone=own)

    def ways(self, context: BuildContext) -> FormWays | None:
        if self.newer == self.older and self._zone(newer=True) == self._zone(newer=False):
            context.mistakes.add(
                "is the same form; remove the change, or set a zone for each version",
                "older",
            )
            return None
        if isinstance(self.zone, Zones) and {self.newer, self.older} & _UNIX_FIGURES.keys():
            context.mistakes.add(
                "unix time has no zone; set only the zone of the other version", "zone"
            )
            return None
        zones = dict.fromkeys((self._zone(newer=True), self._zone(newer=False)))
        if any(context.mistakes.attempt(partial(_checked, zone), "zone") is None for zone in zones):
            return None
        newer = context.mistakes.attempt(partial(self._form, newer=True), "newer")
        older = context.mistakes.attempt(partial(self._form, newer=False), "older")
        if newer is None or older is None:
            return None
        if newer.has_date != older.has_date:
            context.mistakes.add(
                "one form has a date, and the other is a time of day; use two forms"
                " with a date, or two times of day"
            )
            return None
        for key in ("digits", "text"):
            if key in self.model_fields_set and not {self.newer, self.older} & _UNIX_FIGURES.keys():
                context.mistakes.add("is only valid with unix or unix_ms; remove it", key)
                return None
        if "fraction" in self.model_fields_set and "rfc3339" not in {self.newer, self.older}:
            context.mistakes.add("is only valid with rfc3339; remove it", "fraction")
            return None
        return FormWays(
            rewrite_moments(older, newer), rewrite_moments(newer, older), newer.type, older.type
        )


def rewrite_moments(source: MomentForm, target: MomentForm) -> Callable[[str], str]:
    return lambda text: target.write(source.read(text))


def _place(zone: str) -> tzinfo | None:
    """Return the time zone for a name, or None for an offset; raises ValueError if unknown."""
    return None if _FIXED_OFFSET.fullmatch(zone) else time_zone(zone)


def _checked(zone: str) -> str:
    _place(zone)
    return zone


def _unit(precision: float) -> str:
    digits = int(precision) - SECONDS
    if digits <= 0:
        return _UNITS[int(precision)]
    return f"{digits} digit{'s' if digits > 1 else ''} of a second"
