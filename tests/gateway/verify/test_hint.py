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


@pytest.mark.parametrize("keyword", ["additionalProperties", "unevaluatedProperties", "ignored"])
def test_a_key_that_only_an_example_has_is_no_field(keyword: str) -> None:
    part = MessagePart.RESPONSE
    free: Schema = {"type": "object", "additionalProperties": {}}
    claim = Claim("x", Version(1), Version(2), "GET /x", part, "200", free, {}, None)
    assert hint(claim, Finding("/made up", keyword, "is not allowed")) is None
    named = Claim("x", Version(1), Version(2), "GET /x", part, "200", of(a={}), {}, None)
    expected = "default: { field: a, value: ... }"
    assert hint(named, Finding("/a", keyword, "is not allowed")) == expected


TEXT: Schema = {"type": "string"}
LIST: Schema = {"type": "array", "items": {"type": "object"}}
PERSON: Schema = {"type": "object", "properties": {"id": {"type": "integer"}, "name": TEXT}}
NAME: Schema = {"type": "object", "properties": {"first": TEXT, "last": TEXT}}
DATA: Schema = {"type": "object", "properties": {"data": LIST, "count": {"type": "integer"}}}


def of(**fields: Schema) -> Schema:
    """Return the schema of an object with these fields."""
    return {"type": "object", "properties": fields}


def many(**fields: Schema) -> Schema:
    """Return the schema of an object with objects that have these fields."""
    return of(m={"type": "array", "items": of(**fields)})


FLATTEN = "flatten: { field: a, prefix: a_, but: [a_b] }"
NEST = FLATTEN.replace("flatten", "nest")
FLAT = 'flatten: { field: a, prefix: "", but: [n] }'
IN_ARRAY = 'flatten: { field: "m[].a", prefix: a_ }'
LINES: Schema = {"type": "array", "items": of(n=TEXT)}
PRICED: Schema = {"type": "array", "items": of(n=TEXT, c=TEXT)}
SPREAD = 'spread: { field: c, into: "m[].c", keep: false }'
COLLECT = 'collect: { field: "m[].c", into: c, keep: false }'
SNAKE = of(id=TEXT, order_lines={"type": "array", "items": of(unit_price=TEXT)})
CAMEL = of(id=TEXT, orderLines={"type": "array", "items": of(unitPrice=TEXT)})
INTO = "spread: { field: c, into: p.c }"
OUT = "collect: { field: p.c, into: c }"
DATED = of(sentAt=TEXT, paidAt=TEXT, metaData=of(aB=TEXT))
BUT = "key_case: { newer: camel, older: snake, but: [metaData] }"
HELD = 'extract: { field: "m[].a", key: data }'
BARE = 'envelope: { field: "m[].a", into: data }'
UNWRAP = "unwrap: { field: a, many: keep }"
MAP: Schema = {"type": "object", "additionalProperties": TEXT}


@pytest.mark.parametrize(
    ("newer", "older", "field", "expected"),
    [
        (DATA, LIST, "", "extract: { key: data }"),
        (LIST, DATA, "", "envelope: { into: data }"),
        (of(a=LIST, b=LIST), LIST, "", None),
        (TEXT, PERSON, "", "envelope: { into: name }"),
        ({"type": "boolean"}, PERSON, "", None),
        (of(data=PERSON, next=TEXT), PERSON, "/id", "extract: { key: data }"),
        (PERSON, of(data=PERSON, next=TEXT), "/data", "envelope: { into: data }"),
        # An object, and its members at the level above.
        (of(n=TEXT, a=NAME), of(n=TEXT, a_first=TEXT, a_last=TEXT, a_b=TEXT), "/a_last", FLATTEN),
        (of(n=TEXT, a_first=TEXT, a_last=TEXT, a_b=TEXT), of(n=TEXT, a=NAME), "/a", NEST),
        (of(n=TEXT, a=NAME), of(n=TEXT, first=TEXT, last=TEXT), "/a", FLAT),
        (many(n=TEXT, a=NAME), many(n=TEXT, a_first=TEXT, a_last=TEXT), "/m/*/a", IN_ARRAY),
        # A value beside elements, and in each of them.
        (of(c=TEXT, m=LINES), of(m=PRICED), "/m/*/c", SPREAD),
        (of(c=TEXT, m=LINES), of(c=TEXT, m=PRICED), "/m/*/c", SPREAD.replace(", keep: false", "")),
        (of(m=PRICED), of(c=TEXT, m=LINES), "/c", COLLECT),
        # Or beside an object, and in it.
        (of(c=TEXT, p=of(n=TEXT)), of(c=TEXT, p=of(n=TEXT, c=TEXT)), "/p/c", INTO),
        (of(c=TEXT, p=of(n=TEXT, c=TEXT)), of(c=TEXT, p=of(n=TEXT)), "/p/c", OUT),
        (of(c=TEXT, p=of(n=TEXT)), of(p=of(n=TEXT, c=TEXT)), "/c", "rename: { field: c, to: p.c }"),
        (of(p=of(n=TEXT, c=TEXT)), of(c=TEXT, p=of(n=TEXT)), "/c", "rename: { field: p.c, to: c }"),
        # All keys, but those that are data.
        (DATED, of(sent_at=TEXT, paid_at=TEXT, meta_data=of(aB=TEXT)), "/sent_at", BUT),
        # A list in an object.
        (many(a=of(data=LIST, n=TEXT)), many(a=LIST), "/m/*/a", HELD),
        (many(a=LIST), many(a=of(data=LIST, n=TEXT)), "/m/*/a", BARE),
        # All keys.
        (SNAKE, CAMEL, "/orderLines", "key_case: { newer: snake, older: camel }"),
        (CAMEL, SNAKE, "/order_lines/*/unit_price", "key_case: { newer: camel, older: snake }"),
        # Lists that are written as their only element, and pairs.
        (of(a=LIST), of(a={"type": ["array", "object"]}), "/a", UNWRAP),
        (of(a={"type": ["array", "object"]}), of(a=LIST), "/a", UNWRAP.replace("un", "")),
        (of(a=MAP), of(a=TEXT), "/a", 'join_list: { field: a, separator: ",", pairs: "=" }'),
        (of(a=TEXT), of(a=MAP), "/a", 'split_list: { field: a, separator: ",", pairs: "=" }'),
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
def test_another_shape(newer: Schema, older: Schema, field: str, expected: str | None) -> None:
    about = ("x", Version(1), Version(2), "GET /x", MessagePart.RESPONSE, "200")
    wrong = Finding(field, "type", "is of another type")
    assert hint(Claim(*about, newer, older, None), wrong) == expected
    # The same change, also where the message is a request of the older version.
    asked = (*about[:4], MessagePart.REQUEST, "")
    if wrong.keyword:
        assert hint(Claim(*asked, older, newer, None), wrong) == expected


def test_a_key_with_signs_is_quoted() -> None:
    about = ("x", Version(1), Version(2), "GET /x", MessagePart.RESPONSE, "200")
    schema = of(**{"a.b": of(c={"enum": [1]})})
    claim = Claim(*about, schema, schema, None)
    wrong = Finding("/a.b/c", "enum", "is another")
    assert hint(claim, wrong) == r'map: { field: "a\\.b.c", values: { ... } }'
