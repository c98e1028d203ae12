"""Parts of examples are converted like the parts of live messages."""

from dataclasses import replace
from pathlib import Path

import pytest

from gateway.conversion.chain import BodyConversion, Conversion, compose
from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.schema import Schema
from gateway.conversion.version_step import Direction
from gateway.rules.load import load
from gateway.verify.openapi.openapi import ApiParameter, Operation
from gateway.verify.part_conversion import (
    ConvertedBody,
    convert_headers,
    convert_message,
    convert_query,
    message_schema,
    parameters_of,
    schema_of,
    sendable,
)

PLACE = "#/components/schemas/Number"
RULES = """
services: { s: { targets: ["http://127.0.0.1:1"] } }
apis:
  things:
    endpoints: [ { path: /thing, version: { in: query, name: v } } ]
    versions: { "1": { service: s }, "2": { service: s } }
    conversions:
      - between: ["1", "2"]
        changes: [ { join: { fields: [name.first, name.last], into: name } } ]
        query: [ { rename: { field: limit, to: size } } ]
        headers: [ { rename: { field: X-New, to: X-Old } } ]
"""


def upgrade() -> Conversion:
    (api,) = load(RULES.encode(), "gateway.yaml", {}, Path()).apis
    older, newer = ascending = tuple(api.versions.values())
    return compose(ascending, api.links, older, newer)


def test_a_body_is_converted_like_live_bodies() -> None:
    convert = ConvertedBody(BodyConversion(upgrade().links, Direction.UP))
    assert convert({"name": "Ada King"}) == {"name": {"first": "Ada", "last": "King"}}
    with pytest.raises(ConversionError):
        convert({"name": 1})


WANTED: Schema = {
    "properties": {
        "limit": {"type": "integer"},
        "x-new": {"type": "integer"},
        "tags": {"type": "array", "items": {"type": "number"}},
        "on": {"type": "boolean"},
    }
}


@pytest.mark.parametrize(
    ("given", "arrives"),
    [
        ({}, {}),
        ({"size": 5}, {"limit": 5}),
        ({"size": "05"}, {"limit": "05"}),  # JSON does not allow a leading zero
        ({"size": "½"}, {"limit": "½"}),
        ({"tags": [1.5, 2]}, {"tags": [1.5, 2.0]}),
        ({"on": True, "off": True}, {"on": True, "off": "true"}),
        ({"q": "a b&c=d"}, {"q": "a b&c=d"}),
    ],
)
def test_query_parameters_are_converted_and_parsed_by_the_types_of_the_schema(
    given: object, arrives: object
) -> None:
    assert convert_query(upgrade(), "GET", WANTED)(given) == arrives


@pytest.mark.parametrize(
    ("given", "arrives"),
    [({"x-old": 5}, {"x-new": 5}), ({"x-old": "five", "a": "b"}, {"x-new": "five", "a": "b"})],
)
def test_header_fields_are_converted_and_parsed_by_the_types_of_the_schema(
    given: object, arrives: object
) -> None:
    assert convert_headers(upgrade(), "GET", WANTED)(given) == arrives


def test_the_types_of_optional_and_referenced_parameters_are_found() -> None:
    """Document generators write optional and custom types like this."""
    null = {"type": "null"}
    known = {"Number": {"type": "number"}, "Numbers": {"type": "array", "items": {"$ref": PLACE}}}
    wanted: Schema = {
        "properties": {
            "limit": {"anyOf": [{"type": "integer"}, null]},
            "size": {"type": ["number", "null"]},
            "ids": {"anyOf": [{"$ref": f"{PLACE}s"}, null]},
            "on": {"allOf": [{"type": "boolean"}]},
            "place": {"type": "object"},
            "no": {"type": "object"},
        },
        "components": {"schemas": known},
    }
    lines = [("limit", "5"), ("size", "1.5"), ("ids", "7"), ("on", "true"), ("place", "{}")]
    made = {"limit": 5, "size": 1.5, "ids": [7], "on": True, "place": {}, "no": "{"}
    assert parameters_of([*lines, ("no", "{")], wanted) == made
    given = sendable({**wanted, "type": "object"})
    assert given["properties"] == {
        "limit": {"anyOf": [{"type": "integer"}]},
        "size": {"type": ["number"]},
        "ids": {"anyOf": [{"$ref": f"{PLACE}s"}]},
        "on": {"allOf": [{"type": "boolean"}]},
        "place": {"type": "object"},
        "no": {"type": "object"},
    }
    several: Schema = {"properties": {"a": {"type": "array"}, "b": True}}
    referring: Schema = {"$ref": f"{PLACE}s", "components": {"schemas": {"Numbers": several}}}
    made_of = {"a": {"type": "array", "minItems": 1}, "b": True}
    assert sendable(referring)["properties"] == made_of
    round_about: Schema = {"schemas": {"Numbers": {"$ref": f"{PLACE}s"}}}
    odd: Schema = {"$ref": f"{PLACE}s", "components": round_about}
    assert sendable(odd) == {"type": "object", **odd}
    assert sendable({}) == {"type": "object"}


