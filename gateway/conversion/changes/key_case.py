"""Key case: the keys of an object, and of all objects inside it, in another case."""

from collections.abc import Callable
from dataclasses import dataclass

from gateway.conversion.changes.word_case import CaseRewriting
from gateway.conversion.conversion_error import Beside, ConversionError, ErrorPlace
from gateway.conversion.document import Document, JsonForm, JsonObject, reach
from gateway.conversion.field_path import Keys, Scope, Tokens
from gateway.conversion.repeated_members import RepeatedKey, RepeatedValue


@dataclass(frozen=True, slots=True)
class KeyCase:
    """The two versions write keys in different cases, however deep in objects and arrays.

    Attributes:
        field: leads to the object or array; None for the whole object.
        to_newer: writes a key as the newer version does.
        to_older: writes a key as the older version does.
        but: the newer version's keys of objects whose own keys are data, and stay.
    """

    scopes: tuple[Scope, ...]
    field: Keys | None
    to_newer: CaseRewriting
    to_older: CaseRewriting
    but: frozenset[str] = frozenset()

    @property
    def touches(self) -> tuple[Keys, ...]:
        """The field, or everything."""
        return ((),) if self.field is None else (self.field,)

    def up(self, fields: JsonObject, form: JsonForm) -> None:
        """Write the keys as the newer version does."""
        self._rewrite(fields, form, self.to_newer, frozenset(map(self._older_name, self.but)))

    def down(self, fields: JsonObject, form: JsonForm) -> None:
        """Write the keys as the older version does."""
        self._rewrite(fields, form, self.to_older, self.but)

    def origin(self, place: ErrorPlace, *, upwards: bool) -> ErrorPlace:
        """Return the place with its keys as the other version writes them."""
        begin = self.field or ()
        if isinstance(place, Beside) or place[: len(begin)] != begin:
            return place
        write = self.to_older if upwards else self.to_newer
        but = self.but if upwards else frozenset(map(self._older_name, self.but))
        found: Tokens = begin
        for depth, token in enumerate(place[len(begin) :], len(begin) + 1):
            try:
                found = (*found, write(token) if isinstance(token, str) else token)
            except ValueError:  # the other version cannot have such a key
                break
            if token in but:
                return (*found, *place[depth:])
        return found

    def for_patch(self) -> "KeyCase":
        """Return the same change: what a PATCH request leaves out has no keys."""
        return self

    def _older_name(self, key: str) -> str:
        return self.to_older(key)

    def _rewrite(
        self, fields: JsonObject, form: JsonForm, write: CaseRewriting, but: frozenset[str]
    ) -> None:
        if self.field is None:
            made = _object(fields, form, write, but)
            fields.clear()
            fields.update(made)
            return
        holder = reach(fields, self.field, form)
        key = self.field[-1]
        if holder is not None and key in holder:
            try:
                holder[key] = _value(holder[key], form, write, but)
            except ConversionError as error:
                raise error.under(*self.field) from None


def _value(
    value: Document, form: JsonForm, write: Callable[[str], str], but: frozenset[str]
) -> Document:
    """Return a value with its keys rewritten: the same one where none differs."""
    if isinstance(value, RepeatedValue):
        return value._replace(value=_value(value.value, form, write, but))
    opened = form.open(value)
    if isinstance(opened, dict):
        fields = _object(opened, form, write, but)
        return value if fields == opened else form.close(fields)
    if not isinstance(opened, list):
        return value
    made: list[Document] = []
    try:
        for element in opened:
            made.append(_value(element, form, write, but))  # noqa: PERF401  # the error needs its index
    except ConversionError as error:
        raise error.under(len(made)) from None
    return value if made == opened else made


def _object(
    fields: JsonObject, form: JsonForm, write: Callable[[str], str], but: frozenset[str]
) -> JsonObject:
    made: JsonObject = {}
    for key, value in fields.items():
        plain = str(key)
        try:
            name = write(plain)
        except ValueError as error:
            raise ConversionError(f"the key is no name: {error}", (key,)) from None
        if isinstance(key, RepeatedKey):
            name = key if name == plain else RepeatedKey(name)
        if name in made:
            raise ConversionError(f"becomes '{name}', which is there already", (key,))
        if plain in but:
            made[name] = value
            continue
        try:
            made[name] = _value(value, form, write, but)
        except ConversionError as error:
            raise error.under(key) from None
    return made
