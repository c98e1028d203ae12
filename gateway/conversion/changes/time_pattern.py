"""Patterns of dates and times, such as dd/MM/yyyy HH:mm, and RFC 3339."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from math import inf
from typing import ClassVar, Literal

from gateway.conversion.changes.moment import Moment
from gateway.conversion.scalars import Type

# The letters are those of Unicode UTS #35, part 4, as far as they are of one width each.
_LEVELS: Mapping[str, str] = {
    "yyyy": "year",
    "MM": "month",
    "dd": "day",
    "HH": "hour",
    "mm": "minute",
    "ss": "second",
}
_PARTS = tuple(_LEVELS.values())
_PIECE = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']", re.DOTALL)
_OFFSET = re.compile(r"(?:[Zz]|([+-])([01][0-9]|2[0-3]):([0-5][0-9]))\Z", re.ASCII)
_OFFSETS = r"(?P<zone>[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


FractionStyle = Literal["as_is", "unless_zero", "shortest"]
"""How a fraction of any number of digits is written: all of them, all unless they are zeros alone,
or those before the zeros at its end."""


@dataclass(frozen=True, slots=True)
class TimePattern:
    """A form of moments: a date, a time of day, or both.

    Attributes:
        template: the text, with a field in braces wherever one stands (`str.format`).
        reading: matches a text; its groups have the names of the fields.
        digits: the digits of a second; None where there may be any number, behind a point.
        zone: the minutes east of UTC of the zone that is written, and read where none is named.
        only_zone: whether a text that names another zone is refused.
        name: the form, for a message.
        place: the time zone of a place, whose offset depends on the moment, instead of `zone`.
        fraction: how a fraction is written where `digits` is None.
        own_zone: whether every moment is written in the zone, also one that was read with another.
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
    type: ClassVar[Type] = Type.TEXT

    @property
    def precision(self) -> float:
        """The level of the smallest field."""
        if self.digits is None:
            return inf
        finest = max(_PARTS.index(part) for part in _PARTS if part in self.reading.groupindex)
        return finest + self.digits

    @property
    def names_zone(self) -> bool:
        """Whether the offset is one of the fields."""
        return "zone" in self.reading.groupindex

    @property
    def has_date(self) -> bool:
        """Whether the year is one of the fields."""
        return "year" in self.reading.groupindex

    def read(self, text: str) -> Moment:
        """Return the moment that a text is; raises ValueError."""
        match = self.reading.match(text)
        if match is None:
            raise ValueError(f"expected a time written as {self.name}, found something else")
        found = match.groupdict()
        offset = minutes_of(found["zone"]) if self.names_zone else None
        zone = self.place if offset is None else None
        if zone is None:
            zone = timezone(timedelta(minutes=self.zone if offset is None else offset))
        parts = {part: int(text) for part, text in found.items() if part in _PARTS}
        year, month, day = parts.get("year", 1970), parts.get("month", 1), parts.get("day", 1)
        hour, minute, second = (parts.get(part, 0) for part in ("hour", "minute", "second"))
        try:
            local = datetime(year, month, day, hour, minute, second, tzinfo=zone)
            passed = local - _EPOCH
            # Where clocks are put forward, an hour is left out, which no moment is written as.
            if (
                zone is self.place
                and "hour" in parts
                and (_EPOCH + passed).astimezone(zone) != local
            ):
                raise ValueError
        except (ValueError, OverflowError):
            raise ValueError(
                f"expected a time written as {self.name}, found no such day or hour"
            ) from None
        passed_seconds = passed.days * 86_400 + passed.seconds
        if offset is not None and self.only_zone and offset != self._minutes(passed_seconds):
            name = self.place or offset_text(self.zone)
            raise ValueError(f"expected a time in the zone {name}, found another")
        return Moment(passed_seconds, found.get("fraction") or "", offset)

    def write(self, moment: Moment) -> str:
        """Return the text of a moment; raises ValueError where its year has not four digits."""
        try:
            offset = self._minutes(moment.second)
            if self.names_zone and moment.offset is not None and not self.own_zone:
                offset = moment.offset
            local = _EPOCH + timedelta(seconds=moment.second, minutes=offset)
        except OverflowError:
            raise ValueError("expected a moment in the years 1 to 9999, found another") from None
        fraction = moment.fraction
        if self.digits is not None:
            fraction = fraction[: self.digits].ljust(self.digits, "0")
        elif self.fraction == "shortest" or (self.fraction != "as_is" and not fraction.strip("0")):
            fraction = fraction.rstrip("0")
        return self.template.format(
            year=f"{local.year:04}",
            month=f"{local.month:02}",
            day=f"{local.day:02}",
            hour=f"{local.hour:02}",
            minute=f"{local.minute:02}",
            second=f"{local.second:02}",
            fraction=fraction,
            point="." if fraction else "",
            zone=offset_text(offset),
        )

    def _minutes(self, second: int) -> int:
        """Return the minutes east of UTC of the zone at a moment; may raise OverflowError."""
        if self.place is None:
            return self.zone
        shift = (_EPOCH + timedelta(seconds=second)).astimezone(self.place).utcoffset()
        return self.zone if shift is None else int(shift.total_seconds() // 60)


def rfc_3339(
    zone: int = 0,
    *,
    only_zone: bool = False,
    place: tzinfo | None = None,
    fraction: FractionStyle = "as_is",
) -> TimePattern:
    """Return the form of RFC 3339, section 5.6, with as many digits of a second as there are."""
    date, time = "{year}-{month}-{day}", "{hour}:{minute}:{second}{point}{fraction}{zone}"
    reading = re.compile(
        r"(?P<year>[0-9]{4})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})[Tt]"
        r"(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2})"
        rf"(?:\.(?P<fraction>[0-9]{{1,30}}))?{_OFFSETS}\Z",
        re.ASCII,
    )
    example = "2026-12-31T18:00:00Z"
    return TimePattern(f"{date}T{time}", reading, None, zone, only_zone, example, place, fraction)


def parse_pattern(
    pattern: str, zone: int = 0, *, only_zone: bool = False, place: tzinfo | None = None
) -> TimePattern:
    """Return the form that a pattern spells.

    Args:
        pattern: of yyyy, MM, dd, HH, mm, ss, S for each digit of a second, XXX for the offset
            from UTC, text in single quotes, and signs that stand for themselves.
        zone: the minutes east of UTC of its times.
        only_zone: whether a text that names another zone is refused.
        place: the time zone of a place, instead of `zone`.

    Raises:
        ValueError: with a sentence for the operator, where it is no such pattern.
    """
    template, reading, fields, digits = "", "", list[str](), 0
    for run, literal in _pieces(pattern):
        if run is None:
            template += literal.replace("{", "{{").replace("}", "}}")
            reading += re.escape(literal)
            continue
        field = "fraction" if set(run) == {"S"} else "zone" if run == "XXX" else _LEVELS.get(run)
        if field is None:
            raise ValueError(
                f"'{run}' is not a field of a time; write yyyy, MM, dd, HH, mm, ss, SSS or XXX,"
                " and text in 'single quotes'"
            )
        if field in fields:
            raise ValueError(f"'{run}' stands twice in the pattern; name each field once")
        fields.append(field)
        digits = len(run) if field == "fraction" else digits
        template += f"{{{field}}}"
        reading += _OFFSETS if field == "zone" else rf"(?P<{field}>[0-9]{{{len(run)}}})"
    _check(pattern, fields)
    return TimePattern(
        template, re.compile(rf"{reading}\Z", re.ASCII), digits, zone, only_zone, pattern, place
    )


def minutes_of(offset: str) -> int:
    """Return the minutes east of UTC of an offset such as Z or +02:00; raises ValueError."""
    match = _OFFSET.match(offset)
    if match is None:
        raise ValueError("not an offset from UTC; write Z, or one such as +02:00")
    sign, hours, minutes = match.groups("0")
    return int(f"{sign.strip('0')}1") * (int(hours) * 60 + int(minutes))


def offset_text(minutes: int) -> str:
    """Return the text of an offset from UTC."""
    hours, rest = divmod(abs(minutes), 60)
    return f"{'-' if minutes < 0 else '+'}{hours:02}:{rest:02}" if minutes else "Z"


def _pieces(pattern: str) -> Iterator[tuple[str | None, str]]:
    """Yield a run of one letter, or None and a text that stands for itself."""
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


def _check(pattern: str, fields: list[str]) -> None:
    """Raise ValueError where a field lacks the one that is next larger."""
    order = [*_PARTS, "fraction"]
    found = [field in fields for field in order]
    if True not in found:
        raise ValueError(f"'{pattern}' has no field of a time; write one such as yyyy-MM-dd")
    first = found.index(True)
    wanted = order[first : first + sum(found)]
    if first not in (0, 3) or not all(field in fields for field in wanted):
        raise ValueError(
            f"'{pattern}' lacks a field between others; begin with yyyy, or with HH for a time of"
            " day, and leave none out down to the smallest"
        )
    if first and "zone" in fields:
        raise ValueError(f"'{pattern}' is a time of day, which has no offset; remove XXX")
