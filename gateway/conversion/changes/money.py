"""`money`: minor units of a currency in one version, decimal amounts in the other."""

from collections.abc import Iterable, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Final, Literal

from pydantic import Field

from gateway.base.model import NumberText
from gateway.conversion.change import Change, FieldChange, Inverse
from gateway.conversion.changes.build_context import BodyContext, BuildContext, ParameterContext
from gateway.conversion.changes.change_section import BodySection, Loss, ParameterSection
from gateway.conversion.changes.recombined import ParameterValues, Recombined
from gateway.conversion.changes.type import Scale
from gateway.conversion.conversion_error import ConversionError, ErrorPlace
from gateway.conversion.document import (
    Document,
    JsonForm,
    JsonObject,
    change_value,
    reach,
    refuse,
)
from gateway.conversion.field_path import Keys, Scope, keys_of
from gateway.conversion.parameter_change import ParameterChange
from gateway.conversion.scalars import Type, replace_scalar
from gateway.conversion.schema import JSON_TYPES, Flat, SchemaImage, wide
from gateway.conversion.steps import ConversionStep, ConversionTask, fuse

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
"""The decimal places of each currency, by its alphabetic code."""


@dataclass(frozen=True, slots=True)
class Amount:
    """An amount of money beside its currency, whose code may be in small letters.

    Attributes:
        amount: The name of the parameter with the amount.
        currency: The name of the parameter with the currency.
        unknown: The decimal places where the currency is absent or not in ISO 4217; None refuses.
    """

    amount: str
    currency: str
    unknown: int | None = None

    def units(self, values: ParameterValues) -> ParameterValues:
        """Return the amount in minor units; raises ValueError."""
        if self.amount not in values:
            return values
        return {**values, self.amount: self._scale(values).units(values[self.amount])}

    def decimal(self, values: ParameterValues) -> ParameterValues:
        """Return the amount with decimal places; raises ValueError."""
        if self.amount not in values:
            return values
        return {**values, self.amount: self._scale(values).amount(values[self.amount])}

    def _scale(self, values: ParameterValues) -> Scale:
        places = PLACES.get(values.get(self.currency, "").upper(), self.unknown)
        if places is None:
            raise ValueError("the currency is absent, or not an alphabetic code of ISO 4217")
        return Scale((), (), places, Type.TEXT)


@dataclass(frozen=True, slots=True)
class _Ways:
    """The two directions for the amounts of one number of decimal places."""

    up: tuple[ConversionStep, ...]
    down: tuple[ConversionStep, ...]


@dataclass(frozen=True, slots=True)
class Money:
    """The newer version counts the smallest unit of the currency, the older one writes amounts.

    Attributes:
        scopes: the arrays in whose elements the currency stands.
        currency: leads to the currency, whose code may be in small letters.
        inner: the arrays from there to the objects that hold the amounts.
        amount: leads to the amount.
        older: how the older version writes an amount, as a TEXT or a Type.NUMBER.
        unknown: the decimal places where the currency is absent or not in ISO 4217; None refuses.
        keeps: whether each amount that cannot be converted stays as it is.
    """

    scopes: tuple[Scope, ...]
    currency: Keys
    inner: tuple[Scope, ...]
    amount: Keys
    older: Type
    unknown: int | None = None
    keeps: bool = False

    _ways: Mapping[int | None, _Ways] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        ways = {places: self._way(places) for places in {*PLACES.values(), self.unknown}}
        object.__setattr__(self, "_ways", ways)

    @property
    def touches(self) -> tuple[Keys, ...]:
        return (self.currency, keys_of(self.inner[0]) if self.inner else self.amount)

    def up(self, fields: JsonObject, form: JsonForm) -> None:
        for step in self._of(fields, form).up:
            step(fields, form)

    def down(self, fields: JsonObject, form: JsonForm) -> None:
        for step in self._of(fields, form).down:
            step(fields, form)

    def effect(self, flat: Flat, image: SchemaImage, *, upwards: bool) -> object:
        image.looks(self.currency)
        change = partial(_amount_effect, older=self.older, image=image, upwards=upwards)
        with image.keeping(values=True) if self.keeps else nullcontext():
            return image.inside(
                flat, self.inner, lambda holder: image.value(holder, self.amount, change)
            )

    def origin(self, place: ErrorPlace, *, upwards: bool) -> ErrorPlace:  # as others ask it
        return place

    def for_patch(self) -> "Money":
        return self

    def _of(self, fields: JsonObject, form: JsonForm) -> _Ways:
        holder = reach(fields, self.currency, form, keeps=self.keeps)
        code = None if holder is None else form.open(holder.get(self.currency[-1]))
        known = PLACES.get(code.upper()) if isinstance(code, str) else None
        return self._ways[self.unknown if known is None else known]

    def _way(self, places: int | None) -> _Ways:
        scale = Scale((), self.amount, places or 0, self.older)
        units = _refused if places is None else scale.units
        decimal = _refused if places is None else scale.amount

        def up(fields: JsonObject, form: JsonForm) -> None:
            replace_scalar(fields, self.amount, form, self.older, Type.NUMBER, units)

        def down(fields: JsonObject, form: JsonForm) -> None:
            replace_scalar(fields, self.amount, form, Type.NUMBER, self.older, decimal)

        return _Ways(self._through(up), self._through(down))

    def _through(self, step: ConversionStep) -> tuple[ConversionStep, ...]:
        convert = _kept(step) if self.keeps else step
        return fuse([ConversionTask(self.inner, (self.amount,), convert, keeps=self.keeps)]).calls


