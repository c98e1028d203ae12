"""The effect of each change on schemas: converted documents fit the converted schema."""

import json
import os
from dataclasses import replace
from typing import Any

import jsonschema_rs
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.base.mistakes import Mistakes
from gateway.conversion.chain import BodyConversion
from gateway.conversion.change import Change, GroupUse
from gateway.conversion.changes.change_section import BuildContext
from gateway.conversion.changes.registry import ChangeConfig
from gateway.conversion.changes.rename import rename
from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.field_path import parse_scopes
from gateway.conversion.formats import json_body
from gateway.conversion.schema import PLACE, Schema, Schemas, UndecidedError, definitions
from gateway.conversion.schema_fit import (
    ConvertedSchema,
    Fit,
    SchemaComparer,
    Verdict,
    convert_schema,
)
from gateway.conversion.unfit import REFUSE_UNFIT, UnfitPolicy
from gateway.conversion.version_step import Direction, VersionLink
from gateway.rules.document import read
from gateway.versions.version import Version
from tests.gateway.conversion.documents import KEEP, OMIT
from tests.test_change_examples import GROUPS, ROWS

# The number of generated examples for each case. A run with LAWS=400 found no errors.
LAWS = int(os.environ.get("LAWS", "5"))
WORDS = ("", "a", "x,y", "a b", "true", "1", "12.5", "E7", "inTransit", "2020-01-01T00:00:00Z")
NUMBERS = (0, 1, -3, 12, 1250, 0.5, 12.25)


@st.composite
def schemas_like(draw: st.DrawFn, example: object) -> Any:
    """Return a schema for documents that resemble an example. Fields may be optional or null."""
    schema: Any
    match example:
        case dict():
            names = [*example, *(["other"] if draw(st.booleans()) else [])]
            properties = {
                name: draw(schemas_like(example.get(name, draw(st.sampled_from(WORDS)))))
                for name in names
            }
            required = [name for name in names if draw(st.integers(0, 3))]
            schema = {"type": "object", "properties": properties, "required": required}
            if draw(st.booleans()):
                schema["additionalProperties"] = draw(
                    st.sampled_from([False, {"type": "string"}, {"type": "integer"}])
                )
            elif len(names) > 1 and draw(st.booleans()):
                schema = _in_parts(schema)
        case list():
            items = draw(schemas_like(example[0])) if example else {"type": "string"}
            schema = {"type": "array", "items": items}
            schema |= draw(st.sampled_from([{}, {"minItems": 1}, {"maxItems": 1}]))
        case bool():
            schema = draw(st.sampled_from([{"type": "boolean"}, {"enum": [example]}]))
        case None:
            schema = draw(st.sampled_from([{"type": "null"}, {"type": ["string", "null"]}]))
        case str():
            schema = draw(
                st.sampled_from([{"type": "string"}, {"enum": [example]}, {"enum": [example, ""]}])
            )
        case _:
            kind = "integer" if isinstance(example, int) else "number"
            schema = draw(
                st.sampled_from(
                    [
                        {"type": kind},
                        {"type": "number"},
                        {"type": kind, "minimum": 0, "maximum": 12},
                    ]
                )
            )
    if not draw(st.integers(0, 4)):
        return draw(st.sampled_from([{"anyOf": [schema, {"type": "null"}]}, {"allOf": [schema]}]))
    return schema


def _in_parts(schema: dict[str, Any]) -> dict[str, Any]:
    first, *others = schema["properties"].items()
    required = schema["required"]
    return {
        "allOf": [
            {
                "type": "object",
                "properties": dict(some),
                "required": [name for name, _ in some if name in required],
            }
            for some in ([first], others)
        ]
    }


@st.composite
def documents(draw: st.DrawFn, schema: Any) -> Any:
    if "anyOf" in schema:
        return draw(documents(draw(st.sampled_from(schema["anyOf"]))))
    if "allOf" in schema:
        made = [draw(documents(member)) for member in schema["allOf"]]
        return {key: value for one in made for key, value in one.items()} if made[1:] else made[0]
    if "enum" in schema:
        return draw(st.sampled_from(schema["enum"]))
    kind = schema["type"]
    match draw(st.sampled_from(kind)) if isinstance(kind, list) else kind:
        case "object":
            fields = {
                name: draw(documents(inner))
                for name, inner in schema["properties"].items()
                if name in schema["required"] or draw(st.booleans())
            }
            free = schema.get("additionalProperties")
            if isinstance(free, dict) and draw(st.booleans()):
                name = draw(st.sampled_from(("p_q", "EUR", "camelCase", "snake_case", "q")))
                if name not in schema["properties"]:
                    fields[name] = draw(documents(free))
            return fields
        case "array":
            least, most = schema.get("minItems", 0), schema.get("maxItems", 3)
            return draw(st.lists(documents(schema["items"]), min_size=least, max_size=most))
        case "boolean":
            return draw(st.booleans())
        case "null":
            return None
        case "string":
            return draw(st.sampled_from(WORDS))
        case name:
            low, high = schema.get("minimum", -9999), schema.get("maximum", 9999)
            found = [one for one in NUMBERS if low <= one <= high]
            whole = [one for one in found if isinstance(one, int)]
            return draw(st.sampled_from(whole if name == "integer" else found))


