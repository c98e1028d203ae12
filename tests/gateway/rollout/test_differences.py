"""Differences between responses: which values are equal, and how differences are displayed."""

from collections.abc import Callable
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.conversion.document import MISSING
from gateway.conversion.scalars import Huge, number
from gateway.rollout.differences import (
    ComparedAnswer,
    Difference,
    IgnoredPlaces,
    RefusedField,
    compare,
    parse_ignored,
    plain,
    redacted,
    refused_fields,
    truncated,
    without_noise,
)
from tests.gateway.world import LAW

KEYS = st.sampled_from(["a", "b", "a/b", "~", "*"])
DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(["", "x"]) | st.just(MISSING),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
).filter(lambda document: document is not MISSING)


def body(document: object) -> ComparedAnswer:
    return ComparedAnswer(200, {}, document)


def fields(old: object, new: object, *ignored: str) -> list[str]:
    known = IgnoredPlaces(frozenset(map(parse_ignored, ignored)))
    return [each.field for each in compare(body(old), body(new), known)]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, []),
        ({"a": 1}, {"a": 2}, ["/a"]),
        ({"a": None}, {}, ["/a"]),
        ({}, {"a": None}, ["/a"]),
        ({"a": True}, {"a": 1}, ["/a"]),
        ({"a": ""}, {"a": None}, ["/a"]),
        ({"a": {}}, {"a": []}, ["/a"]),
        ([1, 2], [2, 1], ["/*"]),
        ([1], [1, 1], ["/*"]),
        ([{"a": 1}, {"a": 2}], [{"a": 3}, {"a": 4}], ["/*/a"]),
        ([{"a": [1]}], [{"a": [2, 3]}], ["/*/a/*"]),
        ({"a/b": 1, "~": 1}, {"a/b": 2, "~": 2}, ["/a~1b", "/~0"]),
        (1, 2, ["body"]),
        (b"x", b"x", []),
        (b"x", b"y", ["body"]),
        (b"{}", {}, ["body"]),
    ],
)
def test_bodies_are_compared_by_field(old: object, new: object, expected: list[str]) -> None:
    assert fields(old, new) == expected


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("1", "1", True),
        ("1", "1.0", False),
        ("1", "1e0", False),
        ("1.10", "1.1", True),
        ("100.0", "1e2", True),
        ("0.1", "0.10000000000000000000000000001", False),
        ("12345678901234567890123", "12345678901234567890124", False),
        ("1e9999999999999999999999", "1e9999999999999999999999", True),
        ("1e9999999999999999999999", "2e9999999999999999999999", False),
        ("9" * 5000, "9" * 5000, True),
        ("9" * 5000, "8" * 5000, False),
    ],
)
def test_numbers_are_compared_by_exact_value_and_notation(one: str, other: str, same: bool) -> None:
    assert (fields(number(one), number(other)) == []) is same


def test_only_the_status_is_compared_if_the_statuses_differ() -> None:
    old, new = (
        ComparedAnswer(200, {"a": ("1",)}, {"a": 1}),
        ComparedAnswer(404, {}, {"title": "no"}),
    )
    assert compare(old, new) == (Difference("status", "200", "404"),)
    failed = ComparedAnswer(502, {}, b"", "conversion_failed: why")
    assert compare(old, failed) == (Difference("status", "200", "502 conversion_failed: why"),)


def test_named_header_fields_are_compared_line_by_line() -> None:
    old = ComparedAnswer(200, {"same": ("0",), "a": ("1",), "b": ("1", "2")}, {})
    new = ComparedAnswer(200, {"b": ("1",), "c": ("3",), "same": ("0",)}, {})
    assert compare(old, new) == (
        Difference("header a", ("1",), MISSING),
        Difference("header b", ("1", "2"), ("1",)),
        Difference("header c", MISSING, ("3",)),
    )


def test_elements_of_an_array_share_their_fields() -> None:
    """The reported values are the values of the first element that differs."""
    assert compare(body([1, 2, 3]), body([1, 5, 6])) == (Difference("/*", 2, 5),)


def test_at_most_32_differing_fields_are_reported() -> None:
    """Names of fields are truncated to 200 characters."""
    found = fields({str(key): 1 for key in range(100)}, {})
    assert len(found) == 33
    assert found[-1] == "more fields"
    assert len(fields({"k" * 1000: 1}, {})[0]) == 200


@pytest.mark.parametrize(
    ("ignored", "left"),
    [
        ([], ["/a", "/b/*/c", "/b/*/d/e"]),
        (["/a"], ["/b/*/c", "/b/*/d/e"]),
        (["/b"], ["/a"]),
        (["/b/*"], ["/a"]),
        (["/b/0/c"], ["/a", "/b/*/d/e"]),
        (["/b/*/d"], ["/a", "/b/*/c"]),
        (["/b/c"], ["/a", "/b/*/c", "/b/*/d/e"]),
        (["/*"], []),
        (["/b/*/*/e"], ["/a", "/b/*/c"]),
        (["/b/*/*/*"], ["/a", "/b/*/c"]),
        (["/*/*/c"], ["/a", "/b/*/d/e"]),
        (["/b/*/d/e/f"], ["/a", "/b/*/c", "/b/*/d/e"]),
    ],
)
def test_an_ignored_location_covers_everything_below_it(
    ignored: list[str], left: list[str]
) -> None:
    old = {"a": 1, "b": [{"c": 1, "d": {"e": 1}}]}
    new = {"a": 2, "b": [{"c": 2, "d": {"e": 2}}]}
    assert fields(old, new, *ignored) == left


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ({"a": 1}, {"a": 1, "b": 2}, []),
        ({"a": [{}]}, {"a": [{"b": {"c": 1}}]}, []),
        ({"a": 1}, {}, ["/a"]),
        ({"a": None}, {"a": 1}, ["/a"]),
        ({"a": [1]}, {"a": [1, 2]}, ["/a/*"]),
        ({"a": 1}, {"a": 2, "b": 2}, ["/a"]),
    ],
)
def test_ignore_added_ignores_only_members_that_are_added_to_objects(
    old: object, new: object, found: list[str]
) -> None:
    known = IgnoredPlaces(added=True)
    assert [each.field for each in compare(body(old), body(new), known)] == found


