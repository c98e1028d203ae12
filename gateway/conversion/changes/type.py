"""`type`: the older version has a scalar with another type, or an amount in another unit."""

import json
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Annotated, Literal, NoReturn

# msgspec writes a Decimal with its digits, which json cannot.
import msgspec
from pydantic import Field

from gateway.base.model import NumberText
from gateway.conversion.change import (
    Change,
    ValueRewrite,
    inverse,
    rewrite_scalars,
    value_change,
)
from gateway.conversion.changes.change_section import BodySection, BuildContext, ParameterSection
from gateway.conversion.conversion_error import ConversionError, one_value
from gateway.conversion.document import Document, JsonForm, JsonObject, holder_of, refuse
from gateway.conversion.field_path import Keys, Scope
from gateway.conversion.parameter_change import ParameterChange, rewritten
from gateway.conversion.scalars import NUMBER, NUMBER_TEXT, TEXT, WORDS, Type
from gateway.conversion.schema import ANYTHING, JSON_TYPES, Flat, SchemaImage, scaled, wide
from gateway.conversion.steps import ConversionStep

_WHOLE = re.compile(r"(-?)(0|[1-9][0-9]*)\Z", re.ASCII)
_ZEROS = re.compile(r"-?0[0-9]", re.ASCII)
_FRACTION = re.compile(r"(-?)(0|[1-9][0-9]*)(?:\.([0-9]+))?\Z", re.ASCII)
# The limits keep amounts with an exponent from being written out with too many digits.
_EXPONENT = re.compile(
    r"-?(?:0|[1-9][0-9]{0,400})(?:\.[0-9]{1,400})?[eE][+-]?[0-9]{1,3}\Z", re.ASCII
)

# The default of `limits.elements`, which does not count what is inside a string.
_MOST_ELEMENTS = 1_000_000

TypeName = Literal["text", "number", "boolean", "integer", "json"]


class ChangeType(BodySection, ParameterSection):
    """Change the type of a value: text, number, boolean, integer of smallest units, or JSON."""

    keyword = "type"

    field: str
    """The field, query parameter or header field, which has the same name in both versions."""
    newer: TypeName
    """The type of the value in the newer version: text, number, boolean or integer. With json, it
    is any value, such as an object, and the older version has its JSON as a text."""
    older: TypeName
    """The type of the value in the older version: text, number, boolean, integer or json."""
    scale: Annotated[int, Field(ge=1, le=18), NumberText] | None = None
    """The number of decimal places that an integer includes, such as 2 for cents; for `integer`
    only."""

    def compile_body(self, context: BuildContext) -> Change | None:
        if "json" in (self.newer, self.older):
            if "text" not in (self.newer, self.older):
                context.mistakes.add("json is written as a text; write text for the other version")
            make = json_as_text if self.newer == "json" else _text_as_json
            return context.value_change(self.field, make, "field")
        places = self._places(context)
        if places is None:
            return None

        def change(scopes: tuple[Scope, ...], keys: Keys) -> Change:
            if places == 0:
                return retype(scopes, keys, Type(self.newer), Type(self.older))
            if self.newer == "integer":
                return scale(scopes, keys, places, Type(self.older))
            return inverse(scale(scopes, keys, places, Type(self.newer)))

        return context.value_change(self.field, change, "field")

    def compile_parameter(self, context: BuildContext) -> ParameterChange | None:
        if "json" in (self.newer, self.older):
            context.mistakes.add("json is only valid in 'changes'; a parameter is always a text")
            return None
        places = self._places(context)
        if places is None:
            return None
        if places == 0:
            newer, older = Type(self.newer), Type(self.older)
            ways = _of_text(older, newer), _of_text(newer, older)
        else:
            ways = partial(units, places), partial(amount, places)
            if self.older == "integer":
                ways = ways[::-1]
        return rewritten(context.name(self.field, "field"), *ways)

    def _places(self, context: BuildContext) -> int | None:
        """Return the decimal places of an integer; 0 without an integer, None after a mistake."""
        sides = (self.newer, self.older)
        if self.newer == self.older:
            context.mistakes.add("is the same type; remove the change", "older")
            return None
        if "integer" not in sides:
            if self.scale is not None:
                context.mistakes.add(
                    "is only valid with an integer, which counts the last decimal place", "scale"
                )
            return 0
        if self.scale is None or "boolean" in sides:
            context.mistakes.add(
                "an integer counts the smallest unit of a string or a number; add scale, such as"
                " scale: 2 for cents, or write number"
            )
            return None
        return self.scale


def scale(scopes: tuple[Scope, ...], field: Keys, places: int, older: Type) -> Change:
    """Return the change of an amount that the newer version counts in its smallest unit.

    With two decimal places, the number 1250 is 12.50 in the older version, as a string or a number.
    An amount with more decimal places is refused, and so is a number of units that is not whole.
    """
    return value_change(
        scopes,
        field,
        _scaling(older, NUMBER, partial(units, places), Decimal(10) ** places),
        _scaling(NUMBER, older, partial(amount, places), Decimal(10) ** -places),
    )


def _scaling(
    source: Type, target: Type, convert: Callable[[str], str], factor: Decimal
) -> ValueRewrite:
    whole = "integer" if factor >= 1 else "number"

    def effect(flat: Flat, image: SchemaImage) -> object:
        if flat["type"] not in JSON_TYPES[source]:
            return image.refused(flat, f"expected a {source}, found {flat['type']}")
        if flat["type"] != "integer":
            made = wide({"type": whole if target is NUMBER else "string"})
            return image.refused(flat, "an amount may have too many decimal places", made)
        if target is TEXT:
            return wide({"type": "string"})
        return scaled({**flat, "type": whole}, Fraction(factor))

    return rewrite_scalars(source, target, convert, effect)


