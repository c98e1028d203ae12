"""Documents: looking in, and making changed ones without touching the old."""

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.conversion.document import (
    MISSING,
    Document,
    Missing,
    Unconvertible,
    as_is,
    each,
    get,
    kind,
    put,
    refuse,
    remove,
)
from gateway.core.conversion.path import Keys
from tests.gateway.core.conversion.documents import Json, Sealed, jsons, opened, seal, untouched
from tests.gateway.core.world import LAW

Alter = Callable[[Json], Document]


def keys(text: str) -> Keys:
    """Return the keys that dots join; none for an empty text."""
    return tuple(text.split(".")) if text else ()


def fails(at: str, reason: str) -> "pytest.RaisesExc[Unconvertible]":
    """Expect Unconvertible at a JSON Pointer, for a reason."""
    return pytest.RaisesExc(
        Unconvertible, check=lambda error: (error.pointer, error.reason) == (at, reason)
    )


class TestGet:
    """MISSING is what is not there; null is there, and holds nothing."""

    @pytest.mark.parametrize(
        ("document", "path", "found"),
        [
            ({"a": 1}, "a", 1),
            ({"a": None}, "a", None),
            ({"a": {"b": {"c": "x"}}}, "a.b.c", "x"),
            ({"a": {"b": {}}}, "a.b", {}),
            ({"a": [1]}, "a", [1]),
            ([1], "", [1]),
            (None, "", None),
            ({}, "a", MISSING),
            ({"a": {}}, "a.b", MISSING),
            ({"b": {}}, "a.b.c", MISSING),
            ({"a": None}, "a.b", MISSING),
            ({"a": {"b": None}}, "a.b.c", MISSING),
            (None, "a", MISSING),
        ],
    )
    @pytest.mark.parametrize("sealed", [False, True])
    def test_found(self, document: Json, path: str, found: Document, sealed: bool) -> None:
        value = get(seal(document) if sealed else document, keys(path), opened)
        if isinstance(value, dict | list):
            value = json.loads(json.dumps(value, default=lambda inner: json.loads(inner.text)))
        assert value == found
        assert type(value) is type(found)

    @pytest.mark.parametrize(
        ("document", "path", "at", "found"),
        [
            ({"a": "x"}, "a.b", "/a", "a string"),
            ({"a": {"b/": 1}}, "a.b/.c", "/a/b~1", "a number"),
            ({"a": []}, "a.0", "/a", "an array"),
            (True, "a", "", "a boolean"),
        ],
    )
    @pytest.mark.parametrize("sealed", [False, True])
    def test_a_container_that_is_none(
        self, document: Json, path: str, at: str, found: str, sealed: bool
    ) -> None:
        with fails(at, f"expected an object, found {found}"):
            get(seal(document) if sealed else document, keys(path), opened)


class TestPut:
    """A key keeps its place; what is on the way is made."""

    @pytest.mark.parametrize(
        ("document", "path", "after"),
        [
            ({}, "a", {"a": 0}),
            ({}, "a.b.c", {"a": {"b": {"c": 0}}}),
            ({"a": 1, "b": 2}, "a", {"a": 0, "b": 2}),
            ({"a": 1, "b": 2}, "b", {"a": 1, "b": 0}),
            ({"a": 1, "b": 2}, "c", {"a": 1, "b": 2, "c": 0}),
            ({"a": {"b": 2, "y": 3}, "z": 4}, "a.b", {"a": {"b": 0, "y": 3}, "z": 4}),
            ({"a": {"x": 1}, "z": 4}, "a.b.c", {"a": {"x": 1, "b": {"c": 0}}, "z": 4}),
            ({"a": None}, "a", {"a": 0}),
            ({"a": [1]}, "a", {"a": 0}),
            ([1], "", 0),
        ],
    )
    @pytest.mark.parametrize("sealed", [False, True])
    def test_put(self, document: Json, path: str, after: Json, sealed: bool) -> None:
        given = seal(document) if sealed else document
        with untouched(document):
            result = put(given, keys(path), 0, opened)
        assert json.dumps(result, default=lambda inner: json.loads(inner.text)) == json.dumps(after)

    @pytest.mark.parametrize(
        ("document", "path", "at", "found"),
        [
            ({"a": "x"}, "a.b", "/a", "a string"),
            ({"a": None}, "a.b", "/a", "null"),
            ({"a": {"b~": [1]}}, "a.b~.c", "/a/b~0", "an array"),
            (1.5, "a", "", "a number"),
        ],
    )
    def test_a_container_that_is_none(self, document: Json, path: str, at: str, found: str) -> None:
        with untouched(document), fails(at, f"expected an object, found {found}"):
            put(document, keys(path), 0, as_is)

    def test_nothing_beside_it_is_opened_or_copied(self) -> None:
        beside, within = seal([1]), seal({"c": 1})
        result = put({"a": beside, "b": {"c": within}}, ("b", "d"), 0, opened)
        assert isinstance(result, dict)
        assert result["a"] is beside
        assert result["b"]["c"] is within


