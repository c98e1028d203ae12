"""Conversion errors name a location in the original document."""

import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from gateway.conversion.chain import BodyConversion
from gateway.conversion.change import (
    ELEMENT,
    Change,
    GroupUse,
    ValueRewrite,
    elements,
    inverse,
    sequence,
    value_change,
    whole_body,
)
from gateway.conversion.changes.case import key_case, rewrite_case
from gateway.conversion.changes.default import default
from gateway.conversion.changes.envelope import envelope
from gateway.conversion.changes.flatten import flatten
from gateway.conversion.changes.join import join
from gateway.conversion.changes.join_list import join_list
from gateway.conversion.changes.money import money
from gateway.conversion.changes.omit_null import omit_null
from gateway.conversion.changes.python import call_python
from gateway.conversion.changes.rename import rename
from gateway.conversion.changes.spread import spread
from gateway.conversion.changes.to_header import HeaderPlace, carry
from gateway.conversion.changes.type import retype
from gateway.conversion.changes.wrap import wrap
from gateway.conversion.conversion_error import (
    Beside,
    ConversionError,
    ErrorPlace,
    is_within,
    moved_back,
    same_place,
)
from gateway.conversion.document import PLAIN, JsonForm, JsonObject, within
from gateway.conversion.field_path import Inside, Keys, Members, Scope, Tokens
from gateway.conversion.scalars import Type
from gateway.conversion.steps import BODY
from gateway.conversion.version_step import Direction, VersionLink
from gateway.versions.version import Version
from tests.gateway.conversion.documents import SEALED, Json, seal, up
from tests.gateway.world import LAW

BAD = "bad"


def refusing(field: Keys) -> Change:
    """Return a change that refuses a value with BAD in a string or key at any depth."""

    def refuse(fields: JsonObject, form: JsonForm) -> None:
        found = place_of(form.parse(fields[field[0]]))
        if found is not None:
            raise ConversionError("bad", (*field, *found))

    rewrite = ValueRewrite(lambda _: refuse, lambda flat, _: flat)
    return value_change((), field, rewrite, rewrite)


REFUSING = whole_body(refusing(BODY))


def place_of(value: Json) -> Tokens | None:
    if isinstance(value, str):
        return () if BAD in value else None
    inner: Iterator[tuple[Any, Json]] = iter(())
    if isinstance(value, dict):
        inner = iter(value.items())
    elif isinstance(value, list):
        inner = iter(enumerate(value))
    for key, each in inner:
        found = place_of(each)
        if found is not None:
            return (key, *found)
    return None


def at(document: Json, place: Tokens) -> Json:
    for token in place:
        document = document[token]
    return document


def spots(
    value: Json, scopes: tuple[Scope, ...] = (), keys: Keys = ()
) -> Iterator[tuple[tuple[Scope, ...], Keys, Json]]:
    for key, inner in value.items():
        here = (*keys, key)
        yield scopes, here, inner
        if isinstance(inner, dict):
            yield from spots(inner, scopes, here)
            yield from spots(inner, (*scopes, Inside(here)))
            if all(isinstance(each, dict) for each in inner.values()):
                for each in inner.values():
                    yield from spots(each, (*scopes, Members(here)))
        elif isinstance(inner, list) and all(isinstance(each, dict) for each in inner):
            for each in inner:
                yield from spots(each, (*scopes, here))


texts = st.sampled_from(["ok", "1", "a b", "c,d", ""])
values: st.SearchStrategy[Json] = st.recursive(
    texts | st.lists(texts, max_size=2) | st.none(),
    lambda inner: (
        st.dictionaries(st.sampled_from("abcd"), inner, max_size=3)
        | st.lists(st.dictionaries(st.sampled_from("abcd"), inner, max_size=2), max_size=3)
    ),
    max_leaves=6,
)
bodies = st.dictionaries(st.sampled_from("abcd"), values, min_size=1, max_size=4)
CASES = rewrite_case("snake", "camel"), rewrite_case("camel", "snake")


