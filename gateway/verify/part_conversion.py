"""Conversions of one part of a message: its body, its query parameters or its header fields."""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from urllib.parse import parse_qsl, urlencode

import msgspec

from gateway.conversion.chain import BodyConversion, Conversion
from gateway.conversion.change import Change
from gateway.conversion.formats import json_body
from gateway.conversion.formats.form_body import convert_form, json_from
from gateway.conversion.merging import WriteForm, merge
from gateway.conversion.message import SAMPLE_CAPTURES, Message, QueryWalk
from gateway.conversion.parameter_change import (
    FIELDS,
    QUERY,
    ParameterLine,
    ParameterLines,
    Spelling,
    write_query,
)
from gateway.conversion.patches import apply_merge_patch
from gateway.conversion.scalars import NUMBER_TEXT, Type
from gateway.conversion.schema import (
    PLACE,
    Schema,
    definitions,
    with_components,
    without_components,
)
from gateway.conversion.version_step import Direction, VersionLink
from gateway.proxy.timed_conversion import run_now
from gateway.verify.openapi.body_fields import BodyFields, Presence
from gateway.verify.openapi.openapi import ApiParameter, Operation
from gateway.versions.version import Version

_NOTHING = b"{}"
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]*)\Z", re.ASCII)


PartConversion = Callable[[object], object]
"""Converts one part of a message from one version to another; raises ConversionError."""


@dataclass(frozen=True, slots=True)
class ConvertedBody:
    """The conversion of a JSON body, by the same code that converts live traffic.

    Examples of bodies have no header fields. So a value of the right type is added for each header
    field that the conversion reads.
    """

    conversion: BodyConversion

    def decided_by_schemas(self, client: Version) -> bool:
        # The filter of the client's document changes no request that this document describes.
        upwards = self.conversion.direction is Direction.UP
        filters = [one for one in self.conversion.filters if not upwards or one.version != client]
        return not (filters or self.conversion.needs_message)

    def __call__(self, document: object, /) -> object:
        """Return the converted body; raises ConversionError."""
        conversion = self.conversion
        message = _sample(conversion) if conversion.needs_message else None
        given = msgspec.json.encode(document)
        made = run_now(lambda: json_body.convert(given, conversion, message), conversion.timeout)
        return msgspec.json.decode(made)


def convert_round_trip(
    reading: BodyConversion | None, writing: BodyConversion | None, *, is_patch: bool
) -> PartConversion:
    """Return the conversion from the service's data to its data after a client has written it back.

    Args:
        is_patch: whether the service merges the request into its data (RFC 7396).
    """

    def convert(document: object) -> object:
        made = document
        for conversion in (reading, writing):
            made = made if conversion is None else ConvertedBody(conversion)(made)
        return apply_merge_patch(document, made) if is_patch else made

    return convert


def convert_merged_write(
    reading: BodyConversion | None, writing: BodyConversion | None
) -> PartConversion:
    """Return the conversion from the service's data to its data after a merged write."""

    def convert(document: object) -> object:
        read, write = (_same if one is None else ConvertedBody(one) for one in (reading, writing))
        sent = read(document)
        return merge(document, sent, WriteForm.DOCUMENT, {}, read, write).merged

    return convert


def _same(document: object) -> object:
    return document


def without_allowed(
    conversion: BodyConversion, declared: Iterable[VersionLink]
) -> tuple[BodyConversion, tuple[str, ...]]:
    """Return a conversion without the changes and filters that may lose data, and the reasons.

    Without any `allow_loss`, the result is the conversion itself. `declared` has all links between
    the versions.
    """
    allowed = {
        link.additional.name: link.allow_loss
        for link in declared
        if link.additional is not None and link.allow_loss
    }
    filters = tuple(one for one in conversion.filters if one.name not in allowed)
    reasons = {allowed[one.name]: None for one in conversion.filters if one.name in allowed}
    links = tuple(
        replace(link, changes=tuple(_strict(link.changes, reasons, {})))
        for link in conversion.links
    )
    if not reasons:
        return conversion, ()
    made = BodyConversion(links, conversion.direction, conversion.of_request)
    return made.filtered(filters) if filters else made, tuple(reasons)


