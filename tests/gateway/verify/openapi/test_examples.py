"""Generated examples conform to their schema and depend only on the seed."""

import time
from typing import Any

import msgspec
import pytest

from gateway.conversion.schema import Schema
from gateway.verify.openapi import examples as examples_module
from gateway.verify.openapi.examples import Examples, NoExamplesError
from gateway.verify.openapi.validation import Validator
from gateway.verify.time_limit import OutOfTimeError

SCHEMA: Schema = {
    "type": "object",
    "required": ["id", "next"],
    "properties": {
        "id": {"type": "integer", "minimum": 1, "maximum": 9},
        "size": {"type": "number"},
        "next": {"$ref": "#/components/schemas/Next"},
    },
    "components": {"schemas": {"Next": {"type": ["string", "null"], "maxLength": 2}}},
}


def test_examples_conform_to_the_schema() -> None:
    examples = list(Examples(30, 0).of(SCHEMA))
    assert len(examples) == 30
    assert all(Validator(SCHEMA).allows(example) for example in examples)
    assert len({str(example) for example in examples}) > 5


def test_equal_seeds_give_equal_examples() -> None:
    assert list(Examples(10, 1).of(SCHEMA)) == list(Examples(10, 1).of(dict(SCHEMA)))
    assert list(Examples(10, 1).of(SCHEMA)) != list(Examples(10, 2).of(SCHEMA))


def test_objects_in_examples_have_only_declared_fields() -> None:
    keys = {key for example in Examples(30, 0).of(SCHEMA) for key in _object(example)}
    assert keys == {"id", "size", "next"}


def test_whole_numbers_in_examples_are_integers() -> None:
    examples = list(Examples(40, 0).of({"type": "array", "items": {"type": "number"}}))
    numbers = [number for example in examples for number in _array(example)]
    assert numbers
    assert not [one for one in numbers if isinstance(one, float) and one.is_integer()]


def test_the_values_of_equal_schemas_are_generated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    real = examples_module._strategy

    def strategy(body: Schema) -> Any:
        made.append(body)
        return real(body)

    monkeypatch.setattr(examples_module, "_strategy", strategy)
    examples = Examples(3, 0)
    day: Schema = {"type": "string", "format": "date"}
    assert [*examples.of(day), *examples.of({"type": "array", "items": day})]
    assert made == [day]


def test_the_library_adds_few_examples_to_those_composed_of_a_union(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def generate(_: Examples, text: bytes, count: int) -> list[object]:
        return ["of the library"] * count

    def member(name: str, least: int) -> Schema:
        one = {"type": "integer", "minimum": least}
        return {"type": "object", "properties": {name: one}, "required": [name]}

    monkeypatch.setattr(Examples, "_generate", generate)
    # Each value that fits one of the first members fits the others, too.
    found = [*Examples(20, 0).of({"oneOf": [*(member("a", n) for n in range(9)), member("b", 0)]})]
    assert found.count("of the library") == 2
    assert len(found) > 2


def test_nested_arrays_in_examples_are_short() -> None:
    """With five elements at each level, examples had 35 kB."""
    schema: Schema = {"type": "string", "maxLength": 4}
    for _ in range(5):
        schema = {"type": "array", "items": schema}
    found = list(Examples(30, 0).of(schema))
    assert max(len(msgspec.json.encode(each)) for each in found) < 6_000
    assert any(len(_array(each)) == 3 for each in found)
    flat: Schema = {"type": "array", "items": {"type": "integer"}}
    assert any(len(_array(each)) == 8 for each in Examples(100, 0).of(flat, 8))


@pytest.mark.parametrize(
    "schema",
    [
        # Schemas that describe only a part of an object stay open.
        {
            "properties": {"a": {"type": "string"}},
            "required": ["a"],
            "anyOf": [{"properties": {"b": {}}, "required": ["b"]}, {"required": ["a"]}],
        },
        {
            "allOf": [
                {"oneOf": [{"properties": {"a": {}}, "required": ["a"]}]},
                {"properties": {"b": {}}, "required": ["b"]},
            ]
        },
        {
            "allOf": [{"$ref": "#/components/schemas/A"}, {"required": ["b"]}],
            "components": {
                "schemas": {
                    "A": {"oneOf": [{"$ref": "#/components/schemas/B"}]},
                    "B": {"type": "object", "properties": {"a": {}}, "required": ["a"]},
                }
            },
        },
        {
            "properties": {"a": {"const": 1}},
            "required": ["a"],
            "if": {"properties": {"a": {"const": 1}}},
            "then": {"properties": {"b": {}}, "required": ["b"]},
        },
        {"minItems": 5, "anyOf": [{"type": "array", "items": {"type": "integer"}}]},
        {"type": "string", "format": "binary"},
    ],
)
def test_examples_conform_to_schemas_that_combine_partial_schemas(schema: Schema) -> None:
    found = list(Examples(5, 0).of(schema))
    assert found
    assert all(Validator(schema).allows(example) for example in found)
    assert msgspec.json.encode(found)


def test_generation_stops_at_the_end_of_the_time_limit() -> None:
    examples = Examples(5, 0, time.monotonic() - 1)
    with pytest.raises(OutOfTimeError):
        next(examples.of(SCHEMA))


def test_a_contradictory_schema_has_no_examples() -> None:
    with pytest.raises(NoExamplesError):
        list(Examples(5, 0).of({"type": "string", "minLength": 3, "maxLength": 2}))


def _object(value: object) -> dict[str, object]:
    assert isinstance(value, dict)
    return value


def _array(value: object) -> list[object]:
    assert isinstance(value, list)
    return value