@st.composite
def planted(draw: st.DrawFn) -> Json:
    body = draw(bodies)
    leaves = [*_texts(body)]
    holder, key = draw(st.sampled_from(leaves)) if leaves else (body, "a")
    holder[key] = draw(st.sampled_from([BAD, f"a {BAD}", f"{BAD},a b"]))
    return [draw(bodies), body] if draw(st.integers(0, 4)) == 0 else body


def _texts(value: Json) -> Iterator[tuple[Any, Any]]:
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(inner, str):
            yield value, key
        elif inner is not None:
            yield from _texts(inner)


Spot = tuple[tuple[Scope, ...], Keys, Json]
"""The scopes and keys of a field, and its value."""


def renamed(draw: st.DrawFn, spot: Spot, other: Keys) -> Change:
    scopes, keys, _ = spot
    move = rename(scopes, other, keys)
    return sequence(*(move, default(scopes, ("new",), "x"))) if draw(st.booleans()) else move


def wrapped(draw: st.DrawFn, spot: Spot, other: Keys) -> Change:
    change = wrap(spot[0], spot[1])
    return change if isinstance(spot[2], list) else inverse(change)


def enveloped(draw: st.DrawFn, spot: Spot, other: Keys) -> Change:
    scopes, keys, value = spot
    if isinstance(value, dict) and value:
        return envelope(scopes, keys, (draw(st.sampled_from([*value])),))
    count = ("n",) if isinstance(value, list) else None
    return inverse(envelope(scopes, keys, draw(st.sampled_from([("e",), ("e", "f")])), count))


def of_elements(draw: st.DrawFn, spot: Spot, other: Keys) -> Change:
    wraps = draw(st.booleans())
    element: Change = wrap((), ELEMENT) if wraps else envelope((), ELEMENT, ("e",))
    return elements(*spot[:2], 1, inverse(element))


def written_otherwise(draw: st.DrawFn, spot: Spot, other: Keys) -> Change:
    field = draw(st.sampled_from([spot[1], None]))
    return key_case(spot[0], field, *CASES, but=frozenset({"a"}))


def filled(draw: st.DrawFn, spot: Spot, other: Keys) -> Change:
    added: list[Change] = [default(spot[0], ("w", "v"), "x"), omit_null(spot[0], ("w",))]
    return draw(st.sampled_from(added))


def grouped(draw: st.DrawFn, spot: Spot, other: Keys) -> Change:
    scopes, keys, _ = spot
    inner = (rename((), other[-1:], keys[-1:]), retype((), other[-1:], Type.NUMBER, Type.TEXT))
    place = (*scopes, Inside(keys[:-1])) if keys[1:] else scopes
    return GroupUse("g", (place,), {"g": inner[: draw(st.integers(1, 2))]}).compile()


def retyped(draw: st.DrawFn, spot: Spot, other: Keys) -> Change:
    return retype(*spot[:2], Type.NUMBER, Type.TEXT)


def listed(draw: st.DrawFn, spot: Spot, other: Keys) -> Change:
    change = join_list(*spot[:2], ",")
    return change if isinstance(spot[2], str) else inverse(change)


def joined(draw: st.DrawFn, spot: Spot, other: Keys) -> Change:
    scopes, keys, value = spot
    if isinstance(value, dict):
        return inverse(join(scopes, ((*keys, "a"), (*keys, "b")), keys, " "))
    return join(scopes, (("p",), ("q", "r")), keys, " ")


def computed(draw: st.DrawFn, spot: Spot, other: Keys) -> Change:
    return call_python(spot[0], draw(st.sampled_from([spot[1], None])), _same, _same)


def spread_at(draw: st.DrawFn, spot: Spot, other: Keys) -> Change:
    change = spread(spot[0], other[:1], (spot[1],), ("a",), keep=draw(st.booleans()))
    return inverse(change) if draw(st.booleans()) else change


def flattened(draw: st.DrawFn, spot: Spot, other: Keys) -> Change:
    scopes, keys, value = spot
    if isinstance(value, dict) and value:
        return inverse(flatten(scopes, keys, draw(st.sampled_from(["x_", "a"]))))
    return flatten(scopes, (*keys[:-1], "o"), keys[-1], frozenset({"b"}))


