"""Shapes of documents, and what a filter with these shapes removes from bodies and queries."""

import json
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.base.path_templates import Router
from gateway.conversion.additional import (
    Additional,
    AdditionalPolicy,
    DocumentShapes,
    LoadedDocument,
    MessageFilter,
)
from gateway.conversion.chain import BodyConversion
from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.formats import json_body
from gateway.conversion.formats.form_body import convert_form
from gateway.conversion.formats.json_patch import convert_patch
from gateway.conversion.parameter_change import QUERY, parse_query, write_query
from gateway.conversion.version_step import Direction
from gateway.verify.openapi.openapi import DocumentError
from gateway.verify.openapi.shapes import ShapeCompiler
from gateway.versions.version import Version
from tests.gateway.world import LAW

V1 = Version(1, "1")
DROP = AdditionalPolicy(Additional.DROP, Additional.DROP, "a")
REFUSE = AdditionalPolicy(Additional.REFUSE, Additional.REFUSE, "a")
CAT = {"type": "object", "properties": {"kind": {"type": "string"}, "meow": {}}}
DOG = {"type": "object", "properties": {"kind": {"type": "string"}, "bark": {}}}
COMPONENTS: Mapping[str, Any] = {
    "Node": {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "next": {"$ref": "#/components/schemas/Node"},
            "children": {"type": "array", "items": {"$ref": "#/components/schemas/Node"}},
        },
    },
    "Cat": CAT,
    "Dog": DOG,
    "Base": {
        "type": "object",
        "properties": {"kind": {"type": "string"}},
        "discriminator": {"propertyName": "kind", "mapping": {"c": "#/components/schemas/Kitten"}},
    },
    "Kitten": {
        "allOf": [
            {"$ref": "#/components/schemas/Base"},
            {"type": "object", "properties": {"age": {}}},
        ]
    },
}


def compiled(schema: object, parameters: object = ()) -> DocumentShapes:
    content = {"application/json": {"schema": schema}}
    operation = {
        "parameters": list(parameters) if isinstance(parameters, list) else [],
        "requestBody": {
            "content": {**content, "application/x-www-form-urlencoded": {"schema": schema}}
        },
        "responses": {"200": {"content": content}},
    }
    data = {
        "openapi": "3.1.0",
        "paths": {"/a": {"post": operation}},
        "components": {"schemas": COMPONENTS},
    }
    made = ShapeCompiler(data, "test").compile()
    # Another process compiles documents, so the shapes have to survive as plain data.
    return msgspec.json.decode(msgspec.json.encode(made), type=DocumentShapes)


def message_filter(
    shapes: DocumentShapes, policy: AdditionalPolicy, *, response: bool = True
) -> MessageFilter:
    document = LoadedDocument(V1, shapes.shapes, Router([]), frozenset())
    (operation,) = shapes.operations
    shape = operation.response(200) if response else None
    return MessageFilter(document, operation, policy, shape)


def filtered(one: MessageFilter) -> BodyConversion:
    return BodyConversion((), Direction.DOWN).filtered((one,))


def dropped(schema: object, body: object) -> Any:
    conversion = filtered(message_filter(compiled(schema), DROP))
    text = json.dumps(body).encode()
    made = json_body.convert(text, conversion)
    assert json_body.convert(made, conversion) is made
    return json.loads(made)


ref = "#/components/schemas/{}".format
NODE = {"$ref": ref("Node")}


