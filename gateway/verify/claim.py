"""Claims: what must be true for the service of one version to answer clients of another."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from gateway.core.conversion.chain import Conversion, compose
from gateway.core.conversion.field_path import pointer
from gateway.core.snapshot import Api, Endpoint
from gateway.core.versions.version import Version
from gateway.verify.openapi.json_schema import Schema
from gateway.verify.openapi.openapi import Description, Operation
from gateway.verify.passage import Passage, of_body, of_headers, of_query, schema_of


class Body(Enum):
    """Which part of an exchange a claim is of."""

    QUERY = "query"
    HEADERS = "headers"
    REQUEST = "request"
    RESPONSE = "response"


@dataclass(frozen=True, slots=True)
class Claim:
    """Every body that one version's document allows arrives as the other's has it.

    Attributes:
        api: the name of the API.
        client: the version that the client speaks.
        service: the version that the service speaks.
        operation: as the client's document has it: `GET /person`.
        body: which of the exchange.
        status: of a response, as the documents have it.
        given: the schema of the bodies that are converted.
        wanted: the schema of what they are to become.
        passage: what becomes of them; None where they pass as they are.
        named: the fields that declared changes speak of, with `*` for any element of an array.
    """

    api: str
    client: Version
    service: Version
    operation: str
    body: Body
    status: str
    given: Schema
    wanted: Schema
    passage: Passage | None
    named: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Gap:
    """Something that clients of one version may do, and that the other's service does not know."""

    api: str
    client: Version
    service: Version
    operation: str
    reason: str

    @property
    def holds(self) -> bool:
        """Say that nothing holds, as a proof would."""
        return False


@dataclass(frozen=True, slots=True)
class Unchecked:
    """Answers in which nothing can be checked, as a version has no JSON body there.

    `status` is theirs, as the documents have it; empty where it is the whole operation.
    """

    api: str
    client: Version
    service: Version
    operation: str
    status: str
    reason: str

    @property
    def holds(self) -> bool:
        """Say that nothing speaks against it."""
        return True


Found = Claim | Gap | Unchecked
# A default speaks of errors: success that a document does not name is none of its promises.
_ERRORS = range(400, 600)
# RFC 9110, section 6.4.1; whoever declares them declares that there is nothing to check.
_BODILESS = {"204", "205", "304"}


@dataclass(frozen=True, slots=True)
class Side:
    """One of two versions, and what it says of itself."""

    version: Version
    description: Description


def claims(api: Api, client: Side, service: Side) -> Iterator[Found]:
    """Yield what must be true for a service of one version to answer clients of the other.

    And what of that cannot be checked.

    The responses travel from the service's version to the client's, what is in requests the other
    way.
    """
    ladder = tuple(api.versions.values())
    up = compose(ladder, api.links, client.version, service.version)
    down = compose(ladder, api.links, service.version, client.version)
    seen: set[object] = set()
    for endpoint in api.endpoints:
        asking, answering = (way.at(endpoint.template.text) for way in (up, down))
        for operation, other in _pairs(endpoint, client, service):
            key = (operation.method, operation.shape, *map(id, asking.links))
            if key in seen:
                continue  # another endpoint leads there, by the same changes
            seen.add(key)
            name = f"{operation.method} {operation.path}"
            about = (api.name, client.version, service.version, name)
            if other is None:
                yield Gap(*about, "has no such operation")
                continue
            found = [
                *_requests(about, operation, other, asking),
                *_responses(about, operation, other, answering),
            ]
            yield from found or [Unchecked(*about, "", "it has no JSON body and no parameter")]


_About = tuple[str, Version, Version, str]


def _requests(
    about: _About, operation: Operation, other: Operation, asking: Conversion
) -> Iterator[Claim | Gap]:
    method = operation.method
    for what, place, of in (
        (Body.QUERY, "query", of_query),
        (Body.HEADERS, "header", of_headers),
    ):
        given, wanted = (schema_of(one.parameters, place) for one in (operation, other))
        if given["properties"] or wanted["properties"]:
            yield Claim(*about, what, "", given, wanted, of(asking, method, wanted))
    if operation.request is not None and other.request is not None:
        conversion = asking.for_request(method)
        passage = None if conversion is None else of_body(conversion)
        yield Claim(*about, Body.REQUEST, "", operation.request, other.request, passage)
    elif operation.request is not None:
        yield Gap(*about, "takes no JSON body")


