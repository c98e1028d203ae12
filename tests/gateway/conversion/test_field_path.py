"""Field paths: their notation in gateway.yaml, and JSON Pointers."""

import json
import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.conversion.field_path import (
    FieldPath,
    Inside,
    Members,
    Scope,
    parse_path,
    parse_scopes,
    pointer,
    pointers,
    spell,
)
from tests.gateway.world import LAW


@pytest.mark.parametrize(
    "text",
    [
        *("", ".", "..", ".a", "a.", "a..b", "[]", "a.[].b", "a[", "a]", "a[0].b", "a[]b"),
        *("a[ ].b", "a[].", "a[]..b", "[a]", "a[[]].b", "\\", "a\\", "a.b\\", "a]b", "a[]]"),
    ],
)
def test_an_invalid_field_path_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"^" + re.escape(f"'{text}' is not a field path; ")):
        parse_path(text)


@pytest.mark.parametrize("parse", [parse_path, parse_scopes])
@pytest.mark.parametrize(("text", "right"), [("[].a", "a"), ("[][].a.b[]", "a.b[]")])
def test_a_path_that_begins_with_body_elements_is_refused_with_the_correct_path(
    parse: Callable[[str], object], text: str, right: str
) -> None:
    with pytest.raises(ValueError, match=rf"element by element; write '{re.escape(right)}'$"):
        parse(text)


@pytest.mark.parametrize("text", ["*", "prices.*[]", "a[].*", "a.*.*", "a[].*[][]"])
def test_a_field_path_that_ends_in_any_member_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"ends with '\*'; name a field of the members$"):
        parse_path(text)


@pytest.mark.parametrize(
    ("text", "scopes", "place"),
    [
        ("items[]", (("items",),), "/items/*"),
        ("prices.*", (Members(("prices",)),), "/prices/*"),
        ("result.item", (Inside(("result", "item")),), "/result/item"),
        ("a[].b.*.c", (("a",), Members(("b",)), Inside(("c",))), "/a/*/b/*/c"),
        (r"a\.", (Inside(("a.",)),), "/a."),
    ],
)
def test_paths_to_objects_are_parsed_to_scopes(
    text: str, scopes: tuple[Scope, ...], place: str
) -> None:
    assert parse_scopes(text) == scopes
    assert pointers(scopes) == place


@pytest.mark.parametrize("text", ["", "a\\", "a..b", "[]..a", "[]a"])
def test_an_invalid_path_to_objects_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"^" + re.escape(f"'{text}' names no objects; write ")):
        parse_scopes(text)


@pytest.mark.parametrize("text", ["[]", "[][]"])
def test_a_path_that_names_only_body_elements_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"^" + re.escape(f"'{text}' needs no name: ")):
        parse_scopes(text)


keys = st.text(min_size=1, max_size=4) | st.text(
    st.sampled_from(r"a.[]\ *"), min_size=1, max_size=4
)


@LAW
@given(st.lists(st.tuples(keys, st.integers(0, 2)), max_size=3), keys)
def test_every_location_can_be_written_as_a_field_path(
    steps: list[tuple[str, int]], last: str
) -> None:
    scopes: list[tuple[str, ...]] = []
    open_keys: tuple[str, ...] = ()
    for key, arrays in steps:
        open_keys = (*open_keys, key)
        for _ in range(arrays):
            scopes.append(open_keys)
            open_keys = ()
    text = ".".join([spell(key) + "[]" * arrays for key, arrays in steps] + [spell(last)])
    assert parse_path(text) == FieldPath(tuple(scopes), (*open_keys, last))


@LAW
@given(st.text() | st.text(st.sampled_from(r"ab.[]\ *")))
def test_any_string_is_parsed_as_a_path_or_refused(text: str) -> None:
    try:
        path = parse_path(text)
    except ValueError:
        return
    assert path.keys
    assert all(path.keys)
    assert path.scopes[:1] != ((),)


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ((), ""),
        (("a",), "/a"),
        (("a", 0, "b"), "/a/0/b"),
        (("a/b", "c~d", "~1"), "/a~1b/c~0d/~01"),
        (("",), "/"),
        ((" ",), "/ "),
    ],
)
def test_a_pointer_escapes_special_characters_as_in_rfc_6901(
    keys: tuple[str | int, ...], expected: str
) -> None:
    assert pointer(*keys) == expected


def resolved(document: object, text: str) -> object:
    """Evaluate a JSON Pointer (RFC 6901)."""
    for token in text.split("/")[1:]:
        key = token.replace("~1", "/").replace("~0", "~")
        document = document[int(key)] if isinstance(document, list) else document[key]  # type: ignore[index]
    return document


@LAW
@given(st.lists(st.text(st.sampled_from("a/~01")) | st.integers(0, 2), max_size=4))
def test_a_pointer_resolves_to_the_value_at_its_keys(path: list[str | int]) -> None:
    document: object = "found"
    for key in reversed(path):
        document = {key: document} if isinstance(key, str) else [None] * key + [document]
    assert resolved(json.loads(json.dumps(document)), pointer(*path)) == "found"


@pytest.mark.parametrize("name", ["promotion[coupon]", "items[0][price]", "metadata[a b]"])
def test_the_name_of_a_nested_form_field_is_one_key(name: str) -> None:
    assert parse_path(name) == FieldPath((), (name,))
    assert parse_path(f"{name}[]") == FieldPath((), (name,), 1)
    assert spell(name) == name


@pytest.mark.parametrize("name", ["[coupon]", "a[b", "a[b]c", "a[b[c]]", "a[0].b", "b.a[0]"])
def test_a_name_with_other_brackets_is_no_path(name: str) -> None:
    with pytest.raises(ValueError, match="is not a field path"):
        parse_path(name)
