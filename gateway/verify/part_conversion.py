"""Conversions of one part of a message: its body, its query parameters or its header fields.

Query parameters and header fields are held as one JSON object each, by name, so that a JSON Schema
can describe them.
"""

import re
from collections.abc import Mapping
from typing import Protocol
from urllib.parse import parse_qsl, urlencode

import msgspec

from gateway.core.conversion.chain import BodyConversion, Conversion
from gateway.core.conversion.change import Inverse, Whole
from gateway.core.conversion.message.carry import Carry
from gateway.core.conversion.message.message import Message
from gateway.core.conversion.message.query_walk import QueryWalk
from gateway.core.conversion.parameter_change import (
    FIELDS,
    QUERY,
    ParameterLine,
    ParameterLines,
    Spelling,
    write_query,
)
from gateway.core.conversion.scalars import NUMBER_TEXT, Type
from gateway.core.conversion.version_link import Direction
from gateway.proxy.body import json_body
from gateway.proxy.body.slow_thread import run_now
from gateway.verify.openapi.json_schema import Schema
from gateway.verify.openapi.openapi import ApiParameter, Operation

_NOTHING = b"{}"
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]*)\Z", re.ASCII)


class PartConversion(Protocol):
    """Converts one part of a message from one version to another."""

    def __call__(self, document: object, /) -> object:
        """Return the part as the other version has it; raises ConversionError."""
        ...


def convert_body(conversion: BodyConversion) -> PartConversion:
    """Return the conversion of the JSON body of an answer, by the code that converts live traffic.

    Documents do not describe the header fields of answers, so those that the conversion looks for
    are there, with values of the right types.
    """

    def convert(document: object) -> object:
        message = _sample(conversion) if conversion.needs_message else None
        given = msgspec.json.encode(document)
        made = run_now(lambda: json_body.convert(given, conversion, message), conversion.timeout)
        return msgspec.json.decode(made)

    return convert


def convert_message(
    asking: Conversion, method: str, service_method: str, wanted: Schema
) -> PartConversion:
    """Return the conversion of a request as a whole, in the form of `message_schema`.

    Args:
        asking: the conversion of the request, whose body is converted with the message.
        method: the method of the client's request.
        service_method: the method of the request to the service.
        wanted: the schema of the converted message, which gives the types to read texts as.
    """
    whole, making = asking.for_request(service_method), asking.made(service_method)
    assert whole is not None  # it converts the message
    hops, parts = asking.query_hops(method), wanted["properties"]
    assert isinstance(parts, dict)

    def convert(document: object) -> object:
        assert isinstance(document, dict)
        query = _parameter_lines(document.get("query"), QUERY)
        fields = _parameter_lines(document.get("headers"), FIELDS)
        message = Message(method, headers=fields, query=query, way=QueryWalk(query, hops))
        given, has_body = msgspec.json.encode(document.get("body", {})), "body" in document

        def converted(by: BodyConversion) -> bytes:
            return run_now(lambda: json_body.convert(given, by, message), by.timeout)

        if has_body or making is not None:
            body = converted(whole if has_body or making is None else making)
        else:
            before = message.copied()
            body = converted(whole.carrying)
            if body != _NOTHING:  # a value comes into it, and so all else
                message.restore(before)
                body = converted(whole)
        raw = parse_qsl(write_query(message.query) or "", keep_blank_values=True)
        texts = [(line.key, FIELDS.read(line.value or "")) for line in message.headers]
        made: dict[str, object] = {
            "query": parameters_of(raw, parts["query"]),
            "headers": parameters_of(texts, parts["headers"]),
        }
        kept = not asking.drops_body if has_body else making is not None
        if kept or body != _NOTHING:
            made["body"] = msgspec.json.decode(body)
        return made

    return convert


def message_schema(operation: Operation) -> Schema:
    """Return the schema of a whole request: its query, its header fields and its body."""
    parts: dict[str, object] = {
        "query": schema_of(operation.parameters, "query"),
        "headers": schema_of(operation.parameters, "header"),
    }
    required = [*parts, "body"] if operation.body_required else [*parts]
    if operation.request is not None:
        parts["body"] = operation.request
    components: dict[str, object] = {}
    for name, schema in parts.items():
        assert isinstance(schema, dict)
        known = schema.get("components")
        if isinstance(known, dict):
            components |= known["schemas"]
        parts[name] = {key: value for key, value in schema.items() if key != "components"}
    made: Schema = {
        "type": "object",
        "properties": parts,
        "required": required,
        "additionalProperties": False,
    }
    return {**made, "components": {"schemas": components}} if components else made


def _parameter_lines(document: object, spelling: Spelling) -> ParameterLines:
    if not isinstance(document, dict):  # a smaller example may lack it, or have null there
        return []
    return [
        ParameterLine(spelling.key(name), spelling.name(name), spelling.write(value))
        for name, value in _lines(document)
    ]


_SAMPLES = {Type.TEXT: "x", Type.NUMBER: "1", Type.BOOLEAN: "true"}


def _sample(conversion: BodyConversion) -> Message:
    """Return an answer with a value wherever a change of the conversion looks for one."""
    message = Message(status=200)
    for link in conversion.links:
        for change in link.changes:
            inner = change.change if isinstance(change, Whole) else change
            inverse = isinstance(inner, Inverse)
            carry = inner.change if isinstance(inner, Inverse) else inner
            is_source = inverse is (conversion.direction is Direction.DOWN)
            if isinstance(carry, Carry) and is_source and carry.place.applies(message):
                carry.place.give(message, _SAMPLES[carry.kind], carry.field)
    return message


def convert_query(conversion: Conversion, method: str, wanted: Schema) -> PartConversion:
    """Return the conversion of query parameters; `wanted` gives the types to read texts as."""

    def convert(document: object) -> object:
        lines = _lines(document)
        raw = conversion.query(method, urlencode(lines) if lines else None)
        return parameters_of(parse_qsl(raw or "", keep_blank_values=True), wanted)

    return convert


def convert_headers(conversion: Conversion, method: str, wanted: Schema) -> PartConversion:
    """Return the conversion of a request's header fields; `wanted` is as for the query."""

    def convert(document: object) -> object:
        lines = [(name.encode(), value.encode()) for name, value in _lines(document)]
        converted = conversion.fields(method, None, lines)
        texts = [(name.decode().lower(), value.decode()) for name, value in converted]
        return parameters_of(texts, wanted)

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


def parameters_of(lines: list[tuple[str, str]], wanted: Schema) -> dict[str, object]:
    """Return parameters as one object, with texts read as the types that a schema declares."""
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


def _lines(document: object) -> list[tuple[str, str]]:
    assert isinstance(document, dict)
    return [
        (name, _text(value))
        for name, given in document.items()
        for value in (given if isinstance(given, list) else [given])
    ]


def _text(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _read(text: str, schema: Mapping[str, object]) -> object:
    match schema.get("type"):
        case "integer" if _INTEGER.match(text):
            return int(text)
        case "number" if NUMBER_TEXT.match(text):
            return float(text)
        case "boolean" if text in ("true", "false"):
            return text == "true"
    return text
