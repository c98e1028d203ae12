"""The fields of documents and of schemas, as JSON Pointers with `*` for any element of an array."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from gateway.conversion.field_path import pointer
from gateway.conversion.schema import PLACE, Schema, definitions

# How often a schema that holds itself is followed into itself.
_DEEP = 8
# A level of more schemas is not followed: those of thirty fields that hold it are 30, 900, 27,000.
_WIDE = 10_000


def fields_of(document: object) -> set[str]:
    """Return every field of a document, the document itself (the empty pointer) among them."""
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
        fields: all of them, the elements of arrays included.
        objects: the fields that are objects for which no further fields are declared.
        types: the types of each field, as JSON Schema names them.
    """

    fields: set[str] = field(default_factory=lambda: {""})
    objects: set[str] = field(default_factory=set)
    types: dict[str, set[str]] = field(default_factory=dict)


def declared(schema: Schema) -> Declared:
    """Return the fields that a schema declares.

    A schema that holds itself is followed so deep only, and one that does so in many fields less
    deep: level by level, so that no field is left out beside one that is not.
    """
    found, known = Declared(), definitions(schema)
    loose: set[str] = set()
    level: list[tuple[object, str]] = [(schema, "")]
    for _ in range(_DEEP + 1):
        if len(level) > _WIDE:
            break
        level = [
            each
            for inner, at in level
            if isinstance(inner, dict)
            for each in _declare(inner, known, at, found, loose)
        ]
    found.objects -= loose
    return found


def _declare(
    schema: dict[str, Any], known: Mapping[str, object], at: str, found: Declared, loose: set[str]
) -> Iterator[tuple[object, str]]:
    """Add what a schema declares, and yield the schemas in it, each with its field."""
    types = schema.get("type", ())
    found.types.setdefault(at, set()).update((types,) if isinstance(types, str) else types)
    if isinstance(reference := schema.get("$ref"), str):
        yield known.get(reference.removeprefix(PLACE)), at
    for key in ("allOf", "anyOf", "oneOf"):
        yield from ((member, at) for member in schema.get(key, ()))
    if "properties" in schema:
        found.objects.add(at)
    for name, inner in schema.get("properties", {}).items():
        found.fields.add(at + pointer(name))
        yield inner, at + pointer(name)
    if schema.get("additionalProperties", False) is not False or "patternProperties" in schema:
        loose.add(at)
    for inner in (schema.get("items"), *schema.get("prefixItems", ())):
        if inner is not None:
            found.fields.add(f"{at}/*")
            yield inner, f"{at}/*"