KEEPING = (
    flattened,
    renamed,
    renamed,
    wrapped,
    enveloped,
    of_elements,
    written_otherwise,
    filled,
    grouped,
    retyped,
)
MAKING = listed, joined, computed, spread_at


@st.composite
def changes(draw: st.DrawFn, document: Json) -> tuple[Change, bool]:
    """Return a change that may affect a document, and whether it keeps all values."""
    root = document[-1] if isinstance(document, list) and document else document
    found = [*spots(root)] if isinstance(root, dict) else []
    if not found or draw(st.integers(0, 9)) == 0:
        made = envelope((), BODY, draw(st.sampled_from([("e",), ("e", "f")])))
        opened = isinstance(document, dict) and "e" in document and draw(st.booleans())
        return whole_body(made if opened else inverse(made)), True
    spot = draw(st.sampled_from(found))
    keys = spot[1]
    # A new name must not be in use, or the location would be ambiguous.
    names = [name for name in ("n", "m", "z", "a") if f'"{name}"' not in json.dumps(document)]
    name = draw(st.sampled_from(names or ["unique"]))
    others = [(name,), (name, "m"), ("b", name), (*keys[:-1], name), (*keys, name)]
    make = draw(st.sampled_from([*KEEPING, *MAKING]))
    return make(draw, spot, draw(st.sampled_from(others))), make in KEEPING


def _same(value: Json) -> Json:
    return value


@st.composite
def refused(draw: st.DrawFn) -> tuple[Json, list[Change], bool]:
    """Return a document, changes that refuse its BAD, and whether they preserve other values."""
    given = document = draw(planted())
    chain: list[Change] = []
    exact = True
    for _ in range(draw(st.integers(0, 6))):
        change, keeps = draw(changes(document))
        try:
            made = up(change, document)
        except ConversionError as error:
            place = within(error, document, PLAIN).place
            assert isinstance(place, tuple)
            refuses_bad = (change.of_value or change.group) and error.reason.startswith("exp")
            if refuses_bad and isinstance(at(document, place), str) and BAD in at(document, place):
                event("refused by a change")
                return given, [*chain, change], exact
            continue
        if place_of(made) is None:
            continue  # the change has removed the value
        chain, document, exact = [*chain, change], made, exact and keeps
    return given, [*chain, REFUSING], exact


def conversion(chain: list[Change], direction: Direction, cut: int) -> BodyConversion:
    """Return a conversion with two links. A downgrade has the inverted changes."""
    parts, versions = (
        [chain[:cut], chain[cut:]],
        [Version(1, "1"), Version(2, "2"), Version(3, "3")],
    )
    if direction is Direction.DOWN:
        parts = [[inverse(change) for change in reversed(part)] for part in parts]
        versions.reverse()
    links: list[VersionLink] = []
    for pair, part in zip(pairwise(versions), parts, strict=True):
        older, newer = sorted(pair)
        links.append(VersionLink(older, newer, tuple(part)))
    return BodyConversion(tuple(links), direction)


@settings(LAW, max_examples=150)
@given(refused(), st.sampled_from(Direction), st.integers(0, 6), st.booleans())
def test_an_error_names_the_location_of_the_value_in_the_original_document(
    case: tuple[Json, list[Change], bool], direction: Direction, cut: int, sealed: bool
) -> None:
    given, chain, exact = case
    document, form = (seal(given), SEALED) if sealed else (given, PLAIN)
    with pytest.raises(ConversionError) as caught:
        conversion(chain, direction, cut).convert(document, form)
    place = within(caught.value, document, form).place
    assert isinstance(place, tuple)
    found = at(given, place)
    event("exact" if exact else "nearest")
    if exact:
        assert isinstance(found, str)
        assert BAD in found
    else:
        assert place_of(found) is not None


def test_a_location_outside_the_body_has_no_json_pointer() -> None:
    error = ConversionError("no", Beside("link", ("next",)), "why")
    assert (str(error), error.pointer, error.cause) == ("the link 'next': no", "", "why")
    assert str(ConversionError("no", Beside("path"))) == "the path: no"
    assert str(Beside("header field", ("A", "B"))) == "the header fields 'A', 'B'"
    assert error.moved(lambda _: ("a", "b/")).pointer == "/a/b~1"
    assert str(error.under("a", 0)) == str(within(error, {}, PLAIN)) == str(error)
    assert moved_back(error.place, (), ("a",)) == error.place
    assert not is_within(error.place, ())
    assert same_place(error.place) == error.place


