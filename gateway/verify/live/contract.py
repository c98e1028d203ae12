"""Contracts: OpenAPI documents against which live messages are validated."""

import asyncio
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import parse_qsl, unquote

import msgspec

from gateway.conversion.formats import placeholders
from gateway.conversion.formats.body_format import BodyFormat, described, is_in_ranges
from gateway.conversion.schema import Schema
from gateway.http import content_coding
from gateway.proxy.replay import TrialRequest
from gateway.rollout.differences import RefusedField
from gateway.routing.snapshot import Endpoint
from gateway.verify.live.answer_sample import AnswerSample
from gateway.verify.located_operation import LocatedOperation, locate
from gateway.verify.openapi.document_source import SERVING, fetch
from gateway.verify.openapi.openapi import Description, DocumentError, Operation, TooLargeError
from gateway.verify.openapi.validation import Validator
from gateway.verify.part_conversion import parameters_of, schema_of
from gateway.versions.version import Version

# The maximum size in bytes of a decoded request body, and of a decoded response body.
_LARGEST = 1024 * 1024
_LARGEST_ANSWER = 256 * 1024


class Contract:
    def __init__(self, description: Description) -> None:
        self._description = description
        self._located: dict[tuple[str, Version | None], list[LocatedOperation]] = {}
        self._validators: dict[tuple[str, str, str], Validator | None] = {}

    def violations(self, sample: AnswerSample) -> list[tuple[str, str]] | None:
        """Return the fields that violate the schema, each with the violated keyword of JSON Schema.

        The result is None if the document has no schema for the response. A body that is not JSON
        is the field `body` with the keyword `json`; an undeclared media type is `body` with the
        keyword `content`; an undeclared success status is a field such as `status 204` with the
        keyword `status`.
        """
        operation = self._operation(
            sample.endpoint, sample.route.version, sample.method, sample.target
        )
        if operation is None or sample.status == 206:  # Partial Content
            return None
        key = operation.key(sample.status)
        if key is None and sample.status < 300 and operation.succeeds:
            return [(f"status {sample.status}", "status")]
        validator = self._validator(operation, str(key), operation.response(sample.status))
        if validator is None:
            return None
        fields, body, _ = sample.answer
        body_format, codings, encoding = described(fields)
        if body_format is not BodyFormat.JSON:
            ranges = _ranges(operation.answer_types[str(key)])
            declared = "*/*" in ranges or is_in_ranges(fields, ranges)
            return None if declared else [("body", "content")]
        if encoding is not None:
            return None
        try:
            document = _parsed(_decoded(body, codings, _LARGEST_ANSWER))
        except msgspec.DecodeError:
            return [("body", "json")]
        except content_coding.ContentCodingError:
            return None
        return [(each.field, each.keyword) for each in validator.violations(document)]

    def refusals(self, request: TrialRequest) -> list[RefusedField]:
        operation = self._operation(
            request.endpoint, request.version, request.method, request.target
        )
        if operation is None:
            reason = f"{self._description.source} has no {request.method} here"
            return [RefusedField("operation", "operation", reason)]
        return [
            *self._refused_path(operation, request),
            *self._refused_query(operation, request),
            *self._refused_headers(operation, request),
            *self._refused_body(operation, request),
        ]

    def _refused_path(self, operation: Operation, request: TrialRequest) -> Iterator[RefusedField]:
        path = request.target.partition("?")[0]
        if not operation.takes(path):  # the document has another path prefix
            return
        schema = schema_of(operation.parameters, "path")
        known = schema["properties"]
        assert isinstance(known, dict)
        lines = [(name, unquote(raw)) for name, raw in operation.captured(path) if name in known]
        # The server's path may also have parameters, which are not part of this path.
        present = {**schema, "required": []}
        yield from self._refused(operation, "path", present, parameters_of(lines, schema))

    def _refused_query(self, operation: Operation, request: TrialRequest) -> Iterator[RefusedField]:
        schema = schema_of(operation.parameters, "query")
        lines = parse_qsl(request.target.partition("?")[2], keep_blank_values=True)
        yield from self._refused(operation, "query", schema, parameters_of(lines, schema))

    def _refused_headers(
        self, operation: Operation, request: TrialRequest
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
        yield from self._refused(operation, "header", schema, parameters_of(named, schema))

    def _refused_body(self, operation: Operation, request: TrialRequest) -> Iterator[RefusedField]:
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
        yield from self._refused(operation, "", operation.request, document)

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
        yield from self._refused(operation, "form", operation.form, document)

    def _refused(
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
        if key not in self._validators:
            self._validators[key] = None  # an invalid schema is reported only once
            if schema is not None:
                self._validators[key] = Validator(schema)
        return self._validators[key]

    def _operation(
        self, endpoint: Endpoint, version: Version | None, method: str, target: str
    ) -> Operation | None:
        key = (endpoint.template.text, version)
        if key not in self._located:
            self._located[key] = locate((endpoint,), version, self._description)
        operations = [
            located.operation
            for located in self._located[key]
            if located.captures and located.operation.method == method
        ]
        path = target.partition("?")[0]
        if not operations:  # the operation may have a different path in each version
            operations = [each for each in self._description.operations if each.method == method]
            operations = [operation for operation in operations if operation.takes(path)]
        # If an endpoint has several operations, the path determines the operation, and literal
        # segments are preferred. An endpoint with a tail capture may also serve operations that the
        # document lacks.
        if len(operations) > 1 or endpoint.template.segments[-1].tail:
            operations = [operation for operation in operations if operation.takes(path)]
        return min(operations, key=lambda operation: operation.path.count("{"), default=None)


def _parsed(body: bytes) -> object:
    return msgspec.json.decode(placeholders.replace_surrogates(body) or body)


def _decoded(body: bytes, codings: list[bytes], most: int) -> bytes:
    return content_coding.decode(body, content_coding.codings(codings), most)


def _ranges(types: Iterable[str]) -> frozenset[str]:
    return frozenset(each.partition(";")[0].strip().lower() for each in types)


def load_contract(location: str, folder: Path) -> tuple[Contract | None, str, bool]:
    """Return a contract; or None, the reason, and whether the document is too large."""
    try:
        description = asyncio.run(fetch([location], folder, SERVING))[location]
    except DocumentError as error:
        return None, str(error), isinstance(error, TooLargeError)
    return Contract(description), "", False
