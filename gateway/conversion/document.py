"""Documents: JSON values that may be parsed lazily, and access to their fields.

A path that leads through a value that is not an object raises ConversionError.
"""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, NamedTuple, NoReturn, Protocol

from gateway.conversion.conversion_error import Beside, ConversionError, ErrorPlace
from gateway.conversion.field_path import Keys

Document = object
JsonObject = dict[str, Document]
"""A JSON object that is parsed one level deep (*open*). Changes may alter it in place."""


class Number(NamedTuple):
    """A JSON number as it is written in the source text (RFC 8259, section 6)."""

    digits: str


class _LinkReceiver(Protocol):
    """The type of a message that can convert URLs; see `gateway.conversion.message.Message`."""

    @property
    def link(self) -> Callable[[str], str]: ...


@dataclass(frozen=True, slots=True)
class JsonForm:
    """The form of the values in a document: parsed completely, or *sealed* (not yet parsed).

    Attributes:
        open: Parses a value one level deep. The returned object or array is new and may be altered
            in place. The values inside it may be sealed. A number is returned as a Number.
        close: Converts an open object or array back to this form after its last alteration.
        digits: Returns the digits of a value that is a number, or None for any other value.
        parse: Parses a value completely, into a new value with fractions as Decimal. Raises
            ConversionError for a number that Python cannot represent.
        take: Converts a Python value to a value of this form. Raises ValueError, TypeError or
            RecursionError for a value that JSON cannot represent.
        typed: Whether scalars have types. If false, every scalar is a string, as in HTML forms.
        of_places: Whether the document has only the locations of values, each shown as null, as for
            a JSON Patch. Changes then fill in no defaults, because a default would add a location.
    """

    open: Callable[[Document], Document]
    close: Callable[[Document], Document]
    digits: Callable[[Document], str | None]
    number: Callable[[str], Document]
    parse: Callable[[Document], Document]
    take: Callable[[Document], Document]
    typed: bool = True
    message: _LinkReceiver | None = None
    of_places: bool = False


class SentEmpty(dict[str, Document]):
    """An object that the sender sent empty, and to which changes have added members.

    The object stays if later changes remove these members again.
    """

    def copy(self) -> "SentEmpty":
        return SentEmpty(self)


class Missing:
    """The type of MISSING, which marks an absent field. MISSING is not a JSON value."""


MISSING: Final = Missing()


def _open(value: Document) -> Document:
    match value:
        case dict():
            return value.copy()
        case list():
            return list(value)
        case bool():
            return value
        case int() | Decimal():
            return Number(str(value))
        case float():
            return Number(repr(value))
        case _:
            return value


def _number(digits: str) -> Document:
    return int(digits) if digits.lstrip("-").isdigit() and digits != "-0" else Decimal(digits)


def _digits(value: Document) -> str | None:
    opened = _open(value)
    return opened.digits if isinstance(opened, Number) else None


PLAIN: Final = JsonForm(_open, lambda value: value, _digits, _number, deepcopy, lambda value: value)
"""The form of completely parsed Python values. It never alters the values that it receives."""


def reach(
    fields: JsonObject, keys: Keys, form: JsonForm, *, keeps: bool = False
) -> JsonObject | None:
    """Open the objects on the path to a field in place, and return the object that holds the field.

    Args:
        keeps: Whether the result is None, instead of an error, if the path leads through a boolean
            or an array.

    Returns:
        The object for the last key, or None if an object on the path is absent or null, or is
        represented by its id (a string or number).
    """
    if len(keys) == 1:
        return fields
    for depth in range(len(keys) - 1):
        key = keys[depth]
        if key not in fields:
            return None
        inner = form.open(fields[key])
        if inner is None:
            return None
        if not isinstance(inner, dict):
            if keeps or is_id(inner):
                return None
            found = f"expected an object, found {kind(inner)}"
            raise ConversionError(found, keys[: depth + 1], is_on_way=True)
        fields[key] = inner
        fields = inner
    return fields


def holder_of(
    fields: JsonObject, keys: Keys, form: JsonForm, *, keeps: bool = False
) -> JsonObject | None:
    """Return the open object that holds a field, or None if the field is absent; see `reach`."""
    holder = fields if len(keys) == 1 else reach(fields, keys, form, keeps=keeps)
    return holder if holder is not None and keys[-1] in holder else None


def is_id(value: Document) -> bool:
    """Return whether a value can be an id, which APIs return in place of an expandable object."""
    return isinstance(value, str | Number)


def get(fields: JsonObject, keys: Keys, form: JsonForm) -> Document:
    holder = holder_of(fields, keys, form)
    return MISSING if holder is None else form.open(holder[keys[-1]])


