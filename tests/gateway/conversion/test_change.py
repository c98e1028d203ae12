"""Changes: the laws that hold for any document, inverses, and changes of elements."""

import json
from fractions import Fraction
from importlib import import_module
from pkgutil import walk_packages

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.conversion import changes
from gateway.conversion.change import ELEMENT, Change, ChangeSequence, Elements, Inverse
from gateway.conversion.changes.case import CaseRewriting, KeyCase, WordCase
from gateway.conversion.changes.entries import Entries
from gateway.conversion.changes.envelope import Envelope
from gateway.conversion.changes.flatten import Flatten
from gateway.conversion.changes.invert import Invert
from gateway.conversion.changes.join_list import JoinList, JoinPairs
from gateway.conversion.changes.kept import Kept
from gateway.conversion.changes.keys import FreeKeys
from gateway.conversion.changes.link import Link
from gateway.conversion.changes.map import Map
from gateway.conversion.changes.money import Money, MoneyByCurrency
from gateway.conversion.changes.multiply import Multiply, Product
from gateway.conversion.changes.omit_null import OmitNull
from gateway.conversion.changes.python import PythonChange
from gateway.conversion.changes.rename import Rename
from gateway.conversion.changes.round import Round
from gateway.conversion.changes.spread import Spread
from gateway.conversion.changes.type import Retype, Scale
from gateway.conversion.changes.use import GroupUse
from gateway.conversion.changes.value_rewrite import ValueRewrite
from gateway.conversion.changes.wrap import Nothing, Wrap
from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.document import MISSING, PLAIN
from gateway.conversion.field_path import Keys
from gateway.conversion.scalars import Type
from tests.gateway.conversion.documents import (
    SEALED,
    Json,
    default,
    down,
    fails,
    join,
    seal,
    text,
    unsealed,
    untouched,
    up,
)
from tests.gateway.world import LAW

TO_SNAKE = CaseRewriting(WordCase.CAMEL, WordCase.SNAKE)
TO_CAMEL = CaseRewriting(WordCase.SNAKE, WordCase.CAMEL)
# One of each, with what it is for the body of a PATCH request.
IN_PATCHES: list[tuple[Change, Change]] = [
    (change, change)
    for change in (
        Rename((), ("a",), ("b",)),
        Map((), ("a",), {}, {}),
        Retype((), ("a",), Type.TEXT, Type.NUMBER),
        Scale((), ("a",), 2, Type.TEXT),
        Round((), ("a",), 2),
        Multiply((), ("a",), Product(Fraction(1, 60)), Product(Fraction(60))),
        Money((), ("c",), (), ("a",), Type.TEXT),
        MoneyByCurrency((), ("a",), Type.TEXT),
        Invert((), ("a",)),
        ValueRewrite((), ("a",), TO_CAMEL, TO_SNAKE),
        KeyCase((), None, TO_CAMEL, TO_SNAKE),
        FreeKeys((), ("m",), TO_CAMEL, TO_SNAKE),
        Entries((), ("m",), "k"),
        Link((), ("a",)),
        OmitNull((("items",),), ("a",)),
        Wrap((), ("a",)),
        join("a b", "c"),
        default("items[].a", 1),
        PythonChange((("items",),), ("a",), json.dumps, json.dumps),
        Envelope((), ("a",), ("b",)),
        JoinList((), ("a",), ","),
        JoinPairs((), ("a",), ";", "="),
        Flatten((("items",),), ("a",), "x_"),
        Wrap((("items",),), ("a",), empty=Nothing.ABSENT),
        Spread((), ("a",), (("i",),), ("a",)),
        GroupUse("a", ((("items",),),), {}),
        default("m.*.a[].b", 1),
        Kept(Invert((), ("a",))),
    )
] + [
    (default("a", 1), default("a", MISSING)),
    (Wrap((), ("a",), empty=Nothing.ABSENT), Wrap((), ("a",))),
    (Flatten((), ("a",), "x_", empty={}), Flatten((), ("a",), "x_", in_patch=True)),
    (OmitNull((), ("a",)), OmitNull((), ("a",), in_patch=True)),
    (
        PythonChange((), ("a",), json.dumps, json.dumps),
        PythonChange((), ("a",), json.dumps, json.dumps, in_patch=True),
    ),
    (GroupUse("a", ((),), {}), GroupUse("a", ((),), {}, in_patch=True)),
    (default("m.*.a", 1), default("m.*.a", MISSING)),
    (Inverse(default("a", 1)), Inverse(default("a", MISSING))),
    (
        ChangeSequence((Rename((), ("a",), ("b",)), default("a", 1))),
        ChangeSequence((Rename((), ("a",), ("b",)), default("a", MISSING))),
    ),
]


