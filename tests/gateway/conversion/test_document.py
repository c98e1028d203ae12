"""Documents: looking in, and changing in place what is open."""

import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.document import (
    MISSING,
    PLAIN,
    Document,
    JsonForm,
    JsonObject,
    Missing,
    Number,
    get,
    kind,
    put,
    reach,
    refuse,
    take,
)
from gateway.conversion.field_path import Keys
from tests.gateway.conversion.documents import (
    SEALED,
    Json,
    fails,
    jsons,
    seal,
    unsealed,
    untouched,
)
from tests.gateway.world import LAW


def keys(text: str) -> Keys:
    """Return the keys that dots join."""
    return tuple(text.split("."))


def held(document: Json, sealed: bool) -> tuple[JsonObject, JsonForm]:
    """Return an open object, its values parsed or sealed, and the form that it is in."""
    form = SEALED if sealed else PLAIN
    fields = form.open(seal(document) if sealed else document)
    assert isinstance(fields, dict)
    return fields, form


class TestGet:
    """MISSING is what is not there; null is there, and holds nothing."""

    @pytest.mark.parametrize(
        ("document", "path", "found"),
        [
            ({"a": 1}, "a", Number("1")),
            ({"a": None}, "a", None),
            ({"a": {"b": {"c": "x"}}}, "a.b.c", "x"),
            ({"a": {"b": {}}}, "a.b", {}),
            ({"a": [1]}, "a", [1]),
            ({}, "a", MISSING),
            ({"a": {}}, "a.b", MISSING),
            ({"b": {}}, "a.b.c", MISSING),
            ({"a": None}, "a.b", MISSING),
            ({"a": {"b": None}}, "a.b.c", MISSING),
        ],
    )
    @pytest.mark.parametrize("sealed", [False, True])
    def test_found(self, document: Json, path: str, found: Document, sealed: bool) -> None:
        fields, form = held(document, sealed)
        with untouched(document):
            value = get(fields, keys(path), form)
        assert unsealed(value) == found
        assert type(value) is type(found)

    @pytest.mark.parametrize(
        ("document", "path", "at", "found"),
        [
            ({"a": "x"}, "a.b", "/a", "a string"),
            ({"a": {"b/": 1}}, "a.b/.c", "/a/b~1", "a number"),
            ({"a": []}, "a.0", "/a", "an array"),
        ],
    )
    @pytest.mark.parametrize("sealed", [False, True])
    def test_a_container_that_is_none(
        self, document: Json, path: str, at: str, found: str, sealed: bool
    ) -> None:
        with fails(at, f"expected an object, found {found}"):
            fields, form = held(document, sealed)
            get(fields, keys(path), form)


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
        ],
    )
    @pytest.mark.parametrize("sealed", [False, True])
    def test_put(self, document: Json, path: str, after: Json, sealed: bool) -> None:
        fields, form = held(document, sealed)
        with untouched(document):
            put(fields, keys(path), 0, form)
        assert json.dumps(unsealed(fields)) == json.dumps(after)

    @pytest.mark.parametrize(
        ("document", "path", "at", "found"),
        [
            ({"a": "x"}, "a.b", "/a", "a string"),
            ({"a": None}, "a.b", "/a", "null"),
            ({"a": {"b~": [1]}}, "a.b~.c", "/a/b~0", "an array"),
        ],
    )
    def test_a_container_that_is_none(self, document: Json, path: str, at: str, found: str) -> None:
        with untouched(document), fails(at, f"expected an object, found {found}"):
            put(dict(document), keys(path), 0, PLAIN)

    def test_nothing_beside_it_is_opened_or_copied(self) -> None:
        beside, within = seal([1]), seal({"c": 1})
        result: Json = {"a": beside, "b": {"c": within}}
        put(result, ("b", "d"), 0, SEALED)
        assert result["a"] is beside
        assert result["b"]["c"] is within


