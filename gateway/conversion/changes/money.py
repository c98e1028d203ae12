"""`money`: amounts in minor units of a currency in one version, decimal amounts in the other."""

from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import partial
from typing import Annotated, Final, Literal

from pydantic import Field

from gateway.base.model import NumberText
from gateway.conversion.change import (
    Change,
    DirectedChange,
    ValueRewrite,
    inverse,
    value_change,
)
from gateway.conversion.changes.change_section import BodySection, BuildContext, ParameterSection
from gateway.conversion.changes.type import amount as amount_of
from gateway.conversion.changes.type import units
from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.document import (
    Document,
    JsonForm,
    JsonObject,
    change_value,
    reach,
    refuse,
)
from gateway.conversion.field_path import Keys, Scope, keys_of
from gateway.conversion.parameter_change import (
    ConvertValues,
    ParameterChange,
    ParameterValues,
    inverse_parameter,
    recombined,
)
from gateway.conversion.scalars import NUMBER, TEXT, Type, replace_scalar
from gateway.conversion.schema import JSON_TYPES, Flat, SchemaImage, wide
from gateway.conversion.steps import ConversionStep, ConversionTask, fuse

Convert = Callable[[int, str], str]
"""A function that converts an amount, given the number of decimal places of its currency. It may
raise ValueError."""

_CODES = {
    0: "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF",
    2: (
        "AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BMD BND BOB BOV BRL BSD BTN BWP"
        " BYN BZD CAD CDF CHE CHF CHW CNY COP COU CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD"
        " FKP GBP GEL GHS GIP GMD GTQ GYD HKD HNL HTG HUF IDR ILS INR IRR JMD KES KGS KHR KPW KYD"
        " KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MXV MYR MZN NAD"
        " NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP"
        " SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TOP TRY TTD TWD TZS UAH USD USN UYU UZS VED"
        " VES WST XCD XCG YER ZAR ZMW ZWG"
    ),
    3: "BHD IQD JOD KWD LYD OMR TND",
    4: "CLF UYW",
}
PLACES: Final[Mapping[str, int]] = {
    code: places for places, codes in _CODES.items() for code in codes.split()
}
"""The number of decimal places of each currency, by its alphabetic code (ISO 4217)."""

KEYS = "*"


class Money(BodySection, ParameterSection):
    """Write an amount of money in minor units or with the decimal places of its currency."""

    keyword = "money"

    field: str
    """The field or parameter with the amount, which has the same name in both versions."""
    currency: str
    """The field or parameter with the currency, a code of ISO 4217. A field is in the same object
    as the amount, or in an outer object; "*" means that `field` is an object of amounts by
    currency."""
    newer: Literal["integer", "text", "number"]
    """The form of the amount in the newer version: an integer of minor units, or a decimal string
    (`text`) or number."""
    older: Literal["integer", "text", "number"]
    """The form of the amount in the older version: an integer of minor units, or a decimal string
    (`text`) or number."""
    unknown: Annotated[int, Field(ge=0, le=18), NumberText] | None = None
    """The number of decimal places for an unknown currency; without it, the amount is refused."""

    def compile_body(self, context: BuildContext) -> Change | None:
        if not self._counts(context):
            return None
        amount = context.path(self.field, "field")
        older = self.newer == "integer"
        written = Type(self.older if older else self.newer)
        if self.currency == KEYS:
            if amount is None:
                return None
            amounts = money_by_currency(amount.scopes, amount.keys, written, self.unknown)
            return amounts if older else inverse(amounts)
        currency = context.path(self.currency, "currency")
        if amount is None or currency is None:
            return None
        depth = len(currency.scopes)
        if amount.scopes[:depth] != currency.scopes:
            context.mistakes.add(
                "is in an array that does not contain the amount; name a currency"
                " field next to the amount, or outside its arrays",
                "currency",
            )
            return None
        inner = amount.scopes[depth:]
        change = money(currency.scopes, currency.keys, inner, amount.keys, written, self.unknown)
        return change if older else inverse(change)

    def compile_parameter(self, context: BuildContext) -> ParameterChange | None:
        if not self._counts(context):
            return None
        names = context.name(self.field, "field"), context.name(self.currency, "currency")
        if self.field == self.currency:
            context.mistakes.add(
                "is the amount itself; name the parameter of its currency", "currency"
            )
            return None
        change = money_parameter(*names, self.unknown)
        return change if self.newer == "integer" else inverse_parameter(change)

    def _counts(self, context: BuildContext) -> bool:
        if (self.newer == "integer") != (self.older == "integer"):
            return True
        context.mistakes.add(
            "one version has an integer of minor units, the other a string or"
            " number; for a number and a string, write two changes: { newer:"
            " integer, older: text }, then { newer: number, older:"
            " integer }"
        )
        return False


