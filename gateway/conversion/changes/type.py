"""`type`: the older version has the same scalar as another type, or money in another unit."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Literal

from pydantic import Field

from gateway.base.model import NumberText
from gateway.conversion.change import Change, FieldChange, Inverse
from gateway.conversion.changes.build_context import BodyContext, BuildContext, ParameterContext
from gateway.conversion.changes.change_section import BodySection, Loss, ParameterSection
from gateway.conversion.document import JsonForm, JsonObject
from gateway.conversion.field_path import Keys, Scope
from gateway.conversion.parameter_change import ParameterChange, Rewritten
from gateway.conversion.scalars import NUMBER_TEXT, WORDS, Type, replace_scalar
from gateway.conversion.schema import JSON_TYPES, Flat, SchemaImage, scaled, wide

_WHOLE = re.compile(r"(-?)(0|[1-9][0-9]*)\Z", re.ASCII)
_FRACTION = re.compile(r"(-?)(0|[1-9][0-9]*)(?:\.([0-9]+))?\Z", re.ASCII)
# Amounts with an exponent of more digits would be written out in too many.
_EXPONENT = re.compile(
    r"-?(?:0|[1-9][0-9]{0,400})(?:\.[0-9]{1,400})?[eE][+-]?[0-9]{1,3}\Z", re.ASCII
)


@dataclass(frozen=True, slots=True)
class Scale(FieldChange):
    """The newer version has the number of smallest units, the older one an amount with places.

    With two places, the number 1250 is 12.50 in the older version, a text or a number. An amount
    with more places is refused, and so is a number of units that is not whole.
    """

    places: int
    older: Type

    def up(self, fields: JsonObject, form: JsonForm) -> None:
        replace_scalar(fields, self.field, form, self.older, Type.NUMBER, self.units)

    def down(self, fields: JsonObject, form: JsonForm) -> None:
        replace_scalar(fields, self.field, form, Type.NUMBER, self.older, self.amount)

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
        """Return the amount for a number of units; raises ValueError."""
        if not _WHOLE.match(units):
            raise ValueError("expected a whole number, found a fraction or an exponent")
        places = self.places
        if len(units) <= places or units[0] == "-":
            sign, units = ("-", units[1:]) if units[0] == "-" else ("", units)
            units = sign + units.zfill(places + 1)
        return f"{units[:-places]}.{units[-places:]}" if places else units

    def value_effect(self, flat: Flat, image: SchemaImage, *, upwards: bool) -> object:
        source, target = (self.older, Type.NUMBER) if upwards else (Type.NUMBER, self.older)
        if flat["type"] not in JSON_TYPES[source]:
            return image.refused(flat, f"expected a {source}, found {flat['type']}")
        if flat["type"] != "integer":
            whole = "integer" if upwards else "number"
            made = wide({"type": whole if target is Type.NUMBER else "string"})
            return image.refused(flat, "an amount may have too many places", made)
        if target is Type.TEXT:
            return wide({"type": "string"})
        factor = Decimal(10) ** (self.places if upwards else -self.places)
        return scaled({**flat, "type": "integer" if upwards else "number"}, Fraction(factor))


@dataclass(frozen=True, slots=True)
class Retype(FieldChange):
    """A scalar has one type in the newer version, and another in the older one.

    The text 12.50 is the number 12.50; the text true is the boolean, and so is the number 1.
    """

    newer: Type
    older: Type

    def up(self, fields: JsonObject, form: JsonForm) -> None:
        replace_scalar(
            fields, self.field, form, self.older, self.newer, _RETYPED[self.older, self.newer]
        )

    def down(self, fields: JsonObject, form: JsonForm) -> None:
        replace_scalar(
            fields, self.field, form, self.newer, self.older, _RETYPED[self.newer, self.older]
        )

    def value_effect(self, flat: Flat, image: SchemaImage, *, upwards: bool) -> object:
        source, target = (self.older, self.newer) if upwards else (self.newer, self.older)
        if flat["type"] not in JSON_TYPES[source]:
            return image.refused(flat, f"expected a {source}, found {flat['type']}")
        made = wide({"type": "string" if target is Type.TEXT else str(target)})
        if target is Type.TEXT:
            return made
        return image.refused(flat, f"a {source} may be no {target}", made)


def retyping(source: Type, target: Type) -> Callable[[str], str]:
    """Return what writes the text of one type as that of another; it raises ValueError."""
    convert = _RETYPED[source, target]

    def written(text: str) -> str:
        made = convert(text)
        return made if isinstance(made, str) else WORDS[made]

    return written


def _number(text: str) -> str:
    if not NUMBER_TEXT.match(text):
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


TypeName = Literal["text", "number", "boolean", "integer"]


class TypeConfig(BodySection, ParameterSection):
    """Change the type of a value: a text, a number, a boolean, or an integer of the last place."""

    keyword = "type"

    field: str
    """The field, query parameter or header field, which has the same name in both versions."""
    newer: TypeName
    """The type of the value in the newer version: text, number, boolean or integer."""
    older: TypeName
    """The type of the value in the older version: text, number, boolean or integer."""
    scale: Annotated[int, Field(ge=1, le=18), NumberText] | None = None
    """The decimal places that an integer counts, such as 2 for cents; for `integer` only."""

    def losses(self) -> Iterable[Loss]:
        return ()

    def body_change(self, context: BodyContext) -> Change | None:
        places = self._places(context)
        if places is None:
            return None

        def change(scopes: tuple[Scope, ...], keys: Keys) -> Change:
            if places == 0:
                return Retype(scopes, keys, Type(self.newer), Type(self.older))
            if self.newer == "integer":
                return Scale(scopes, keys, places, Type(self.older))
            return Inverse(Scale(scopes, keys, places, Type(self.newer)))

        return context.value_change(self.field, change, "field")

    def parameter_change(self, context: ParameterContext) -> ParameterChange | None:
        places = self._places(context)
        if places is None:
            return None
        if places == 0:
            newer, older = Type(self.newer), Type(self.older)
            ways = retyping(older, newer), retyping(newer, older)
        else:
            money = Scale((), (), places, Type.TEXT)
            ways = money.units, money.amount
            if self.older == "integer":
                ways = money.amount, money.units
        return Rewritten(context.name(self.field, "field"), *ways)

    def _places(self, context: BuildContext) -> int | None:
        """Return the places by which an integer is scaled, 0 without one, or None for a mistake."""
        sides = (self.newer, self.older)
        if self.newer == self.older:
            context.complain("is the type that it has already; remove the change", "older")
            return None
        if "integer" not in sides:
            if self.scale is not None:
                context.complain("goes with an integer, which counts the last place", "scale")
            return 0
        if self.scale is None or "boolean" in sides:
            context.complain(
                "an integer counts the smallest unit of a text or a number; add scale, such as"
                " scale: 2 for cents, or write number"
            )
            return None
        return self.scale
