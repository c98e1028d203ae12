"""Money: whole numbers of a currency's smallest unit in the newer version, amounts in the older.

How many decimal places an amount has follows from its currency, which another field names, or its
own key. An absent amount stays absent, and null stays null, both ways.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from gateway.conversion.change import FieldChange
from gateway.conversion.changes.currency import PLACES
from gateway.conversion.changes.scale import Scale
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
from gateway.conversion.scalars import NUMBER, Type, replace_scalar
from gateway.conversion.steps import ConversionStep, ConversionTask, fuse


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
        older: how the older version writes an amount, as a TEXT or a NUMBER.
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
        """The currency, and the amount or the array that leads to it."""
        return (self.currency, keys_of(self.inner[0]) if self.inner else self.amount)

    def up(self, fields: JsonObject, form: JsonForm) -> None:
        """Count the units."""
        for step in self._of(fields, form).up:
            step(fields, form)

    def down(self, fields: JsonObject, form: JsonForm) -> None:
        """Write the amounts."""
        for step in self._of(fields, form).down:
            step(fields, form)

    def origin(self, place: ErrorPlace, *, upwards: bool) -> ErrorPlace:  # as others ask it
        """Return the same place."""
        return place

    def for_patch(self) -> "Money":
        """Return the same change: an amount without its currency cannot be converted."""
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
            replace_scalar(fields, self.amount, form, self.older, NUMBER, units)

        def down(fields: JsonObject, form: JsonForm) -> None:
            replace_scalar(fields, self.amount, form, NUMBER, self.older, decimal)

        return _Ways(self._through(up), self._through(down))

    def _through(self, step: ConversionStep) -> tuple[ConversionStep, ...]:
        convert = _kept(step) if self.keeps else step
        return fuse([ConversionTask(self.inner, (self.amount,), convert, keeps=self.keeps)]).calls


@dataclass(frozen=True, slots=True)
class MoneyByCurrency(FieldChange):
    """Amounts in an object whose keys are their currencies: `{"EUR": 1250, "JPY": 5}`.

    Attributes:
        older: how the older version writes an amount, as a TEXT or a NUMBER.
        unknown: the decimal places of what is not in ISO 4217; None refuses it.
        keeps: whether each amount that cannot be converted stays as it is.
    """

    older: Type
    unknown: int | None = None
    keeps: bool = False

    def up(self, fields: JsonObject, form: JsonForm) -> None:
        """Count the units."""
        self._change(fields, form, upwards=True)

    def down(self, fields: JsonObject, form: JsonForm) -> None:
        """Write the amounts."""
        self._change(fields, form, upwards=False)

    def _change(self, fields: JsonObject, form: JsonForm, *, upwards: bool) -> None:
        kinds = (self.older, NUMBER) if upwards else (NUMBER, self.older)

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


def _kept(step: ConversionStep) -> ConversionStep:
    def kept(fields: JsonObject, form: JsonForm) -> None:
        with suppress(ConversionError):
            step(fields, form)

    return kept


def _refused(text: str) -> str:
    raise ValueError("its currency is absent, or not an alphabetic code of ISO 4217")
