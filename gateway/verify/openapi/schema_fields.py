"""The fields of documents and schemas, as JSON Pointers with `*` for array elements."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from gateway.conversion.field_path import pointer
from gateway.conversion.schema import (
    Flat,
    Schema,
    Schemas,
    UndecidedError,
    definitions,
    properties_of,
    without_components,
)

# The maximum depth in recursive schemas.
_DEEP = 8
# The maximum number of schemas in one level. In a recursive schema with 30 fields, the levels have
# 30, 900 and 27,000 schemas.
_WIDE = 10_000


def fields_of(document: object) -> set[str]:
    return set(_fields(document, ""))


def _fields(value: object, at: str) -> Iterator[str]:
    yield at
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _fields(inner, at + pointer(key))
    elif isinstance(value, list):
        for inner in value:
            yield from _fields(inner, f"{at}/*")


@dataclass(slots=True)
class Declared:
    """The fields that a schema declares.

    Attributes:
        objects: the fields that are objects whose declared fields are complete.
    """

    fields: set[str] = field(default_factory=lambda: {""})
    objects: set[str] = field(default_factory=set)


def declared(schema: Schema) -> Declared:
    """Return the fields that a schema declares.

    A recursive schema is followed level by level up to a maximum depth. The depth is smaller for
    schemas with many fields.
    """
    found, schemas = Declared(), Schemas(definitions(schema))
    root = without_components(schema)
    loose: set[str] = set()
    level: list[tuple[object, str]] = [(root, "")]
    for _ in range(_DEEP + 1):
        if len(level) > _WIDE:
            break
        level = [
            each
            for inner, at in level
            for flat in _alternatives(schemas, inner)
            for each in _declare(flat, at, found, loose)
        ]
    found.objects -= loose
    return found


def _alternatives(schemas: Schemas, schema: object) -> list[Flat]:
    try:
        return schemas.alternatives(schema)
    except UndecidedError:
        return []


def _declare(flat: Flat, at: str, found: Declared, loose: set[str]) -> Iterator[tuple[object, str]]:
    if "properties" in flat:
        found.objects.add(at)
    free = (flat.get(key, False) for key in ("additionalProperties", "unevaluatedProperties"))
    if any(one is not False for one in free) or "patternProperties" in flat:
        loose.add(at)
    inside = [(at + pointer(name), inner) for name, inner in properties_of(flat).items()]
    elements = [*flat.get("prefixItems", ()), *([flat["items"]] if "items" in flat else [])]
    inside += [(f"{at}/*", inner) for inner in elements]
    for place, inner in inside:
        found.fields.add(place)
        yield inner, place
