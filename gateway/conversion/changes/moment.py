"""Moments: points in time, exact to every digit, and the forms that versions write them in."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from math import inf
from typing import ClassVar, NamedTuple, Protocol

from gateway.conversion.changes.value_rewrite import ValueForm
from gateway.conversion.scalars import Type

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST = int((datetime(1, 1, 1, tzinfo=UTC) - _EPOCH).total_seconds())
_LAST = int((datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC) - _EPOCH).total_seconds())


class Moment(NamedTuple):
    """A point in time.

    Attributes:
        second: whole seconds since 1970-01-01T00:00:00Z, rounded down.
        fraction: the digits of a fraction of a second; empty without one.
        offset: the minutes east of UTC of the zone in which it was written, if it names one.
    """

    second: int
    fraction: str = ""
    offset: int | None = None


class MomentForm(ValueForm[Moment], Protocol):
    """How one version writes moments."""

    @property
    def precision(self) -> float:
        """How fine it is: 0 for years, 1 for months, to 5 for seconds, and each digit one more."""
        ...

    @property
    def names_zone(self) -> bool:
        """Whether it names the zone that it is written in."""
        ...

    @property
    def has_date(self) -> bool:
        """Whether it is a date, or a date with a time; else a time of day."""
        ...


SECONDS = 5
"""The precision of whole seconds."""

_UNIX = re.compile(r"(-?)(0|[1-9][0-9]{0,17})(?:\.([0-9]{1,30}))?\Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class UnixTime:
    """Seconds since 1970-01-01T00:00:00Z (POSIX), or parts of a second.

    Attributes:
        places: the decimal places of a second that the unit counts: 0, or 3 for milliseconds.
        digits: the most digits after the point that are written; None writes all there are. Zeros
            alone are not written, so that whole units stay whole numbers.
        type: NUMBER, or TEXT for a text of digits.
    """

    places: int = 0
    digits: int | None = None
    type: Type = Type.NUMBER
    names_zone: ClassVar[bool] = False
    has_date: ClassVar[bool] = True

    @property
    def precision(self) -> float:
        """Seconds, with as many digits as are written."""
        return inf if self.digits is None else SECONDS + self.places + self.digits

    def read(self, text: str) -> Moment:
        """Return the moment that a count is; raises ValueError."""
        match = _UNIX.match(text)
        if match is None:
            unit = "milliseconds" if self.places else "seconds"
            raise ValueError(f"expected unix time in {unit}, found something else")
        sign, whole, decimals = match.groups("")
        digits = len(decimals) + self.places
        second, rest = divmod(int(f"{sign}{whole}{decimals}"), 10**digits)
        if not _FIRST <= second <= _LAST:
            raise ValueError("expected a moment in the years 1 to 9999, found another")
        return Moment(second, str(rest).zfill(digits) if digits else "")

    def write(self, moment: Moment) -> str:
        """Return how many units have passed at a moment."""
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