def money(
    scopes: tuple[Scope, ...],
    currency: Keys,
    inner: tuple[Scope, ...],
    field: Keys,
    older: Type,
    unknown: int | None = None,
    *,
    keeps: bool = False,
) -> Change:
    """Return the change of an amount that the newer version counts in minor units.

    Args:
        currency: The keys of the currency, whose code may be in lower case.
        unknown: The number of decimal places if the currency is absent or not in ISO 4217. If it is
            None, such an amount is refused.
    """

    def directed(source: Type, target: Type, convert: Convert, made: str) -> DirectedChange:
        steps = {
            places: _at_places(inner, field, places, (source, target, convert), keeps=keeps)
            for places in {*PLACES.values(), unknown}
        }

        def step(fields: JsonObject, form: JsonForm) -> None:
            holder = reach(fields, currency, form, keeps=keeps)
            code = None if holder is None else form.open(holder.get(currency[-1]))
            known = PLACES.get(code.upper()) if isinstance(code, str) else None
            for one in steps[unknown if known is None else known]:
                one(fields, form)

        def effect(flat: Flat, image: SchemaImage) -> object:
            image.record_reads(currency)
            change = partial(_amount_effect, source, made, image)
            with image.keeping(values=True) if keeps else nullcontext():
                return image.inside(flat, inner, lambda one: image.value(one, field, change))

        return DirectedChange(step, effect)

    return Change(
        scopes,
        (currency, keys_of(inner[0]) if inner else field),
        directed(older, NUMBER, units, "integer"),
        directed(NUMBER, older, amount_of, "string" if older is TEXT else "number"),
        lenient=lambda: money(scopes, currency, inner, field, older, unknown, keeps=True),
    )


def _at_places(
    inner: tuple[Scope, ...],
    field: Keys,
    places: int | None,
    rewrite: tuple[Type, Type, Convert],
    *,
    keeps: bool,
) -> tuple[ConversionStep, ...]:
    """Return the steps for amounts with `places` decimal places; None refuses all amounts."""
    source, target, convert = rewrite
    convert_text = _refused if places is None else partial(convert, places)

    def step(fields: JsonObject, form: JsonForm) -> None:
        replace_scalar(fields, field, form, source, target, convert_text)

    def lenient(fields: JsonObject, form: JsonForm) -> None:
        with suppress(ConversionError):
            step(fields, form)

    return fuse([ConversionTask(inner, (field,), lenient if keeps else step, keeps=keeps)]).calls


def _amount_effect(source: Type, made: str, image: SchemaImage, flat: Flat) -> object:
    if flat["type"] not in JSON_TYPES[source]:
        return image.refused(flat, f"expected a {source}, found {flat['type']}")
    return image.refused(
        flat, "the number of decimal places depends on the currency", wide({"type": made})
    )


def _refused(text: str) -> str:
    raise ValueError("its currency is absent, or not an alphabetic code of ISO 4217")


def money_by_currency(
    scopes: tuple[Scope, ...],
    field: Keys,
    older: Type,
    unknown: int | None = None,
    *,
    keeps: bool = False,
) -> Change:
    """Return the change of an object of amounts by currency, such as `{"EUR": 1250, "JPY": 5}`."""

    def directed(source: Type, target: Type, convert: Convert, made: str) -> ValueRewrite:
        def changed(form: JsonForm, amounts: Document) -> Document:
            if not isinstance(amounts, dict):
                return amounts if keeps else refuse("an object", amounts)
            for code in amounts:
                places = PLACES.get(code.upper(), unknown)
                convert_text = _refused if places is None else partial(convert, places)
                try:
                    replace_scalar(amounts, (code,), form, source, target, convert_text)
                except ConversionError:
                    if not keeps:
                        raise
            return amounts

        def step_at(field: Keys) -> ConversionStep:
            def step(fields: JsonObject, form: JsonForm) -> None:
                change_value(fields, field, form, partial(changed, form), keeps=keeps)

            return step

        def amount(image: SchemaImage, one: Flat) -> object:
            return one if one["type"] == "null" else _amount_effect(source, made, image, one)

        def effect(flat: Flat, image: SchemaImage) -> object:
            with image.keeping(values=True) if keeps else nullcontext():
                if flat["type"] != "object":
                    return image.refused(flat, f"expected an object, found {flat['type']}")
                return image.members(flat, lambda one: image.each(one, partial(amount, image)))

        return ValueRewrite(step_at, effect)

    change = value_change(
        scopes,
        field,
        directed(older, NUMBER, units, "integer"),
        directed(NUMBER, older, amount_of, "string" if older is TEXT else "number"),
    )
    return replace(
        change, lenient=lambda: money_by_currency(scopes, field, older, unknown, keeps=True)
    )


def money_parameter(amount: str, currency: str, unknown: int | None = None) -> ParameterChange:
    """Return the change of a parameter with an amount whose currency is in another parameter.

    Args:
        unknown: The number of decimal places if the currency is absent or not in ISO 4217. If it is
            None, such an amount is refused.
    """

    def rewriting(convert: Convert) -> ConvertValues:
        def rewrite(values: ParameterValues) -> ParameterValues:
            if amount not in values:
                return values
            places = PLACES.get(values.get(currency, "").upper(), unknown)
            if places is None:
                raise ValueError("the currency is absent, or not an alphabetic code of ISO 4217")
            return {**values, amount: convert(places, values[amount])}

        return rewrite

    names = (amount, currency)
    return recombined(names, names, rewriting(units), rewriting(amount_of))
