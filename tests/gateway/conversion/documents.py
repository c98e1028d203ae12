"""Shared helpers of the conversion tests: JSON documents, sealed documents and scopes."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import strategies as st

from gateway.conversion.chain import BodyConversion
from gateway.conversion.change import Change
from gateway.conversion.changes.default import default
from gateway.conversion.changes.join import join
from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.document import PLAIN, Document, JsonForm, Number
from gateway.conversion.field_path import Keys, Members, Scope, is_array, keys_of, parse_path
from gateway.conversion.unfit import Unfit, UnfitPolicy
from gateway.conversion.version_step import Direction, VersionLink
from gateway.versions.version import Version

Json = Any

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-9, 9)
    | st.floats(allow_nan=False, allow_infinity=False, width=16)
    | st.text(max_size=3)
)
jsons: st.SearchStrategy[Json] = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("xyz"), inner, max_size=2)
    ),
    max_leaves=4,
)
# Fields that no change names. Their values contain keys that changes name at other locations.
unknown: st.SearchStrategy[dict[str, Json]] = st.sampled_from(
    [
        {},
        {"x": None},
        {"y": "B C", "x": 1.5},
        {"z": {"name": "B C", "items": [{"name": "B C"}], "box": {}}},
        {"x": [{"name": {"first": "B", "last": "C"}}, [], {}, None], "z": True, "y": ""},
    ]
)

# Scopes of the objects to change: the root object, or objects in arrays and nested arrays.
SCOPES: dict[str, tuple[Scope, ...]] = {
    "root": (),
    "items[]": (("items",),),
    "data.items[]": (("data", "items"),),
    "a[].b[]": (("a",), ("b",)),
    "a[][]": (("a",), ()),
    "d.a[][].b[]": (("d", "a"), (), ("b",)),
    "p.*": (Members(("p",)),),
    "a[].p.*[]": (("a",), Members(("p",)), ()),
    "p.*.*": (Members(("p",)), Members(())),
}


@st.composite
def mixed(draw: st.DrawFn, *fields: tuple[str, Json]) -> dict[str, Json]:
    return dict(draw(st.permutations([*fields, *draw(unknown).items()])))


@st.composite
def documents(draw: st.DrawFn, scopes: tuple[Scope, ...], leaves: st.SearchStrategy[Json]) -> Json:
    """Return a document with the leaves at the end of the scopes.

    Arrays may be absent or null, and elements may be null.
    """
    if not scopes:
        return draw(leaves)
    keys, inner = keys_of(scopes[0]), scopes[1:]
    array: Json = draw(
        st.lists(documents(inner, leaves), max_size=2)
        | st.lists(documents(inner, leaves) | st.none(), min_size=1, max_size=2)
        | st.none()
    )
    if array is not None and not is_array(scopes[0]):
        array = dict(zip(["EUR", "x.y"], array, strict=False))
    if not keys:
        return array
    if draw(st.integers(0, 9)) == 0:
        return draw(unknown)
    document = array
    for key in reversed(keys):
        document = draw(mixed((key, document)))
    return document


def objects(document: Json, scopes: tuple[Scope, ...]) -> Iterator[dict[str, Json]]:
    if not scopes or document is None:
        yield from () if document is None else (document,)
        return
    for key in keys_of(scopes[0]):
        document = document.get(key, {})
    for element in (document or {}).values() if not is_array(scopes[0]) else document or ():
        yield from objects(element, scopes[1:])


@dataclass(frozen=True)
class Sealed:
    text: str


def seal(value: Json) -> Sealed:
    return Sealed(json.dumps(value))


def opened(value: Document) -> Document:
    """Parse a sealed value one level deep."""
    if not isinstance(value, Sealed):
        return value
    parsed = json.loads(value.text, parse_int=Number, parse_float=Number)
    if isinstance(parsed, dict):
        fields = json.loads(value.text)
        return {key: seal(inner) for key, inner in fields.items()}
    if isinstance(parsed, list):
        return [seal(inner) for inner in json.loads(value.text)]
    return parsed


def unsealed(value: Document) -> Json:
    if isinstance(value, Sealed):
        return json.loads(value.text)
    if isinstance(value, dict):
        return {key: unsealed(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [unsealed(inner) for inner in value]
    return value


SEALED = JsonForm(
    open=opened,
    close=lambda value: seal(unsealed(value)),
    digits=lambda value: found.digits if isinstance(found := opened(value), Number) else None,
    number=Sealed,
    parse=lambda value: unsealed(value),
    take=seal,
)
"""The form of sealed documents: only values that a change reads are parsed."""


def up(change: Change | tuple[Change, ...], document: Document, form: JsonForm = PLAIN) -> Document:
    return _conversion(change, Direction.UP).convert(document, form)


def down(
    change: Change | tuple[Change, ...], document: Document, form: JsonForm = PLAIN
) -> Document:
    return _conversion(change, Direction.DOWN).convert(document, form)


def _conversion(change: Change | tuple[Change, ...], direction: Direction) -> BodyConversion:
    changes = change if isinstance(change, tuple) else (change,)
    return BodyConversion((VersionLink(Version(1, "1"), Version(2, "2"), changes),), direction)


@contextmanager
def untouched(*documents: Json) -> Iterator[None]:
    """Check that the `with` block alters neither the documents nor the order of their keys."""
    before = json.dumps(documents)
    copies = deepcopy(documents)
    yield
    assert documents == copies
    assert json.dumps(documents) == before


def fails(at: str, reason: str) -> "pytest.RaisesExc[ConversionError]":
    return pytest.RaisesExc(
        ConversionError, check=lambda error: (error.pointer, error.reason) == (at, reason)
    )


def join_at(
    parts: str,
    into: str,
    separator: str = " ",
    missing: str | None = "",
    optional: tuple[int, ...] = (),
) -> Change:
    paths = [parse_path(part) for part in parts.split()]
    whole = parse_path(into)
    assert all(path.scopes == whole.scopes for path in paths)
    keys = tuple(path.keys for path in paths)
    return join(whole.scopes, keys, whole.keys, separator, missing, optional)


def default_at(field: str, value: Document) -> Change:
    path = parse_path(field)
    return default(path.scopes, path.keys, value)


def text(document: Document) -> str:
    return json.dumps(document)


ABSENT: Any = object()


def fields(keys: Keys, value: Json) -> dict[str, Json]:
    return {keys[0]: fields(keys[1:], value) if keys[1:] else value}


def merged(*parts: dict[str, Json]) -> dict[str, Json]:
    result: dict[str, Json] = {}
    for part in parts:
        for key, value in part.items():
            known = result.get(key)
            result[key] = merged(known, value) if isinstance(known, dict) else value
    return result


def both(change: Change, document: Json, upwards: bool) -> Json:
    """Convert a document, and check that its parsed and sealed forms give the same result."""
    way = up if upwards else down
    with untouched(document):
        result = way(change, document)
    assert json.dumps(unsealed(way(change, seal(document), SEALED))) == json.dumps(result)
    return result


def spelt(change: Change, value: str, *, upwards: bool) -> str:
    fields = {"f": Sealed(value)}
    changed = (up if upwards else down)(change, fields, _OPEN)
    assert isinstance(changed, dict)
    result = changed["f"]
    return result.text if isinstance(result, Sealed) else json.dumps(result)


def _open(value: object) -> object:
    if isinstance(value, Sealed) and value.text[0] in "-0123456789":
        return Number(value.text)
    return SEALED.open(value)


def _digits(value: object) -> str | None:
    opened = _open(value)
    return opened.digits if isinstance(opened, Number) else None


_OPEN = JsonForm(_open, lambda fields: fields, _digits, SEALED.number, SEALED.parse, SEALED.take)


KEEP = UnfitPolicy(Unfit.KEEP, Unfit.REFUSE, "a change")
OMIT = UnfitPolicy(Unfit.OMIT, Unfit.OMIT, "a change")


def keeping(*changes: Change) -> tuple[Change, ...]:
    return tuple(replace(change, unfit=KEEP) for change in changes)
