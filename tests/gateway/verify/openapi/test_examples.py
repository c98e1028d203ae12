"""Examples fit their schema, and are the same ones for the same seed."""

import pytest

from gateway.verify.openapi.examples import NoExamplesError, generate
from gateway.verify.openapi.json_schema import Schema
from gateway.verify.openapi.validation import Validator

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


def test_examples_fit() -> None:
    examples = generate(SCHEMA, 30, 0)
    assert len(examples) == 30
    assert all(Validator(SCHEMA).allows(example) for example in examples)
    assert len({str(example) for example in examples}) > 5


def test_the_seed_decides() -> None:
    assert generate(SCHEMA, 10, 1) == generate(dict(SCHEMA), 10, 1)
    assert generate(SCHEMA, 10, 1) != generate(SCHEMA, 10, 2)


def test_objects_have_no_fields_beside_the_declared_ones() -> None:
    keys = {key for example in generate(SCHEMA, 30, 0) for key in _object(example)}
    assert keys == {"id", "size", "next"}


def test_whole_numbers_are_written_as_such() -> None:
    examples = generate({"type": "array", "items": {"type": "number"}}, 40, 0)
    numbers = [number for example in examples for number in _array(example)]
    assert numbers
    assert not [one for one in numbers if isinstance(one, float) and one.is_integer()]


def test_a_schema_that_contradicts_itself() -> None:
    with pytest.raises(NoExamplesError):
        generate({"type": "string", "minLength": 3, "maxLength": 2}, 5, 0)


def _object(value: object) -> dict[str, object]:
    assert isinstance(value, dict)
    return value


def _array(value: object) -> list[object]:
    assert isinstance(value, list)
    return value
