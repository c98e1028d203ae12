"""What the schemas of one place allow there."""

import pytest

from gateway.conversion.schema import Schema
from gateway.verify.openapi.field_shape import FieldShape, Presence


@pytest.mark.parametrize(
    ("schema", "array", "free"),
    [
        ({}, False, False),
        ({"type": "array"}, True, False),
        ({"type": ["array", "null"]}, True, False),
        ({"type": ["array", "object"]}, False, False),
        ({"type": "object", "additionalProperties": {}}, False, True),
        ({"unevaluatedProperties": {"type": "string"}}, False, True),
        ({"properties": {"a": {}}, "additionalProperties": True}, False, False),
        ({"type": "object", "properties": {}, "additionalProperties": True}, False, True),
    ],
)
def test_arrays_and_maps(schema: Schema, array: bool, free: bool) -> None:
    shape = FieldShape([schema])
    assert (shape.is_array, shape.is_map) == (array, free)


@pytest.mark.parametrize(
    ("schema", "name", "free"),
    [
        ({"properties": {"a": {}}, "additionalProperties": {}}, "a", False),
        ({"properties": {"a": {}}, "additionalProperties": {}}, "b", True),
        ({"properties": {"a": {}}, "patternProperties": {"^x": {}}}, "x1", True),
        ({"properties": {"a": {}}, "additionalProperties": False}, "b", False),
        ({"properties": {"a": {}}}, "b", False),
    ],
)
def test_free_keys(schema: Schema, name: str, free: bool) -> None:
    assert FieldShape([schema]).has_free_key(name) is free


def test_a_bare_object_has_what_was_put_into_it() -> None:
    shape, anything = FieldShape(bare=True), FieldShape()
    for place in (shape, anything):
        place.put("a", FieldShape())
        assert place.names == ["a"]
    assert shape.inside("b") is Presence.UNDECLARED
    assert isinstance(anything.inside("b"), FieldShape)
    anything.taken.add("a")
    assert anything.inside("a") is Presence.UNDECLARED
