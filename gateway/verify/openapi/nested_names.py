"""Nested fields of forms and queries, such as `promotion[coupon]` (style deepObject of OpenAPI).

Forms and queries consist of names and values. So the schema of a nested object becomes a schema of
names in brackets, as clients and changes write them.
"""

from collections.abc import Collection, Iterator
from typing import NamedTuple

from gateway.conversion.schema import (
    Flat,
    Schema,
    Schemas,
    UndecidedError,
    definitions,
    elements_of,
    properties_of,
    requires,
    rest_of,
    union,
)

# The maximum nesting of brackets. Clients may send deeper names too, but they are not described.
_DEEP = 6


class NestedName(NamedTuple):
    """A name in a form or query. The name None stands for names that the schema does not list."""

    name: str | None
    schema: object
    required: bool


def nested_names(
    schemas: Schemas, name: str, schema: object, *, required: bool
) -> Iterator[NestedName]:
    """Yield the names in brackets for the fields of an object, with their schemas.

    Args:
        schema: The schema of the object. Other values than objects and arrays have the bare name.
    """
    try:
        flats = [one for one in schemas.alternatives(schema) if one["type"] != "null"]
    except UndecidedError:
        yield NestedName(name, schema, required)
        return
    always = required and len(flats) == 1
    for flat in flats:
        if flat["type"] == "object" and name.count("[") < _DEEP:
            for key, inner in properties_of(flat).items():
                is_required = always and requires(flat, key)
                yield from nested_names(schemas, f"{name}[{key}]", inner, required=is_required)
            if rest_of(flat) is not False:
                yield NestedName(None, True, False)
        elif flat["type"] == "array":
            kinds = {one["type"] for one in schemas.alternatives(elements_of(flat))}
            if kinds.isdisjoint({"object", "array"}):
                yield NestedName(f"{name}[]", flat, False)
            yield NestedName(None, True, False)  # for `items[0]` and `items[0][price]`
        else:
            yield NestedName(name, flat, always)


def nested_form(schema: Schema, nested: Collection[str]) -> Schema:
    schemas = Schemas(definitions(schema))
    try:
        flats = schemas.alternatives(schema)
    except UndecidedError:
        return schema
    if not nested or len(flats) != 1 or flats[0]["type"] != "object":
        return schema
    flat: Flat = flats[0]
    properties: dict[str, object] = {}
    required: list[str] = []
    rest = rest_of(flat)
    for name, inner in properties_of(flat).items():
        is_required = requires(flat, name)
        found = [NestedName(name, inner, is_required)]
        if name in nested:
            found = [*nested_names(schemas, name, inner, required=is_required)]
        for one in found:
            if one.name is None:
                rest = {"type": "string"} if rest is False else rest
            else:
                known = properties.get(one.name)
                properties[one.name] = one.schema if known is None else union((known, one.schema))
                required += [one.name] if one.required else []
    made: Schema = {**flat, "properties": properties, "required": required}
    made["additionalProperties"] = rest
    return {**made, "components": schema["components"]} if "components" in schema else made


def as_schema(schema: object) -> Schema:
    return dict(schema) if isinstance(schema, dict) else {} if schema else {"not": {}}