def _strict(
    changes: Iterable[Change], reasons: dict[str, None], groups: dict[str, tuple[Change, ...]]
) -> Iterator[Change]:
    """Yield the changes without `allow_loss`; `groups` has the groups that are already reduced."""
    for change in changes:
        if change.allow_loss:
            reasons[change.allow_loss] = None
        elif change.group is None:
            yield change
        else:
            for name, inner in change.group.groups.items() if not groups else ():
                groups[name] = inner
                groups[name] = tuple(_strict(inner, reasons, groups))
            yield replace(change.group, groups=groups).compile()


def convert_form_body(conversion: BodyConversion | None, wanted: Schema) -> PartConversion:
    """Return the conversion of a form; its strings are parsed by the types in `wanted`.

    The strings are parsed even without changes, since the values of a form have no types.
    """

    def convert(document: object) -> object:
        if not isinstance(document, dict):  # a shrunk example may be no object
            return document
        given = urlencode(_lines(document)).encode()
        if conversion is None:
            return _form_of(given, wanted)
        made = run_now(lambda: convert_form(given, conversion), conversion.timeout)
        return _made_of_form(made, conversion, wanted)

    return convert


def becomes_json(conversion: BodyConversion | None) -> bool:
    return conversion is not None and json_from(conversion) is not None


def _made_of_form(made: bytes, conversion: BodyConversion, wanted: Schema) -> object:
    return msgspec.json.decode(made) if becomes_json(conversion) else _form_of(made, wanted)


def _form_of(body: bytes, wanted: Schema) -> object:
    return parameters_of(parse_qsl(body.decode(), keep_blank_values=True), wanted)


def convert_message(
    to_service: Conversion, method: str, service_method: str, wanted: Schema, *, form: bool = False
) -> PartConversion:
    """Return the conversion of a whole request, in the form that `message_schema` describes."""
    whole, making = to_service.for_request(service_method), to_service.made(service_method)
    assert whole is not None  # only called if changes apply to the request
    steps, parts = to_service.query_steps(method), wanted["properties"]
    assert isinstance(parts, dict)
    read_as = {**parts.get("body", {}), "components": wanted.get("components", {})}

    def convert(document: object) -> object:
        assert isinstance(document, dict)
        query = _parameter_lines(document.get("query"), QUERY)
        fields = _parameter_lines(document.get("headers"), FIELDS)
        way = QueryWalk(query, steps)
        message = Message(method, captures=SAMPLE_CAPTURES, headers=fields, query=query, way=way)
        has_body = "body" in document
        is_form, content = form and has_body, document.get("body", {})
        given = urlencode(_lines(content)).encode() if is_form else msgspec.json.encode(content)
        convert_whole = convert_form if is_form else json_body.convert

        def converted(by: BodyConversion) -> bytes:
            return run_now(lambda: convert_whole(given, by, message), by.timeout)

        if has_body or making is not None:
            body = converted(whole if has_body or making is None else making)
        else:
            body = converted(whole.carrying)
            if body != _NOTHING:  # a value was moved into the body, so the body is converted
                message.restore()
                body = converted(whole)
        raw = parse_qsl(write_query(message.query) or "", keep_blank_values=True)
        texts = [(line.key, FIELDS.read(line.value or "")) for line in message.headers]
        made: dict[str, object] = {
            "query": parameters_of(raw, parts["query"]),
            "headers": parameters_of(texts, parts["headers"]),
        }
        kept = not to_service.drops_body if has_body else making is not None
        if kept or body != _NOTHING:
            made["body"] = (
                _made_of_form(body, whole, read_as) if is_form else msgspec.json.decode(body)
            )
        return made

    return convert


def message_schema(operation: Operation, body: Schema | None) -> Schema:
    parts: dict[str, object] = {
        "query": schema_of(operation.parameters, "query"),
        "headers": schema_of(operation.parameters, "header"),
    }
    required = [*parts, "body"] if operation.body_required else [*parts]
    if body is not None:
        parts["body"] = body
    made: Schema = {
        "type": "object",
        "properties": {name: _without_components(schema) for name, schema in parts.items()},
        "required": required,
        "additionalProperties": False,
    }
    return with_components(made, parts.values())


def _without_components(schema: object) -> object:
    return without_components(schema) if isinstance(schema, dict) else schema


def _parameter_lines(document: object, spelling: Spelling) -> ParameterLines:
    if not isinstance(document, dict):  # a shrunk example may have null or no value there
        return []
    return [
        ParameterLine(spelling.key(name), spelling.name(name), spelling.write(value))
        for name, value in _lines(document)
    ]


