"""Claims: the conditions under which a service of one version can serve clients of another one."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import Literal

from gateway.conversion.chain import BodyConversion, Conversion, compose
from gateway.conversion.change import Change
from gateway.conversion.field_path import pointer, pointers
from gateway.conversion.media_filter import JSON_MEDIA
from gateway.conversion.operation import Substitute
from gateway.conversion.operation_path import OperationPath
from gateway.conversion.schema import Schema
from gateway.routing.plan import documented_operations, find_documented
from gateway.routing.snapshot import Api
from gateway.verify.located_operation import (
    Counterparts,
    LocatedOperation,
    find_operation,
    locate,
)
from gateway.verify.openapi.openapi import Description, Operation, StatusGroups, statuses_of
from gateway.verify.part_conversion import (
    ConvertedBody,
    PartConversion,
    becomes_json,
    convert_form_body,
    convert_headers,
    convert_merged_write,
    convert_message,
    convert_query,
    convert_round_trip,
    message_schema,
    schema_of,
    sendable,
    without_allowed,
)
from gateway.verify.unchecked import Unchecked, stream_of
from gateway.versions.version import Version


class MessagePart(Enum):
    QUERY = "query"
    HEADERS = "headers"
    REQUEST = "request"
    RESPONSE = "response"
    MESSAGE = "message"
    FORM = "form"
    FORM_MESSAGE = "form message"
    ROUND_TRIP = "round trip"
    """The service's data before and after a client has read a body and written it back."""


@dataclass(frozen=True, slots=True)
class Claim:
    """The claim that every example of one message part conforms after the conversion.

    Attributes:
        operation: the operation in the client's document, such as `GET /person`. If the service's
            document has a different path, that path follows after an arrow.
        status: the key of a response in the document, such as `200`; empty for requests.
        wanted: the schema to which the converted examples must conform, from the recipient's
            document.
        unchanged: whether no change applies, although strings are parsed by the types in `wanted`.
        named: the fields that changes name, with `*` for array elements.
        lossless: the conversion without the changes whose losses are allowed; None without such
            changes.
        allowed: the reasons why losses are allowed.
    """

    api: str
    client: Version
    service: Version
    operation: str
    part: MessagePart
    status: str
    given: Schema
    wanted: Schema
    conversion: PartConversion | None
    named: frozenset[str] = frozenset()
    lossless: PartConversion | None = None
    allowed: tuple[str, ...] = ()
    unchanged: bool = False


UnprovedKind = Literal["gap", "unchecked", "undocumented", "unlisted", "unmatched", "untested"]


@dataclass(frozen=True, slots=True)
class Unproved:
    """An operation, or a part of its messages, about which nothing is proved.

    Attributes:
        kind: `gap` if the service's document lacks something that the client's version has;
            `unchecked` if the operation cannot be checked; `undocumented` for all operations of a
            version without a document; `unlisted` for all operations if the time limit has passed
            before their claims were listed; `unmatched` if only the service's document has the
            operation; `untested` for a claim that could not be tested.
        status: the key of a response in the document; empty for the whole operation.
        part: the part of the claim that could not be tested; None for all other kinds.
    """

    kind: UnprovedKind
    api: str
    client: Version
    service: Version
    operation: str
    reason: str
    status: str = ""
    part: MessagePart | None = None

    @property
    def holds(self) -> bool:
        """Whether no mistake was found."""
        return self.kind != "gap"


Outcome = Claim | Unproved
DocumentedVersion = tuple[Version, Description]


_About = tuple[str, Version, Version, str]
# The maximum depth to which recursive groups of changes are followed.
_DEEP = 8
_BODILESS = {"204", "205", "304"}
_OVERWRITING = ("PUT", "PATCH")
_NO_BODY: Schema = {"type": "object", "properties": {}, "additionalProperties": False}