class TestRemove:
    """With a field go the containers that this empties, and no others."""

    @pytest.mark.parametrize(
        ("document", "path", "after"),
        [
            ({"a": 1}, "a", {}),
            ({"a": None, "b": 1}, "a", {"b": 1}),
            ({"a": {"x": 1}}, "a", {}),
            ({"a": 1, "b": 2, "c": 3}, "b", {"a": 1, "c": 3}),
            ({"a": {"b": 1}, "z": 2}, "a.b", {"z": 2}),
            ({"a": {"b": {"c": 1}}}, "a.b.c", {}),
            ({"a": {"b": {"c": 1}, "x": 2}}, "a.b.c", {"a": {"x": 2}}),
            ({"y": 0, "a": {"x": 2, "b": 1}, "z": 3}, "a.b", {"y": 0, "a": {"x": 2}, "z": 3}),
            ({"a": {}}, "a.b", {"a": {}}),
            ({"a": {"b": {}}}, "a.b.c", {"a": {"b": {}}}),
            ({}, "a", {}),
            ({}, "a.b", {}),
            ({"a": None}, "a.b", {"a": None}),
            ({"a": "x"}, "a.b", {"a": "x"}),
            ({"a": [{"b": 1}]}, "a.b", {"a": [{"b": 1}]}),
            (None, "a", None),
        ],
    )
    @pytest.mark.parametrize("sealed", [False, True])
    def test_remove(self, document: Json, path: str, after: Json, sealed: bool) -> None:
        given = seal(document) if sealed else document
        with untouched(document):
            result = remove(given, keys(path), opened)
        assert json.dumps(result, default=lambda inner: json.loads(inner.text)) == json.dumps(after)
        if after == document:
            assert result is given


def mark(document: Document) -> Document:
    """Change an object so that it shows."""
    assert isinstance(document, dict)
    return {**document, "seen": True}


class TestEach:
    """Every object that the scopes lead to, and what is told where one is none."""

    @pytest.mark.parametrize(
        ("document", "scopes", "after"),
        [
            ({}, [], {"seen": True}),
            ({"a": [{}]}, [], {"a": [{}], "seen": True}),
            ({"a": [{}, {"x": 1}]}, ["a"], {"a": [{"seen": True}, {"x": 1, "seen": True}]}),
            ({"a": []}, ["a"], {"a": []}),
            ({"a": None}, ["a"], {"a": None}),
            ({"x": 1}, ["a"], {"x": 1}),
            ({"d": {"a": [{}], "x": 1}}, ["d.a"], {"d": {"a": [{"seen": True}], "x": 1}}),
            ({"d": {}}, ["d.a"], {"d": {}}),
            ({"d": None}, ["d.a"], {"d": None}),
            (
                {"a": [{"b": [{}]}, {"b": None}, {}]},
                ["a", "b"],
                {"a": [{"b": [{"seen": True}]}, {"b": None}, {}]},
            ),
            ({"a": [[{}], [], None]}, ["a", ""], {"a": [[{"seen": True}], [], None]}),
            (
                {"a": [[{"b": [{}]}]]},
                ["a", "", "b"],
                {"a": [[{"b": [{"seen": True}]}]]},
            ),
        ],
    )
    @pytest.mark.parametrize("sealed", [False, True])
    def test_each(self, document: Json, scopes: list[str], after: Json, sealed: bool) -> None:
        given = seal(document) if sealed else document
        with untouched(document):
            result = each(given, tuple(map(keys, scopes)), mark, opened)
        assert json.dumps(result, default=lambda inner: json.loads(inner.text)) == json.dumps(after)

    @pytest.mark.parametrize(
        ("document", "scopes", "at", "expected", "found"),
        [
            (None, [], "", "an object", "null"),
            ([], [], "", "an object", "an array"),
            ("x", [], "", "an object", "a string"),
            (None, ["a"], "", "an object", "null"),
            (7, ["a"], "", "an object", "a number"),
            ({"a": {}}, ["a"], "/a", "an array", "an object"),
            ({"a": [{}, 1]}, ["a"], "/a/1", "an object", "a number"),
            ({"a": [None]}, ["a"], "/a/0", "an object", "null"),
            ({"a": [None]}, ["a", "b"], "/a/0", "an object", "null"),
            ({"a": [[]]}, ["a"], "/a/0", "an object", "an array"),
            ({"d": []}, ["d.a"], "/d", "an object", "an array"),
            ({"a": [{"b": [{}, True]}]}, ["a", "b"], "/a/0/b/1", "an object", "a boolean"),
            ({"a": [{"b": "x"}]}, ["a", "b"], "/a/0/b", "an array", "a string"),
            ({"a": [{}]}, ["a", ""], "/a/0", "an array", "an object"),
            ({"a": [[], ["x"]]}, ["a", ""], "/a/1/0", "an object", "a string"),
        ],
    )
    @pytest.mark.parametrize("sealed", [False, True])
    def test_what_is_not_what_is_declared(
        self, document: Json, scopes: list[str], at: str, expected: str, found: str, sealed: bool
    ) -> None:
        given = seal(document) if sealed else document
        with untouched(document), fails(at, f"expected {expected}, found {found}"):
            each(given, tuple(map(keys, scopes)), mark, opened)

    def test_a_change_that_fails_is_told_from_the_root(self) -> None:
        def change(document: Document) -> Document:
            if get(document, ("bad",), as_is) is not MISSING:
                refuse("a string", 7, "x")
            return document

        with fails("/a/0/b/1/x", "expected a string, found a number"):
            each({"a": [{"b": [{}, {"bad": 1}]}]}, (("a",), ("b",)), change, as_is)