def test_two_urls_are_equal_if_they_are_mapped_to_the_same_public_url() -> None:
    def link(host: str) -> Callable[[str], str]:
        return lambda url: url.replace(f"http://{host}/", "https://api.test/v1/")

    old = body({"self": "http://old.test/a", "next": "http://old.test/b", "text": "old.test"})
    new = body({"self": "http://new.test/a", "next": "http://new.test/c", "text": "new.test"})
    found = compare(old._replace(link=link("old.test")), new._replace(link=link("new.test")))
    assert [each.field for each in found] == ["/next", "/text"]


def test_a_star_ignores_a_field_in_all_members_of_an_object() -> None:
    old = {"prices": {"sku-1": {"net": 1, "at": 1}, "sku-2": {"net": 1, "at": 1}}}
    new = {"prices": {"sku-1": {"net": 1, "at": 2}, "sku-2": {"net": 2, "at": 2}}}
    assert fields(old, new, "/prices/*/at") == ["/prices/sku-2/net"]


@pytest.mark.parametrize("text", ["", "/", "a", "a/b", "/a//b", "/a/", "/a~", "/a~2"])
def test_an_ignored_location_that_is_not_a_json_pointer_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="write a JSON Pointer"):
        parse_ignored(text)


@pytest.mark.parametrize(
    ("noise", "left"),
    [
        ([], ["header x", "/a", "/a/b", "/ab"]),
        (["/a"], ["header x", "/ab"]),
        (["/a/b"], ["header x", "/a", "/ab"]),
        (["body"], ["header x"]),
        (["header x"], ["/a", "/a/b", "/ab"]),
    ],
)
def test_fields_that_differ_between_equal_requests_are_omitted(
    noise: list[str], left: list[str]
) -> None:
    def named(names: list[str]) -> list[Difference]:
        return [Difference(name, 1, 2) for name in names]

    kept = without_noise(named(["header x", "/a", "/a/b", "/ab"]), named(noise))
    assert [each.field for each in kept] == left


def test_noise_in_a_body_that_is_not_json_covers_the_whole_body() -> None:
    whole = [Difference("body", b"x", b"y")]
    assert without_noise(whole, whole) == ()


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (MISSING, "missing"),
        (None, "null"),
        (True, "boolean"),
        ("secret", "text of 6 #"),
        (b"secret", "bytes of 6 #"),
        ([1, 2], "array of 2 #"),
        ({"a": 1}, "object of 1 #"),
        (("1",), "header #"),
        (17, "number #"),
        (Decimal("1.5"), "number #"),
        (Huge("1e99"), "number #"),
    ],
)
def test_a_redacted_value_shows_type_size_and_hash(value: object, shown: str) -> None:
    """Equal values have equal hashes. The hashes depend on the key."""
    text = redacted(value, b"key")
    assert text.startswith(shown)
    assert "secret" not in text
    assert text == redacted(value, b"key")
    assert ("#" in text) == (text != redacted(value, b"other key"))


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (MISSING, "missing"),
        ("é", '"é"'),
        (b"\xff", "�"),
        (b"a\r\nb\x1b", r"a\r\nb\x1b"),
        ({"a": [1, Decimal("1.50"), Huge("1e99")]}, '{"a": [1, "1.50", "1e99"]}'),
        ("x" * 500, '"' + "x" * 199 + "…"),
        (b"x" * 5000, "x" * 200 + "…"),
    ],
)
def test_a_plain_value_is_shown_as_truncated_json(value: object, shown: str) -> None:
    assert plain(value) == shown


@LAW
@given(DOCUMENTS)
def test_a_document_never_differs_from_itself(document: object) -> None:
    assert fields(document, document) == []


@LAW
@given(DOCUMENTS, DOCUMENTS)
def test_comparison_is_symmetric(one: object, other: object) -> None:
    assert set(fields(one, other)) == set(fields(other, one))


@LAW
@given(DOCUMENTS, DOCUMENTS)
def test_noisy_fields_are_not_reported_as_differences(one: object, other: object) -> None:
    found = compare(body(one), body(other))
    assert without_noise(found, found) == ()


def test_each_refused_field_is_reported_once_up_to_32_fields() -> None:
    found = [RefusedField(field, "type", "why") for field in ("/a", "/b/0", "/a", "query q")]
    known = IgnoredPlaces(frozenset({parse_ignored("/b")}))
    assert [each.field for each in refused_fields(found, known)] == ["/a", "query q"]
    many = [RefusedField(f"/{number:0300}", "type", "") for number in range(40)]
    assert len(refused_fields(many)) == 1  # the truncated names are equal
    found = [RefusedField(f"/{number}", "type", "") for number in range(40)]
    assert [each.field for each in refused_fields(found)][-2:] == ["/31", "more fields"]
    assert len(refused_fields(found)) == 33


def test_a_string_that_is_too_long_is_truncated_with_an_ellipsis() -> None:
    assert truncated("abc", 3) == "abc"
    assert truncated("abcd", 3) == "abc…"
    assert len(truncated("x" * 1000)) == 201