def units(places: int, text: str) -> str:
    """Convert a decimal amount to a number of its smallest units; raises ValueError."""
    whole, _, fraction = text.partition(".")
    if len(fraction) == places and text.isascii():
        digits = whole + fraction
        if digits.isdecimal() and digits[0] != "0":
            return digits  # the most frequent case
    plain = format(Decimal(text), "f") if _EXPONENT.match(text) else text
    match = _FRACTION.match(plain)
    if match is None:
        zeros = ", without a zero before its digits" if _ZEROS.match(plain) else ""
        raise ValueError(f"expected an amount such as 12.50{zeros}, found something else")
    sign, whole, fraction = match.groups("")
    kept, rest = fraction[:places], fraction[places:]
    if rest.strip("0"):
        raise ValueError(f"has more than {places} decimal places")
    return sign + ((whole + kept.ljust(places, "0")).lstrip("0") or "0")


def amount(places: int, units: str) -> str:
    """Convert a number of smallest units to a decimal amount; raises ValueError."""
    if not _WHOLE.match(units):
        raise ValueError("expected a whole number, found a fraction or an exponent")
    if len(units) <= places or units[0] == "-":
        sign, units = ("-", units[1:]) if units[0] == "-" else ("", units)
        units = sign + units.zfill(places + 1)
    return f"{units[:-places]}.{units[-places:]}" if places else units


def retype(scopes: tuple[Scope, ...], field: Keys, newer: Type, older: Type) -> Change:
    """Return the change of a scalar that has different types in the two versions.

    The string true and the number 1 correspond to the boolean true.
    """
    return value_change(scopes, field, _retyping(older, newer), _retyping(newer, older))


def _retyping(source: Type, target: Type) -> ValueRewrite:
    def effect(flat: Flat, image: SchemaImage) -> object:
        if flat["type"] not in JSON_TYPES[source]:
            return image.refused(flat, f"expected a {source}, found {flat['type']}")
        made = wide({"type": "string" if target is TEXT else str(target)})
        if target is TEXT:
            return made
        return image.refused(flat, f"not every {source} is a {target}", made)

    return rewrite_scalars(source, target, _RETYPED[source, target], effect)


def _of_text(source: Type, target: Type) -> Callable[[str], str]:
    convert = _RETYPED[source, target]

    def written(text: str) -> str:
        made = convert(text)
        return made if isinstance(made, str) else WORDS[made]

    return written


def _number(text: str) -> str:
    if not NUMBER_TEXT.match(text):
        raise ValueError("expected a numeric string, found another string")
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


def json_as_text(scopes: tuple[Scope, ...], field: Keys) -> Change:
    """Return the change of a JSON value that is a string of JSON (RFC 8259) in the older version.

    The string has no white space outside of strings. Null stays null, so the string `null` is
    refused.
    """
    return value_change(
        scopes,
        field,
        ValueRewrite(partial(_rewriting, _read_json), _read_effect, one_value),
        ValueRewrite(partial(_rewriting, _written_json), _written_effect, one_value),
    )


def _text_as_json(scopes: tuple[Scope, ...], field: Keys) -> Change:
    return inverse(json_as_text(scopes, field))


def _rewriting(convert: Callable[[JsonForm, Document], Document], field: Keys) -> ConversionStep:
    def step(fields: JsonObject, form: JsonForm) -> None:
        holder, key = holder_of(fields, field, form), field[-1]
        if holder is None or form.open(holder[key]) is None:
            return
        try:
            holder[key] = convert(form, holder[key])
        except ConversionError as error:
            raise error.under(*field) from None

    return step


_encoded = msgspec.json.Encoder(decimal_format="number").encode


def _written_json(form: JsonForm, value: Document) -> Document:
    return str(_encoded(form.parse(value)), "utf-8")


def _read_json(form: JsonForm, value: Document) -> Document:
    text = form.open(value)
    if not isinstance(text, str):
        refuse("a string", text)
    if text.count(",") + text.count(":") >= _MOST_ELEMENTS:
        raise ConversionError(f"a string of more than {_MOST_ELEMENTS} elements")
    try:
        found = _parsed(text)
        if found is None:
            raise ConversionError("expected a string of JSON other than null, found null")
        return form.take(found)
    except (ValueError, ArithmeticError):
        raise ConversionError("expected a string of JSON, found another string") from None


def _members(pairs: list[tuple[str, Document]]) -> JsonObject:
    members = dict(pairs)
    return members if len(members) == len(pairs) else _no_json("a key occurs twice")


def _no_json(reason: str) -> NoReturn:
    raise ValueError(reason)


_parsed = json.JSONDecoder(
    object_pairs_hook=_members, parse_int=Decimal, parse_float=Decimal, parse_constant=_no_json
).decode


def _written_effect(flat: Flat, image: SchemaImage) -> object:
    return image.refused(flat, "a number may have too many digits", wide({"type": "string"}))


def _read_effect(flat: Flat, image: SchemaImage) -> object:
    made: object = ANYTHING if flat["type"] == "string" else False
    return image.refused(flat, "not every string is JSON", made)