@dataclass(frozen=True, slots=True)
class MoneyByCurrency(FieldChange):
    """Amounts in an object whose keys are their currencies: `{"EUR": 1250, "JPY": 5}`.

    Attributes:
        older: how the older version writes an amount, as a TEXT or a Type.NUMBER.
        unknown: the decimal places of what is not in ISO 4217; None refuses it.
        keeps: whether each amount that cannot be converted stays as it is.
    """

    older: Type
    unknown: int | None = None
    keeps: bool = False

    def up(self, fields: JsonObject, form: JsonForm) -> None:
        self._change(fields, form, upwards=True)

    def down(self, fields: JsonObject, form: JsonForm) -> None:
        self._change(fields, form, upwards=False)

    def value_effect(self, flat: Flat, image: SchemaImage, *, upwards: bool) -> object:
        change = partial(_amount_effect, older=self.older, image=image, upwards=upwards)

        def amount(schema: object) -> object:
            return image.each(schema, lambda one: one if one["type"] == "null" else change(one))

        with image.keeping(values=True) if self.keeps else nullcontext():
            if flat["type"] != "object":
                return image.refused(flat, f"expected an object, found {flat['type']}")
            return image.members(flat, amount)

    def _change(self, fields: JsonObject, form: JsonForm, *, upwards: bool) -> None:
        kinds = (self.older, Type.NUMBER) if upwards else (Type.NUMBER, self.older)

        def changed(amounts: Document) -> Document:
            if not isinstance(amounts, dict):
                return amounts if self.keeps else refuse("an object", amounts)
            for code in amounts:
                places = PLACES.get(code.upper(), self.unknown)
                scale = Scale((), (), places or 0, self.older)
                way = scale.units if upwards else scale.amount
                convert = _refused if places is None else way
                try:
                    replace_scalar(amounts, (code,), form, *kinds, convert)
                except ConversionError:
                    if not self.keeps:
                        raise
            return amounts

        change_value(fields, self.field, form, changed, keeps=self.keeps)


def _amount_effect(flat: Flat, older: Type, image: SchemaImage, upwards: bool) -> object:
    """Return the schema of an amount in the other version, of any currency."""
    source = Type(older) if upwards else Type.NUMBER
    made: Flat = {"type": "string" if older is Type.TEXT else "number"}
    if flat["type"] not in JSON_TYPES[source]:
        return image.refused(flat, f"expected a {source}, found {flat['type']}")
    made = wide({"type": "integer"} if upwards else made)
    return image.refused(flat, "the places depend on the currency", made)


def _kept(step: ConversionStep) -> ConversionStep:
    def kept(fields: JsonObject, form: JsonForm) -> None:
        with suppress(ConversionError):
            step(fields, form)

    return kept


def _refused(text: str) -> str:
    raise ValueError("its currency is absent, or not an alphabetic code of ISO 4217")


KEYS = "*"


class MoneyConfig(BodySection, ParameterSection):
    """Write an amount of money in minor units or with decimal places, by its currency."""

    keyword = "money"

    field: str
    """The field or parameter of the amount, which has the same name in both versions."""
    currency: str
    """The field of the currency, a code of ISO 4217: beside the amount, or further out; "*" where
    the field is an object of amounts by their currencies. For a parameter, that of its currency."""
    newer: Literal["integer", "text", "number"]
    """The amount in the newer version: an integer of minor units, or a decimal text or number."""
    older: Literal["integer", "text", "number"]
    """The amount in the older version: an integer of minor units, or a decimal text or number."""
    unknown: Annotated[int, Field(ge=0, le=18), NumberText] | None = None
    """The decimal places where the currency is unknown; without it, the amount is refused."""

    def losses(self) -> Iterable[Loss]:
        return ()

    def body_change(self, context: BodyContext) -> Change | None:
        if not self._counts(context):
            return None
        # Imported when rules name it, with the table of currencies.

        amount = context.path(self.field, "field")
        older = self.newer == "integer"
        written = Type(self.older if older else self.newer)
        if self.currency == KEYS:
            if amount is None:
                return None
            amounts = MoneyByCurrency(amount.scopes, amount.keys, written, self.unknown)
            return amounts if older else Inverse(amounts)
        currency = context.path(self.currency, "currency")
        if amount is None or currency is None:
            return None
        depth = len(currency.scopes)
        if amount.scopes[:depth] != currency.scopes:
            context.complain(
                "lies in an array that does not lead to the amount; name the currency beside the"
                " amount, or further out",
                "currency",
            )
            return None
        money = Money(
            currency.scopes,
            currency.keys,
            amount.scopes[depth:],
            amount.keys,
            written,
            self.unknown,
        )
        return money if older else Inverse(money)

    def parameter_change(self, context: ParameterContext) -> ParameterChange | None:
        # Imported when rules name it, with the table of currencies.

        if not self._counts(context):
            return None
        names = context.name(self.field, "field"), context.name(self.currency, "currency")
        if self.field == self.currency:
            context.complain("is the amount itself; name the parameter of its currency", "currency")
            return None
        amount = Amount(*names, self.unknown)
        ways = amount.units, amount.decimal
        return Recombined(names, names, *(ways if self.newer == "integer" else ways[::-1]))

    def _counts(self, context: BuildContext) -> bool:
        """Whether one version counts minor units; False after recording the mistake."""
        if (self.newer == "integer") != (self.older == "integer"):
            return True
        context.complain(
            "one version has an integer of minor units, the other a text or a number; for a number"
            " and a text, write two: { newer: integer, older: text }, then { newer: number, older:"
            " integer }"
        )
        return False
