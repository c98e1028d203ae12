"""Changes of a value in its place: said in other words, or held in a list.

An absent field stays absent, both ways.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from gateway.core.conversion.document import (
    ConversionError,
    JsonForm,
    JsonObject,
    Number,
    kind,
    reach,
    refuse,
)
from gateway.core.conversion.field_path import Keys, pointer


class Unknown(Enum):
    """What becomes of a value that a map does not speak of."""

    REFUSE = "refuse"
    KEEP = "keep"


Scalar = str | bool | Number
Otherwise = Unknown | Scalar


@dataclass(frozen=True, slots=True)
class Map:
    """The two versions have other words for the same things; null stays null.

    Attributes:
        older: what each value of the newer version is in the older one.
        newer: the way back.
        unknown: what a value becomes that is not in `older`, or how it is treated.
        unknown_back: the same for `newer`.
    """

    scopes: tuple[Keys, ...]
    field: Keys
    older: Mapping[Scalar, Scalar]
    newer: Mapping[Scalar, Scalar]
    unknown: Otherwise = Unknown.REFUSE
    unknown_back: Otherwise = Unknown.REFUSE

    @property
    def touches(self) -> tuple[Keys, ...]:
        """The field."""
        return (self.field,)

    def up(self, fields: JsonObject, form: JsonForm) -> None:
        """Say it in the newer version's words."""
        self._map(fields, form, self.newer, self.unknown_back)

    def down(self, fields: JsonObject, form: JsonForm) -> None:
        """Say it in the older version's words."""
        self._map(fields, form, self.older, self.unknown)

    def _map(
        self, fields: JsonObject, form: JsonForm, words: Mapping[Scalar, Scalar], unknown: Otherwise
    ) -> None:
        holder = fields if len(self.field) == 1 else reach(fields, self.field, form)
        key = self.field[-1]
        if holder is None or key not in holder:
            return
        value = form.open(holder[key])
        if type(value) is str and type(known := words.get(value)) is str:
            holder[key] = known  # nearly always
            return
        if value is None:
            return
        word = unknown
        if isinstance(value, str | bool | Number):
            word = words.get(value, unknown)
        if isinstance(word, Number):
            holder[key] = form.number(word.digits)
        elif not isinstance(word, Unknown):
            holder[key] = word
        elif word is Unknown.REFUSE:
            raise ConversionError(f"{kind(value)} that is not in the map", pointer(*self.field))


@dataclass(frozen=True, slots=True)
class Wrap:
    """The older version has a list where the newer one has a single value.

    Downwards, the value becomes the only element, and null the empty list. Upwards, the first
    element becomes the value, and null where there is none; null stays null. A list of several
    elements is refused if `strict`, else the others are lost.
    """

    scopes: tuple[Keys, ...]
    field: Keys
    strict: bool = False

    @property
    def touches(self) -> tuple[Keys, ...]:
        """The field."""
        return (self.field,)

    def up(self, fields: JsonObject, form: JsonForm) -> None:
        """Take the value out of the list."""
        holder = fields if len(self.field) == 1 else reach(fields, self.field, form)
        key = self.field[-1]
        if holder is None or key not in holder:
            return
        values = form.open(holder[key])
        if values is None:
            return
        if not isinstance(values, list):
            refuse("an array", values, *self.field)
        if len(values) > 1 and self.strict:
            raise ConversionError("an array of several elements", pointer(*self.field))
        holder[key] = values[0] if values else None

    def down(self, fields: JsonObject, form: JsonForm) -> None:
        """Put the value into a list."""
        holder = fields if len(self.field) == 1 else reach(fields, self.field, form)
        key = self.field[-1]
        if holder is None or key not in holder:
            return
        value = holder[key]
        holder[key] = [] if form.open(value) is None else [value]
