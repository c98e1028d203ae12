"""Hints are changes that read from the newer version to the older one."""

import pytest

from gateway.core.versions.version import Version
from gateway.verify.claim import Claim, MessagePart
from gateway.verify.hint import hint
from gateway.verify.openapi.json_schema import Schema
from gateway.verify.proof import Finding


@pytest.mark.parametrize(
    ("part", "client", "service", "expected"),
    [
        # What an older client lacks in a response is taken away on the way to it, and what a
        # newer service does not know in a request is taken away on the way to that.
        (MessagePart.RESPONSE, 1, 2, "remove: { field: a, value: ... }"),
        (MessagePart.REQUEST, 1, 2, "default: { field: a, value: ... }"),
        (MessagePart.RESPONSE, 2, 1, "default: { field: a, value: ... }"),
        (MessagePart.REQUEST, 2, 1, "remove: { field: a, value: ... }"),
        (MessagePart.QUERY, 1, 2, "default: { field: a, value: ... }"),
    ],
)
def test_a_change_reads_from_the_newer_version_to_the_older(
    part: MessagePart, client: int, service: int, expected: str
) -> None:
    claim = Claim("x", Version(client), Version(service), "GET /x", part, "", {}, {}, None)
    assert hint(claim, Finding("/a", "required", "is missing")) == expected


def test_what_no_change_mends() -> None:
    claim = Claim("x", Version(1), Version(2), "GET /x", MessagePart.RESPONSE, "200", {}, {}, None)
    assert hint(claim, Finding("/a", "pattern", "does not match")) is None


TEXT: Schema = {"type": "string"}
LIST: Schema = {"type": "array", "items": {"type": "object"}}
PERSON: Schema = {"type": "object", "properties": {"id": {"type": "integer"}, "name": TEXT}}
NAME: Schema = {"type": "object", "properties": {"first": TEXT, "last": TEXT}}
DATA: Schema = {"type": "object", "properties": {"data": LIST, "count": {"type": "integer"}}}


def of(**fields: Schema) -> Schema:
    """Return the schema of an object with these fields."""
    return {"type": "object", "properties": fields}


@pytest.mark.parametrize(
    ("newer", "older", "field", "expected"),
    [
        (DATA, LIST, "", "extract: { key: data }"),
        (LIST, DATA, "", "envelope: { into: data }"),
        (of(a=LIST, b=LIST), LIST, "", None),
        (TEXT, PERSON, "", None),
        (of(a=PERSON), of(a={"type": "integer"}), "/a", "extract: { field: a, key: id }"),
        (of(a={"type": "integer"}), of(a=PERSON), "/a", "envelope: { field: a, into: id }"),
        (of(a=NAME), of(a=TEXT), "/a", "join: { fields: [a.first, a.last], into: a }"),
        (of(a=TEXT), of(a=NAME), "/a", "split: { field: a, into: [a.first, a.last] }"),
        (of(a=NAME), of(a={"type": "boolean"}), "/a", None),
        (of(a=TEXT), of(a=LIST), "/a", "wrap: { field: a }"),
        (of(a=LIST), of(a=TEXT), "/a", "unwrap: { field: a }"),
        (of(a=TEXT), of(a=TEXT), "/a", None),
    ],
)
def test_another_type(newer: Schema, older: Schema, field: str, expected: str | None) -> None:
    about = ("x", Version(1), Version(2), "GET /x", MessagePart.RESPONSE, "200")
    claim = Claim(*about, newer, older, None)
    assert hint(claim, Finding(field, "type", "is of another type")) == expected


def test_a_key_with_signs_is_quoted() -> None:
    about = ("x", Version(1), Version(2), "GET /x", MessagePart.RESPONSE, "200")
    schema = of(**{"a.b": of(c={"enum": [1]})})
    claim = Claim(*about, schema, schema, None)
    wrong = Finding("/a.b/c", "enum", "is another")
    assert hint(claim, wrong) == r'map: { field: "a\\.b.c", values: { ... } }'
