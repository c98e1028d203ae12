"""Schemas of an OpenAPI document as bundled JSON Schemas (draft 2020-12).

OpenAPI 3.1 schemas are of that draft; those of 3.0 are a dialect, of which four keywords mean
something else (`nullable`, `exclusiveMinimum`, `exclusiveMaximum`, siblings of `$ref`).
"""

from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import Any
from urllib.parse import quote

Schema = dict[str, object]

PLACE = "#/components/schemas/"
_ONE = frozenset(
    {
        *("items", "additionalProperties", "unevaluatedProperties", "unevaluatedItems"),
        *("not", "if", "then", "else", "contains", "propertyNames"),
    }
)
_LISTS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_MAPS = frozenset({"properties", "patternProperties", "dependentSchemas"})
_LIMITS = {"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"}
# Annotations: they constrain nothing.
_REMARKS = frozenset(
    {"title", "description", "default", "example", "examples", "deprecated", "externalDocs", "xml"}
)


class Use(Enum):
    """The message that a schema is of; the value is the keyword whose properties it never has."""

    REQUEST = "readOnly"
    RESPONSE = "writeOnly"


class SchemaBundler:
    """Bundles one schema of a document with all schemas that it refers to.

    They are in `components.schemas`, as in a document, so that the result can be put into one.

    Args:
        resolve: returns what a `$ref` of the document leads to.
        nullable: whether the schemas are of OpenAPI 3.0.
        use: the message whose bodies the schema describes.
    """

    def __init__(self, resolve: Callable[[str], object], use: Use, *, nullable: bool) -> None:
        self._resolve = resolve
        self._use = use
        self._nullable = nullable
        self._defs: dict[str, object] = {}

    def read(self, schema: object) -> Schema:
        """Return the schema with all that it refers to."""
        root = self._schema(schema)
        if isinstance(root, bool):
            return {} if root else {"not": {}}
        return {**root, "components": {"schemas": self._defs}} if self._defs else root

    def _schema(self, schema: object) -> Schema | bool:
        if isinstance(schema, bool):
            return schema
        if not isinstance(schema, Mapping):
            raise ValueError("a schema is an object")
        if self._nullable and "$ref" in schema:
            return {"$ref": self._reference(schema["$ref"])}  # its siblings are ignored in 3.0
        read: Schema = {}
        for key, value in schema.items():
            if key not in _REMARKS:
                read[key] = self._keyword(key, value)
        self._of_its_use(schema, read)
        return self._of_3_0(read) if self._nullable else read

    def _keyword(self, key: str, value: object) -> object:
        if key == "$ref":
            return self._reference(value)
        if key in _ONE:
            return self._schema(value)
        if key in _LISTS:
            if not isinstance(value, list):
                raise ValueError(f"'{key}' of a schema is a list of schemas")
            return [self._schema(member) for member in value]
        if key in _MAPS:
            if not isinstance(value, Mapping):
                raise ValueError(f"'{key}' of a schema is an object of schemas")
            return {str(name): self._schema(member) for name, member in value.items()}
        return value

    def _reference(self, reference: object) -> str:
        known = str(reference).removeprefix(PLACE).removeprefix("#/").replace("/", ".")
        # A validator decodes the names in references, which may have any character.
        name = quote(known, safe="").replace("%", "_25_").replace("~", "_7E_")
        if name not in self._defs:
            self._defs[name] = {}  # known from here on, so that a schema may hold itself
            self._defs[name] = self._schema(self._resolve(str(reference)))
        return PLACE + name

    def _of_its_use(self, schema: Mapping[str, object], read: Schema) -> None:
        properties = schema.get("properties")
        if not isinstance(properties, Mapping):
            return
        left_out = {
            str(name)
            for name, member in properties.items()
            if isinstance(member, Mapping) and member.get(self._use.value) is True
        }
        kept = read["properties"]
        assert isinstance(kept, dict)
        read["properties"] = {name: kept[name] for name in kept if name not in left_out}
        if isinstance(required := read.get("required"), list):
            read["required"] = [name for name in required if name not in left_out]

    @staticmethod
    def _of_3_0(read: Schema) -> Schema:
        for exclusive, limit in _LIMITS.items():
            if read.get(exclusive) is True and limit in read:
                read[exclusive] = read.pop(limit)
            elif isinstance(read.get(exclusive), bool):  # without a limit, it has no meaning
                del read[exclusive]
        if read.pop("nullable", False) is not True:
            return read
        if isinstance(read.get("enum"), list) or "type" not in read:
            return {"anyOf": [read, {"type": "null"}]}
        return {**read, "type": [read["type"], "null"]}


def closed(schema: Schema) -> Schema:
    """Return the schema with its objects closed to properties that it does not declare.

    JSON Schema leaves objects open so that later versions can add properties; an example with such
    a property would prove nothing about this version. An object that declares anything about
    further properties keeps it, and so do the members of an `allOf`, each of which is validated
    with the properties of the others.
    """
    components = definitions(schema)
    members: set[object] = set()
    for part in (schema, *components.values()):
        _note_members(part, members)
    result: Schema = _closed(schema, alone=True)
    if components:
        result["components"] = {
            "schemas": {
                name: _closed(part, alone=PLACE + name not in members)
                for name, part in components.items()
            }
        }
    return result


def definitions(schema: Schema) -> Mapping[str, object]:
    """Return the schemas that are bundled with a schema, by name."""
    components = schema.get("components")
    if not isinstance(components, dict):
        return {}
    schemas: dict[str, object] = components["schemas"]
    return schemas


def _note_members(schema: object, members: set[object]) -> None:
    if not isinstance(schema, dict):
        return
    for key, inner in _parts(schema):
        _note_members(inner, members)
        if key == "allOf" and isinstance(inner, dict):
            members.add(inner.get("$ref"))
    if "properties" in schema:  # beside which a reference is a member, as of 3.1
        members.add(schema.get("$ref"))


def _parts(schema: Schema) -> Iterator[tuple[str, object]]:
    for key, value in schema.items():
        if key in _ONE:
            yield key, value
        elif key in _LISTS and isinstance(value, list):
            yield from ((key, member) for member in value)
        elif key in _MAPS and isinstance(value, dict):
            yield from ((key, member) for member in value.values())


# Beside one of these, an object's own properties may not be all of them.
_MORE = frozenset(
    {
        *("allOf", "anyOf", "oneOf", "if", "$ref", "patternProperties", "dependentSchemas"),
        *("additionalProperties", "unevaluatedProperties"),
    }
)


def _closed(schema: object, *, alone: bool) -> Any:
    if not isinstance(schema, dict):
        return schema
    result: Schema = {}
    for key, value in schema.items():
        if key in _ONE and key != "not":
            result[key] = _closed(value, alone=True)
        elif key in _LISTS:
            result[key] = [_closed(member, alone=key != "allOf") for member in value]
        elif key in _MAPS:
            result[key] = {name: _closed(member, alone=True) for name, member in value.items()}
        else:
            result[key] = value
    if alone and "properties" in schema and not _MORE & schema.keys():
        result["additionalProperties"] = False
    return result