def claims(api: Api, client: DocumentedVersion, service: DocumentedVersion) -> Iterator[Outcome]:
    """Yield every outcome for a service of one version that serves clients of another version.

    Each operation of both documents has an outcome: a claim about it and its counterpart in the
    other document, or the reason why there is no claim.
    """
    ascending = tuple(api.versions.values())
    up = compose(ascending, api.links, client[0], service[0]).of_request(JSON_MEDIA)
    down = compose(ascending, api.links, service[0], client[0]).of_request(JSON_MEDIA)
    ways = up, down.of_response([(b"Content-Type", b"application/json")])
    theirs = locate(api.endpoints, service[0], service[1].operations)
    own_operations = locate(api.endpoints, client[0], client[1].operations)
    counterparts, listed = Counterparts(theirs), set[object]()
    for ours in own_operations:
        about = (api.name, client[0], service[0])
        if ours.reason:
            listed.add(_alike(ours))
            yield Unproved("unchecked", *about, ours.name, ours.reason)
            continue
        paired: list[object] = []
        for path in ours.captures:
            operation_path, to_service, to_client = _conversions(api, client[0], ours, path, ways)
            if operation_path is not None and operation_path.substitute is not None:
                paired.append(path)
                yield Unproved(
                    "unchecked", *about, ours.name, _substituted(operation_path.substitute)
                )
                break
            for other in counterparts.of(ours, path, operation_path):
                listed.add(id(other))
                key = (id(other), to_service.links)
                if key not in paired:  # two endpoints may route to `other` with the same changes
                    paired.append(key)
                    pair = (*about, _name(ours, other))
                    own, their = _unmoved(ours.operation, other.operation, operation_path)
                    yield from _claims(pair, own, their, to_service, to_client)
                    reading = _reading(api, client[0], ours, own_operations, path, ways)
                    yield from _round_trip(pair, own, their, to_service, reading or to_client)
        if not paired:
            yield Unproved("gap", *about, ours.name, "has no such operation")
    for other in theirs:
        about = (api.name, client[0], service[0])
        if not other.reason and id(other) not in listed:
            yield Unproved(
                "unmatched", *about, other.name, f"version {client[0]} has no such operation"
            )
        elif other.reason and _alike(other) not in listed:
            yield Unproved("unchecked", *about, other.name, other.reason)


def _conversions(
    api: Api,
    client: Version,
    located: LocatedOperation,
    path: str,
    ways: tuple[Conversion, Conversion],
) -> tuple[OperationPath | None, Conversion, Conversion]:
    """Return an operation's declared path, and its conversions to the service and to the client."""
    request, response = (one.at(path) for one in ways)
    endpoint = next(one for one in api.endpoints if one.template.text == path)
    texts = {name: text.replace("{}", "0") for name, text in located.captures[path].items()}

    route = endpoint.routes.get(client)
    template = (route and route.upstream_path) or endpoint.template
    find = partial(find_documented, template, texts, api.documents)
    operation_path = find_operation(located, request, response, find)
    if operation_path is not None:
        return operation_path, operation_path.request, operation_path.response
    documented = documented_operations(find, api.documents, located.operation.method)
    if documented:
        request, response = request.filtered(documented), response.filtered(documented)
    return None, request, response


def _reading(
    api: Api,
    client: Version,
    writing: LocatedOperation,
    operations: Sequence[LocatedOperation],
    path: str,
    ways: tuple[Conversion, Conversion],
) -> Conversion | None:
    for one in operations if writing.operation.method in _OVERWRITING else ():
        same = one.operation.shape == writing.operation.shape and path in one.captures
        if same and one.operation.method == "GET":
            found, _, reading = _conversions(api, client, one, path, ways)
            return None if found is not None and found.substitute is not None else reading
    return None


def _round_trip(
    about: _About,
    operation: Operation,
    other: Operation,
    to_service: Conversion,
    reading: Conversion,
) -> Iterator[Outcome]:
    if operation.method not in _OVERWRITING or operation.request is None or other.request is None:
        return
    down, up = reading.for_response("GET", 200), to_service.for_request(other.method)
    if down is None and up is None:
        return
    if any(each is not None and each.needs_message for each in (down, up)):
        yield Unproved("unchecked", *about, Unchecked.ROUND_TRIP.reason)
        return
    given = *about, MessagePart.ROUND_TRIP, "", other.request, other.request
    if to_service.write_rule(operation.method) is not None:
        yield Claim(*given, convert_merged_write(down, to_service.for_document(other.method)))
        return
    is_patch = other.method == "PATCH"
    convert = convert_round_trip(down, up, is_patch=is_patch)
    links = to_service.links
    parts = [(None, ()) if each is None else without_allowed(each, links) for each in (down, up)]
    allowed = tuple(dict.fromkeys(reason for _, reasons in parts for reason in reasons))
    lossless = convert_round_trip(parts[0][0], parts[1][0], is_patch=is_patch)
    yield Claim(*given, convert, lossless=lossless if allowed else None, allowed=allowed)


