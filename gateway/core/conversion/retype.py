"""Changes of type: the same scalar as a text, a number or a boolean; money in whole units.

Every digit is kept as it is written; nothing is rounded. An absent field stays absent, and null
stays null, both ways.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

from gateway.core.conversion.document import (
    ConversionError,
    Document,
    JsonForm,
    JsonObject,
    reach,
    refuse,
)
from gateway.core.conversion.field_path import Keys, pointer

# RFC 8259, section 6.
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?\Z", re.ASCII)
_WHOLE = re.compile(r"(-?)(0|[1-9][0-9]*)\Z", re.ASCII)
_FRACTION = re.compile(r"(-?)(0|[1-9][0-9]*)(?:\.([0-9]+))?\Z", re.ASCII)
# Amounts with an exponent of more digits would be written out in too many.
_EXPONENT = re.compile(
    r"-?(?:0|[1-9][0-9]{0,400})(?:\.[0-9]{1,400})?[eE][+-]?[0-9]{1,3}\Z", re.ASCII
)


class Type(StrEnum):
    """The types that a scalar may have."""

    TEXT = "text"
    NUMBER = "number"
    BOOLEAN = "boolean"


@dataclass(frozen=True, slots=True)
class Retype:
    """The newer version holds as one type what the older one holds as another.

    The text 12.50 is the number 12.50; the text true is the boolean, and so is the number 1.
    """

    scopes: tuple[Keys, ...]
    field: Keys
    newer: Type
    older: Type

    @property
    def touches(self) -> tuple[Keys, ...]:
        """The field."""
        return (self.field,)

    def up(self, fields: JsonObject, form: JsonForm) -> None:
        """Make it what the newer version has."""
        _replace(fields, self.field, form, self.older, self.newer, _RETYPED[self.older, self.newer])

    def down(self, fields: JsonObject, form: JsonForm) -> None:
        """Make it what the older version has."""
        _replace(fields, self.field, form, self.newer, self.older, _RETYPED[self.newer, self.older])


@dataclass(frozen=True, slots=True)
class Scale:
    """The newer version counts in the smallest unit what the older one writes with its places.

    With two places, the number 1250 is 12.50 in the older version, a text or a number. What has
    more places than that, or is not whole where it is counted, is refused.
    """

    scopes: tuple[Keys, ...]
    field: Keys
    places: int
    older: Type

    @property
    def touches(self) -> tuple[Keys, ...]:
        """The field."""
        return (self.field,)

    def up(self, fields: JsonObject, form: JsonForm) -> None:
        """Count the units."""
        _replace(fields, self.field, form, self.older, Type.NUMBER, self.units)

    def down(self, fields: JsonObject, form: JsonForm) -> None:
        """Write the amount."""
        _replace(fields, self.field, form, Type.NUMBER, self.older, self.amount)

    def units(self, text: str) -> str:
        """Return how many units an amount is; raises ValueError."""
        places = self.places
        whole, _, fraction = text.partition(".")
        if len(fraction) == places and text.isascii():
            units = whole + fraction
            if units.isdecimal() and units[0] != "0":
                return units  # nearly always
        plain = format(Decimal(text), "f") if _EXPONENT.match(text) else text
        match = _FRACTION.match(plain)
        if match is None:
            raise ValueError("expected an amount such as 12.50, found something else")
        sign, whole, fraction = match.groups("")
        kept, rest = fraction[:places], fraction[places:]
        if rest.strip("0"):
            raise ValueError(f"has more than {places} decimal places")
        return sign + ((whole + kept.ljust(places, "0")).lstrip("0") or "0")

    def amount(self, units: str) -> str:
        """Return the amount that so many units are; raises ValueError."""
        if not _WHOLE.match(units):
            raise ValueError("expected a whole number, found a fraction or an exponent")
        places = self.places
        if len(units) <= places or units[0] == "-":
            sign, units = ("-", units[1:]) if units[0] == "-" else ("", units)
            units = sign + units.zfill(places + 1)
        return f"{units[:-places]}.{units[-places:]}"


def retyping(source: Type, target: Type) -> Callable[[str], str]:
    """Return what writes the text of one type as that of another; it raises ValueError."""
    convert = _RETYPED[source, target]

    def written(text: str) -> str:
        made = convert(text)
        return made if isinstance(made, str) else _WORDS[made]

    return written


def _replace(
    fields: JsonObject,
    keys: Keys,
    form: JsonForm,
    source: Type,
    target: Type,
    convert: Callable[[str], str | bool],
) -> None:
    holder = fields if len(keys) == 1 else reach(fields, keys, form)
    key = keys[-1]
    if holder is None or key not in holder:
        return
    text = form.digits(holder[key]) if source is Type.NUMBER else None
    if text is None:
        value = form.open(holder[key])
        if value is None:
            return
        text = value if source is Type.TEXT and type(value) is str else _text(value, source, keys)
    try:
        made = convert(text)
    except ValueError as error:
        raise ConversionError(str(error), pointer(*keys)) from None
    holder[key] = form.number(str(made)) if target is Type.NUMBER else made


def _text(value: Document, source: Type, keys: Keys) -> str:
    if source is Type.BOOLEAN and isinstance(value, bool):
        return _WORDS[value]
    return refuse(_EXPECTED[source], value, *keys)


_EXPECTED: Mapping[Type, str] = {
    Type.TEXT: "a string",
    Type.NUMBER: "a number",
    Type.BOOLEAN: "a boolean",
}


_WORDS: Mapping[bool, str] = {False: "false", True: "true"}


def _number(text: str) -> str:
    if not _NUMBER.match(text):
        raise ValueError("expected a string that is a number, found another one")
    return text


def _one_of(words: Mapping[str, bool]) -> Callable[[str], bool]:
    def boolean(text: str) -> bool:
        if text not in words:
            raise ValueError(f"expected {' or '.join(words)}, found something else")
        return words[text]

    return boolean


_RETYPED: Mapping[tuple[Type, Type], Callable[[str], str | bool]] = {
    (Type.TEXT, Type.NUMBER): _number,
    (Type.TEXT, Type.BOOLEAN): _one_of({"true": True, "false": False}),
    (Type.NUMBER, Type.TEXT): str,
    (Type.NUMBER, Type.BOOLEAN): _one_of({"1": True, "0": False}),
    (Type.BOOLEAN, Type.TEXT): str,
    (Type.BOOLEAN, Type.NUMBER): lambda text: "1" if text == "true" else "0",
}
