"""Key case: all keys of an object, at any depth, are converted to another case."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.base.mistakes import Mistakes
from gateway.conversion.change import Change
from gateway.conversion.changes.case import CaseName, KeyCase, key_case, rewrite_case
from gateway.conversion.changes.change_section import BuildContext
from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.document import PLAIN
from gateway.conversion.field_path import Keys
from gateway.conversion.formats.original_text import RepeatedValue, check_repeated, object_of
from tests.gateway.conversion.documents import Json, both, down, fails, scalars, up
from tests.gateway.world import LAW

CAMEL: CaseName = "camel"
SNAKE: CaseName = "snake"


def key_case_of(field: Keys | None = None, *but: str, keep: bool = False) -> Change:
    to_newer, to_older = (
        rewrite_case(SNAKE, CAMEL, keep=keep),
        rewrite_case(CAMEL, SNAKE, keep=keep),
    )
    return key_case((), field, to_newer, to_older, frozenset(but))


NEWER = {"orderLines": [{"unitPrice": 1.50, "tagNames": ["aB"]}, [{"xY": None}], 1], "id": "aB"}
OLDER = {"order_lines": [{"unit_price": 1.5, "tag_names": ["aB"]}, [{"x_y": None}], 1], "id": "aB"}


def test_keys_are_converted_to_the_other_case_in_both_directions() -> None:
    assert both(key_case_of(), NEWER, upwards=False) == OLDER
    assert both(key_case_of(), OLDER, upwards=True) == NEWER


def test_key_case_of_a_field_converts_only_the_keys_inside_that_field() -> None:
    change = key_case_of(("theBox", "f"))
    assert both(change, {"theBox": {"f": NEWER}}, upwards=False) == {"theBox": {"f": OLDER}}
    assert both(change, {"theBox": {"f": [OLDER]}}, upwards=True) == {"theBox": {"f": [NEWER]}}
    for document in ({}, {"theBox": None}, {"theBox": {"g_h": 1}}, {"theBox": {"f": 1}}):
        assert up(change, document) == down(change, document) == document


def test_excluded_keys_and_everything_inside_them_are_unchanged() -> None:
    change = key_case_of(None, "metaData")
    newer, older = {"metaData": {"aB": 1, "a_b": 2}}, {"meta_data": {"aB": 1, "a_b": 2}}
    assert both(change, newer, upwards=False) == older
    assert both(change, older, upwards=True) == newer


def test_a_key_that_is_already_in_the_other_case_is_refused() -> None:
    reason = "the key is not a name: expected camel case, found snake case"
    with fails("/a/0/b_c", reason):
        down(key_case_of(), {"a": [{"b_c": 1}]})
    with fails("/m/f/b_c", reason):
        down(key_case_of(("m", "f")), {"m": {"f": {"b_c": 1}}})


def test_two_keys_with_the_same_converted_name_are_refused() -> None:
    with fails("/bC", "becomes 'b_c', which already exists"):
        down(key_case_of(keep=True), {"b_c": 1, "bC": 2})


keys = st.sampled_from(["aB", "cDE", "a_b", "id", "x y", "line1", "line_1", "$ref"])
trees: st.SearchStrategy[Json] = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(keys, inner, max_size=3)
)


@LAW
@given(st.dictionaries(keys, trees, max_size=3))
def test_converted_keys_survive_a_round_trip(document: Json) -> None:
    change = key_case_of()
    try:
        there = both(change, document, upwards=False)
    except ConversionError:
        return
    assert up(change, there) == document


@pytest.mark.parametrize("upwards", [True, False])
def test_converted_keys_keep_their_order(upwards: bool) -> None:
    document = {"z": 1, "b": 2, "a": 3}
    assert list(both(key_case_of(), document, upwards)) == ["z", "b", "a"]


def test_repeated_keys_are_all_converted() -> None:
    older = object_of([("a_b", 1), ("c_d", 2), ("a_b", {"e_f": 3}), ("x", 4), ("x", 5)])
    fields = {**older}
    key_case_of().up.step(fields, PLAIN)
    check_repeated(fields)
    assert [(str(key), value) for key, value in fields.items()] == [
        ("aB", RepeatedValue(1, 2, "a_b")),
        ("cD", 2),
        ("aB", RepeatedValue({"eF": 3}, 2, "a_b")),
        ("x", RepeatedValue(4, 2, "x")),
        ("x", RepeatedValue(5, 2, "x")),
    ]


def test_a_value_without_keys_to_convert_is_returned_as_the_same_object() -> None:
    for value in ([1, [2]], {"a": [{"b": 1}]}):
        fields: dict[str, object] = {"value": value}
        key_case_of().up.step(fields, PLAIN)
        assert fields["value"] is value


def test_keys_with_acronyms_are_converted_by_their_declared_names() -> None:
    written = KeyCase.model_validate_json(
        '{"newer": "camel", "older": "snake", "names": {"userID": "user_id", "iOS": "ios"}}'
    )
    change = written.body_change(BuildContext(Mistakes()))
    assert change is not None
    newer = {"userID": 1, "iOS": {"userID": [2]}, "line2": 3, "lastName": 4}
    older = {"user_id": 1, "ios": {"user_id": [2]}, "line2": 3, "last_name": 4}
    assert down(change, newer) == older
    assert up(change, older) == newer


def test_two_keys_with_the_same_declared_name_are_a_mistake() -> None:
    mistakes = Mistakes()
    names = '{"newer": "camel", "older": "snake", "names": {"userID": "id", "orderID": "id"}}'
    assert KeyCase.model_validate_json(names).body_change(BuildContext(mistakes)) is None
    assert "two keys have the same name in the older version" in str(mistakes.found)