def _alike(located: LocatedOperation) -> object:
    return located.name if located.twin else (located.operation.method, located.operation.shape)


def _unmoved(
    ours: Operation, other: Operation, operation_path: OperationPath | None
) -> tuple[Operation, Operation]:
    """Return both operations without query parameters that are path segments in the other one."""
    steps = () if operation_path is None else operation_path.query_steps
    taken = frozenset().union(*(step.dropped for step in steps))
    added = frozenset(line.key for step in steps for line in step.added)
    return _without(ours, taken), _without(other, added)


def _without(operation: Operation, names: frozenset[str]) -> Operation:
    kept = (one for one in operation.parameters if one.place != "query" or one.name not in names)
    return replace(operation, parameters=tuple(kept))


def _substituted(substitute: Substitute) -> str:
    if substitute.service is None:
        return Unchecked.REFUSED.reason.format(substitute.status)
    return Unchecked.OTHER_SERVICE.reason.format(substitute.service.name)


def _name(ours: LocatedOperation, other: LocatedOperation) -> str:
    if ours.operation.method != other.operation.method:
        return f"{ours.name} -> {other.name}"
    same = ours.operation.bare_shape == other.operation.bare_shape
    return ours.name if same else f"{ours.name} -> {other.operation.path}"


def _claims(
    about: _About,
    operation: Operation,
    other: Operation,
    to_service: Conversion,
    to_client: Conversion,
) -> Iterator[Outcome]:
    found = [
        *_requests(about, operation, other, to_service),
        *_responses(about, operation, other, to_client),
    ]
    yield from found or [Unproved("unchecked", *about, Unchecked.NO_BODY.reason)]


def _requests(
    about: _About, operation: Operation, other: Operation, to_service: Conversion
) -> Iterator[Outcome]:
    whole = to_service.for_request(other.method)
    together = whole is not None and whole.needs_message
    if not together:
        yield from _parameters(about, operation, other, to_service)
    if operation.form is not None:
        yield from _form(about, operation, other, to_service, together=together)
    stream = None if operation.request is not None else stream_of(operation.request_types)
    if stream is not None:
        sends = Unchecked.STREAM.reason.format(f"version {about[1]} sends {stream}")
        yield Unproved("unchecked", *about, sends)
    if operation.request is None and (operation.form is not None or stream is not None):
        return
    if together:
        given = message_schema(operation, operation.request)
        wanted = message_schema(other, other.request)
        convert_all = convert_message(to_service, operation.method, other.method, wanted)
        yield Claim(*about, MessagePart.MESSAGE, "", given, wanted, convert_all)
        return
    made = to_service.made(other.method)
    given, wanted = operation.request or _NO_BODY, other.request or _NO_BODY
    if operation.request is not None and other.request is None and not to_service.drops_body:
        yield Unproved("gap", *about, "takes no JSON body")
    elif operation.request is not None or (other.request is not None and made is not None):
        conversion = whole if operation.request is not None else made
        convert_part = None if conversion is None else ConvertedBody(conversion)
        yield Claim(*about, MessagePart.REQUEST, "", given, wanted, convert_part)
    elif other.body_required and not operation.body_required:
        yield Unproved("gap", *about, "requires a body, and this version has no body")


