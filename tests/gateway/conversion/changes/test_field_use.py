"""The fields that changes read and write, derived from their effects on schemas."""

from typing import Any

import pytest

from gateway.conversion.changes.field_use import FieldUse, OptionalRead
from gateway.conversion.changes.registry import ChangeConfig, ParameterConfig


def use_of(declared: dict[str, Any]) -> FieldUse:
    (section,) = ChangeConfig.model_validate(declared).named().values()
    return section.field_use


@pytest.mark.parametrize(
    ("declared", "takes", "makes", "moves"),
    [
        ({"rename": {"field": "a.b", "to": "c"}}, ["c"], ["a.b"], {"a.b": "c"}),
        (
            {"rename": {"field": "i[].b", "to": "i[].c.d"}},
            ["i[].c.d"],
            ["i[].b"],
            {"i[].b": "i[].c.d"},
        ),
        (
            {"round": {"field": "a[][].*", "digits": 2}},
            ["a[][].*"],
            ["a[][].*"],
            {"a[][].*": "a[][].*"},
        ),
        ({"default": {"field": "a", "value": 1}}, [], ["a"], {}),
        ({"default": {"field": "a", "value": 1, "keep": True}}, ["a"], ["a"], {}),
        ({"remove": {"field": "a"}}, ["a"], [], {}),
        (
            {"join": {"fields": ["name.first", "name.last"], "into": "name"}},
            ["name"],
            ["name.first", "name.last"],
            {},
        ),
        (
            {"envelope": {"field": "a", "into": "data", "count": "n"}},
            ["a.data", "a.n", "a"],
            ["a"],
            {"a": "a.data"},
        ),
        ({"envelope": {"into": "data"}}, [""], [""], {"": "data"}),
        ({"wrap": {"field": "a"}}, ["a"], ["a"], {"a": "a[]"}),
        ({"wrap": {"field": "a", "many": "keep"}}, ["a"], ["a"], {}),
        (
            {"entries": {"field": "m", "key": "k", "value": "v"}},
            ["m[].k", "m[].v", "m"],
            ["m"],
            {"m.*": "m[].v"},
        ),
        ({"spread": {"field": "c", "into": "i[].c"}}, ["i[].c"], [], {"c": "i[].c"}),
        (
            {"spread": {"field": "c", "into": "i[].c", "keep": False}},
            ["i[].c"],
            ["c"],
            {"c": "i[].c"},
        ),
        (
            {"money": {"field": "i[].a", "currency": "c", "newer": "integer", "older": "text"}},
            ["c", "i[].a"],
            ["c", "i[].a"],
            {},
        ),
        ({"invert": {"field": "a", "to": "b"}}, ["b"], ["a"], {}),
        ({"key_case": {"newer": "camel", "older": "snake"}}, [""], [""], {}),
        ({"to_header": {"field": "p.total", "header": "X-Total"}}, [], ["p.total"], {}),
        ({"use": {"group": "unknown"}}, [""], [""], {}),
        ({"rename": {"field": "a[", "to": "b"}}, [], [], {}),
    ],
)
def test_the_fields_that_each_direction_reads_are_derived_from_the_effects(
    declared: dict[str, Any], takes: list[str], makes: list[str], moves: dict[str, str]
) -> None:
    use = use_of(declared)
    assert ([*use.takes], [*use.makes], use.moves) == (takes, makes, moves)


@pytest.mark.parametrize(
    ("declared", "reads", "leaves"),
    [
        ({"type": {"field": "a", "newer": "number", "older": "text"}}, "a string", "a number"),
        ({"map": {"field": "a", "values": {"A": "x", "B": 1}}}, "1 or x", "A or B"),
        ({"map": {"field": "a", "values": {"A": "x"}, "unknown": "keep"}}, "None", "None"),
        ({"join_list": {"field": "a", "pairs": "="}}, "a string", "an object"),
        ({"wrap": {"field": "a"}}, "an array", "None"),
        ({"invert": {"field": "a"}}, "a boolean", "a boolean"),
        ({"omit_null": {"field": "a"}}, "None", "None"),
        ({"round": {"field": "a", "digits": 1}}, "a number or a string", "None"),
    ],
)
def test_the_values_that_an_upgrade_reads_and_writes_are_derived_from_the_effects(
    declared: dict[str, Any], reads: str, leaves: str
) -> None:
    use = use_of(declared)
    assert (str(use.reads.get("a")), str(use.leaves.get("a"))) == (reads, leaves)


def test_flattened_members_are_recorded_by_their_prefix() -> None:
    use = use_of({"flatten": {"field": "x.attributes", "prefix": "at_", "but": ["at_all"]}})
    assert use.beside[True] == (
        OptionalRead("x.at_*", "at_", frozenset({"at_all"})),
        OptionalRead("x.at_all"),
    )
    assert use.at("i[]").beside[True][1] == OptionalRead("i[].x.at_all")


def test_excluded_keys_are_recorded_at_any_depth_in_the_spelling_of_each_version() -> None:
    use = use_of({"key_case": {"newer": "camel", "older": "snake", "but": ["metaData"]}})
    assert use.beside == {
        True: (OptionalRead("meta_data", anywhere=True),),
        False: (OptionalRead("metaData", anywhere=True),),
    }


def test_parameters_that_a_change_creates_itself_are_not_recorded_as_read() -> None:
    declared = {"rename": {"field": "a", "to": "b", "default": "1"}}
    (section,) = ParameterConfig.model_validate(declared).named().values()
    assert section.parameter_use == FieldUse(takes=("b",), makes=("a",))