@pytest.mark.parametrize(
    ("place", "misfit"),
    [
        (("a", 0, 1, "b.c"), {"field": "a[0][1].b.c", "pointer": "/a/0/1/b.c", "reason": "bad"}),
        ((0, "a"), {"field": "[0].a", "pointer": "/0/a", "reason": "bad"}),
        ((), None),
        (Beside("query parameter", ("a", "b")), {"field": "a, b", "reason": "bad"}),
        (Beside("path"), None),
    ],
)
def test_an_error_has_the_name_and_pointer_of_its_location(
    place: ErrorPlace, misfit: dict[str, str] | None
) -> None:
    assert ConversionError("bad", place).misfit == misfit


def test_an_error_for_an_occupied_location_names_both_fields() -> None:
    error = ConversionError("is there", ("b", 0), rival=("a",)).under("m")
    assert str(error) == "/m/b/0: is there, and /m/a would become it"
    assert str(within(error, {"m": {"b": 1}}, PLAIN)) == ("/m/b: is there, and /m would become it")


@pytest.mark.parametrize(
    ("place", "found"),
    [
        (("a", 1, "b"), ("a", 1, "b")),
        (("a", 2), ("a",)),
        (("a", "1"), ("a",)),
        (("a", 1, "x", "y"), ("a", 1)),
        ((0,), ()),
        ((), ()),
    ],
)
def test_an_error_without_an_existing_location_names_the_nearest_existing_parent(
    place: Tokens, found: Tokens
) -> None:
    document = {"a": [1, {"b": "x"}]}
    for value, form in ((document, PLAIN), (seal(document), SEALED)):
        assert within(ConversionError("no", place), value, form).place == found
    missing = within(ConversionError("no", ("a", 1, "x", "y"), is_missing=True), document, PLAIN)
    assert missing.place == ("a", 1, "x")
    assert within(ConversionError("no", ("a", 2), is_missing=True), document, PLAIN).place == ("a",)


HEADER, FIELD = Beside("header field", ("X-A",)), ("", "m", "a")


