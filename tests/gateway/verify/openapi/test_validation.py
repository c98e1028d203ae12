"""The violations of a schema: their fields, keywords and reasons."""

import pytest

from gateway.conversion.schema import Schema
from gateway.verify.openapi.schema_fields import declared, fields_of
from gateway.verify.openapi.validation import Validator

OBJECT: Schema = {
    "type": "object",
    "required": ["a"],
    "properties": {
        "a": {"type": "string"},
        "b": {"type": "array", "items": {"enum": ["x", "y"]}},
        "c": {"anyOf": [{"type": "null"}, {"type": "object", "required": ["d"]}]},
        "e~/": {"type": ["integer", "null"]},
        "f": {"type": "string", "format": "date"},
    },
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({"a": ""}, []),
        ({}, [("/a", "required", "is missing, but required")]),
        ({"a": 1}, [("/a", "type", "expected a string, found a number")]),
        (
            {"a": "", "e~/": 1.5},
            [("/e~0~1", "type", "expected an integer or null, found a fraction")],
        ),
        ({"a": "", "b": ["x", "z"]}, [("/b/*", "enum", '"z" is not one of "x" or "y"')]),
        ({"a": "", "c": {}}, [("/c/d", "required", "is missing, but required")]),
        ({"a": "", "f": "x"}, [("/f", "format", '"x" is not a "date"')]),
        (
            {"a": "", "z": 1},
            [("/z", "additionalProperties", "is not declared, and no other fields are allowed")],
        ),
        ([], [("", "type", "expected an object, found an array")]),
    ],
)
def test_violations_have_a_field_a_keyword_and_a_reason(
    document: object, expected: list[tuple[str, str, str]]
) -> None:
    validator = Validator(OBJECT)
    found = validator.violations(document)
    assert [(one.field, one.keyword, one.reason) for one in found] == expected
    assert validator.allows(document) == (not expected)


def test_a_violation_is_in_the_alternative_that_was_probably_meant() -> None:
    """The kind tells which one, or else the number of fields that do not fit."""

    def an(kind: str, *names: str, required: tuple[str, ...] = ()) -> Schema:
        texts: dict[str, object] = {name: {"type": "string"} for name in names}
        properties = {**texts, "kind": {"enum": [kind]}}
        made: Schema = {"type": "object", "properties": properties, "required": [*required]}
        return {**made, "additionalProperties": False}

    bank, cash = an("bank", "iban"), an("cash", "desk", required=("kind", "desk"))
    union = {"oneOf": [an("card", "number", "name", "cvc"), bank, cash, {"type": "string"}]}
    validator = Validator({"type": "array", "items": union})
    card = {"number": "1", "name": "A", "old": "B"}
    for document in (card, {**card, "kind": "card"}, {"kind": "card", "old": "B"}):
        (found,) = validator.violations([document])
        assert (found.field, found.keyword) == ("/*/old", "additionalProperties")
    found, *others = validator.violations([{"kind": "cash"}])
    assert ((found.field, found.keyword), others) == (("/*/desk", "required"), [])


def test_the_path_of_a_violation_has_the_index_of_an_array_element() -> None:
    (found,) = Validator(OBJECT).violations({"a": "", "b": ["x", "z"]})
    assert found.path == ("b", 1)


def test_the_fields_of_a_document_have_escaped_names() -> None:
    found = fields_of({"a": [{"b": 1}, {"c/": [[2]]}]})
    assert found == {"", "/a", "/a/*", "/a/*/b", "/a/*/c~1", "/a/*/c~1/*", "/a/*/c~1/*/*"}


def test_an_object_that_allows_undeclared_keys_is_not_complete() -> None:
    schema: Schema = {
        "allOf": [{"$ref": "#/components/schemas/N"}, {"properties": {"a": {"type": "string"}}}],
        "components": {
            "schemas": {
                "N": {
                    "properties": {
                        "next": {"$ref": "#/components/schemas/N"},
                        "map": {"properties": {"k": {}}, "additionalProperties": True},
                    }
                }
            }
        },
    }
    found = declared(schema)
    assert {"", "/a", "/next", "/next/next", "/map", "/map/k"} <= found.fields
    assert {"", "/next"} <= found.objects
    assert "/map" not in found.objects


def test_an_invalid_schema_is_refused_with_the_location_of_its_mistake() -> None:
    """The message has a single line, although the library's message has several lines."""
    with pytest.raises(
        ValueError,
        match=r"^not a valid schema:"
        r" /properties/a/pattern: .*$",
    ) as caught:
        Validator({"properties": {"a": {"pattern": "(["}}})
    assert "\n" not in str(caught.value)