@pytest.mark.parametrize(("change", "in_patch"), IN_PATCHES)
def test_each_change_has_its_form_for_patches(change: Change, in_patch: Change) -> None:
    assert change.for_patch() == in_patch


def test_every_change_has_an_example_in_patches() -> None:
    found = {
        kind
        for module in walk_packages(changes.__path__, f"{changes.__name__}.")
        for kind in vars(import_module(module.name)).values()
        if isinstance(kind, type) and kind.__module__ == module.name and hasattr(kind, "touches")
    }
    assert found == {type(change) for change, _ in IN_PATCHES} - {Inverse, ChangeSequence}


# Any JSON at all, with the keys that changes look for at the wrong places as well.
KEYS = ["name", "first", "last", "items", "x"]
anything: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers(0, 9) | st.sampled_from(["", " ", "B", "B C"]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4)
    ),
    max_leaves=8,
)
CHANGES: list[Change] = [
    join("name.first name.last", "name"),
    join("first last", "name"),
    join("items[].name.first items[].name.last", "items[].name"),
    join("items[][].first items[][].last", "items[][].name"),
    join("items[].items[].first items[].items[].last", "items[].items[].name"),
    Inverse(join("first name.last", "name", "-")),
    default("first.last", {"name": 1}),
    default("items[].name", None),
    default("items[].items[].first.last", 1),
]


@LAW
@given(anything, st.sampled_from(CHANGES), st.booleans())
def test_any_document_is_converted_or_refused_and_never_half(
    document: Json, change: Change, upwards: bool
) -> None:
    way = up if upwards else down
    outcomes: list[Json] = []
    for value, form in ((document, PLAIN), (seal(document), SEALED)):
        with untouched(document):
            try:
                outcomes.append(text(unsealed(way(change, value, form))))
            except ConversionError as error:
                outcomes.append((error.pointer, error.reason))
    assert outcomes[0] == outcomes[1]


TO_TEXT = Retype((), ELEMENT, Type.NUMBER, Type.TEXT)


def elements(array: Keys = ("a",), depth: int = 1, scopes: tuple[Keys, ...] = ()) -> Elements:
    """Declare that the older version has texts where the newer one has numbers."""
    return Elements(scopes, array, depth, TO_TEXT)


def test_an_element_is_refused_at_its_place() -> None:
    with fails("/b", "expected a number, found a string"):
        down(elements((), depth=0), {"a": 1, "b": "2"})
    with fails("/a/x/1", "expected a number, found a string"):
        down(Elements((), ("a",), 0, elements(ELEMENT)), {"a": {"x": [1, "2"]}})
    with fails("/a/1", "expected a number, found a string"):
        down(elements(), {"a": [1, "2"]})
    with fails("/a/0/1", "expected a number, found an object"):
        down(elements(depth=2), {"a": [[1, {}]]})


def test_a_member_is_refused_at_its_place() -> None:
    members = elements(("m", "a"), 0)
    with fails("/m/a/x", "expected a number, found a string"):
        down(members, {"m": {"a": {"y": 1, "x": "2"}}})
    with fails("/m/a", "expected an object, found an array"):
        down(members, {"m": {"a": [1]}})
    assert members.origin(("m", "a", "x"), upwards=True) == ("m", "a", "x")