@pytest.mark.parametrize(
    ("schema", "body", "made"),
    [
        (CAT, {"meow": 1, "new": 2}, {"meow": 1}),
        (CAT, {"meow": {"any": 1}}, {"meow": {"any": 1}}),
        (CAT, "text", "text"),
        (CAT, [{"new": 1}], [{"new": 1}]),
        (
            {"type": "array", "items": CAT},
            [{"new": 1}, None, 7, {"meow": 1}],
            [{}, None, 7, {"meow": 1}],
        ),
        ({"type": "object"}, {"any": {"b": 1}}, {"any": {"b": 1}}),
        ({}, {"any": 1}, {"any": 1}),
        (
            {"type": "object", "additionalProperties": CAT},
            {"x": {"new": 1, "meow": 2}},
            {"x": {"meow": 2}},
        ),
        ({**CAT, "additionalProperties": True}, {"new": 1}, {"new": 1}),
        ({**CAT, "additionalProperties": False}, {"new": 1}, {}),
        ({"type": "object", "additionalProperties": False}, {"new": 1}, {}),
        ({**CAT, "patternProperties": {"^x-": {}}}, {"x-a": 1}, {"x-a": 1}),
        (NODE, {"next": {"next": {"new": 1, "name": "a"}}}, {"next": {"next": {"name": "a"}}}),
        (NODE, {"children": [{"children": [{"new": 1}]}]}, {"children": [{"children": [{}]}]}),
        ({"allOf": [CAT, DOG]}, {"meow": 1, "bark": 1, "new": 1}, {"meow": 1, "bark": 1}),
        ({"anyOf": [CAT, DOG]}, {"bark": 1, "new": 1}, {"bark": 1}),
        ({"anyOf": [{"type": "string"}, CAT]}, {"bark": 1, "meow": 1}, {"meow": 1}),
        ({"anyOf": [CAT, {"type": "object"}]}, {"new": 1}, {"new": 1}),
        ({**CAT, "anyOf": [{"required": ["meow"]}, {"required": ["kind"]}]}, {"new": 1}, {}),
        ({"type": ["object", "null"], "properties": CAT["properties"]}, None, None),
        (
            {**CAT, "if": {"required": ["kind"]}, "then": {"properties": {"more": {}}}},
            {"more": 1},
            {"more": 1},
        ),
        (
            {"properties": {"a": {"type": "string", "writeOnly": True}, "b": {}}},
            {"a": 1, "b": 2},
            {"b": 2},
        ),
        ({"properties": {"a": {"type": "string", "readOnly": True}}}, {"a": 1}, {"a": 1}),
        (
            {"properties": {"a": CAT}, "additionalProperties": True},
            {"a": {"new": 1}, "b": 1},
            {"a": {}, "b": 1},
        ),
    ],
)
def test_only_documented_fields_stay(schema: object, body: object, made: object) -> None:
    assert dropped(schema, body) == made


@pytest.mark.parametrize("mapping", [{}, {"c": ref("Cat"), "Dog": "Dog"}])
def test_the_discriminator_selects_the_documented_fields(mapping: dict[str, str]) -> None:
    schema = {
        "oneOf": [{"$ref": ref("Cat")}, {"$ref": ref("Dog")}],
        "discriminator": {"propertyName": "kind", "mapping": mapping},
    }
    kind = "c" if mapping else "Cat"
    assert dropped(schema, {"kind": kind, "meow": 1, "bark": 2}) == {"kind": kind, "meow": 1}
    assert dropped(schema, {"kind": "Dog", "meow": 1, "bark": 2}) == {"kind": "Dog", "bark": 2}
    unknown = {"kind": "new", "meow": 1, "bark": 2}
    assert dropped(schema, {**unknown, "x": 1}) == unknown


def test_a_base_with_a_discriminator_has_the_fields_of_its_subtypes() -> None:
    schema = {"$ref": ref("Base")}
    assert dropped(schema, {"kind": "c", "age": 1, "new": 2}) == {"kind": "c", "age": 1}
    assert dropped({"$ref": ref("Kitten")}, {"age": 1, "new": 2}) == {"age": 1}


@pytest.mark.parametrize(
    "text", [b'{"meow": 1.50, "kind":"\\u0061"}', b'{"meow":1,"meow":2}', b'[ {"kind" : 1e400} ]']
)
def test_a_body_with_documented_fields_keeps_its_bytes(text: bytes) -> None:
    schema = {"anyOf": [CAT, {"type": "array", "items": CAT}]}
    conversion = filtered(message_filter(compiled(schema), DROP))
    assert json_body.convert(text, conversion) is text


@pytest.mark.parametrize("text", [b'{"a":1,"a":2}', b'{ "a" : 1, "meow":2, "a": 3}'])
def test_a_repeated_additional_field_is_removed_each_time(text: bytes) -> None:
    conversion = filtered(message_filter(compiled(CAT), DROP))
    assert b'"a"' not in json_body.convert(text, conversion)


def test_a_refusal_names_each_field() -> None:
    schema = {"type": "array", "items": NODE}
    conversion = filtered(message_filter(compiled(schema), REFUSE))
    body = b'[{"a":1},{"next":{"b/c":{}}}]'
    with pytest.raises(
        ConversionError, match=r"^/0/a, /1/next/b~1c: unknown in version 1$"
    ) as error:
        json_body.convert(body, conversion)
    assert error.value.misfit == {
        "field": "[0].a, [1].next.b/c",
        "pointer": "/0/a, /1/next/b~1c",
        "reason": "unknown in version 1",
    }