def _responses(
    about: _About, operation: Operation, other: Operation, answering: Conversion
) -> Iterator[Found]:
    _, client, service, _ = about
    for key, schema in other.responses.items():
        if schema is None and key not in _BODILESS:
            expected = operation.response(_statuses(key)[0]) is not None
            ours = f", and version {client} expects one" if expected else ""
            yield Unchecked(*about, key, f"version {service} declares no JSON body{ours}")
    for key, status, given, conversion in _answers(other, answering):
        wanted = operation.response(status)
        if wanted is not None:
            to = (*about, Body.RESPONSE, key, given, wanted)
            if conversion is None:
                yield Claim(*to, None)
            else:
                yield Claim(*to, of_body(conversion), _named(conversion))
        elif operation.key(status) is None:
            yield Gap(*about, f"answers {key}, of which this version does not know")
        else:
            yield Unchecked(*about, key, f"version {client} declares no JSON body")


def _named(conversion: Conversion) -> frozenset[str]:
    tasks = (task for link in conversion.links for task in link.tasks(conversion.direction))
    return frozenset(
        "".join(f"{pointer(*keys)}/*" for keys in task.scopes) + pointer(*field)
        for task in tasks
        for field in task.touches
    )


def _pairs(
    endpoint: Endpoint, client: Side, service: Side
) -> Iterator[tuple[Operation, Operation | None]]:
    """Yield the operations that clients find at an endpoint, each with the service's."""
    ours = list(matching(endpoint, client.version, client.description))
    theirs = {
        (operation.method, operation.shape): operation
        for operation in matching(endpoint, service.version, service.description)
    }
    paths = {operation.shape for operation in ours}, {shape for _, shape in theirs}
    renamed = all(len(shapes) == 1 for shapes in paths)
    for operation in ours:
        shape = next(iter(paths[1])) if renamed else operation.shape
        yield operation, theirs.get((operation.method, shape))


def matching(
    endpoint: Endpoint, version: Version | None, description: Description
) -> Iterator[Operation]:
    """Yield the operations of a version's document that an endpoint leads to."""
    route = endpoint.routes[version]
    template = route.upstream_path or endpoint.template
    pattern = ""
    for segment in template.segments:
        inner = "" if segment.capture is None else ".+" if segment.tail else "[^/]+"
        if segment.capture == "version":
            inner = re.escape(str(version))
        pattern += f"/{re.escape(segment.prefix)}{inner}{re.escape(segment.suffix)}"
    path = re.compile(pattern)
    for operation in description.operations:
        allowed = endpoint.methods is None or operation.method in endpoint.methods
        if allowed and path.fullmatch(operation.path):
            yield operation


def _answers(
    operation: Operation, answering: Conversion
) -> Iterator[tuple[str, int, Schema, Conversion | None]]:
    """Yield each kind of answer with a body: its name, a status that it has, schema and conversion.

    A key of a document that speaks of many statuses is of as many kinds as there are conversions.
    """
    for key, given in operation.responses.items():
        if given is None:
            continue
        kinds: dict[object, tuple[int, Conversion | None]] = {}
        for status in _statuses(key):
            if operation.key(status) == key:
                conversion = answering.for_response(operation.method, status)
                links = () if conversion is None else tuple(map(id, conversion.links))
                kinds.setdefault(links, (status, conversion))
        for status, conversion in kinds.values():
            name = key if len(kinds) == 1 or conversion is None else str(status)
            yield name, status, given, conversion


def _statuses(key: str) -> range:
    if key == "default":
        return _ERRORS
    first = int(key.upper().replace("X", "0"))
    return range(first, first + (1 if key.isdecimal() else 100))
