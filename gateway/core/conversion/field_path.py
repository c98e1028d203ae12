"""Field paths: how changes name places in a document."""

import re
from dataclasses import dataclass

Keys = tuple[str, ...]

_STEP = r"((?:[^.\[\]\\]|\\.)+)((?:\[\])*)"
_STEPS = re.compile(rf"{_STEP}(?:\.|\Z)", re.DOTALL)
_PATH = re.compile(rf"{_STEP}(?:\.{_STEP})*\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class FieldPath:
    """A place: keys from the root, through the elements of every array on the way.

    Attributes:
        scopes: for each array on the way, the keys that lead to it from the one before.
        keys: the keys that lead to the field from the innermost element, or from the root.
    """

    scopes: tuple[Keys, ...]
    keys: Keys


def parse_path(text: str) -> FieldPath:
    r"""Return the path that `text` spells: `name.firstName`, `orders[].lines[].price`.

    A dot, bracket or backslash that belongs to a key is written after a backslash.

    Raises:
        ValueError: with a sentence for the operator, when it is not a path to a field.
    """
    if not _PATH.match(text):
        raise ValueError(
            f"'{text}' is not a field path; write keys joined by dots, and 'key[].field' for a"
            " field of every element of an array"
        )
    scopes: list[Keys] = []
    keys: Keys = ()
    for key, arrays in _STEPS.findall(text):
        keys = (*keys, re.sub(r"\\(.)", r"\1", key, flags=re.DOTALL))
        for _ in range(arrays.count("[]")):
            scopes.append(keys)
            keys = ()
    if not keys:
        raise ValueError(f"'{text}' ends in an array; name a field of its elements")
    return FieldPath(tuple(scopes), keys)


def pointer(*keys: str | int) -> str:
    """Return the JSON Pointer (RFC 6901) that leads along `keys`."""
    return "".join(f"/{str(key).replace('~', '~0').replace('/', '~1')}" for key in keys)
