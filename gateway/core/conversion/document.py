"""Looking into documents and making changed ones."""

from collections.abc import Callable
from typing import Final, NoReturn

from gateway.core.conversion.path import Keys, pointer

Document = object
Opener = Callable[[Document], Document]
"""Returns a value that can be looked into; a sealed one is parsed one level deep."""


class Missing:
    """The type of MISSING, which no JSON value is."""


MISSING: Final = Missing()


class Unconvertible(Exception):
    """A document is not what the declaration says it is.

    Attributes:
        pointer: the place in the document, as a JSON Pointer.
        reason: what is wrong there; it quotes no value, since bodies may hold secrets.
    """

    def __init__(self, reason: str, pointer: str = "") -> None:
        super().__init__(f"{pointer or 'the body'}: {reason}")
        self.reason = reason
        self.pointer = pointer

    def under(self, *keys: str | int) -> "Unconvertible":
        """Return the same error as seen from a container further out."""
        return Unconvertible(self.reason, pointer(*keys) + self.pointer)


def as_is(value: Document) -> Document:
    """Open nothing: the opener for documents that are parsed to the leaves."""
    return value


def each(
    document: Document,
    scopes: tuple[Keys, ...],
    change: Callable[[Document], Document],
    opener: Opener,
) -> Document:
    """Return the document with `change` applied to every object that `scopes` leads to.

    An array that is absent or null holds nothing to change.

    Raises:
        Unconvertible: an array or element on the way, or an object at the end, is none.
    """
    value = opener(document)
    if not scopes:
        if not isinstance(value, dict):
            refuse("an object", value)
        return change(value)
    keys, inner = scopes[0], scopes[1:]
    if keys and not isinstance(value, dict):
        refuse("an object", value)
    array = get(value, keys, opener)
    if array is MISSING or array is None:
        return value
    if not isinstance(array, list):
        refuse("an array", array, *keys)
    elements: list[Document] = []
    for index, element in enumerate(array):
        try:
            elements.append(each(element, inner, change, opener))
        except Unconvertible as error:
            raise error.under(*keys, index) from None
    return put(value, keys, elements, opener)


def get(document: Document, keys: Keys, opener: Opener) -> Document:
    """Return the opened value at `keys`; MISSING if it, or a container on the way, is not there.

    A container that is null holds nothing.

    Raises:
        Unconvertible: a container on the way is not an object.
    """
    value = opener(document)
    for index, key in enumerate(keys):
        if value is None:
            return MISSING
        if not isinstance(value, dict):
            refuse("an object", value, *keys[:index])
        if key not in value:
            return MISSING
        value = opener(value[key])
    return value


def put(document: Document, keys: Keys, value: Document, opener: Opener) -> Document:
    """Return the document with `value` at `keys`; a container that is not there is made.

    A key that stands already keeps its place among the others; a new one goes last.

    Raises:
        Unconvertible: a container on the way is not an object.
    """
    if not keys:
        return value
    container = {} if document is MISSING else opener(document)
    if not isinstance(container, dict):
        refuse("an object", container)
    key, rest = keys[0], keys[1:]
    try:
        return {**container, key: put(container.get(key, MISSING), rest, value, opener)}
    except Unconvertible as error:
        raise error.under(key) from None


def remove(document: Document, keys: Keys, opener: Opener) -> Document:
    """Return the document without the field at `keys`, nor the containers that this empties."""
    container = opener(document)
    key, rest = keys[0], keys[1:]
    if not isinstance(container, dict) or key not in container:
        return document
    if rest:
        left = remove(container[key], rest, opener)
        if left is container[key]:
            return document
        if left:
            return {**container, key: left}
    return {other: value for other, value in container.items() if other != key}


def refuse(expected: str, found: Document, *keys: str | int) -> NoReturn:
    """Raise Unconvertible: at `keys`, something else was found than expected."""
    raise Unconvertible(f"expected {expected}, found {kind(found)}", pointer(*keys))


def kind(value: Document) -> str:
    """Say what JSON calls the type of a value."""
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