def test_the_schema_of_query_parameters_has_no_header_fields() -> None:
    components = {"components": {"schemas": {"S": {"type": "string"}}}}
    parameters = (
        ApiParameter("X-A", "header", True, {"$ref": "#/components/schemas/S", **components}),
        ApiParameter("b", "query", False, {"type": "integer"}),
    )
    assert schema_of(parameters, "query") == {
        "type": "object",
        "properties": {"b": {"type": "integer"}},
        "required": [],
    }
    assert schema_of(parameters, "header") == {
        "type": "object",
        "properties": {"x-a": {"$ref": "#/components/schemas/S"}},
        "required": ["x-a"],
        **components,
    }


MOVED = """
services: { s: { targets: ["http://127.0.0.1:1"] } }
apis:
  things:
    endpoints: [ { path: /thing, version: { in: query, name: v } } ]
    versions: { "1": { service: s }, "2": { service: s } }
    conversions:
      - between: ["1", "2"]
        changes:
          - to_query: { field: dry, parameter: dry_run, type: boolean }
          - from_header: { field: total, header: X-Total, type: number }
          - rename: { field: b, to: a }
          - to_header: { field: c, header: X-C }
"""


def moved(direction: Direction) -> BodyConversion:
    (api,) = load(MOVED.encode(), "gateway.yaml", {}, Path()).apis
    ((link,),) = api.links.values()
    return BodyConversion((link,), direction)


def test_values_move_between_a_response_body_and_header_fields() -> None:
    assert ConvertedBody(moved(Direction.UP))({"total": 2, "a": 1}) == {"b": 1, "c": "x"}
    assert ConvertedBody(moved(Direction.DOWN))({"b": 1, "c": "y"}) == {"total": 1, "a": 1}


def test_a_whole_request_gains_or_loses_a_body_that_one_version_lacks() -> None:
    wanted = message_schema(Operation("POST", "/thing"), {"type": "object"})
    links = moved(Direction.UP).links
    up, down = (
        convert_message(
            Conversion((replace(links[0], body_in_newer=True),), way), "POST", "POST", wanted
        )
        for way in Direction
    )
    empty: dict[str, object] = {"query": {}, "headers": {}}
    assert up(empty) == {**empty, "body": {}}
    assert up({**empty, "body": {"a": 1}}) == {**empty, "body": {"b": 1}}
    assert down(empty) == down({**empty, "body": {}}) == empty
    assert down({**empty, "body": {"c": "x"}}) == {"query": {}, "headers": {"x-c": "x"}}
    assert down({**empty, "body": {"b": 1}}) == {**empty, "body": {"a": 1}}


def test_a_whole_request_is_converted_with_query_headers_and_body() -> None:
    part = {"$ref": "#/components/schemas/a"}
    known = {"schemas": {"a": {"type": "integer"}}}
    schema: Schema = {"type": "object", "properties": {"a": part}, "components": known}
    parameters = (
        ApiParameter("dry_run", "query", True, {"type": "boolean"}),
        ApiParameter("X-C", "header", False, {"type": "string"}),
    )
    operation = Operation("POST", "/thing", schema, {}, parameters, body_required=True)
    wanted = message_schema(operation, schema)
    assert wanted["required"] == ["query", "headers", "body"]
    assert wanted["components"] == known
    without = message_schema(Operation("GET", "/thing"), None)
    assert without["required"] == ["query", "headers"]
    up, down = (
        convert_message(Conversion(moved(way).links, way), "POST", "POST", wanted)
        for way in Direction
    )
    message = {"query": {"dry_run": True}, "headers": {"x-c": "d"}, "body": {"a": 1}}
    assert up(message) == {"query": {}, "headers": {}, "body": {"dry": True, "b": 1, "c": "d"}}
    assert up({"query": {}, "headers": {}}) == {"query": {}, "headers": {}}
    made = down({"query": {}, "headers": {}, "body": {"dry": False}})
    assert made == {"query": {"dry_run": False}, "headers": {}, "body": {}}
    missing = {"headers": None, "body": {"a": 2}}
    assert up(missing) == {"query": {}, "headers": {}, "body": {"b": 2}}
    from_header = {"query": {}, "headers": {"x-c": "d"}}
    assert up(from_header) == {"query": {}, "headers": {}, "body": {"c": "d"}}
