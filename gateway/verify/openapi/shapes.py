"""Compiles an OpenAPI document to the shapes of its messages, for `additional` in gateway.yaml.

A shape has the names of the fields that any alternative of a schema documents. Shapes refer to each
other by number, so a component that occurs in many places has one shape, also if it contains
itself. An object is closed if its schema has properties: the keyword `additionalProperties` opens
it. An object without any properties is a map, and an object with `patternProperties` as well.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from gateway.conversion.additional import (
    ANY,
    CLOSED,
    SCALAR,
    DocumentShapes,
    OperationShapes,
    Shape,
)
from gateway.conversion.formats.body_format import BodyFormat, format_of
from gateway.verify.openapi.document_source import fetch_texts, parse
from gateway.verify.openapi.openapi import METHODS, OpenApiDocument, followed

# The maximum number of shapes. Stripe's document of 2026 has 8,000.
_MOST = 200_000
_ANYTHING: Mapping[str, object] = {}
_REST = ("additionalProperties", "unevaluatedProperties")

_Schema = Any
_Schemas = tuple[_Schema, ...]


@dataclass(slots=True)
class _Fields:
    """The fields of one value, collected from all schemas that apply to it.

    Attributes:
        closed: Whether a schema lists the fields of the object.
        may_be: Whether the value can be an object, and whether it can be an array.
        by: The discriminator, with the schemas for each of its values.
    """

    names: dict[str, _Schemas] = field(default_factory=dict)
    rest: _Schemas = ()
    items: _Schemas = ()
    closed: bool = False
    may_be: tuple[bool, bool] = (True, True)
    by: tuple[str, dict[str, _Schemas]] | None = None

    def add(self, other: "_Fields") -> None:
        for name, schemas in other.names.items():
            self.names[name] = self.names.get(name, ()) + schemas
        self.rest += other.rest
        self.items += other.items
        self.by = self.by or other.by


class ShapeCompiler(OpenApiDocument):
    """Compiles a parsed document.

    Args:
        as_sent: Whether the shapes of requests lack `readOnly` fields. Clients that write back what
            they have read send these fields, too.

    Raises:
        DocumentError: The data is not an OpenAPI 3 document, or has an invalid reference.
    """

    def __init__(self, data: object, source: str, *, as_sent: bool = False) -> None:
        super().__init__(data, source)
        self._hidden = {True: "writeOnly", False: "readOnly" if as_sent else ""}

    def compile(self) -> DocumentShapes:
        self._shapes: list[Shape] = []
        self._numbers: dict[tuple[bool, frozenset[int]], int] = {}
        self._waiting: list[tuple[int, _Fields, bool]] = []
        self._subtypes: dict[int, list[tuple[str, _Schema]]] = {}
        operations: list[OperationShapes] = []
        where = ""
        try:
            components = self._mapping(self.data.get("components", {}), "components")
            for name, schema in self._mapping(components.get("schemas", {}), "schemas").items():
                for one in schema.get("allOf", ()) if isinstance(schema, dict) else ():
                    if "$ref" in one:
                        subtypes = self._subtypes.setdefault(id(self._target(one)), [])
                        subtypes.append((name, schema))
            for path, item in self._mapping(self.data.get("paths", {}), "paths").items():
                where = f"paths.{path}: "
                entry = self._mapping(followed(self.data, item), "a path")
                operations += [
                    self._operation(method, path, entry, self._mapping(entry[method], method))
                    for method in METHODS
                    if method in entry
                ]
            self._complete()
        except (ValueError, RecursionError) as error:
            raise self._bad(f"{where}{error}") from None
        encode = msgspec.json.encode
        return DocumentShapes([msgspec.Raw(encode(one)) for one in self._shapes], operations)

    def _operation(
        self, method: str, path: str, item: _Schema, declared: _Schema
    ) -> OperationShapes:
        body = followed(self.data, declared.get("requestBody")) or _ANYTHING
        responses = self._mapping(declared.get("responses", {}), "responses")
        base = self._base()
        return OperationShapes(
            method.upper(),
            base + path,
            base,
            self._query([*item.get("parameters", ()), *declared.get("parameters", ())]),
            self._body(body, _is_json, of_response=False),
            self._body(body, _is_form, of_response=False),
            {
                str(status): self._body(followed(self.data, one), _is_json, of_response=True)
                for status, one in responses.items()
                if not str(status).startswith("x-")
            },
        )

    def _query(self, parameters: Iterable[object]) -> int:
        names: dict[str, int] = {}
        rest = CLOSED
        for raw in parameters:
            one = self._mapping(followed(self.data, raw), "a parameter")
            if one.get("in") != "query":
                continue
            name, schema = str(one.get("name")), one.get("schema")
            names[name] = ANY if schema is None else self._number((schema,), False)
            style, explodes = one.get("style", "form"), one.get("explode", True)
            if schema is not None and style == "form" and explodes and names[name] >= 0:
                # The fields of an object are separate parameters (OpenAPI 3.1.0, section
                # 4.8.12.3).
                fields = self._fields((schema,), False)
                if fields.may_be[0]:
                    inner = {key: self._number(each, False) for key, each in fields.names.items()}
                    names = {**inner, **names}
                    rest = ANY if fields.rest or not fields.closed else rest
        keys = self._mapping(self.data.get("components", {}), "components").get("securitySchemes")
        for scheme in (keys or {}).values() if isinstance(keys, dict) else ():
            one = self._mapping(followed(self.data, scheme), "a security scheme")
            if one.get("in") == "query":
                names.setdefault(str(one.get("name")), SCALAR)
        return self._keep(Shape(names, rest))

    def _body(self, message: object, wanted: Any, *, of_response: bool) -> int:
        content = self._mapping(message or {}, "a message").get("content", {})
        entries = self._mapping(content, "content").items()
        found = tuple(
            self._mapping(followed(self.data, entry), name).get("schema", _ANYTHING)
            for name, entry in entries
            if wanted(name)
        )
        return self._number(found, of_response) if found else ANY

    def _number(self, schemas: _Schemas, of_response: bool) -> int:
        """Return the number of the shape of values to which one of the schemas applies."""
        targets = tuple(map(self._target, schemas))
        key = of_response, frozenset(map(id, targets))
        if key not in self._numbers:
            fields = self._fields(targets, of_response)
            is_object, is_array = fields.may_be
            if (is_object and fields.closed) or (is_array and fields.items):
                self._numbers[key] = self._keep(Shape({}))
                self._waiting.append((self._numbers[key], fields, of_response))
            else:
                self._numbers[key] = ANY if is_object or is_array else SCALAR
        return self._numbers[key]

    def _keep(self, shape: Shape) -> int:
        if len(self._shapes) == _MOST:
            raise ValueError(f"its messages have more than {_MOST:,} different shapes")
        self._shapes.append(shape)
        return len(self._shapes) - 1

    def _complete(self) -> None:
        while self._waiting:
            number, fields, of_response = self._waiting.pop()
            names, rest, by = dict[str, int](), ANY, None
            if fields.may_be[0] and fields.closed:
                names = {name: self._number(one, of_response) for name, one in fields.names.items()}
                rest = self._number(fields.rest, of_response) if fields.rest else CLOSED
                if fields.by is not None:
                    name, values = fields.by
                    by = name, {key: self._number(one, of_response) for key, one in values.items()}
            items = self._number(fields.items, of_response) if fields.items else ANY
            fixed: tuple[str, ...] = ()
            if not of_response:
                fixed = tuple(name for name in names if self._is_read_only(fields.names[name]))
            self._shapes[number] = Shape(names, rest, items, by, fixed)

    def _is_read_only(self, schemas: _Schemas) -> bool:
        found = (one for schema in schemas for one in (schema, self._target(schema)))
        return any(isinstance(one, dict) and one.get("readOnly") is True for one in found)

    def _target(self, schema: Any) -> Any:
        for _ in range(32):
            if not isinstance(schema, dict) or "$ref" not in schema or _KEYWORDS & schema.keys():
                break
            schema = self._resolve(str(schema["$ref"]))
        return schema

    def _fields(self, schemas: Iterable[Any], of_response: bool) -> _Fields:
        return _alternatives([self._of(one, of_response, False, frozenset()) for one in schemas])

    def _of(self, schema: Any, of_response: bool, is_part: bool, seen: frozenset[int]) -> _Fields:
        """Return the fields of a value to which a schema applies.

        Args:
            is_part: Whether the schema is a member of an `allOf`. Its discriminator then has no
                effect, since the value already has another type.
            seen: The ids of the schemas around this schema that apply to the same value.
        """
        if not isinstance(schema, dict) or id(schema) in seen:
            return _Fields()
        seen |= {id(schema)}
        made = _own_fields(schema, self._hidden[of_response])
        parts = [self._of(one, of_response, True, seen) for one in schema.get("allOf", ())]
        if "$ref" in schema:
            parts.append(self._of(self._resolve(str(schema["$ref"])), of_response, is_part, seen))
        choices = [*schema.get("anyOf", ()), *schema.get("oneOf", ())]
        if choices:
            parts.append(
                _alternatives([self._of(one, of_response, is_part, seen) for one in choices])
            )
        for part in parts:
            made.add(part)
            made.closed = made.closed or part.closed
            made.may_be = made.may_be[0] and part.may_be[0], made.may_be[1] and part.may_be[1]
        # A condition adds fields, but an object that only conditions describe is a map.
        conditional = [schema[key] for key in ("if", "then", "else") if key in schema]
        for one in (*conditional, *schema.get("dependentSchemas", {}).values()):
            made.add(self._of(one, of_response, is_part, seen))
        discriminator = schema.get("discriminator")
        if isinstance(discriminator, dict) and not is_part:
            values = dict(self._values(schema, discriminator, choices))
            for one in () if choices else values.values():
                made.add(self._of(one, of_response, False, seen))
            by = {key: (one,) for key, one in values.items()}
            made.by = str(discriminator.get("propertyName")), by
        return made

    def _values(
        self, schema: _Schema, discriminator: _Schema, choices: Iterable[Any]
    ) -> Iterator[tuple[str, _Schema]]:
        """Yield the values of a discriminator with their schemas (OpenAPI 3.1.0, section 4.8.25).

        Without `oneOf` or `anyOf`, these are the components that extend the schema by `allOf`.
        """
        yield from self._subtypes.get(id(schema), ())
        references = [one.get("$ref") for one in choices if isinstance(one, dict)]
        mapping = discriminator.get("mapping", {})
        named = ((str(text).rpartition("/")[2], text) for text in references if text)
        for value, text in (*named, *(mapping.items() if isinstance(mapping, dict) else ())):
            reference = text if "#" in str(text) else f"{_COMPONENTS}{text}"
            with suppress(ValueError):  # it may name a schema in another document
                yield str(value), self._target({"$ref": reference})


_COMPONENTS = "#/components/schemas/"
_KEYWORDS = {
    *("properties", "patternProperties", "items", "prefixItems", "allOf", "anyOf", "oneOf"),
    *("if", "then", "else", "dependentSchemas", "discriminator", *_REST),
}


def _own_fields(schema: _Schema, hidden: str) -> _Fields:
    made = _Fields()
    properties = schema.get("properties") or {}
    for name, one in properties.items():
        is_hidden = isinstance(one, dict) and one.get(hidden) is True
        if one is not False and not is_hidden:
            made.names[str(name)] = (one,)
    rest = [schema[key] for key in _REST if key in schema]
    patterns = (schema.get("patternProperties") or {}).values()
    made.rest = (*(one for one in rest if one is not False), *patterns)
    made.closed = bool(properties or rest or patterns)
    items = [schema["items"]] if "items" in schema else []
    made.items = (*items, *schema.get("prefixItems", ()))
    types = schema.get("type", ())
    types = [types] if isinstance(types, str) else list(types)
    words = schema.get("enum", [schema["const"]] if "const" in schema else None)
    made.may_be = (
        (not types or "object" in types) and (words is None or any(map(_is_object, words))),
        (not types or "array" in types) and (words is None or any(map(_is_array, words))),
    )
    return made


def _is_object(value: object) -> bool:
    return isinstance(value, dict)


def _is_array(value: object) -> bool:
    return isinstance(value, list)


def _alternatives(some: Sequence[_Fields]) -> _Fields:
    objects = [one for one in some if one.may_be[0]]
    arrays = [one for one in some if one.may_be[1]]
    made = _Fields(may_be=(bool(objects), bool(arrays)))
    for one in some:
        made.add(one)
    made.closed = bool(objects) and all(one.closed for one in objects)
    made.by = objects[0].by if len(objects) == 1 else None
    if not all(one.items for one in arrays):  # an alternative allows any elements
        made.items = ()
    return made


def _is_json(media_type: str) -> bool:
    essence = media_type.partition(";")[0].strip().lower()
    if essence in ("*/*", "application/*"):
        return True
    return format_of([(b"content-type", essence.encode())]) in _JSON_FORMATS


def _is_form(media_type: str) -> bool:
    return format_of([(b"content-type", media_type.encode())]) is BodyFormat.FORM


_JSON_FORMATS = (BodyFormat.JSON, BodyFormat.MERGE_PATCH)


async def compile_document(location: str, folder: Path) -> bytes:
    """Return the shapes of a document, as JSON; raises DocumentError."""
    text = (await fetch_texts([location], folder))[location]
    return msgspec.json.encode(ShapeCompiler(parse(text, location), location).compile())
