"""Field paths: the notation for fields of a document in the changes of gateway.yaml."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import NamedTuple

Keys = tuple[str, ...]
Tokens = tuple[str | int, ...]
"""A location in a document: the tokens of a JSON Pointer (RFC 6901), with array indices as int."""

_STEP = r"((?:[^.\[\]\\]|\\.)+)((?:\[\])*)"
_STEPS = re.compile(rf"{_STEP}(?:\.|\Z)", re.DOTALL)
_PATH = re.compile(rf"{_STEP}(?:\.{_STEP})*\Z", re.DOTALL)
# The name of a nested field in a form or a query, such as `promotion[coupon]`. It is a whole path,
# since forms have no other nesting.
_NESTED_NAME = re.compile(r"([^.\[\]\\*]+(?:\[[^\[\]\\]+\])+)((?:\[\])*)\Z")
# A path such as `[].name`: a field of each element of a body that is an array.
_OF_BODY = re.compile(r"(?:\[\])+\.(.+)\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Members:
    """The members of an object with arbitrary keys, such as a map of prices by currency."""

    keys: Keys


@dataclass(frozen=True, slots=True)
class Inside:
    """One nested object. An absent or null object is not converted."""

    keys: Keys


Scope = Keys | Members | Inside
"""One step of the path to the objects to change.

Plain keys lead to an array and select each of its elements. `Members` selects each member of an
object, and `Inside` selects one object. The keys are relative to the previous scope, or to the
root.
"""


class FieldPath(NamedTuple):
    """The path to a field, through the arrays and objects that contain it.

    Attributes:
        elements: The number of `[]` at the end of the path: how many nested arrays in the field
            hold the values. 0 for a path to the field itself.
        members: Whether the path ends in `.*`, as in `prices.*`, and names the members of the
            object in the field.
    """

    scopes: tuple[Scope, ...]
    keys: Keys
    elements: int = 0
    members: bool = False


def parse_path(text: str) -> FieldPath:
    r"""Parse a field path such as `lines[].price`, `prices.*.sum`, `tags[]` or `a.*`.

    `promotion[coupon]` is one key, the name of a nested field in a form. `*` matches any member. A
    backslash escapes a dot, a bracket or a backslash in a key. `\*` is the key `*`.

    The message of its ValueError is for operators.
    """
    if nested := _NESTED_NAME.match(text):
        return FieldPath((), (nested[1],), nested[2].count("[]"))
    if not _PATH.match(text):
        _refuse_elements_of_body(text)
        raise ValueError(
            f"'{text}' is not a field path; write keys joined by dots, and 'key[].field' for a"
            " field of every element of an array"
        )
    scopes: list[Keys | Members] = []
    keys: Keys = ()
    for key, arrays in _STEPS.findall(text):
        if key == "*":
            scopes.append(Members(keys))
            keys = ()
        else:
            keys = (*keys, re.sub(r"\\(.)", r"\1", key, flags=re.DOTALL))
        for _ in range(arrays.count("[]")):
            scopes.append(keys)
            keys = ()
    elements = 0
    while not keys:
        last = scopes.pop()
        if isinstance(last, Members):
            if last.keys and not elements:
                return FieldPath(tuple(scopes), last.keys, members=True)
            raise ValueError(f"'{text}' ends with '*'; name a field of the members")
        keys = last
        elements += 1
    return FieldPath(tuple(scopes), keys, elements)


def parse_scopes(text: str) -> tuple[Scope, ...]:
    """Parse a path to objects such as `items[]`; the message of its ValueError is for operators."""
    if not _PATH.match(text):
        _refuse_elements_of_body(text)
        if text and not text.replace("[]", ""):
            raise ValueError(
                f"'{text}' needs no name: a body that is an array is converted element by element;"
                " for its elements, leave out 'at'"
            )
        raise ValueError(
            f"'{text}' names no objects; write 'key[]' for the elements of an array, 'key.*' for"
            " the members of an object with free keys, and 'key' for one object"
        )
    path = parse_path(f"{text}.x")
    return (*path.scopes, Inside(path.keys[:-1])) if path.keys[1:] else path.scopes


def _refuse_elements_of_body(text: str) -> None:
    found = _OF_BODY.match(text)
    if found and _PATH.match(found[1]):
        raise ValueError(
            f"'{text}' names elements of the body, and a body that is an array is converted"
            f" element by element; write '{found[1]}'"
        )


def spell(key: str) -> str:
    if (match := _NESTED_NAME.match(key)) and not match[2]:
        return key
    return r"\*" if key == "*" else re.sub(r"([.\[\]\\])", r"\\\1", key)


def is_array(scope: Scope) -> bool:
    """Return whether a scope is an array, which PATCH requests replace as a whole (RFC 7396)."""
    return isinstance(scope, tuple)


def keys_of(scope: Scope) -> Keys:
    return scope if isinstance(scope, tuple) else scope.keys


def pointers(scopes: Iterable[Scope]) -> str:
    return "".join(
        pointer(*keys_of(scope)) + ("" if isinstance(scope, Inside) else "/*") for scope in scopes
    )


def pointer(*keys: str | int) -> str:
    return "".join(f"/{str(key).replace('~', '~0').replace('/', '~1')}" for key in keys)


def tokens_of(pointer: str) -> tuple[str, ...]:
    """Return the tokens of a JSON Pointer, which is empty or begins with a slash."""
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:])


def depth_of(scopes: Iterable[Scope], place: Tokens) -> int | None:
    """Return how many leading tokens of a location match the scopes.

    Returns None if the location is not inside an object that the scopes select.
    """
    depth = 0
    for scope in scopes:
        keys = keys_of(scope)
        end = depth + len(keys)
        if place[depth:end] != keys:
            return None
        depth = end
        if not isinstance(scope, Inside):
            kind = int if is_array(scope) else str
            if depth == len(place) or not isinstance(place[depth], kind):
                return None
            depth += 1
    return depth


def common_keys(paths: Sequence[Keys]) -> Keys:
    shared = takewhile(lambda keys: len({*keys}) == 1, zip(*paths, strict=False))
    return tuple(keys[0] for keys in shared)