def _parameters(
    about: _About, operation: Operation, other: Operation, to_service: Conversion
) -> Iterator[Claim]:
    for part, place, convert, changes in (
        (MessagePart.QUERY, "query", convert_query, to_service.changes_query),
        (MessagePart.HEADERS, "header", convert_headers, to_service.changes_fields),
    ):
        given, wanted = (schema_of(one.parameters, place) for one in (operation, other))
        if given["properties"] or wanted["properties"]:
            conversion = convert(to_service, operation.method, wanted)
            unchanged = not changes
            yield Claim(*about, part, "", sendable(given), wanted, conversion, unchanged=unchanged)


def _form(
    about: _About, operation: Operation, other: Operation, to_service: Conversion, *, together: bool
) -> Iterator[Outcome]:
    assert operation.form is not None
    whole = to_service.for_request(other.method)
    as_json = becomes_json(whole)
    given, wanted = sendable(operation.form), other.request if as_json else other.form
    if wanted is None and to_service.drops_body:
        wanted = _NO_BODY
    if wanted is None:
        known = "" if as_json or other.request is None else ", but JSON; name them in forms:"
        yield Unproved("gap", *about, "takes no JSON body" if as_json else f"takes no form{known}")
    elif together:
        all_of_it, wanted = message_schema(operation, given), message_schema(other, wanted)
        method = operation.method
        convert = convert_message(to_service, method, other.method, wanted, form=True)
        yield Claim(*about, MessagePart.FORM_MESSAGE, "", all_of_it, wanted, convert)
    else:
        convert = convert_form_body(whole, wanted)
        yield Claim(*about, MessagePart.FORM, "", given, wanted, convert, unchanged=whole is None)


def _responses(
    about: _About, operation: Operation, other: Operation, to_client: Conversion
) -> Iterator[Outcome]:
    _, client, service, _ = about
    for key, schema in other.responses.items():
        if schema is None and key not in _BODILESS:
            expected = operation.response(statuses_of(key)[0]) is not None
            ours = f", and version {client} expects one" if expected else ""
            yield Unproved("unchecked", *about, f"{_other_body(service, other, key)}{ours}", key)
    for key, status, given, conversion in _answers(other, to_client):
        status = to_client.status(operation.method, status)
        wanted = operation.response(status)
        if wanted is not None:
            to = (*about, MessagePart.RESPONSE, key, given, wanted)
            if conversion is None:
                yield Claim(*to, None)
            else:
                yield Claim(*to, ConvertedBody(conversion), _named(conversion))
        elif operation.key(status) is None:
            yield Unproved(
                "gap", *about, f"responds with {key}, which this version does not declare"
            )
        else:
            declared = _other_body(client, operation, str(operation.key(status)))
            yield Unproved("unchecked", *about, declared, key)


def _other_body(version: Version, operation: Operation, key: str) -> str:
    stream = stream_of(operation.answer_types[key])
    if stream is not None:
        return Unchecked.STREAM.reason.format(f"version {version} responds with {stream}")
    return Unchecked.NO_JSON.reason.format(f"version {version}")


def _named(conversion: BodyConversion) -> frozenset[str]:
    return frozenset(
        name for link in conversion.links for change in link.changes for name in places(change)
    )


def places(change: Change, outer: str = "", deep: int = _DEEP) -> Iterator[str]:
    """Yield the JSON Pointers of the fields that a change names, with `*` for elements."""
    at = outer + pointers(change.scopes)
    if change.group is not None:
        for place in change.group.places if deep else ():
            for inner in change.group.changes:
                yield from places(inner, at + pointers(place), deep - 1)
    else:
        yield from (at + pointer(*field) for field in change.touches)


def _answers(
    operation: Operation, to_client: Conversion
) -> Iterator[tuple[str, int, Schema, BodyConversion | None]]:
    """Yield a name, a status, the schema and the conversion of each response with a body.

    A key that covers many statuses (`default`, `4XX`) is yielded once for each different conversion
    of its statuses.
    """
    statuses = StatusGroups(to_client.links)
    for key, given in operation.responses.items():
        if given is None:
            continue
        kinds: dict[BodyConversion | None, int] = {}
        for status in statuses.of(operation, key):
            kinds.setdefault(to_client.for_response(operation.method, status), status)
        for conversion, status in kinds.items():
            name = key if len(kinds) == 1 or conversion is None else str(status)
            yield name, status, given, conversion
