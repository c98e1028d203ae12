"""Type: numbers and strings are converted without losing digits."""

import json
from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.conversion.chain import BodyConversion
from gateway.conversion.change import Change
from gateway.conversion.changes.type import json_as_text, retype, scale
from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.document import PLAIN, JsonObject
from gateway.conversion.field_path import Keys
from gateway.conversion.formats import json_body
from gateway.conversion.scalars import Type
from gateway.conversion.version_step import Direction, VersionLink
from gateway.versions.version import Version
from tests.gateway.conversion.documents import Json, down, fails, jsons, spelt, up
from tests.gateway.world import LAW

F: Keys = ("f",)
TEXT, NUMBER, BOOLEAN = Type

RETYPED = [
    (NUMBER, TEXT, "12.50", '"12.50"'),
    (NUMBER, TEXT, "0", '"0"'),
    (NUMBER, TEXT, "-0.0", '"-0.0"'),
    (NUMBER, TEXT, "1E+400", '"1E+400"'),
    (NUMBER, TEXT, "123456789012345678901234567890", '"123456789012345678901234567890"'),
    (NUMBER, TEXT, "0.1000000000000000000000000000001", '"0.1000000000000000000000000000001"'),
    (BOOLEAN, TEXT, "true", '"true"'),
    (BOOLEAN, TEXT, "false", '"false"'),
    (BOOLEAN, NUMBER, "true", "1"),
    (BOOLEAN, NUMBER, "false", "0"),
    (NUMBER, TEXT, "null", "null"),
    (BOOLEAN, NUMBER, "null", "null"),
]


@pytest.mark.parametrize(("newer", "older", "one", "other"), RETYPED)
def test_a_value_is_retyped_in_both_directions(
    newer: Type, older: Type, one: str, other: str
) -> None:
    assert spelt(retype((), F, newer, older), one, upwards=False) == other
    assert spelt(retype((), F, newer, older), other, upwards=True) == one
    assert spelt(retype((), F, older, newer), one, upwards=True) == other


@pytest.mark.parametrize(
    ("source", "target", "value", "reason"),
    [
        (TEXT, NUMBER, '""', "expected a numeric string, found another string"),
        (TEXT, NUMBER, '"007"', "expected a numeric string, found another string"),
        (TEXT, NUMBER, '"1."', "expected a numeric string, found another string"),
        (TEXT, NUMBER, '" 1"', "expected a numeric string, found another string"),
        (TEXT, NUMBER, '"+1"', "expected a numeric string, found another string"),
        (TEXT, NUMBER, '"NaN"', "expected a numeric string, found another string"),
        (TEXT, NUMBER, '"1,5"', "expected a numeric string, found another string"),
        (TEXT, NUMBER, '"\\u0661"', "expected a numeric string, found another string"),
        (TEXT, NUMBER, "1", "expected a string, found a number"),
        (TEXT, NUMBER, "true", "expected a string, found a boolean"),
        (NUMBER, TEXT, '"1"', "expected a number, found a string"),
        (NUMBER, TEXT, "[1]", "expected a number, found an array"),
        (BOOLEAN, TEXT, "1", "expected a boolean, found a number"),
        (TEXT, BOOLEAN, '"True"', "expected true or false, found something else"),
        (TEXT, BOOLEAN, '"1"', "expected true or false, found something else"),
        (NUMBER, BOOLEAN, "2", "expected 1 or 0, found something else"),
        (NUMBER, BOOLEAN, "1.0", "expected 1 or 0, found something else"),
    ],
)
def test_a_value_without_the_declared_type_is_refused(
    source: Type, target: Type, value: str, reason: str
) -> None:
    with fails("/f", reason):
        spelt(retype((), F, target, source), value, upwards=True)


@pytest.mark.parametrize(
    "change", [retype((), ("m", "f"), TEXT, NUMBER), scale((), ("m", "f"), 2, TEXT)]
)
@pytest.mark.parametrize("document", [{}, {"m": None}, {"m": {}}])
def test_type_leaves_an_absent_value_absent(change: Change, document: Json) -> None:
    assert up(change, document) == down(change, document) == document


@LAW
@given(
    st.from_regex(r"-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,4})?", fullmatch=True)
)
def test_a_number_and_its_string_have_the_same_digits(digits: str) -> None:
    change = retype((), F, NUMBER, TEXT)
    assert spelt(change, digits, upwards=False) == f'"{digits}"'
    assert spelt(change, f'"{digits}"', upwards=True) == digits


def test_numbers_in_parsed_documents_are_retyped() -> None:
    change = retype((), F, TEXT, NUMBER)
    assert up(change, {"f": 12}, PLAIN) == {"f": "12"}
    assert down(change, {"f": "12.50"}) == {"f": Decimal("12.50")}


def test_the_strings_true_and_false_are_booleans_in_a_form() -> None:
    change, form = retype((), F, NUMBER, BOOLEAN), replace(PLAIN, typed=False)
    fields: JsonObject = {"f": "true"}
    change.up.step(fields, form)
    assert fields == {"f": PLAIN.number("1")}
    with pytest.raises(ConversionError, match="/f: expected a boolean, found a string"):
        change.up.step({"f": "yes"}, form)


def _converted(body: str, direction: Direction) -> str:
    link = VersionLink(Version(1, "1"), Version(2, "2"), (json_as_text((), F),))
    return json_body.convert(body.encode(), BodyConversion((link,), direction)).decode()


@LAW
@given(jsons)
def test_a_json_value_is_restored_from_its_text(value: Json) -> None:
    older = _converted(json.dumps({"f": value}), Direction.DOWN)
    assert isinstance(json.loads(older)["f"], str | None)
    assert json.loads(_converted(older, Direction.UP)) == {"f": value}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ('{"b":[1.50,-0,1E+400],"a":null}', r'"{\"b\":[1.50,-0,1E+400],\"a\":null}"'),
        ("123456789012345678901234567890", '"123456789012345678901234567890"'),
        ('"a"', r'"\"a\""'),
        ("null", "null"),
    ],
)
def test_the_text_of_a_json_value_has_all_its_digits(value: str, text: str) -> None:
    assert _converted(f'{{"f":{value}}}', Direction.DOWN) == f'{{"f":{text}}}'
    assert _converted(f'{{"f":{text}}}', Direction.UP) == f'{{"f":{value}}}'


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('"{"', "expected a string of JSON, found another string"),
        ('"NaN"', "expected a string of JSON, found another string"),
        (r'"{\"a\":1,\"a\":2}"', "expected a string of JSON, found another string"),
        ('"1e999999999999999999999"', "expected a string of JSON, found another string"),
        ('"null"', "expected a string of JSON other than null, found null"),
        ('{"a":1}', "expected a string, found an object"),
        (f'"[{"1," * 1_000_000}1]"', "a string of more than 1000000 elements"),
    ],
)
def test_a_text_that_is_not_json_is_refused(text: str, reason: str) -> None:
    with fails("/f", reason):
        spelt(json_as_text((), F), text, upwards=True)
