"""Checks of conversions by the command `check`: fields, lost data and examples."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import msgspec
from multidict import CIMultiDict

from gateway.base.mistakes import ConfigError, Issue, Location, Mistakes
from gateway.conversion.additional import DocumentShapes
from gateway.conversion.chain import BodyConversion, Conversion, compose
from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.declared.conversion import ExampleConfig, ExampleMessageConfig, Part
from gateway.conversion.document import MISSING
from gateway.conversion.formats import json_body
from gateway.conversion.media_filter import RequestMedia, request_media
from gateway.conversion.message import SAMPLE_CAPTURES, Message, QueryWalk
from gateway.conversion.operation_path import find_operation_path
from gateway.conversion.parameter_change import (
    ParameterLine,
    ParameterLines,
    parse_query,
    write_query,
)
from gateway.conversion.version_step import Direction, VersionLink
from gateway.proxy.timed_conversion import run_now
from gateway.rollout.differences import ComparedAnswer, compare
from gateway.routing.snapshot import Api, Endpoint, Snapshot
from gateway.rules.checks.additional_check import compiled_documents, warn_of_additional
from gateway.rules.checks.fields import DocumentFolder, described_versions, warn_of_unreached
from gateway.rules.checks.moved_path_check import warn_of_left_out
from gateway.rules.checks.overwriting_check import warn_of_overwriting
from gateway.rules.checks.refusal_check import warn_of_refusals
from gateway.rules.document import read
from gateway.rules.load import read_rules, validated
from gateway.versions.version import Version


def check_conversions(
    path: Path, environment: Mapping[str, str], snapshot: Snapshot
) -> list[Issue]:
    """Return the warnings about the conversions in a file. Documents at URLs are not fetched.

    Raises:
        ConfigError: a change names a field that a document forbids, or the conversion of an example
            has an unexpected result.
    """
    rules = read(read_rules(path), str(path), environment)
    config = validated(rules)
    mistakes, documents = Mistakes(), DocumentFolder(path.absolute().parent)
    for api in snapshot.apis:
        parts = config.apis[api.name].parts(api)
        shapes = compiled_documents(api, documents)
        _look_up_fields(api, parts, documents, shapes, mistakes)
        warn_of_additional(api, parts, shapes, mistakes)
        for part in parts:
            for index, example in enumerate(part.config.examples):
                _prove(api, part, example, (*part.at, "examples", index), mistakes)
    if mistakes.found:
        issues = [rules.issue(mistake.location, mistake.text) for mistake in mistakes.found]
        raise ConfigError(str(path), issues)
    return [rules.issue(warning.location, warning.text) for warning in mistakes.warnings]


def _look_up_fields(
    api: Api,
    parts: Sequence[Part],
    documents: DocumentFolder,
    shapes: Mapping[Version, DocumentShapes],
    mistakes: Mistakes,
) -> None:
    described = described_versions(api, documents, mistakes)
    for one in described.values():
        warn_of_unreached(api, one.version, one.located, mistakes)
        for upwards in (True, False):
            one.look_up(parts, mistakes, described, upwards=upwards)
    located = {version: one.located for version, one in described.items()}
    warn_of_left_out(api, parts, located, mistakes)
    warn_of_overwriting(api, parts, located, shapes, mistakes)
    warn_of_refusals(api, parts, located, mistakes)


_READING = frozenset({"GET", "HEAD"})
_LONGEST = 200
_encoder = msgspec.json.Encoder(
    decimal_format="number", enc_hook=lambda value: msgspec.Raw(value.text.encode())
)


def _prove(api: Api, part: Part, example: ExampleConfig, at: Location, mistakes: Mistakes) -> None:
    link = part.link
    if example.operation is None:
        if example.status is not None:
            mistakes.add(
                "is only valid for an operation; name the operation, or remove the status",
                *at,
                "status",
            )
            return
        bare = replace(link, media=None, response_type=None)
        applied = _Applied(Conversion((bare,), Direction.UP), None)
    else:
        known = {endpoint.template.text: endpoint for endpoint in api.endpoints}
        path = example.operation.partition(" ")[2]
        if mistakes.look_up(path, known, "endpoint", *at, "operation") is None:
            return
        found = _applied(api, link, example, known[path])
        if found is None:
            mistakes.add("the conversion does not apply to it; move the example", *at)
            return
        applied = found
    for direction in Direction:
        if example.direction in (direction.value, "both"):
            target = link.newer if direction is Direction.UP else link.older
            complaint = _complaint(example, applied, direction)
            if complaint is not None:
                mistakes.add(f"converted to version {target}, {complaint}", *at)


class _Applied(NamedTuple):
    conversion: Conversion
    method: str | None
    status: int | None = None

    def body(self, direction: Direction) -> BodyConversion | None:
        up = self.conversion
        down = Conversion(up.links[::-1], Direction.DOWN)
        wanted = up if direction is Direction.UP else down
        if self.method is None:
            return BodyConversion(wanted.links, direction)
        if self.status is None:
            return wanted.for_request(self.method)
        status = self.status
        if direction is Direction.UP:
            status = down.status(self.method, status)
        return wanted.for_response(self.method, status)


def _applied(
    api: Api, link: VersionLink, example: ExampleConfig, endpoint: Endpoint
) -> _Applied | None:
    assert example.operation is not None
    method = example.operation.partition(" ")[0]
    status = example.status or (200 if method in _READING else None)
    ascending = tuple(api.versions.values())
    text = endpoint.template.text
    media = _media(example)
    up = compose(ascending, api.links, link.older, link.newer).at(text).of_request(media)
    down = compose(ascending, api.links, link.newer, link.older).at(text).of_request(media)
    if up.has_operations:
        captures = {name: f"{{{name}}}" for name in endpoint.template.captures}

        def path(version: Version) -> str:
            route = endpoint.routes.get(version)
            template = (route and route.upstream_path) or endpoint.template
            return template.fill({**captures, "version": str(version)})

        asked = find_operation_path(up, down, method, path, None)
        if not any(asked.operations):  # the example may name the newer operation
            asked = find_operation_path(down, up, method, path, None)
        method = method if asked.request.direction is Direction.DOWN else asked.method
        links = asked.request.links
        up = Conversion(
            links if asked.request.direction is Direction.UP else links[::-1], Direction.UP
        )
    found = _Applied(up, method, status)
    body = found.body(Direction.UP)
    if body is None or all(one.digest != link.digest for one in body.links):
        return None
    return found


def _media(example: ExampleConfig) -> RequestMedia:
    given = example.older_message.headers, example.newer_message.headers
    return request_media(CIMultiDict(line for fields in given for line in fields.items()))


def _complaint(example: ExampleConfig, applied: _Applied, direction: Direction) -> str | None:
    given, wanted = (example.older, example.older_message), (example.newer, example.newer_message)
    if direction is Direction.DOWN:
        given, wanted = wanted, given
    conversion = applied.body(direction)
    query, fields = parse_query(given[1].query), _fields(given[1])
    steps = applied.conversion.query_steps(applied.method or "POST")
    way = QueryWalk(parse_query(example.older_message.query), steps)
    message = Message(
        applied.method or "POST",
        captures=SAMPLE_CAPTURES,
        status=applied.status,
        headers=fields,
        query=query,
        way=way,
    )
    body = msgspec.json.encode(given[0])
    if conversion is not None:
        try:
            given_body = body
            body = run_now(
                lambda: json_body.convert(given_body, conversion, message), conversion.timeout
            )
        except ConversionError as error:
            cause = f" ({error.cause})" if error.cause else ""
            return f"it does not fit: {error}{cause}"
    return _beside(message, wanted[1]) or _different(body, wanted[0])


def _fields(given: ExampleMessageConfig) -> ParameterLines:
    return [ParameterLine(name.lower(), name, value) for name, value in given.headers.items()]


def _beside(message: Message, wanted: ExampleMessageConfig) -> str | None:
    named = {line.key: line.value for line in _fields(wanted)}
    found = {line.key: line.value for line in message.headers}
    for name in {**named, **found}:
        if found.get(name) != named.get(name):
            return (
                f"the header {name} is {found.get(name)!r}, and the example has {named.get(name)!r}"
            )
    query = write_query(message.query)
    if message.status is None and query != wanted.query:
        return f"the query is {query!r}, and the example has {wanted.query!r}"
    return None


def _different(body: bytes, wanted: object) -> str | None:
    found, expected = (
        ComparedAnswer(200, {}, json_body.parse(one)) for one in (body, msgspec.json.encode(wanted))
    )
    differences = compare(found, expected)
    if not differences:
        return None
    first = differences[0]
    field = "the body" if first.field == "body" else first.field
    found_text = "is missing" if first.old is MISSING else f"is {_shown(first.old)}"
    wanted_text = "no such field" if first.new is MISSING else _shown(first.new)
    more = f"; and {len(differences) - 1} more differ" if differences[1:] else ""
    return f"{field} {found_text}, and the example has {wanted_text}{more}"


def _shown(value: object) -> str:
    text = _encoder.encode(value).decode()
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
