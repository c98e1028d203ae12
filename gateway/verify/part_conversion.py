"""Conversions of one part of a message: its body, its query parameters or its header fields.

Query parameters and header fields are held as one JSON object each, by name, so that a JSON Schema
can describe them.
"""

import re
from collections.abc import Mapping
from typing import Protocol
from urllib.parse import parse_qsl, urlencode

import msgspec

from gateway.core.conversion.chain import Conversion
from gateway.proxy.body import json_body
from gateway.verify.openapi.json_schema import Schema
from gateway.verify.openapi.openapi import ApiParameter

_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]*)\Z", re.ASCII)
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?\Z", re.ASCII)


class PartConversion(Protocol):
    """Converts one part of a message from one version to another."""

    def __call__(self, document: object, /) -> object:
        """Return the part as the other version has it; raises ConversionError."""
        ...


def convert_body(conversion: Conversion) -> PartConversion:
    """Return the conversion of a JSON body, by the code that converts live traffic."""

    def convert(document: object) -> object:
        return msgspec.json.decode(json_body.convert(msgspec.json.encode(document), conversion))

    return convert


def convert_query(conversion: Conversion, method: str, wanted: Schema) -> PartConversion:
    """Return the conversion of query parameters; `wanted` gives the types to read texts as."""

    def convert(document: object) -> object:
        lines = _lines(document)
        raw = conversion.query(method, urlencode(lines) if lines else None)
        return _object(parse_qsl(raw or "", keep_blank_values=True), wanted)

    return convert


def convert_headers(conversion: Conversion, method: str, wanted: Schema) -> PartConversion:
    """Return the conversion of a request's header fields; `wanted` is as for the query."""

    def convert(document: object) -> object:
        lines = [(name.encode(), value.encode()) for name, value in _lines(document)]
        converted = conversion.fields(method, None, lines)
        texts = [(name.decode().lower(), value.decode()) for name, value in converted]
        return _object(texts, wanted)

    return convert


def schema_of(parameters: tuple[ApiParameter, ...], place: str) -> Schema:
    """Return the schema of the object that holds all parameters of one place by name."""
    here = {
        (one.name.lower() if place == "header" else one.name): one
        for one in parameters
        if one.place == place
    }
    components: dict[str, object] = {}
    properties: dict[str, object] = {}
    for name, one in here.items():
        schema = dict(one.schema)
        known = schema.pop("components", None)
        if isinstance(known, dict):
            components.update(known["schemas"])
        properties[name] = schema
    required = [name for name, one in here.items() if one.required]
    made: Schema = {"type": "object", "properties": properties, "required": required}
    return {**made, "components": {"schemas": components}} if components else made


def _lines(document: object) -> list[tuple[str, str]]:
    assert isinstance(document, dict)
    return [
        (name, _text(value))
        for name, given in document.items()
        for value in (given if isinstance(given, list) else [given])
    ]


def _text(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _object(lines: list[tuple[str, str]], wanted: Schema) -> dict[str, object]:
    known = wanted["properties"]
    assert isinstance(known, dict)
    found: dict[str, object] = {}
    for name, text in lines:
        schema = known.get(name, {})
        if schema.get("type") == "array":
            value = _read(text, schema.get("items", {}))
            before = found.setdefault(name, [])
            assert isinstance(before, list)
            before.append(value)
        else:
            found[name] = _read(text, schema)
    return found


def _read(text: str, schema: Mapping[str, object]) -> object:
    match schema.get("type"):
        case "integer" if _INTEGER.match(text):
            return int(text)
        case "number" if _NUMBER.match(text):
            return float(text)
        case "boolean" if text in ("true", "false"):
            return text == "true"
    return text
