"""Fields, parameters and operations that only the newer of two versions documents.

A part is additional if the older version's document lacks it and no change names it. Parts are
found in the shapes of the two documents, so a component that occurs in many places is compared
once.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import msgspec

from gateway.conversion.additional import (
    CLOSED,
    Additional,
    DocumentShapes,
    LoadedDocument,
    OperationShapes,
)
from gateway.conversion.chain import BodyConversion, Conversion, compose
from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.field_path import Tokens, pointer, spell
from gateway.conversion.formats import json_body
from gateway.conversion.formats.json_patch import nulls
from gateway.conversion.media_filter import JSON_MEDIA
from gateway.conversion.parameter_change import LINK, QUERY, parse_query
from gateway.conversion.version_step import VersionLink, is_success
from gateway.routing.snapshot import Api
from gateway.verify.claims import places
from gateway.verify.documented_versions import loaded_document, service_path
from gateway.verify.located_operation import Located, find_operation, locate
from gateway.verify.openapi.openapi import statuses_of
from gateway.versions.version import Version


@dataclass(frozen=True, slots=True)
class AdditionalParts:
    """The names that only the newer version has in one part of an operation's messages.

    Attributes:
        part: `request`, `form`, `query`, or `response` with its status; empty for the operation
            itself.
        names: JSON Pointers of fields, with `*` for elements and entries, or query parameters.
        allowed: The `allow_loss` of a conversion between the two versions.
    """

    api: str
    client: Version
    service: Version
    operation: str
    part: str = ""
    names: tuple[str, ...] = ()
    allowed: str = ""

    @property
    def holds(self) -> bool:
        return True


def additional_parts(
    api: Api, client: tuple[Version, DocumentShapes], service: tuple[Version, DocumentShapes]
) -> Iterator[AdditionalParts]:
    """Yield what only the document of `service` has, the newer one of two versions.

    A part is left out if `additional` of a conversion decides about it.
    """
    both, about = _Documents.of(api, client, service), (api.name, client[0], service[0])
    up, down, newer = both.up, both.down, both.newer
    allowed = next((link.allow_loss for link in up.links if link.allow_loss), "")
    walk, reached = _Walk(both.older, newer), set[int]()
    for pair in both.pairs(client[1]):
        theirs = pair.theirs
        if id(theirs) not in reached:
            reached.add(id(theirs))
            for part, names in walk.operation(pair):
                name = f"{theirs.method} {theirs.path}"
                yield AdditionalParts(*about, name, part, tuple(names), allowed)
    for one, path in _at_endpoints(api, *service):
        method = one.operation.method
        target = newer.find(method, _target(api, service[0], path, one))
        declared = find_operation(one, up.at(path), down.at(path))
        decided = _decides(up.at(path), client[0], method, None)
        if target is not None and id(target) not in reached and not (declared or decided):
            reached.add(id(target))
            yield AdditionalParts(*about, one.name, allowed=allowed)


class HiddenFields(NamedTuple):
    """Fields that `additional` removes from a document that a client reads and writes back.

    Attributes:
        endpoint: The path of the endpoint.
        operation: The path of the write in the newer version.
        method: The method of the write in the older version.
        names: The fields of the newer version that the write deletes.
    """

    endpoint: str
    operation: str
    method: str
    names: tuple[str, ...]


def hidden_fields(
    api: Api, client: tuple[Version, DocumentShapes], service: tuple[Version, DocumentShapes]
) -> Iterator[HiddenFields]:
    """Yield the fields that a PUT or PATCH deletes because `additional` hides them from clients.

    A PATCH keeps the fields that it does not contain, but replaces whole arrays (RFC 7396).
    """
    both = _Documents.of(api, client, service)
    resources: dict[tuple[str, str], dict[str, _Pair]] = {}
    for pair in both.pairs(client[1]):
        resources.setdefault((pair.endpoint, pair.ours.path), {})[pair.ours.method] = pair
    for pairs in resources.values():
        reading = pairs.get("GET")
        hidden = () if reading is None else [*_Walk(both.older, both.newer).hidden(reading)]
        for method in ("PUT", "PATCH") if hidden else ():
            if method in pairs and (body := pairs[method].theirs).request >= 0:
                names = dict.fromkeys(
                    _spelt(place)
                    for place in hidden
                    if (body.method != "PATCH" or 0 in place)
                    and _shape_at(both.newer, body.request, place) != CLOSED
                )
                if names:
                    yield HiddenFields(pairs[method].endpoint, body.path, method, tuple(names))


class _Pair(NamedTuple):
    """An operation in both versions, and its conversions at one endpoint."""

    endpoint: str
    ours: OperationShapes
    theirs: OperationShapes
    asking: Conversion
    answering: Conversion


class _Documents(NamedTuple):
    """The documents of two versions, and the conversions between them."""

    api: Api
    older: LoadedDocument
    newer: LoadedDocument
    up: Conversion
    down: Conversion

    @classmethod
    def of(
        cls,
        api: Api,
        client: tuple[Version, DocumentShapes],
        service: tuple[Version, DocumentShapes],
    ) -> "_Documents":
        ladder = tuple(api.versions.values())
        return cls(
            api,
            loaded_document(api, *client),
            loaded_document(api, *service),
            compose(ladder, api.links, client[0], service[0]).of_request(JSON_MEDIA),
            compose(ladder, api.links, service[0], client[0]).of_request(JSON_MEDIA),
        )

    def pairs(self, shapes: DocumentShapes) -> Iterator[_Pair]:
        """Yield the operations of the older version, whose shapes are given, in both versions."""
        older, newer = self.older.version, self.newer.version
        for one, path in _at_endpoints(self.api, older, shapes):
            ways = self.up.at(path), self.down.at(path)
            found = find_operation(one, *ways)
            method, target = one.operation.method, _target(self.api, newer, path, one)
            if found is not None:
                ways, method, target = (found.request, found.response), found.method, found.path
            theirs = self.newer.find(method, target)
            own = _target(self.api, older, path, one)
            ours = self.older.find(one.operation.method, own)
            if theirs is not None and ours is not None:
                yield _Pair(path, ours, theirs, *ways)


def _at_endpoints(
    api: Api, version: Version, shapes: DocumentShapes
) -> Iterator[tuple[Located[OperationShapes], str]]:
    for one in locate(api.endpoints, version, shapes.operations):
        for path in one.captures:
            yield one, path


def _target(api: Api, version: Version, path: str, located: Located[OperationShapes]) -> str:
    endpoint = next(one for one in api.endpoints if one.template.text == path)
    texts = {name: text.replace("{}", "0") for name, text in located.captures[path].items()}
    return service_path(endpoint, version, texts)


def _decides(conversion: Conversion, older: Version, method: str, status: int | None) -> bool:
    links = (link for step in conversion.version_steps for link in step.links)
    return any(link.older == older and link.decides(method, status) for link in links)


class _Body(NamedTuple):
    """The shapes of one body in both versions, and its conversion to the older version."""

    newer: int
    older: int
    conversion: BodyConversion | None


@dataclass(slots=True)
class _Walk:
    """Compares the shapes of two documents; each pair of shapes is compared once."""

    older: LoadedDocument
    newer: LoadedDocument
    compared: set[tuple[int, int]] = field(default_factory=set)
    named: frozenset[str] = frozenset()

    def operation(self, pair: _Pair) -> Iterator[tuple[str, list[str]]]:
        """Yield the parts of an operation with their additional names."""
        _, ours, theirs, asking, answering = pair
        self.named = frozenset(_named(asking.links))
        parts: list[tuple[str, list[str]]] = []
        older = self.older.version
        if not _decides(asking, older, ours.method, None):
            body = answering.for_request(theirs.method)
            names = self.newer.shape(theirs.query).names
            parts = [
                ("query", [one for one in names if not self._asks(one, ours, answering)]),
                ("request", self._fields(_Body(theirs.request, ours.request, body))),
                ("form", self._fields(_Body(theirs.form, ours.form, body))),
            ]
        for key, status, response in _responses(pair):
            if not _decides(answering, older, theirs.method, status):
                parts.append((f"response {key}", self._fields(response)))
        return ((part, names) for part, names in parts if names)

    def hidden(self, pair: _Pair) -> Iterator[Tokens]:
        """Yield the places that `additional` removes from the successful responses of a GET."""
        self.named = frozenset(_named(pair.asking.links))
        older, steps = self.older.version, pair.answering.version_steps
        for _, status, response in _responses(pair):
            policies = (one.additional("GET", status) for one in steps if one.older == older)
            drops = any(one is not None and one.responses is Additional.DROP for one in policies)
            if is_success(status) and drops:
                yield from self._walk(response, response.newer, response.older, ())

    def _asks(self, name: str, ours: OperationShapes, answering: Conversion) -> bool:
        """Return whether requests of the older version can have a parameter, in their form."""
        if name in self.named:
            return True
        try:
            query = answering.query(ours.method, f"{QUERY.name(name)}=0", LINK)
        except ConversionError:
            return True
        knows = partial(self.older.documents_name, number=ours.query)
        return all(knows(line.key) or knows(f"{line.key}[]") for line in parse_query(query))

    def _fields(self, body: _Body) -> list[str]:
        places = self._walk(body, body.newer, body.older, ())
        return [pointer(*("*" if one == 0 else one for one in place)) for place in places]

    def _walk(self, body: _Body, newer: int, older: int, at: Tokens) -> Iterator[Tokens]:
        if newer < 0 or older < 0 or (newer, older) in self.compared:
            return
        self.compared.add((newer, older))
        mine, theirs = self.older.shape(older), self.newer.shape(newer)
        for name, inner in theirs.names.items():
            place, own = (*at, name), mine.names.get(name, mine.rest)
            # A change may move the field to another place of the older version.
            for number in (own,) if own != CLOSED else self._moved(body, place):
                if number != CLOSED:
                    yield from self._walk(body, inner, number, place)
                elif name not in self.named:
                    yield place
        yield from self._walk(body, theirs.rest, mine.rest, (*at, "*"))
        yield from self._walk(body, theirs.items, mine.items, (*at, 0))

    def _moved(self, body: _Body, place: Tokens) -> set[int]:
        """Return the shapes in the older version at the places of a field of the newer version."""
        if body.conversion is None:
            return {CLOSED}
        try:
            text = json_body.convert(_only(place), body.conversion, of_places=True)
        except ConversionError:
            return set()
        places = nulls(msgspec.json.decode(text))
        return {_shape_at(self.older, body.older, found) for found in places}


def _responses(pair: _Pair) -> Iterator[tuple[str, int, _Body]]:
    """Yield the documented statuses of the newer version, each with the body of its response."""
    method = pair.theirs.method
    for key, number in pair.theirs.responses.items():
        status = statuses_of(key)[0]
        own = pair.ours.response(pair.answering.status(method, status))
        yield key, status, _Body(number, own, pair.answering.for_response(method, status))


def _shape_at(document: LoadedDocument, number: int, place: Tokens) -> int:
    for token in place:
        if number < 0:
            return number
        shape = document.shape(number)
        is_index = isinstance(token, int)
        number = shape.items if is_index else shape.names.get(str(token), shape.rest)
    return number


def _spelt(place: Tokens) -> str:
    """Return a place as changes name it, such as `lines[].color`."""
    steps = ("[]" if one == 0 else f".{'*' if one == '*' else spell(str(one))}" for one in place)
    return "".join(steps).removeprefix(".")


def _only(place: Tokens) -> bytes:
    """Return a body with nothing but null at a place, which changes move without reading it."""
    made: object = None
    for token in reversed(place):
        made = [made] if isinstance(token, int) else {token: made}
    return msgspec.json.encode(made)


def _named(links: Iterable[VersionLink]) -> Iterator[str]:
    """Yield the names of fields and query parameters that the changes of links use."""
    for link in links:
        for change in link.changes:
            for place in places(change):
                yield from (one.replace("~1", "/").replace("~0", "~") for one in place.split("/"))
            if change.carried is not None:
                yield from change.carried.place.beside.names
        for parameter in link.query:
            yield from (name for pair in parameter.names for name in pair.newer)