def allows(converted: ConvertedSchema, document: object) -> bool:
    root = converted.root
    schema = root if isinstance(root, dict) else {} if root else {"not": {}}
    whole = {**schema, "components": {"schemas": converted.schemas.components}}
    return jsonschema_rs.is_valid(whole, document)


def fits(given: ConvertedSchema, wanted: Schema) -> Fit:
    """Return the worst difference, or the verdict PROVED."""
    comparer = SchemaComparer(given.schemas, Schemas(definitions(wanted)))
    found = (one.fit for one in comparer.differences(given, wanted))
    return max(found, key=lambda fit: fit.verdict, default=Fit(Verdict.PROVED))


def between(
    change: Change, direction: Direction, policy: UnfitPolicy = REFUSE_UNFIT
) -> BodyConversion:
    changes = (replace(change, unfit=policy),)
    return BodyConversion(
        (VersionLink(Version(1, "1"), Version(2, "2"), changes),), direction, True
    )


def change_of(written: str) -> Change:
    data = read(written.encode(), "example", {}).data
    change = ChangeConfig.model_validate_json(json.dumps(data)).compile(
        BuildContext(Mistakes(), GROUPS)
    )
    assert change is not None
    return change


CASES = [
    pytest.param(written, example, direction, id=f"{written} {direction.name}")
    for written, newer, older in ROWS
    for direction, example in ((Direction.DOWN, newer), (Direction.UP, older))
]


@pytest.mark.parametrize(("written", "example", "direction"), CASES)
def test_a_converted_document_fits_the_converted_schema(
    written: str, example: str, direction: Direction
) -> None:
    change = change_of(written)

    @settings(
        max_examples=LAWS,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def law(data: st.DataObject) -> None:
        policy = data.draw(st.sampled_from((REFUSE_UNFIT, KEEP, OMIT)))
        used = change.for_patch() if data.draw(st.booleans()) else change
        conversion = between(used, direction, policy)
        schema = data.draw(schemas_like(json.loads(example)))
        try:
            converted = convert_schema(conversion, schema)
        except UndecidedError:
            return
        wanted = data.draw(schemas_like(json.loads(example)))
        verdict = fits(converted, wanted).verdict
        document = data.draw(documents(schema))
        try:
            made = msgspec.json.decode(json_body.convert(msgspec.json.encode(document), conversion))
        except ConversionError:
            if converted.refusals:
                return
            raise
        assert allows(converted, made)
        assert verdict is not Verdict.PROVED or jsonschema_rs.is_valid(wanted, made)

    law()


NODE = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "kids": {"type": "array", "items": {"anyOf": [{"$ref": f"{PLACE}Node"}, {"type": "null"}]}},
    },
    "required": ["name"],
}
TREE: Schema = {"$ref": f"{PLACE}Node", "components": {"schemas": {"Node": NODE}}}


def test_a_recursive_schema_is_converted_only_once() -> None:
    groups: dict[str, tuple[Change, ...]] = {}
    group = GroupUse("node", (parse_scopes("kids[]"),), groups).compile()
    groups["node"] = (rename((), ("name",), ("title",)), group)
    converted = convert_schema(
        between(GroupUse("node", ((),), groups).compile(), Direction.DOWN), TREE
    )
    assert not converted.refusals
    assert len(converted.schemas.components) == 2
    assert allows(converted, {"title": "a", "kids": [{"title": "b", "kids": [None]}]})
    assert not allows(converted, {"title": "a", "kids": [{"name": "b"}]})
    older = json.loads(json.dumps(TREE).replace("name", "title"))
    assert fits(converted, older).verdict is Verdict.PROVED
    found = fits(converted, TREE)
    assert found[:4] == (Verdict.FAILS, "/name", "required", "is missing, but required")