def change_value(
    fields: JsonObject,
    keys: Keys,
    form: JsonForm,
    change: Callable[[Document], Document],
    *,
    keeps: bool = False,
) -> None:
    """Replace the value at `keys` by the result of `change`, unless the value is absent or null.

    Args:
        change: Returns the new value, given the open old value. It may raise ConversionError with a
            location relative to the value.
        keeps: Whether nothing changes, instead of an error, if the path leads through a value that
            is not an object.
    """
    holder = holder_of(fields, keys, form, keeps=keeps)
    if holder is None:
        return
    value = form.open(holder[keys[-1]])
    if value is None:
        return
    try:
        made = change(value)
    except ConversionError as error:
        raise error.under(*keys) from None
    # An unchanged scalar is not written: an open Number is not a valid closed value.
    if made is not value or isinstance(made, dict | list):
        holder[keys[-1]] = made


def change_elements(
    value: Document,
    depth: int,
    form: JsonForm,
    change: Callable[[Document], Document],
    *,
    keeps: bool,
) -> Document:
    """Return an array with each element replaced by the result of `change`; null stays null.

    Args:
        depth: The number of nested arrays between `value` and the elements.
        change: Returns the new element, given the old element, which may be sealed. It may raise
            ConversionError with a location relative to the element.
    """
    array = form.open(value)
    if array is None:
        return None
    if not isinstance(array, list):
        return value if keeps else refuse("an array", array)
    index = 0
    try:
        for index, element in enumerate(array):
            if depth:
                array[index] = change_elements(element, depth - 1, form, change, keeps=keeps)
            else:
                array[index] = change(element)
    except ConversionError as error:
        raise error.under(index) from None
    return array


def change_members(
    value: Document, change: Callable[[Document], Document], *, keeps: bool = False
) -> Document:
    if not isinstance(value, dict):
        return value if keeps else refuse("an object", value)
    for key, member in value.items():
        try:
            value[key] = change(member)
        except ConversionError as error:
            raise error.under(key) from None
    return value


def put(
    fields: JsonObject, keys: Keys, value: Document, form: JsonForm, *, is_on_way: bool = False
) -> None:
    """Set `value` at `keys`, and create absent objects on the path.

    An existing key keeps its position among the others; a new key is appended.
    """
    for depth in range(len(keys) - 1):
        key = keys[depth]
        inner = form.open(fields[key]) if key in fields else {}
        if not isinstance(inner, dict):
            reason = f"expected an object, found {kind(inner)}"
            raise ConversionError(reason, keys[: depth + 1], is_on_way=is_on_way)
        if not inner and key in fields:
            inner = SentEmpty()
        fields[key] = inner
        fields = inner
    fields[keys[-1]] = value


def take(fields: JsonObject, keys: Keys, form: JsonForm) -> Document:
    """Remove and return the value at `keys`, or return MISSING if it is absent.

    Objects on the path that become empty are removed as well, except objects that the sender sent
    empty.
    """
    if len(keys) == 1:
        return fields.pop(keys[0], MISSING)
    inner = reach(fields, keys[:2], form)
    if inner is None:
        return MISSING
    try:
        value = take(inner, keys[1:], form)
    except ConversionError as error:
        raise error.under(keys[0]) from None
    if value is not MISSING and not inner and not isinstance(inner, SentEmpty):
        del fields[keys[0]]
    return value


def refuse(expected: str, found: Document, *keys: str | int) -> NoReturn:
    raise ConversionError(f"expected {expected}, found {kind(found)}", keys)


def kind(value: Document) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case str():
            return "a string"
        case dict():
            return "an object"
        case list():
            return "an array"
        case _:
            return "a number"


def same(one: Document, other: Document, *, digits: bool = False) -> bool:
    """Return whether two documents are equal.

    Numbers are compared by value, so 1.0 equals 1. With `digits`, 1.0 differs from 1.
    """
    if isinstance(one, dict) and isinstance(other, dict):
        return len(one) == len(other) and all(
            name in other and same(value, other[name], digits=digits) for name, value in one.items()
        )
    if isinstance(one, list) and isinstance(other, list):
        pairs = zip(one, other, strict=False)
        return len(one) == len(other) and all(same(*pair, digits=digits) for pair in pairs)
    if one != other or isinstance(one, bool) != isinstance(other, bool):
        return False
    return not digits or str(one) == str(other)


def within(error: ConversionError, document: Document, form: JsonForm) -> ConversionError:
    """Return the error with its locations shortened to the part that exists in the document.

    A location does not exist in the document if one change created a value, such as a default, and
    a later change refused that value.
    """

    def nearest(place: ErrorPlace) -> ErrorPlace:
        if isinstance(place, Beside):
            return place
        value = document
        for depth, token in enumerate(place):
            holder = form.open(value)
            if isinstance(holder, list) and isinstance(token, int) and token < len(holder):
                value = holder[token]
            elif isinstance(holder, dict) and isinstance(token, str) and token in holder:
                value = holder[token]
            else:
                return place[: depth + (error.is_missing and isinstance(holder, dict))]
        return place

    return error.moved(nearest)