@pytest.mark.parametrize(
    ("change", "place", "up", "down"),
    [
        (rename((), ("n", "m"), ("a",)), ("n", "m", 0), ("a", 0), ("n",)),
        (rename((), ("n", "m"), ("a",)), ("a", 0), (), ("n", "m", 0)),
        (rename((), ("n", "m"), ("a",)), ("n",), ("n",), ("n",)),
        (rename((), ("a", "b"), ("a",)), ("a",), ("a",), ("a", "b")),
        (inverse(rename((), ("n",), ("a",))), ("n", "x"), (), ("a", "x")),
        (wrap((), ("a",)), ("a", 0), ("a", 0, 0), ("a",)),
        (envelope((), ("a",), ("e", "f"), ("n",)), ("a", "n"), ("a", "e", "f", "n"), ("a",)),
        (envelope((), ("a",), ("e", "f")), ("a", "e", "f", 1), ("a", *"efef", 1), ("a", 1)),
        (envelope((), ("a",), ("e",)), ("b",), ("b",), ("b",)),
        (join_list((), ("a",), ","), ("a", 1), ("a",), ("a",)),
        (join((), (("b",), ("c", "d")), ("a",), " "), ("c", "d"), ("a",), ("c", "d")),
        (join((), (("m", "b"), ("m", "d")), ("a",), " "), ("a",), (), ("m",)),
        (join((), (("a", "b"), ("a", "d")), ("a",), " "), ("a", "b"), ("a",), ("a",)),
        (join((), (("a", "b"), ("a", "d")), ("a",), " "), ("a", "d"), ("a",), ("a",)),
        (join((), (("a", "b"), ("a", "d")), ("a",), " "), ("a", "x"), ("a",), ("a",)),
        (call_python((), ("a",), str, str), ("a", "b", 0), ("a",), ("a",)),
        (call_python((), None, str, str), ("a", "b", 0), (), ()),
        (
            spread((), ("c",), (("i",), Inside(("p",))), ("c",)),
            ("i", 3, "p", "c", 1),
            None,
            ("c", 1),
        ),
        (spread((), ("c",), (("i",),), ("c",)), ("i", 3, "d"), None, None),
        (spread((), ("c",), (Members(("i",)),), ("c",)), ("i", 3, "c"), None, None),
        (spread((), ("c",), (Members(("i",)),), ("c",)), ("i",), None, None),
        (key_case((), None, *CASES), ("aB", 1, "cD"), ("a_b", 1, "c_d"), ()),
        (key_case((), ("f",), *CASES), ("aB",), ("aB",), ("aB",)),
        (key_case((), ("f",), *CASES), ("f", "a_b", "c"), ("f",), ("f", "aB", "c")),
        (
            key_case((), None, *CASES, but=frozenset({"aB"})),
            ("aB", "cD", "eF"),
            ("a_b", "cD", "eF"),
            (),
        ),
        (key_case((), None, *CASES, but=frozenset({"aB"})), ("a_b", "c_d"), (), ("aB", "c_d")),
        (
            elements((), ("a",), 2, wrap((), ELEMENT)),
            ("a", 1, 2, 0),
            ("a", 1, 2, 0, 0),
            ("a", 1, 2),
        ),
        (elements((), ("a",), 1, wrap((), ELEMENT)), ("a",), ("a",), ("a",)),
        (omit_null((), ("a",)), ("a",), ("a",), ("a",)),
        (default((), ("a",), 1), ("a",), ("a",), ("a",)),
        (money((), ("c",), (), ("a",), Type.TEXT), ("a",), ("a",), ("a",)),
        (whole_body(envelope((), BODY, ("d",))), ("", "d"), ("", "d", "d"), ("",)),
        (carry(FIELD[1:], HeaderPlace("X-A")), (*FIELD, "x"), HEADER, (*FIELD, "x")),
        (carry(FIELD[1:], HeaderPlace("X-A")), HEADER, HEADER, FIELD),
        (
            sequence(*(rename((), ("b",), ("a",)), rename((), ("c",), ("b",)))),
            ("c", 0),
            ("a", 0),
            (),
        ),
    ],
)
def test_a_change_maps_a_location_back_to_its_input(
    change: Change, place: ErrorPlace, up: ErrorPlace | None, down: ErrorPlace | None
) -> None:
    assert change.up.origin(place) == (place if up is None else up)
    assert change.down.origin(place) == (place if down is None else down)
    beside = Beside("query parameter", ("q",))
    assert change.up.origin(beside) == change.down.origin(beside) == beside


def test_a_conversion_maps_a_location_back_to_the_original_document() -> None:
    group = GroupUse("g", ((("i",),),), {"g": (rename((), ("b",), ("a",)),)}).compile()
    inside = (Inside(("m",)), Members(("p",)))
    chain: list[Change] = [
        group,
        whole_body(inverse(envelope((), BODY, ("data",)))),
        rename(inside, ("b",), ("a",)),
    ]
    made = conversion(chain, Direction.UP, 1)
    assert made.origin(("data", "i", 2, "b")) == ("i", 2, "a")
    assert made.origin(("m", "p", "x", "b")) == ()
    assert conversion([rename(inside, ("b",), ("a",))], Direction.UP, 0).origin(
        (0, "m", "p", "x", "b", 1)
    ) == (0, "m", "p", "x", "a", 1)
    beside = Beside("query parameter", ("q",))
    assert made.origin(beside) == beside


def test_the_error_of_a_sequence_names_the_location_in_its_input() -> None:
    refusing = retype((), ("b",), Type.NUMBER, Type.TEXT)
    change = sequence(*(rename((), ("b",), ("a",)), refusing))
    turned = sequence(*(inverse(refusing), inverse(rename((), ("b",), ("a",)))))
    with pytest.raises(ConversionError, match=r"^/a: expected a string"):
        change.up.step({"a": 1}, PLAIN)
    with pytest.raises(ConversionError, match=r"^/a: expected a string"):
        turned.down.step({"a": 1}, PLAIN)
