"""Nested fields of forms and queries (style deepObject) have names in brackets."""

from typing import Any

from gateway.verify.openapi.openapi import Description, Operation

TEXT = {"type": "string"}


def described(operation: dict[str, Any], components: dict[str, Any] | None = None) -> Operation:
    document: dict[str, Any] = {"openapi": "3.1.0", "paths": {"/codes": {"post": operation}}}
    document |= {"components": {"schemas": components}} if components else {}
    (found,) = Description(document, "document").operations
    return found


def form_of(properties: dict[str, Any], nested: list[str], **keywords: Any) -> dict[str, Any]:
    content = {
        "application/x-www-form-urlencoded": {
            "encoding": {name: {"style": "deepObject", "explode": True} for name in nested},
            "schema": {"type": "object", "properties": properties, **keywords},
        }
    }
    return {"requestBody": {"content": content}, "responses": {}}


def test_the_fields_of_an_object_in_a_form_have_names_in_brackets() -> None:
    promotion = {
        "type": "object",
        "required": ["type"],
        "properties": {
            "type": {"enum": ["coupon"]},
            "limit": {"type": "object", "properties": {"days": {"type": "integer"}}},
        },
    }
    operation = described(
        form_of(
            {"promotion": {"$ref": "#/components/schemas/promotion"}, "name": TEXT},
            ["promotion"],
            required=["promotion"],
        ),
        {"promotion": promotion},
    )
    assert operation.form is not None
    named: Any = operation.form["properties"]
    assert {*named} == {"promotion[type]", "promotion[limit][days]", "name"}
    assert named["promotion[limit][days]"]["type"] == "integer"
    assert operation.form["required"] == ["promotion[type]"]
    assert operation.form["additionalProperties"] is False


def test_free_keys_and_lists_of_objects_allow_further_names() -> None:
    for inner in (
        {"type": "object", "additionalProperties": TEXT},
        {"type": "array", "items": {"type": "object", "properties": {"price": TEXT}}},
    ):
        form = described(form_of({"data": inner, "name": TEXT}, ["data"])).form
        assert form is not None
        assert form["additionalProperties"] == {"type": "string"}


def test_a_list_of_strings_has_a_name_with_empty_brackets() -> None:
    form = described(form_of({"expand": {"type": "array", "items": TEXT}}, ["expand"])).form
    assert form is not None
    named: Any = form["properties"]
    assert named["expand[]"]["type"] == "array"


def test_an_object_or_a_value_at_one_name_has_both_names_and_requires_neither() -> None:
    created = {"anyOf": [{"type": "object", "properties": {"gte": TEXT}}, {"type": "integer"}]}
    parameter = {"name": "created", "in": "query", "required": True, "schema": created}
    operation = described({"parameters": [{**parameter, "style": "deepObject"}], "responses": {}})
    assert [(one.name, one.required) for one in operation.parameters] == [
        ("created[gte]", False),
        ("created", False),
    ]


def test_objects_without_the_style_deep_object_have_one_name() -> None:
    inner = {"type": "object", "properties": {"a": TEXT}}
    form = described(form_of({"data": inner}, [])).form
    assert form is not None
    assert form["properties"] == {"data": inner}
    parameter = {"name": "data", "in": "query", "schema": inner}
    (found,) = described({"parameters": [parameter], "responses": {}}).parameters
    assert found.name == "data"