class TestUnconvertible:
    """The error says where and what, and quotes no value."""

    def test_at_the_root(self) -> None:
        error = Unconvertible("expected an object, found null")
        assert str(error) == "the body: expected an object, found null"
        assert error.pointer == ""

    def test_further_in(self) -> None:
        error = Unconvertible("no", "/c").under("b", 0).under("a/")
        assert (error.pointer, error.reason) == ("/a~1/b/0/c", "no")
        assert str(error) == "/a~1/b/0/c: no"

    @pytest.mark.parametrize(
        ("value", "name"),
        [
            *((None, "null"), (True, "a boolean"), (False, "a boolean"), (0, "a number")),
            *((1.5, "a number"), ("", "a string"), ("1", "a string")),
            *(([], "an array"), ([1], "an array"), ({}, "an object"), ({"a": 1}, "an object")),
        ],
    )
    def test_kinds_are_called_as_json_does(self, value: Document, name: str) -> None:
        assert kind(value) == name

    def test_no_value_is_quoted(self) -> None:
        with fails("/a", "expected an object, found a string"):
            refuse("an object", "secret", "a")


def test_missing_is_one_and_no_json_value() -> None:
    assert isinstance(MISSING, Missing)
    with pytest.raises(TypeError):
        json.dumps(MISSING)


def test_as_is_opens_nothing() -> None:
    value = Sealed("{}")
    assert as_is(value) is value


paths = st.lists(st.sampled_from(["x", "y"]), min_size=1, max_size=3).map(tuple)


@LAW
@given(jsons, paths, st.integers())
def test_what_is_put_is_got_and_what_is_removed_is_missing(
    document: Json, path: Keys, value: int
) -> None:
    with untouched(document):
        try:
            after = put(document, path, value, as_is)
        except Unconvertible as error:
            place = get(document, tuple(error.pointer.split("/")[1:]), as_is)
            assert not isinstance(place, dict)
            return
        assert get(after, path, as_is) == value
        removed = remove(after, path, as_is)
        assert get(removed, path, as_is) is MISSING
        if get(document, path[:1], as_is) is MISSING:
            assert removed == document


@LAW
@given(jsons, paths)
def test_looking_fails_where_a_container_is_none_and_nowhere_else(
    document: Json, path: Keys
) -> None:
    try:
        value = get(document, path, as_is)
    except Unconvertible as error:
        place = get(document, tuple(error.pointer.split("/")[1:]), as_is)
        assert not isinstance(place, dict)
        assert place is not None
    else:
        assert value is MISSING or kind(value)
