"""Contracts: OpenAPI documents against which live messages are validated."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from urllib.parse import parse_qsl, unquote

import msgspec

from gateway.base.path_templates import Template, parse_template
from gateway.conversion.formats import placeholders
from gateway.conversion.formats.body_format import BodyFormat, described, is_in_ranges
from gateway.conversion.schema import Schema, definitions, reachable
from gateway.http import content_coding
from gateway.rollout.differences import RefusedField
from gateway.verify.live.document_jobs import DocumentedEndpoint, MessageCheck
from gateway.verify.located_operation import LocatedOperation, locate_at
from gateway.verify.openapi.openapi import Description, Operation
from gateway.verify.openapi.validation import Validator
from gateway.verify.part_conversion import parameters_of, schema_of

# The maximum size in bytes of a decoded request body, and of a decoded response body.
_LARGEST = 1024 * 1024
_LARGEST_ANSWER = 256 * 1024
# The maximum number of component schemas in the validators of one document. A validator takes up to
# 16 KB for each component that its schema refers to, directly or through others.
_MOST_COMPONENTS = 12_000


class Contract:
    def __init__(self, description: Description) -> None:
        self._description = description
        self._located: dict[tuple[DocumentedEndpoint, str], list[LocatedOperation]] = {}
        # The least recently used first, each with its number of components.
        self._validators: dict[tuple[str, str, str], tuple[Validator | None, int]] = {}
        self._components = 0

    def operations(
        self, endpoints: Sequence[DocumentedEndpoint], version: str
    ) -> list[tuple[str, str, str, str | None]]:
        """Return the fields of each DocumentedOperation; its public paths as text."""
        return [
            (
                located.operation.method,
                located.operation.path,
                path,
                _public(parse_template(path), captures),
            )
            for located in locate_at(endpoints, version, self._description.operations)
            for path, captures in located.captures.items()
        ]

    def violations(self, message: MessageCheck) -> list[tuple[str, str, str]] | None:
        """Return the violations of a message: field, keyword of JSON Schema, and reason.

        The result is None if the document has no schema for a response.
        """
        if message.status is not None:
            return self._response_violations(message, message.status)
        return [*self._refused(message)]

    def _response_violations(
        self, sample: MessageCheck, status: int
    ) -> list[tuple[str, str, str]] | None:
        """Return the violations of a response, without reasons.

        A body that is not JSON is the field `body` with the keyword `json`; an undeclared media
        type is `body` with the keyword `content`; an undeclared success status is a field such as
        `status 204` with the keyword `status`.
        """
        operation = self._operation(sample)
        if operation is None or status == 206:  # Partial Content
            return None
        key = operation.key(status)
        if key is None and status < 300 and operation.succeeds:
            return [(f"status {status}", "status", "")]
        validator = self._validator(operation, str(key), operation.response(status))
        if validator is None:
            return None
        fields, body = sample.fields, sample.body or b""
        body_format, codings, encoding = described(fields)
        if body_format is not BodyFormat.JSON:
            ranges = _ranges(operation.answer_types[str(key)])
            declared = "*/*" in ranges or is_in_ranges(fields, ranges)
            return None if declared else [("body", "content", "")]
        if encoding is not None:
            return None
        try:
            document = _parsed(_decoded(body, codings, _LARGEST_ANSWER))
        except msgspec.DecodeError:
            return [("body", "json", "")]
        except content_coding.ContentCodingError:
            return None
        return [(each.field, each.keyword, "") for each in validator.violations(document)]

    def _refused(self, request: MessageCheck) -> Iterator[RefusedField]:
        operation = self._operation(request)
        if operation is None:
            reason = f"{self._description.source} has no {request.method} here"
            yield RefusedField("operation", "operation", reason)
            return
        yield from self._refused_path(operation, request)
        yield from self._refused_query(operation, request)
        yield from self._refused_headers(operation, request)
        yield from self._refused_body(operation, request)

    def _refused_path(self, operation: Operation, request: MessageCheck) -> Iterator[RefusedField]:
        path = request.target.partition("?")[0]
        if not operation.takes(path):  # the document has another path prefix
            return
        schema = schema_of(operation.parameters, "path")
        known = schema["properties"]
        assert isinstance(known, dict)
        lines = [(name, unquote(raw)) for name, raw in operation.captured(path) if name in known]
        # The server's path may also have parameters, which are not part of this path.
        present = {**schema, "required": []}
        yield from self._refused_part(operation, "path", present, parameters_of(lines, schema))

    def _refused_query(self, operation: Operation, request: MessageCheck) -> Iterator[RefusedField]:
        schema = schema_of(operation.parameters, "query")
        lines = parse_qsl(request.target.partition("?")[2], keep_blank_values=True)
        yield from self._refused_part(operation, "query", schema, parameters_of(lines, schema))

    def _refused_headers(
        self, operation: Operation, request: MessageCheck
    ) -> Iterator[RefusedField]:
        # OpenAPI ignores definitions of these three header fields (OpenAPI 3.1.0, section
        # 4.8.12.1).
        parameters = tuple(
            one
            for one in operation.parameters
            if one.name.lower() not in ("accept", "content-type", "authorization")
        )
        schema = schema_of(parameters, "header")
        known = schema["properties"]
        assert isinstance(known, dict)
        lines = [
            (name.decode("latin-1").lower(), value.decode("latin-1"))
            for name, value in request.fields
        ]
        named = [(name, value) for name, value in lines if name in known]
        yield from self._refused_part(operation, "header", schema, parameters_of(named, schema))

    def _refused_body(self, operation: Operation, request: MessageCheck) -> Iterator[RefusedField]:
        if not request.body:
            if operation.body_required:
                yield RefusedField("body", "required", "is missing, but required")
            return
        body_format, codings, _ = described(request.fields)
        if body_format is BodyFormat.FORM:
            yield from self._refused_form(operation, request.body, codings)
        if operation.request is None or body_format is not BodyFormat.JSON:
            return
        try:
            document = _parsed(_decoded(request.body, codings, _LARGEST))
        except (msgspec.DecodeError, content_coding.ContentCodingError) as error:
            yield RefusedField("body", "json", f"is not JSON: {error}")
            return
        yield from self._refused_part(operation, "", operation.request, document)

    def _refused_form(
        self, operation: Operation, body: bytes, codings: list[bytes]
    ) -> Iterator[RefusedField]:
        if operation.form is None:
            if operation.request is not None:
                yield RefusedField("body", "form", "is a form, but the document has only JSON")
            return
        try:
            text = _decoded(body, codings, _LARGEST).decode()
        except (UnicodeDecodeError, content_coding.ContentCodingError) as error:
            yield RefusedField("body", "form", f"is not a form: {error}")
            return
        lines = parse_qsl(text, keep_blank_values=True)
        document = parameters_of(lines, operation.form)
        yield from self._refused_part(operation, "form", operation.form, document)

    def _refused_part(
        self, operation: Operation, part: str, schema: Schema, document: object
    ) -> Iterator[RefusedField]:
        validator = self._validator(operation, part, schema)
        if validator is None:
            return
        for violation in validator.violations(document):
            place = violation.field
            if part not in ("", "form"):
                place = f"{part} {place.lstrip('/').partition('/')[0]}"
            yield RefusedField(place or "body", violation.keyword, violation.reason)

    def _validator(
        self, operation: Operation, part: str, schema: Schema | None
    ) -> Validator | None:
        key = (operation.method, operation.path, part)
        found = self._validators.pop(key, None)
        if found is None:
            self._validators[key] = None, 0  # an invalid schema is reported only once
            if schema is None:
                found = None, 0
            else:
                found = Validator(schema), len(definitions(reachable(schema)))
            self._components += found[1]
        self._validators[key] = found
        while self._components > _MOST_COMPONENTS and len(self._validators) > 1:
            self._components -= self._validators.pop(next(iter(self._validators)))[1]
        return found[0]

    def _operation(self, message: MessageCheck) -> Operation | None:
        method, key = message.method, (message.endpoint, message.version)
        if key not in self._located:
            own = self._description.operations
            self._located[key] = locate_at([message.endpoint], message.version, own)
        operations = [
            located.operation
            for located in self._located[key]
            if located.captures and located.operation.method == method
        ]
        path = message.target.partition("?")[0]
        if not operations:  # the operation may have a different path in each version
            operations = [each for each in self._description.operations if each.method == method]
            operations = [operation for operation in operations if operation.takes(path)]
        # If an endpoint has several operations, the path determines the operation, and literal
        # segments are preferred. An endpoint with a tail capture may also serve operations that the
        # document lacks.
        if len(operations) > 1 or parse_template(message.endpoint.path).segments[-1].tail:
            operations = [operation for operation in operations if operation.takes(path)]
        return min(operations, key=lambda operation: operation.path.count("{"), default=None)


def _public(template: Template, captures: Mapping[str, str]) -> str | None:
    """Return the paths of requests for an operation; None if they cannot be written.

    Args:
        captures: what the captures of the endpoint match, with `{}` for each parameter.
    """
    number = count()
    try:
        filled = template.fill({"version": "{}", **captures})
        return parse_template(re.sub(r"\{\}", lambda _: f"{{p{next(number)}}}", filled)).text
    except (KeyError, ValueError):  # a segment has two parameters, for example
        return None


def _parsed(body: bytes) -> object:
    return msgspec.json.decode(placeholders.replace_surrogates(body) or body)


def _decoded(body: bytes, codings: list[bytes], most: int) -> bytes:
    return content_coding.decode(body, content_coding.codings(codings), most)


def _ranges(types: Iterable[str]) -> frozenset[str]:
    return frozenset(each.partition(";")[0].strip().lower() for each in types)
