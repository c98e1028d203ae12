"""Schemas of an OpenAPI document as bundled JSON Schemas (draft 2020-12).

OpenAPI 3.1 uses this draft. In OpenAPI 3.0, four things differ: `nullable`, `exclusiveMinimum`,
`exclusiveMaximum` and siblings of `$ref`.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from enum import Enum
from functools import partial
from typing import Any
from urllib.parse import quote

from gateway.conversion.document import kind
from gateway.conversion.schema import PLACE, Components, Schema, definitions, reachable, text_of

_ONE = frozenset(
    {
        *("items", "additionalProperties", "unevaluatedProperties", "unevaluatedItems"),
        *("not", "if", "then", "else", "contains", "propertyNames"),
    }
)
_LISTS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_MAPS = frozenset({"properties", "patternProperties", "dependentSchemas"})
_TYPES = ("array", "boolean", "integer", "null", "number", "object", "string")
_LIMITS = {"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"}
# Keywords without constraints: annotations, and definitions, which are bundled separately.
_REMARKS = frozenset(
    {
        *("title", "description", "default", "example", "examples", "deprecated", "externalDocs"),
        *("xml", "$id", "$schema", "$comment", "$defs", "definitions"),
    }
)


class Use(Enum):
    """The direction of a message. The value is the keyword of properties that never occur in it."""

    REQUEST = "readOnly"
    RESPONSE = "writeOnly"


class SchemaBundler:
    """Translates schemas, and shares all schemas to which they refer.

    The shared schemas are in `components.schemas`, as in an OpenAPI document. Each schema is read
    once, and equal schemas are the same object.

    Args:
        resolve: returns the target of a `$ref` in the document, or in one of its schemas if given;
            raises ValueError.
        nullable: whether the document is OpenAPI 3.0.
    """

    def __init__(
        self, resolve: Callable[[str, object], object], use: Use, *, nullable: bool
    ) -> None:
        self._resolve = resolve
        self._use = use
        self._nullable = nullable
        self._shared = Components()
        self._components = {"schemas": self._shared}
        self._roots: dict[bytes, Schema] = {}
        self._awaited: dict[str, tuple[object, object]] = {}
        # The enclosing schema with an $id, if any. References are resolved within it first (JSON
        # Schema Core, section 8.2.1), and then in the document, as many tools expect.
        self._resource: object = None
        self._resources: list[object] = []

    def read(self, schema: object) -> Schema:
        root = self._within(None, schema)
        while self._awaited:
            name, (resource, found) = self._awaited.popitem()
            self._shared[name] = self._within(resource, found)
        if isinstance(root, bool):
            root = {} if root else {"not": {}}
        text = text_of(root)
        if text not in self._roots:
            refers = b'"$ref"' in text
            self._roots[text] = {**root, "components": self._components} if refers else root
        return self._roots[text]

    def _schema(self, schema: object) -> Schema | bool:
        if isinstance(schema, bool):
            return schema
        if not isinstance(schema, Mapping):
            raise ValueError(f"a schema must be an object, found {kind(schema)}")
        if self._nullable and "$ref" in schema:
            return {"$ref": self._reference(schema["$ref"])}  # siblings of $ref are ignored in 3.0
        if isinstance(schema.get("$id"), str) and schema is not self._resource:
            return self._within(schema, schema)
        read: Schema = {}
        for key, value in schema.items():
            if key not in _REMARKS and not str(key).startswith("x-"):
                read[key] = self._keyword(key, value)
        if self._nullable and schema.get("x-nullable") is True:  # the keyword in Swagger 2.0
            read["nullable"] = True
        self._remove_other_direction(schema, read)
        return self._of_3_0(read) if self._nullable else read

    def _within(self, resource: object, schema: object) -> Schema | bool:
        around, self._resource = self._resource, resource
        try:
            return self._schema(schema)
        finally:
            self._resource = around

    def _keyword(self, key: str, value: object) -> object:
        if key == "$ref":
            return self._reference(value)
        if key == "type":
            for name in value if isinstance(value, list) else [value]:
                if name not in _TYPES:
                    known = ", ".join(_TYPES)
                    raise ValueError(f"'{name}' is not a schema type; write one of {known}")
        if key == "items" and isinstance(value, list):
            raise ValueError(
                "'items' must be one schema; use 'prefixItems' for a list of schemas, since 3.1"
            )
        if key in _ONE:
            return self._schema(value)
        if key in _LISTS:
            if not isinstance(value, list):
                raise ValueError(f"'{key}' of a schema must be a list of schemas")
            return [self._schema(member) for member in value]
        if key in _MAPS:
            if not isinstance(value, Mapping):
                raise ValueError(f"'{key}' of a schema must be an object of schemas")
            return {str(name): self._schema(member) for name, member in value.items()}
        return value

    def _reference(self, reference: object) -> str:
        known = str(reference).removeprefix(PLACE).removeprefix("#/").replace("/", ".")
        resource, found = self._found(str(reference))
        if resource is not None:
            known = f"{known}:{self._number(resource)}"
        # Validators percent-decode references, so percent-encoded characters are replaced.
        name = quote(known, safe="").replace("%", "_25_").replace("~", "_7E_")
        if name not in self._shared and name not in self._awaited:
            self._awaited[name] = resource, found
        return PLACE + name

    def _found(self, reference: str) -> tuple[object, object]:
        """Return the resource that contains the target of a reference, and the target.

        The resource is a schema, or None for the document.
        """
        if self._resource is not None:
            with suppress(ValueError):
                return self._resource, self._resolve(reference, self._resource)
        return None, self._resolve(reference, None)

    def _number(self, resource: object) -> int:
        for number, known in enumerate(self._resources):
            if known is resource:
                return number
        self._resources.append(resource)
        return len(self._resources) - 1

    def _remove_other_direction(self, schema: Mapping[str, Any], read: Schema) -> None:
        """Remove the properties that never occur in messages of this direction.

        In an object composed by `allOf`, one member may declare a property as `readOnly`, and
        another one may require it.
        """
        left_out = self._left_out(schema) if {"properties", "allOf"} & schema.keys() else set()
        if not left_out:
            return
        read |= _without(read, left_out)
        members = read.get("allOf")
        for index, member in enumerate(schema.get("allOf", ())):
            others = left_out - self._left_out(member)
            parts = list(self._parts(member))
            named = {name for part in parts for key in _NAMING for name in part.get(key) or ()}
            if others & named and isinstance(members, list):
                # The shared schema stays unchanged for other objects.
                own = next((part for part in parts if "$ref" not in part), member)
                members[index] = _without(self._schema(own), others)

    def _left_out(self, schema: object) -> set[str]:
        return {
            str(name)
            for part in self._parts(schema)
            for name, member in (part.get("properties") or {}).items()
            if any(one.get(self._use.value) is True for one in self._parts(member))
        }

    def _parts(self, schema: object, seen: tuple[int, ...] = ()) -> Iterator[Mapping[str, Any]]:
        """Yield a schema, the target of its `$ref` and the members of its `allOf`."""
        if not isinstance(schema, Mapping) or id(schema) in seen:
            return
        yield schema
        inner = [*(schema.get("allOf") or ())]
        if "$ref" in schema:
            with suppress(ValueError):  # `_reference` reports it
                inner.append(self._found(str(schema["$ref"]))[1])
        for one in inner:
            yield from self._parts(one, (*seen, id(schema)))

    @staticmethod
    def _of_3_0(read: Schema) -> Schema:
        for exclusive, limit in _LIMITS.items():
            if read.get(exclusive) is True and limit in read:
                read[exclusive] = read.pop(limit)
            elif isinstance(read.get(exclusive), bool):  # has no effect without a limit
                del read[exclusive]
        if read.pop("nullable", False) is not True:
            return read
        if isinstance(read.get("enum"), list) or "type" not in read:
            return {"anyOf": [read, {"type": "null"}]}
        return {**read, "type": [read["type"], "null"]}


# The keywords that name properties.
_NAMING = ("properties", "required")


def _without(read: Schema | bool, names: set[str]) -> Schema:
    """Return a schema without some of its properties."""
    made: Schema = dict(read) if isinstance(read, dict) else {}
    for key in _NAMING:
        known = made.get(key)
        if isinstance(known, dict):
            made[key] = {name: one for name, one in known.items() if name not in names}
        elif isinstance(known, list):
            made[key] = [name for name in known if name not in names]
    return made


def narrowed(schema: Schema, longest: int) -> Schema:
    """Return the schema with closed objects and short arrays, for generating examples.

    Objects in JSON Schema are open by default, but undeclared properties are useless in examples.
    Objects that explicitly allow further properties stay open, and so do the members of an `allOf`,
    since each member also validates the properties of the others. Long arrays would make examples
    large and slow.

    Args:
        longest: the maximum number of elements of an array, unless the schema requires more.
    """
    schema = reachable(schema)
    components = definitions(schema)
    members: set[object] = set()
    known = -1
    while known < len(members):  # schemas to which members refer are members, too
        known = len(members)
        for name, part in {"": schema, **components}.items():
            _note_members(part, members, alone=PLACE + name not in members)
    result: Schema = _narrowed(schema, longest, alone=True)
    if components:
        result["components"] = {
            "schemas": {
                name: _narrowed(part, longest, alone=PLACE + name not in members)
                for name, part in components.items()
            }
        }
    return result


def longest_list(schema: object) -> int:
    """Return an array length that exceeds each `maxItems` below 50 in a schema; at least 3."""
    if isinstance(schema, list):
        return max(map(longest_list, schema), default=SHORT)
    if not isinstance(schema, dict):
        return SHORT
    most = schema.get("maxItems")
    own = most + 1 if isinstance(most, int) and most < _LONG else SHORT
    return max(own, *map(longest_list, schema.values()), SHORT)


def _note_members(schema: object, members: set[object], *, alone: bool) -> None:
    if not isinstance(schema, dict):
        return
    for key, value in schema.items():
        inner_alone = _is_alone(key, schema, alone=alone)
        for inner in _inner(key, value):
            if not inner_alone and isinstance(inner, dict):
                members.add(inner.get("$ref"))
            _note_members(inner, members, alone=inner_alone)
    if "properties" in schema:  # from 3.1 on, a $ref beside properties adds to them
        members.add(schema.get("$ref"))


def _is_alone(key: str, schema: Schema, *, alone: bool) -> bool:
    """Whether schemas at a key describe a whole value instead of a part of an object."""
    if key in _PARTS:
        return False
    return not key.endswith("Of") or (alone and _IN_PLACE & schema.keys() == {key})


def _inner(key: str, value: object) -> Iterator[object]:
    if key in _ONE:
        yield value
    elif key in _LISTS and isinstance(value, list):
        yield from value
    elif key in _MAPS and isinstance(value, dict):
        yield from value.values()


# The schemas at these keywords apply to the same value as the schema that has the keyword.
_PARTS = frozenset({"allOf", "if", "then", "else", "dependentSchemas"})
_IN_PLACE = _PARTS | {
    *("anyOf", "oneOf", "$ref", "properties", "patternProperties"),
    *("minItems", "contains", "prefixItems"),
}
# The usual maximum length of arrays in examples. The second value is the `maxItems` from which on
# examples do not exceed it.
SHORT, _LONG = 3, 50
# With one of these keywords, an object may have more than the properties that it declares.
_MORE = frozenset(
    {
        *("allOf", "anyOf", "oneOf", "if", "$ref", "patternProperties", "dependentSchemas"),
        *("additionalProperties", "unevaluatedProperties"),
    }
)


def _narrowed(schema: object, longest: int, *, alone: bool) -> Any:
    if not isinstance(schema, dict):
        return schema
    result: Schema = {}
    for key, value in schema.items():
        inside = partial(_narrowed, longest=longest, alone=_is_alone(key, schema, alone=alone))
        if key in _ONE and key != "not":
            result[key] = inside(value)
        elif key in _LISTS:
            result[key] = [inside(member) for member in value]
        elif key in _MAPS:
            result[key] = {name: inside(member) for name, member in value.items()}
        elif (key, value) != ("format", "binary"):  # JSON cannot contain binary data
            result[key] = value
    if alone and "properties" in schema and not _MORE & schema.keys():
        result["additionalProperties"] = False
    if alone and "items" in schema and not _MORE & schema.keys():
        least = [schema.get(key, 0) for key in ("minItems", "minContains")]
        most = max(longest, len(schema.get("prefixItems", ())), *least)
        result["maxItems"] = min(schema.get("maxItems", most), most)
    return result