def test_a_change_of_the_root_object_does_not_alter_the_same_schema_in_fields() -> None:
    change = rename((), ("name",), ("title",))
    converted = convert_schema(between(change, Direction.DOWN), TREE)
    assert allows(converted, {"title": "a", "kids": [{"name": "b"}]})
    assert not allows(converted, {"title": "a", "kids": [{"title": "b"}]})


TEXT, NUMBER = {"type": "string"}, {"type": "number"}


def an(**fields: object) -> Schema:
    return {"type": "object", "properties": fields, "required": list(fields)}


@pytest.mark.parametrize(
    ("given_schema", "wanted", "verdict", "place"),
    [
        (TEXT, TEXT, Verdict.PROVED, ""),
        (TEXT, {"type": ["string", "null"]}, Verdict.PROVED, ""),
        ({"type": ["string", "null"]}, TEXT, Verdict.FAILS, ""),
        ({"type": "integer"}, NUMBER, Verdict.PROVED, ""),
        (NUMBER, {"type": "integer"}, Verdict.FAILS, ""),
        ({"enum": [1, 2]}, {"type": "integer", "minimum": 1}, Verdict.PROVED, ""),
        ({"enum": ["a"]}, {"enum": ["a", "b"]}, Verdict.PROVED, ""),
        ({"enum": ["a", "b"]}, {"enum": ["a"]}, Verdict.FAILS, ""),
        ({"type": "boolean"}, {"enum": [True, False, 1]}, Verdict.PROVED, ""),
        (TEXT, {"enum": ["a"]}, Verdict.FAILS, ""),
        ({**TEXT, "maxLength": 3}, {**TEXT, "maxLength": 4}, Verdict.PROVED, ""),
        ({**TEXT, "maxLength": 5}, {**TEXT, "maxLength": 4}, Verdict.FAILS, ""),
        ({**TEXT, "pattern": "a"}, {**TEXT, "maxLength": 4}, Verdict.UNKNOWN, ""),
        (TEXT, {**TEXT, "pattern": "a"}, Verdict.UNKNOWN, ""),
        ({**TEXT, "pattern": "a"}, {**TEXT, "pattern": "a"}, Verdict.PROVED, ""),
        ({**NUMBER, "minimum": 1}, {**NUMBER, "exclusiveMinimum": 1}, Verdict.FAILS, ""),
        ({**NUMBER, "exclusiveMinimum": 1}, {**NUMBER, "minimum": 1}, Verdict.PROVED, ""),
        (an(a=TEXT), an(a=TEXT), Verdict.PROVED, ""),
        (an(a=TEXT), an(a=TEXT, b=TEXT), Verdict.FAILS, "/b"),
        (an(a=an(b=TEXT)), an(a=an(b=NUMBER)), Verdict.FAILS, "/a/b"),
        ({**an(a=TEXT), "required": []}, an(a=TEXT), Verdict.FAILS, "/a"),
        ({"allOf": [an(a=TEXT), an(b=TEXT)]}, an(a=TEXT, b=TEXT), Verdict.PROVED, ""),
        (an(a=TEXT), {"allOf": [an(a=TEXT), an(b=TEXT)]}, Verdict.FAILS, "/b"),
        ({"anyOf": [TEXT, NUMBER]}, {"oneOf": [NUMBER, TEXT]}, Verdict.PROVED, ""),
        (NUMBER, {"oneOf": [NUMBER, {"type": "integer"}]}, Verdict.UNKNOWN, ""),
        ({"type": "array", "items": TEXT}, {"type": "array"}, Verdict.PROVED, ""),
        ({"type": "array", "items": TEXT}, {"type": "array", "items": NUMBER}, Verdict.FAILS, "/*"),
        ({"type": "array"}, {"type": "array", "minItems": 1}, Verdict.FAILS, ""),
        ({**TEXT, "not": {"const": "a"}}, TEXT, Verdict.PROVED, ""),
        (TEXT, {**TEXT, "not": {"const": "a"}}, Verdict.UNKNOWN, ""),
        ({**TEXT, "minLength": 2, "maxLength": 1}, NUMBER, Verdict.UNKNOWN, ""),
        ({"$ref": "#/components/schemas/A"}, TEXT, Verdict.UNKNOWN, ""),
    ],
)
def test_a_comparison_returns_a_proof_or_the_first_difference_between_two_schemas(
    given_schema: Schema, wanted: Schema, verdict: Verdict, place: str
) -> None:
    found = fits(convert_schema(None, given_schema), wanted)
    assert (found.verdict, found.field) == (verdict, place), found