class TestTake:
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
        ],
    )
    @pytest.mark.parametrize("sealed", [False, True])
    def test_take(self, document: Json, path: str, after: Json, sealed: bool) -> None:
        fields, form = held(document, sealed)
        found = get(fields, keys(path), PLAIN if not sealed else form)
        with untouched(document):
            taken = take(fields, keys(path), form)
        assert json.dumps(unsealed(fields)) == json.dumps(after)
        assert (taken is MISSING) == (found is MISSING) == (after == document)

    def test_a_container_that_is_none(self) -> None:
        with fails("/a/b", "expected an object, found an array"):
            take({"a": {"b": [], "x": 1}}, ("a", "b", "c"), PLAIN)


class TestReach:
    """The object that holds a field is opened where it lies, once."""

    def test_it_is_open_from_then_on(self) -> None:
        fields: Json = {"a": seal({"b": {"c": 1}})}
        holder = reach(fields, ("a", "b", "c"), SEALED)
        assert holder is not None
        assert fields["a"]["b"] is holder
        assert reach(fields, ("a", "b", "x"), SEALED) is holder

    def test_the_root_holds_what_has_one_key(self) -> None:
        fields: Json = {}
        assert reach(fields, ("a",), SEALED) is fields


class TestPlain:
    """Parsed documents: containers are copied, numbers show their digits."""

    @pytest.mark.parametrize(
        ("value", "digits"),
        [(0, "0"), (-12, "-12"), (10**30, "1" + "0" * 30), (1.5, "1.5"), (Decimal("1.50"), "1.50")],
    )
    def test_numbers(self, value: Document, digits: str) -> None:
        assert PLAIN.open(value) == Number(digits)
        made = PLAIN.number(digits)
        assert made == value
        assert not isinstance(made, float)

    @pytest.mark.parametrize("value", [True, False, None, "", "1"])
    def test_other_scalars(self, value: Document) -> None:
        assert PLAIN.open(value) is value

    def test_containers_are_the_callers(self) -> None:
        for value in ({"a": [1]}, [[1]]):
            opened, parsed = PLAIN.open(value), PLAIN.parse(value)
            assert opened == parsed == value
            assert opened is not value
            assert PLAIN.take(value) is PLAIN.close(value) is value


class TestUnconvertible:
    """The error says where and what, and quotes no value."""

    def test_at_the_root(self) -> None:
        error = ConversionError("expected an object, found null")
        assert str(error) == "the body: expected an object, found null"
        assert error.pointer == ""

    def test_further_in(self) -> None:
        error = ConversionError("no", ("c",)).under("b", 0).under("a/")
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


paths = st.lists(st.sampled_from(["x", "y"]), min_size=1, max_size=3).map(tuple)


objects = st.dictionaries(st.sampled_from("xyz"), jsons, max_size=3)


@LAW
@given(objects, paths, st.integers())
def test_what_is_put_is_got_and_what_is_taken_is_missing(
    document: Json, path: Keys, value: int
) -> None:
    with untouched(document):
        fields = dict(document)
        try:
            put(fields, path, value, PLAIN)
        except ConversionError as error:
            place = get(dict(document), tuple(error.pointer.split("/")[1:]), PLAIN)
            assert not isinstance(place, dict)
            return
        assert get(fields, path, PLAIN) == Number(str(value))
        assert take(fields, path, PLAIN) == value
        assert get(fields, path, PLAIN) is MISSING
        if path[0] not in document:
            assert fields == document


@LAW
@given(objects, paths)
def test_looking_fails_where_a_container_is_none_and_nowhere_else(
    document: Json, path: Keys
) -> None:
    try:
        value = get(dict(document), path, PLAIN)
    except ConversionError as error:
        place = get(dict(document), tuple(error.pointer.split("/")[1:]), PLAIN)
        assert not isinstance(place, dict)
        assert place is not None
    else:
        assert value is MISSING or kind(value)