PARAMETERS = [
    {"name": "page", "in": "query", "schema": {"type": "integer"}},
    {"name": "ids", "in": "query", "schema": {"type": "array", "items": {"type": "string"}}},
    {"name": "tags[]", "in": "query", "schema": {"type": "array"}},
    {"name": "filter", "in": "query", "style": "deepObject", "schema": CAT},
    {"name": "open", "in": "query", "style": "deepObject", "schema": {"type": "object"}},
    {"name": "spread", "in": "query", "schema": {"properties": {"a": {"type": "string"}}}},
    {"name": "X-New", "in": "header", "schema": {}},
]


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        ("page=1&limit=3", "page=1"),
        ("ids=1&ids[]=2&ids[0]=3&ids%5B%5D=4", "ids=1&ids[]=2&ids[0]=3&ids%5B%5D=4"),
        ("tags[]=1&tags=2&tags[0]=3", "tags[]=1&tags[0]=3"),
        ("page[gt]=1&page[]=2", None),
        ("filter[meow]=1&filter[new]=2&filter[meow][x]=3", "filter[meow]=1&filter[meow][x]=3"),
        ("filter[kind][x]=1&open[a][b]=2&spread=1&a=1", "open[a][b]=2&spread=1&a=1"),
        ("%70age=+1&&page", "%70age=+1&page"),
    ],
)
def test_only_documented_parameters_stay(query: str, kept: str | None) -> None:
    one = message_filter(compiled(CAT, PARAMETERS), DROP, response=False)
    assert write_query(one.query(parse_query(query), QUERY)) == kept


def test_a_parameter_that_the_gateway_reads_stays() -> None:
    one = message_filter(compiled(CAT, PARAMETERS), REFUSE, response=False)
    one._document.reserved = frozenset({"api_key"})
    lines = parse_query("api_key=1&page=2")
    assert one.query(lines, QUERY) is lines


def test_nested_form_fields_are_compared_by_their_names() -> None:
    one = message_filter(compiled(NODE), DROP, response=False)
    conversion = BodyConversion((), Direction.UP, True).filtered((one,))
    sent = b"name=a&next[name]=b&next[new]=c&children[0][name]=d&children[][x]=e&new=f"
    assert convert_form(sent, conversion) == b"name=a&next[name]=b&children[0][name]=d"


def test_a_json_patch_loses_operations_on_undocumented_fields() -> None:
    one = message_filter(compiled(NODE), DROP, response=False)
    conversion = BodyConversion((), Direction.UP, True).filtered((one,))
    keep = {"op": "add", "path": "/children/0/name", "value": "a"}
    sent = [keep, {"op": "remove", "path": "/new"}, {"op": "add", "path": "/next/new", "value": 1}]
    assert json.loads(convert_patch(json.dumps(sent).encode(), conversion)) == [keep]


names = st.sampled_from(["a", "b", "c", "$d"])
schemas = st.recursive(
    st.sampled_from([{"type": "string"}, {"type": "object"}, {}]),
    lambda inner: st.one_of(
        st.builds(
            lambda fields: {"type": "object", "properties": fields},
            st.dictionaries(names, inner, min_size=1, max_size=3),
        ),
        st.builds(lambda one: {"type": "array", "items": one}, inner),
        st.builds(lambda one: {"type": "object", "additionalProperties": one}, inner),
        st.builds(lambda *some: {"anyOf": some}, inner, inner),
    ),
    max_leaves=6,
)
bodies = st.recursive(
    st.one_of(st.none(), st.integers(), st.text(max_size=3)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(names, inner, max_size=4)),
    max_leaves=12,
)


@LAW
@given(schemas, bodies)
def test_after_a_filter_a_body_has_only_documented_fields(schema: object, body: object) -> None:
    shapes = compiled(schema)
    made = dropped(schema, body)
    refusing = filtered(message_filter(shapes, REFUSE))
    text = json.dumps(made).encode()
    assert json_body.convert(text, refusing) is text
    if made == body:
        given_text = json.dumps(body).encode()
        assert json_body.convert(given_text, refusing) is given_text
    else:
        with pytest.raises(ConversionError):
            json_body.convert(json.dumps(body).encode(), refusing)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ({"swagger": "2.0", "paths": []}, "not valid Swagger 2.0"),
        (
            {"openapi": "3.1.0", "paths": {"/a": {"get": {"responses": {"200": {"$ref": "#/x"}}}}}},
            "#/x",
        ),
        ({"openapi": "3.1.0", "paths": {"/a": 7}}, "expected an object"),
    ],
)
def test_an_invalid_document_is_refused(data: object, reason: str) -> None:
    with pytest.raises(DocumentError, match=reason):
        ShapeCompiler(data, "test").compile()
