"""Bodies, query parameters and header fields are converted as live ones are."""

from pathlib import Path

import pytest

from gateway.config.load import load
from gateway.core.conversion.chain import Conversion, compose
from gateway.core.conversion.document import ConversionError
from gateway.verify.openapi.json_schema import Schema
from gateway.verify.openapi.openapi import ApiParameter
from gateway.verify.part_conversion import (
    convert_body,
    convert_headers,
    convert_query,
    schema_of,
)

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
    older, newer = ladder = tuple(api.versions.values())
    return compose(ladder, api.links, older, newer)


def test_a_body() -> None:
    convert = convert_body(upgrade())
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
        ({"size": "05"}, {"limit": "05"}),  # not how JSON writes a number
        ({"size": "½"}, {"limit": "½"}),
        ({"tags": [1.5, 2]}, {"tags": [1.5, 2.0]}),
        ({"on": True, "off": True}, {"on": True, "off": "true"}),
        ({"q": "a b&c=d"}, {"q": "a b&c=d"}),
    ],
)
def test_query_parameters(given: object, arrives: object) -> None:
    assert convert_query(upgrade(), "GET", WANTED)(given) == arrives


@pytest.mark.parametrize(
    ("given", "arrives"),
    [({"x-old": 5}, {"x-new": 5}), ({"x-old": "five", "a": "b"}, {"x-new": "five", "a": "b"})],
)
def test_header_fields(given: object, arrives: object) -> None:
    assert convert_headers(upgrade(), "GET", WANTED)(given) == arrives


def test_the_schema_of_parameters() -> None:
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
