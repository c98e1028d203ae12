"""Join and split: several fields in one version, one joined string in the other version."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.conversion.change import Change, inverse
from gateway.conversion.changes.join import join
from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.field_path import Keys
from tests.gateway.conversion.documents import (
    ABSENT,
    SCOPES,
    SEALED,
    Json,
    Sealed,
    documents,
    down,
    fields,
    join_at,
    merged,
    mixed,
    objects,
    seal,
    text,
    unsealed,
    untouched,
    up,
)
from tests.gateway.world import LAW

# The change in the shipped configuration, and a variant with parts outside the joined field.
NAME = join_at("name.firstName name.lastName", "name")
FLAT = join_at("firstName lastName", "name")


class TestJoin:
    """Names of persons: version 1 has one string, version 2 has a first name and a last name."""

    @pytest.mark.parametrize(
        ("newer", "older"),
        [
            ({"name": {"firstName": "Bob", "lastName": "Charlie"}}, {"name": "Bob Charlie"}),
            ({"name": {"lastName": "Charlie", "firstName": "Bob"}}, {"name": "Bob Charlie"}),
            ({"name": {"firstName": "Bob", "lastName": ""}}, {"name": "Bob"}),
            ({"name": {"firstName": "", "lastName": "Charlie"}}, {"name": "Charlie"}),
            ({"name": {"firstName": "", "lastName": ""}}, {"name": ""}),
            ({"name": {"firstName": "Bob"}}, {"name": "Bob"}),
            ({"name": {"lastName": "Charlie"}}, {"name": "Charlie"}),
            ({"name": {"firstName": None, "lastName": "Charlie"}}, {"name": "Charlie"}),
            ({"name": {"firstName": "Bob", "lastName": None}}, {"name": "Bob"}),
            ({"name": {}}, {"name": ""}),
            ({"name": {"firstName": None, "lastName": None}}, {"name": ""}),
            ({"name": None}, {"name": None}),
            ({}, {}),
            ({"id": 7}, {"id": 7}),
            ({"name": {"firstName": " ", "lastName": " "}}, {"name": "   "}),
            ({"name": {"firstName": "A B", "lastName": "C D"}}, {"name": "A B C D"}),
            (
                {"name": {"firstName": "\u0411\u043e\u0301\u0431", "lastName": "\U0001d49e"}},
                {"name": "\u0411\u043e\u0301\u0431 \U0001d49e"},
            ),
            (
                {"id": 7, "name": {"firstName": "B", "lastName": "C"}, "born": {"year": 1}},
                {"id": 7, "name": "B C", "born": {"year": 1}},
            ),
        ],
    )
    def test_a_downgrade_joins_parts_without_superfluous_separators(
        self, newer: Json, older: Json
    ) -> None:
        with untouched(newer):
            assert text(down(NAME, newer)) == text(older)

    @pytest.mark.parametrize(
        ("older", "newer"),
        [
            ({"name": "Bob Charlie"}, {"name": {"firstName": "Bob", "lastName": "Charlie"}}),
            ({"name": "Bob"}, {"name": {"firstName": "Bob", "lastName": ""}}),
            ({"name": ""}, {"name": {"firstName": "", "lastName": ""}}),
            ({"name": " "}, {"name": {"firstName": "", "lastName": ""}}),
            ({"name": " Bob"}, {"name": {"firstName": "", "lastName": "Bob"}}),
            ({"name": "Bob "}, {"name": {"firstName": "Bob", "lastName": ""}}),
            ({"name": "Bob  Charlie"}, {"name": {"firstName": "Bob", "lastName": " Charlie"}}),
            ({"name": "Ann Mary Lee"}, {"name": {"firstName": "Ann", "lastName": "Mary Lee"}}),
            ({"name": "Bob\tCharlie"}, {"name": {"firstName": "Bob\tCharlie", "lastName": ""}}),
            ({"name": "Bob\xa0C"}, {"name": {"firstName": "Bob\xa0C", "lastName": ""}}),
            ({"name": None}, {"name": None}),
            ({}, {}),
            (
                {"id": 7, "name": "B C", "born": {"year": 1}},
                {"id": 7, "name": {"firstName": "B", "lastName": "C"}, "born": {"year": 1}},
            ),
        ],
    )
    def test_an_upgrade_splits_a_string_at_the_first_separator(
        self, older: Json, newer: Json
    ) -> None:
        with untouched(older):
            assert text(up(NAME, older)) == text(newer)

    @pytest.mark.parametrize(
        ("newer", "older"),
        [
            ({"firstName": "Bob", "lastName": "C"}, {"name": "Bob C"}),
            ({"firstName": "B", "x": 1, "lastName": "C", "y": 2}, {"x": 1, "y": 2, "name": "B C"}),
            ({"firstName": "Bob"}, {"name": "Bob"}),
            ({"lastName": "C"}, {"name": "C"}),
            ({"firstName": "", "lastName": ""}, {"name": ""}),
            ({"firstName": "", "lastName": None}, {"name": ""}),
            ({"firstName": None, "lastName": None}, {"name": None}),
            ({"firstName": None}, {"name": None}),
            ({}, {}),
            ({"id": 7}, {"id": 7}),
        ],
    )
    def test_a_downgrade_replaces_separate_parts_by_the_joined_string(
        self, newer: Json, older: Json
    ) -> None:
        with untouched(newer):
            assert text(down(FLAT, newer)) == text(older)

    @pytest.mark.parametrize(
        ("older", "newer"),
        [
            ({"name": "Bob C"}, {"firstName": "Bob", "lastName": "C"}),
            ({"name": "Bob C", "id": 7}, {"id": 7, "firstName": "Bob", "lastName": "C"}),
            ({"name": "Bob"}, {"firstName": "Bob", "lastName": ""}),
            ({"name": None}, {"firstName": None, "lastName": None}),
            ({}, {}),
            ({"id": 7}, {"id": 7}),
        ],
    )
    def test_an_upgrade_replaces_the_joined_string_by_separate_parts(
        self, older: Json, newer: Json
    ) -> None:
        with untouched(older):
            assert text(up(FLAT, older)) == text(newer)

    @pytest.mark.parametrize(
        ("change", "newer", "older"),
        [
            (
                join_at("last first", "name", ", "),
                {"first": "Bob", "last": "Charlie"},
                {"name": "Charlie, Bob"},
            ),
            (join_at("a b c", "abc", "-"), {"a": "1", "b": "2", "c": "3-4"}, {"abc": "1-2-3-4"}),
            (join_at("a b", "ab", "--"), {"a": "1-2", "b": "3"}, {"ab": "1-2--3"}),
            (join_at("a b", "ab", "\n"), {"a": "1", "b": "2"}, {"ab": "1\n2"}),
            (join_at("a b", "ab", "."), {"a": "1", "b": "2"}, {"ab": "1.2"}),
            (join_at("a b", "ab", "é"), {"a": "1", "b": "2"}, {"ab": "1é2"}),
            (
                join_at("person.first person.last", "name"),
                {"person": {"first": "B", "last": "C"}},
                {"name": "B C"},
            ),
            (
                join_at("person.first person.last", "name"),
                {"person": {"age": 3, "first": "B", "last": "C"}},
                {"person": {"age": 3}, "name": "B C"},
            ),
            (
                join_at("name.first surname", "name"),
                {"name": {"first": "B"}, "surname": "C"},
                {"name": "B C"},
            ),
            (join_at("name surname", "name"), {"name": "B", "surname": "C"}, {"name": "B C"}),
            (
                join_at("first last", "meta.name"),
                {"first": "B", "last": "C"},
                {"meta": {"name": "B C"}},
            ),
            (
                join_at("meta.name.first meta.name.last", "meta.name"),
                {"meta": {"x": 1, "name": {"first": "B", "last": "C"}, "y": 2}},
                {"meta": {"x": 1, "name": "B C", "y": 2}},
            ),
            (
                join_at("items[].name.first items[].name.last", "items[].name"),
                {"items": [{"name": {"first": "B", "last": "C"}}, {"id": 1}], "n": 2},
                {"items": [{"name": "B C"}, {"id": 1}], "n": 2},
            ),
            (
                join_at("a[].b[].c.x a[].b[].c.y", "a[].b[].c"),
                {"a": [{"b": [{"c": {"x": "1", "y": "2"}}]}, {"b": []}, {"b": None}, {}]},
                {"a": [{"b": [{"c": "1 2"}]}, {"b": []}, {"b": None}, {}]},
            ),
            (
                join_at("a[][].x a[][].y", "a[][].c"),
                {"a": [[{"x": "1", "y": "2"}], [], None, [{}]]},
                {"a": [[{"c": "1 2"}], [], None, [{}]]},
            ),
        ],
    )
    def test_a_join_at_any_location_survives_a_round_trip(
        self, change: Change, newer: Json, older: Json
    ) -> None:
        with untouched(newer, older):
            assert down(change, newer) == older
            assert up(change, older) == newer
            assert up(inverse(change), newer) == older
            assert down(inverse(change), older) == newer

    @pytest.mark.parametrize(
        ("older", "newer"),
        [
            ({"abc": "1"}, {"a": "1", "b": "?", "c": "?"}),
            ({"abc": "1-2"}, {"a": "1", "b": "2", "c": "?"}),
            ({"abc": "1-2-"}, {"a": "1", "b": "2", "c": ""}),
            ({"abc": ""}, {"a": "", "b": "?", "c": "?"}),
        ],
    )
    def test_a_part_missing_from_the_string_gets_the_default(
        self, older: Json, newer: Json
    ) -> None:
        assert up(join_at("a b c", "abc", "-", missing="?"), older) == newer

    @pytest.mark.parametrize(
        ("optional", "missing", "newer", "older"),
        [
            ((), None, {"a": "Ann", "b": None, "c": None}, {"abc": "Ann"}),
            ((), None, {"a": "Ann", "b": "B", "c": None}, {"abc": "Ann B"}),
            ((1,), None, {"a": "Ann", "b": None, "c": "King"}, {"abc": "Ann King"}),
            ((1,), None, {"a": "Ann", "b": None, "c": None}, {"abc": "Ann"}),
            ((1,), "", {"a": "Ann", "b": "M.", "c": "de King"}, {"abc": "Ann M. de King"}),
            ((1, 0), "", {"a": "", "b": "", "c": "King"}, {"abc": "King"}),
            ((0,), "", {"a": "", "b": "Ann", "c": "King"}, {"abc": "Ann King"}),
            ((), "?", {"a": "Ann", "b": "?", "c": "?"}, {"abc": "Ann"}),
            ((1,), "?", {"a": "Ann", "b": "?", "c": "King"}, {"abc": "Ann King"}),
            ((), "?", {"a": "?", "b": "?", "c": "King"}, {"abc": "? ? King"}),
            ((), "?", {"a": "?", "b": "?", "c": "?"}, {"abc": "?"}),
            ((), None, {"a": "", "b": None, "c": None}, {"abc": ""}),
        ],
    )
    def test_missing_parts_of_a_string_follow_the_declared_optional_order(
        self, optional: tuple[int, ...], missing: str | None, newer: Json, older: Json
    ) -> None:
        for inside in (False, True):
            names = "abc.a abc.b abc.c" if inside else "a b c"
            change = join_at(names, "abc", missing=missing, optional=optional)
            document = {"abc": newer} if inside else newer
            assert down(change, document) == older
            assert up(change, older) == document

    def test_an_absent_part_is_treated_like_a_missing_part(self) -> None:
        change = join_at("a b c", "abc", missing="?")
        assert down(change, {"a": "Ann", "b": "?"}) == {"abc": "Ann"}
        assert down(change, {"a": "Ann", "c": "?"}) == {"abc": "Ann"}

    @pytest.mark.parametrize("value", [7, 1.5, True, False, [], ["Bob"], {}, {"firstName": "Bob"}])
    @pytest.mark.parametrize("change", [NAME, FLAT], ids=["inside", "beside"])
    def test_splitting_a_value_that_is_not_a_string_is_refused(
        self, change: Change, value: Json
    ) -> None:
        with pytest.raises(ConversionError, match=r"^/name: expected a string, found ") as error:
            up(change, {"name": value})
        assert error.value.pointer == "/name"

    @pytest.mark.parametrize("value", [7, True, [], {}])
    @pytest.mark.parametrize("part", ["firstName", "lastName"])
    def test_joining_a_part_that_is_not_a_string_is_refused(self, part: str, value: Json) -> None:
        other = {"firstName": "B", "lastName": "C"}
        with pytest.raises(ConversionError, match=f"^/name/{part}: expected a string, found "):
            down(NAME, {"name": {**other, part: value}})
        with pytest.raises(ConversionError, match=f"^/{part}: expected a string, found "):
            down(FLAT, {**other, part: value})

    @pytest.mark.parametrize("value", ["Bob Charlie", 7, True, []])
    def test_a_container_of_parts_that_is_not_an_object_is_refused(self, value: Json) -> None:
        with pytest.raises(ConversionError, match=r"^/name: expected an object, found "):
            down(NAME, {"name": value})

    def test_a_part_in_a_null_container_counts_as_absent(self) -> None:
        change = join_at("a.first b.last", "name")
        assert down(change, {"a": None, "b": {"last": "C"}}) == {"a": None, "name": "C"}
        assert down(change, {"a": None, "b": None}) == {"a": None, "b": None}

    def test_splitting_into_a_null_container_is_refused(self) -> None:
        with pytest.raises(ConversionError, match=r"^/a: expected an object, found null$"):
            up(join_at("a.first b.last", "name"), {"a": None, "name": "B C"})

    def test_the_error_of_a_join_names_the_full_path_from_the_root(self) -> None:
        change = join_at("a[].b[].c.x a[].b[].c.y", "a[].b[].c")
        where = r"^/a/1/b/0/c/y: expected a string, found a number$"
        with pytest.raises(ConversionError, match=where):
            down(change, {"a": [{}, {"b": [{"c": {"x": "1", "y": 2}}]}]})


SEPARATORS = [" ", ", ", "--", "aa", "é", "\n"]


@dataclass(frozen=True)
class Case:
    """A change, with a document of each version that the change can convert."""

    change: Change
    where: str
    older: Json
    newer: Json
    whole: Keys
    parts: tuple[Keys, ...]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    where = draw(st.sampled_from(sorted(SCOPES)))
    whole, parts = draw(
        st.sampled_from(
            [
                (("name",), (("name", "first"), ("name", "last"))),
                (("name",), (("name", "last"), ("name", "more", "middle"), ("name", "first"))),
                (("meta", "name"), (("meta", "name", "a"), ("meta", "name", "b"))),
                (("name",), (("first",), ("last",))),
                (("name",), (("person", "first"), ("person", "last"), ("last",))),
                (("meta", "name"), (("first",), ("last",))),
                (("name",), (("name", "first"), ("last",))),
                (("name",), (("name",), ("last",))),
            ]
        )
    )
    separator = draw(st.sampled_from(SEPARATORS))
    texts = st.text(st.sampled_from(f"ab-é{separator}"), max_size=6)
    indices = range(len(parts))
    optional = tuple(draw(st.lists(st.sampled_from(indices), unique=True)))
    lacked = (*optional, *(index for index in reversed(indices) if index not in optional))
    missing = draw(st.sampled_from(["", None, "?"]))

    def restorable(text: str) -> bool:
        return text == "" or all(text.split(separator, len(parts) - 1))

    def separable(pieces: list[str]) -> bool:
        rests = [separator.join(pieces[index:]) for index in range(len(pieces))]
        return all(pieces) and all(
            rest.index(separator) == len(piece)
            for rest, piece in zip(rests, pieces[:-1], strict=False)
        )

    inside = all(part[: len(whole)] == whole and part != whole for part in parts)
    pieces = st.lists(texts, min_size=len(parts), max_size=len(parts)).filter(separable)
    nothing = [*([] if inside else [[None] * len(parts)]), ABSENT]

    @st.composite
    def older(draw: st.DrawFn) -> Json:
        text = draw(texts.filter(restorable) | st.sampled_from([None, ABSENT]))
        return draw(mixed(*({} if text is ABSENT else fields(whole, text)).items()))

    @st.composite
    def newer(draw: st.DrawFn) -> Json:
        values = draw(pieces | st.sampled_from(nothing))
        if isinstance(values, list) and not any(each and separator in each for each in values):
            lacking = lacked[: draw(st.integers(0, len(parts) - 1))]
            kept = [each for index, each in enumerate(values) if index not in lacking]
            if None not in values and separable(kept):
                values = [missing if i in lacking else each for i, each in enumerate(values)]
        found = {} if values is ABSENT else merged(*map(fields, parts, values))
        return draw(mixed(*found.items()))

    return Case(
        join(SCOPES[where], parts, whole, separator, missing, optional),
        where,
        draw(documents(SCOPES[where], older())),
        draw(documents(SCOPES[where], newer())),
        whole,
        parts,
    )


def a_join_restores_a_string_that_was_split(case: Case) -> None:
    assert down(case.change, up(case.change, case.older)) == case.older


def a_split_restores_joined_parts_if_the_parts_are_unambiguous(case: Case) -> None:
    assert up(case.change, down(case.change, case.newer)) == case.newer


def the_inverse_of_an_inverse_equals_the_original_change(case: Case) -> None:
    twice = inverse(inverse(case.change))
    assert up(twice, case.older) == up(case.change, case.older)
    assert down(twice, case.newer) == down(case.change, case.newer)
    assert down(inverse(case.change), case.older) == up(case.change, case.older)


def a_join_never_alters_its_argument(case: Case) -> None:
    with untouched(case.older, case.newer):
        up(case.change, case.older)
        down(case.change, case.newer)


def a_join_preserves_unknown_fields_and_their_order(case: Case) -> None:
    change = case.change
    touched = {keys[0] for keys in change.touches}
    for before, after in (
        (case.older, up(change, case.older)),
        (case.newer, down(change, case.newer)),
    ):
        pairs = zip(objects(before, change.scopes), objects(after, change.scopes), strict=True)
        for old, new in pairs:
            kept = [(key, value) for key, value in old.items() if key not in touched]
            assert [(key, value) for key, value in new.items() if key not in touched] == kept


def a_key_that_exists_in_both_versions_keeps_its_position(case: Case) -> None:
    change = case.change
    for before, after in (
        (case.older, up(change, case.older)),
        (case.newer, down(change, case.newer)),
    ):
        if change.scopes:
            assert isinstance(after, dict)
            assert list(before) == list(after)
        if all(part[:-1] == case.whole for part in case.parts):
            pairs = zip(objects(before, change.scopes), objects(after, change.scopes), strict=True)
            assert all(list(old) == list(new) for old, new in pairs)


def a_join_gives_the_same_result_for_sealed_and_parsed_documents(case: Case) -> None:
    change = case.change
    newer, older = up(change, seal(case.older), SEALED), down(change, seal(case.newer), SEALED)
    assert text(unsealed(newer)) == text(up(change, case.older))
    assert text(unsealed(older)) == text(down(change, case.newer))


def a_join_leaves_unknown_values_unparsed(case: Case) -> None:
    for after in (
        up(case.change, seal(case.older), SEALED),
        down(case.change, seal(case.newer), SEALED),
    ):
        if isinstance(after, dict):
            unknown = [value for key, value in after.items() if key in "xyz"]
            assert all(isinstance(value, Sealed) for value in unknown)


LAWS = [
    a_join_restores_a_string_that_was_split,
    a_split_restores_joined_parts_if_the_parts_are_unambiguous,
    the_inverse_of_an_inverse_equals_the_original_change,
    a_join_never_alters_its_argument,
    a_join_preserves_unknown_fields_and_their_order,
    a_key_that_exists_in_both_versions_keeps_its_position,
    a_join_gives_the_same_result_for_sealed_and_parsed_documents,
    a_join_leaves_unknown_values_unparsed,
]


@LAW
@given(cases())
def test_every_join_and_split_obeys_the_laws_above(case: Case) -> None:
    """Generating a case takes longer than all laws together."""
    for law in LAWS:
        law(case)