_SAMPLES = {Type.TEXT: "x", Type.NUMBER: "1", Type.BOOLEAN: "true"}


def _sample(conversion: BodyConversion) -> Message:
    message = Message(status=200, captures=SAMPLE_CAPTURES)
    for link in conversion.links:
        for change in link.changes:
            carried = change.carried
            if carried is None or not carried.place.applies(message):
                continue
            if carried.in_newer is (conversion.direction is Direction.UP):
                carried.place.give(message, _SAMPLES[carried.kind], carried.field)
    return message


def convert_query(conversion: Conversion, method: str, wanted: Schema) -> PartConversion:
    """Return the conversion of query parameters; strings are parsed by the types in `wanted`."""

    def convert(document: object) -> object:
        lines = _lines(document)
        raw = conversion.query(method, urlencode(lines) if lines else None)
        return parameters_of(parse_qsl(raw or "", keep_blank_values=True), wanted)

    return convert


def convert_headers(conversion: Conversion, method: str, wanted: Schema) -> PartConversion:
    """Return the conversion of header fields; strings are parsed by the types in `wanted`."""

    def convert(document: object) -> object:
        lines = [(name.encode(), value.encode()) for name, value in _lines(document)]
        converted = conversion.fields(method, None, lines)
        texts = [(name.decode().lower(), value.decode()) for name, value in converted]
        return parameters_of(texts, wanted)

    return convert


def schema_of(parameters: tuple[ApiParameter, ...], place: str) -> Schema:
    here = {
        (one.name.lower() if place == "header" else one.name): one
        for one in parameters
        if one.place == place
    }
    made: Schema = {
        "type": "object",
        "properties": {name: without_components(one.schema) for name, one in here.items()},
        "required": [name for name, one in here.items() if one.required],
    }
    return with_components(made, (one.schema for one in here.values()))


def sendable(schema: Schema) -> Schema:
    """Return the schema of named strings, without null and empty arrays, which cannot be sent."""
    known, root = definitions(schema), schema
    for _ in known:  # references may be chained
        there = known.get(str(root.get("$ref")).removeprefix(PLACE))
        if "properties" not in root and isinstance(there, dict):
            root = there
    made: Schema = {**root, "type": "object"}
    if isinstance(properties := root.get("properties"), dict):
        made["properties"] = {name: _text_schema(one) for name, one in properties.items()}
    return {**made, "components": schema["components"]} if known else made


def _text_schema(schema: object) -> object:
    if not isinstance(schema, dict):
        return schema
    made = dict(schema)
    for key in ("anyOf", "oneOf"):
        if isinstance(members := schema.get(key), list):
            made[key] = [_text_schema(one) for one in members if one != {"type": "null"}]
    types = schema.get("type")
    if isinstance(types, list):
        made["type"] = types = [name for name in types if name != "null"]
    if types == "array" or types == ["array"]:
        made["minItems"] = schema.get("minItems") or 1
    return made


def parameters_of(lines: list[tuple[str, str]], wanted: Schema) -> dict[str, object]:
    fields = BodyFields(wanted)
    found: dict[str, object] = {}
    for name, text in lines:
        place = fields.inside(fields.body, name)
        if isinstance(place, Presence):
            found[name] = text
        elif fields.is_array(place):
            elements = fields.elements(place)
            before = found.setdefault(name, [])
            assert isinstance(before, list)
            before.append(
                _read(text, set() if isinstance(elements, Presence) else fields.types(elements))
            )
        else:
            found[name] = _read(text, fields.types(place))
    return found


def _lines(document: object) -> list[tuple[str, str]]:
    assert isinstance(document, dict)
    return [
        (name, _text(value))
        for name, given in document.items()
        for value in (given if isinstance(given, list) else [given])
        if value is not None  # a string cannot be null
    ]


def _text(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _read(text: str, types: set[str]) -> object:
    if types & {"integer", "number"} and _INTEGER.match(text):
        return int(text)
    if "number" in types and NUMBER_TEXT.match(text):
        return float(text)
    if "boolean" in types and text in ("true", "false"):
        return text == "true"
    if types == {"object"}:  # encoded as JSON (OpenAPI 3.1.0, section 4.8.15.1)
        with suppress(msgspec.DecodeError):
            return msgspec.json.decode(text)
    return text
