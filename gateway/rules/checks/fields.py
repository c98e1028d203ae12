"""A check that the fields and parameters that changes name exist in the OpenAPI documents."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from gateway.base.files import read_regular
from gateway.base.mistakes import Location, Mistakes, suggest
from gateway.base.urls import is_http_url
from gateway.conversion.chain import compose
from gateway.conversion.changes.field_use import WHOLE, FieldUse, OptionalRead
from gateway.conversion.declared.conversion import Part
from gateway.conversion.declared.groups import DeclaredChange
from gateway.conversion.field_path import FieldPath, parse_path, spell
from gateway.conversion.media_filter import JSON_MEDIA
from gateway.conversion.operation import MappedOperation
from gateway.conversion.schema import Schema
from gateway.conversion.version_step import MessageKind, VersionLink
from gateway.routing.snapshot import Api
from gateway.verify.located_operation import LocatedOperation, find_operation, locate
from gateway.verify.openapi.body_fields import BodyFields, Presence
from gateway.verify.openapi.document_source import read as read_description
from gateway.verify.openapi.openapi import (
    Description,
    DocumentError,
    Operation,
    StatusGroups,
)
from gateway.versions.version import Version

# The maximum number of fields that are considered for a suggestion.
_MANY = 10_000
_LISTED = 5


@dataclass(frozen=True, slots=True)
class AskedOperation:
    """An operation of a document, at one of the endpoints that route to it.

    Attributes:
        mapped: the declared operations in the configuration that match this operation, in the
            version steps to the neighbouring versions.
    """

    operation: Operation
    path: str
    statuses: StatusGroups
    mapped: frozenset[MappedOperation] = frozenset()

    def is_changed_by(self, link: VersionLink, status: int | None) -> bool:
        if link.operations is not None:
            if self.mapped.isdisjoint(link.operations):
                return False
            link = replace(link, operations=None)
        # A document describes the messages with JSON.
        if link.media is not None and not link.media.matches(JSON_MEDIA):
            return False
        if link.response_type is not None and not link.response_type.match(JSON_MEDIA.content_type):
            return False
        here = link.paths is None or self.path in link.paths
        return here and link.applies(self.operation.method, status)


def asked_operations(
    api: Api,
    version: Version,
    located: Iterable[LocatedOperation],
    others: Sequence[Version] | None = None,
) -> Iterator[AskedOperation]:
    """Yield the operations of a version, with those declared on the way to other versions.

    Args:
        others: the other versions; the default is the neighbouring versions.
    """
    ascending = list(api.versions.values())
    place = ascending.index(version)
    beside = (*ascending[max(0, place - 1) : place], *ascending[place + 1 : place + 2])
    ways = [
        (
            compose(ascending, api.links, version, other),
            compose(ascending, api.links, other, version),
        )
        for other in (beside if others is None else others)
        if min(version, other) in api.links
    ]
    statuses = StatusGroups([link for some in api.links.values() for link in some])
    for one in located:
        for path in one.captures:
            found = (
                find_operation(one, asking.at(path), answering.at(path))
                for asking, answering in ways
            )
            mapped = (
                each
                for operation_path in found
                if operation_path
                for each in operation_path.operations
            )
            declared = frozenset(each for each in mapped if each is not None)
            yield AskedOperation(one.operation, path, statuses, declared)


def warn_of_unreached(
    api: Api, version: Version, located: Iterable[LocatedOperation], mistakes: Mistakes
) -> None:
    at = ("apis", api.name, "versions", str(version), "schema")
    names = []
    for one in located:
        if one.twin:
            mistakes.warn(
                f"warning: {one.name} of this document differs from {one.twin} only in parameter "
                f"names, so no request reaches it; keep one of them",
                *at,
            )
        elif one.reason:
            names.append(one.name)
    if names:
        listed = listed_names(names, _LISTED)
        mistakes.warn(f"warning: no endpoint leads to {listed} of this document", *at)


def listed_names(names: Sequence[str], most: int) -> str:
    """Return a list of at most `most` names and the number of the others: `a, b and 3 more`."""
    more = f" and {len(names) - most} more" if names[most:] else ""
    return f"{', '.join(names[:most])}{more}"


# Unlike the path of a field, the location of a group may end with several `[]` or `.*`.
_OBJECTS = re.compile(r"(?:\[\]|(?<!\\)\.\*)+\Z")
_LAST = re.compile(r"(?:\\.|[^.\\])+\Z", re.DOTALL)


def presence_of(one: OptionalRead, fields: BodyFields) -> Presence | None:
    """Return whether bodies may have a field; None for the whole body, which always exists."""
    if one.anywhere:
        return Presence.DECLARED if fields.has_anywhere(one.name) else Presence.UNDECLARED
    path = path_of(one.name)
    if path is None:
        return None
    if one.prefix is None:
        # A form may have the brackets of a list in its name.
        listed = path._replace(keys=(*path.keys[:-1], f"{path.keys[-1]}[]"))
        found = fields.look_up(path), fields.look_up(listed)
        return Presence.DECLARED if Presence.DECLARED in found else found[0]
    return fields.look_up_prefixed(path, one.prefix, one.but)


def assume(one: OptionalRead, fields: BodyFields) -> None:
    path = path_of(one.name)
    if path is not None and one.prefix is None and not one.anywhere:
        fields.assume(path)


def sought(use: FieldUse, *, upwards: bool) -> Iterator[OptionalRead]:
    names = (*use.takes, *use.moves.values()) if upwards else (*use.makes, *use.moves)
    # A list or map is not looked up itself if its elements or members are looked up.
    holders = {name[:-2] for name in names if name.endswith(("[]", ".*"))}
    found = (OptionalRead(name) for name in names if name not in holders)
    yield from dict.fromkeys((*found, *use.beside.get(upwards, ())))


class _LostField(NamedTuple):
    """The field `name`, which is lost because `source` is moved to `target` in its place."""

    name: str
    source: str
    target: str


def _lost_fields(fields: BodyFields, use: FieldUse, *, upwards: bool) -> Iterator[_LostField]:
    taken = use.takes if upwards else use.makes
    for newer, older in use.moves.items():
        target, source = (newer, older) if upwards else (older, newer)
        to, way = path_of(target), path_of(source)
        if to is not None and way is not None and target not in taken:
            outer = target if way.keys[: len(to.keys)] == to.keys else _LAST.sub("", target)[:-1]
            for name in fields.in_place_of(to, way):
                yield _LostField(f"{outer}.{spell(name)}" if outer else spell(name), source, target)


def path_of(name: str) -> FieldPath | None:
    inner = _OBJECTS.sub("", name)
    if inner in (WHOLE, "*"):
        return None
    with suppress(ValueError):
        return parse_path(name)
    return parse_path(inner)


def renamed(use: FieldUse, *, upwards: bool) -> str:
    """Return the new name of a field if the change only renames one field; otherwise ""."""
    if len(use.takes) != 1 or len(use.makes) != 1 or use.takes == use.makes:
        return ""
    return (use.makes if upwards else use.takes)[0]


def _swapped(missing: str, there: str, *, upwards: bool) -> str:
    other = "newer" if upwards else "older"
    return f"it has '{there}', and the {other} version has '{missing}': swap 'field' and 'to'"


_TERMS = {"query": "parameter", "header": "field"}
# Declarations of these header fields have no effect (OpenAPI 3.1.0, sections 4.8.12.1 and
# 4.8.17.1).
_UNDECLARED = frozenset({"accept", "content-type", "authorization"})
# A document may name a list without the brackets that clients write.
_LIST = re.compile(r"\[[0-9]*\]\Z")


def _look_up_parameters(
    version: Version,
    parts: Sequence[Part],
    asked: Sequence[AskedOperation],
    beside: Sequence[AskedOperation],
    mistakes: Mistakes,
    *,
    upwards: bool,
) -> None:
    """Warn about parameters that changes name but no message of a version has.

    Args:
        parts: the parts of the conversions to a neighbouring version, in the order in which they
            apply.
    """
    for key, place in (("query", "query"), ("headers", "header")):
        made: set[str] = set()
        for part in parts:
            declared = _declared(part.link, asked, place)
            # Changes of bodies use the newer version's names of parameters; see `BodyConversion`.
            groups = [_listed(part, key, upwards=upwards), _carried(part, place, upwards=upwards)]
            for look_up in (
                each for some in (groups if upwards else groups[::-1]) for each in some
            ):
                names = declared.names | made
                known = names | _UNDECLARED if place == "header" else names
                missing = [one for one in look_up.wanted if _key(one, place) not in known]
                # One of several parameters is sufficient, since a request may omit the others.
                if declared.names and missing and len(missing) == len(look_up.wanted):
                    hint = suggest(missing[0], names)
                    others = _declared(part.link, beside, place).names
                    if _key(look_up.renamed, place) in names and _key(missing[0], place) in others:
                        hint = _swapped(missing[0], look_up.renamed, upwards=upwards)
                    mistakes.warn(
                        f"warning: no {declared.messages} of version {version} has the {place}"
                        f" {_TERMS[place]} '{missing[0]}'; {hint}{look_up.use}",
                        *look_up.at,
                    )
                made |= {_key(one, place) for one in look_up.left}


@dataclass(frozen=True, slots=True)
class _ParameterLookUp:
    at: Location
    wanted: tuple[str, ...]
    left: tuple[str, ...] = ()
    use: str = ""
    renamed: str = ""


@dataclass(frozen=True, slots=True)
class _Declared:
    messages: str
    names: set[str]


def _listed(part: Part, key: str, *, upwards: bool) -> Iterator[_ParameterLookUp]:
    entries = list(enumerate(getattr(part.config, key)))
    for index, entry in entries if upwards else reversed(entries):
        for name, section in entry.named().items():
            use = section.parameter_use
            wanted, left = use.takes, use.makes
            if not upwards:
                wanted, left = left, wanted
            given = renamed(use, upwards=upwards)
            yield _ParameterLookUp((*part.at, key, index, name), wanted, left, renamed=given)


def _carried(part: Part, place: str, *, upwards: bool) -> Iterator[_ParameterLookUp]:
    for change in part.changes():
        compiled, _ = change.change(part.link)
        carried = None if compiled is None else compiled.carried
        if carried is not None and carried.in_newer is upwards:
            header = carried.place.field_name
            if (place == "header") is (header is not None):
                names = carried.place.beside.names if header is None else (header,)
                yield _ParameterLookUp(change.at, names, use=change.use)


def _declared(link: VersionLink, asked: Iterable[AskedOperation], place: str) -> _Declared:
    of_requests, of_answers = set[str](), set[str]()
    for one in asked:
        if one.is_changed_by(link, None):
            parameters = one.operation.parameters
            of_requests |= {_key(each.name, place) for each in parameters if each.place == place}
        for key, names in one.operation.answer_fields.items():
            statuses = one.statuses.of(one.operation, key) if names else ()
            if any(one.is_changed_by(link, status) for status in statuses):
                of_answers |= {_key(name, place) for name in names}
    requests, answers = MessageKind.REQUEST in link.on, bool(link.on - {MessageKind.REQUEST})
    if place == "query" or not answers:
        return _Declared("request", of_requests)
    if not requests:
        return _Declared("answer", of_answers)
    # If requests or responses are not described, they may have any name.
    described = of_requests and of_answers
    return _Declared("message", of_requests | of_answers if described else set())


def _key(name: str, place: str) -> str:
    return name.lower() if place == "header" else _LIST.sub("", name)


class DocumentFolder:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[str, Description | DocumentError] = {}

    def read(self, location: str) -> Description:
        if location not in self._known:
            try:
                content = read_regular(self._folder / location)
                self._known[location] = read_description(content, location)
            except DocumentError as error:
                self._known[location] = error
            except OSError as error:
                reason = f"{location}: cannot be read: {error.strerror}"
                self._known[location] = DocumentError(reason)
        known = self._known[location]
        if isinstance(known, DocumentError):
            raise known
        return known


@dataclass(frozen=True, slots=True)
class DescribedVersion:
    version: Version
    located: Sequence[LocatedOperation]
    asked: Sequence[AskedOperation]
    bodies: "Sequence[_Body]"

    def look_up(
        self,
        parts: Iterable[Part],
        mistakes: Mistakes,
        described: "Mapping[Version, DescribedVersion]",
        *,
        upwards: bool,
    ) -> None:
        """Report fields and parameters that changes name but no message of the version has.

        Args:
            described: the versions with documents. They are needed to suggest a remedy if a name
                belongs to the other version.
        """
        if upwards:
            here = [part for part in parts if part.link.older == self.version]
        else:
            here = [part for part in parts if part.link.newer == self.version][::-1]
        ends = [part.link.newer if upwards else part.link.older for part in here[:1]]
        other = next((described[end] for end in ends if end in described), None)
        _Walk(self.version, upwards, other.bodies if other else ()).run(here, self.bodies, mistakes)
        asked = self.asked, other.asked if other else ()
        _look_up_parameters(self.version, here, *asked, mistakes, upwards=upwards)


def described_versions(
    api: Api, documents: DocumentFolder, mistakes: Mistakes
) -> dict[Version, DescribedVersion]:
    found = {}
    for version, description in _described(api, documents, mistakes):
        located = locate(api.endpoints, version, description.operations)
        asked = list(asked_operations(api, version, located))
        bodies = [body for one in asked for body in _bodies(one)]
        found[version] = DescribedVersion(version, located, asked, bodies)
    return found


def _described(
    api: Api, documents: DocumentFolder, mistakes: Mistakes
) -> Iterator[tuple[Version, Description]]:
    for label, version in api.versions.items():
        location = api.schemas.get(version, "http://")
        if is_http_url(location):
            continue
        try:
            yield version, documents.read(location)
        except DocumentError as error:
            at = ("apis", api.name, "versions", label, "schema")
            mistakes.warn(f"warning: the fields of changes are not checked: {error}", *at)


@dataclass(frozen=True, slots=True)
class _Body:
    schema: Schema
    asked: AskedOperation
    status: int | None

    def is_changed_by(self, link: VersionLink) -> bool:
        return self.asked.is_changed_by(link, self.status)


def _bodies(asked: AskedOperation) -> Iterator[_Body]:
    operation = asked.operation
    for schema in (operation.request, operation.form):
        if schema is not None:
            yield _Body(schema, asked, None)
    for key, answer in operation.responses.items():
        for status in asked.statuses.of(operation, key) if answer is not None else ():
            assert answer is not None
            yield _Body(answer, asked, status)


@dataclass(slots=True)
class _LookUp:
    """The search for one field of one change in many bodies.

    `taken` is true if a body has the field before the earlier changes are applied; `bodies` lack it
    when the change is applied. `shares_list` is that of the change, which names the form field
    `a[]` without backslashes.
    """

    inner: tuple[int, str]
    place: tuple[Location, str]
    at: Location
    use: str
    other: str = ""
    shares_list: bool = False
    presences: set[Presence] = field(default_factory=set)
    taken: bool = False
    bodies: list[BodyFields] = field(default_factory=list)

    def names(self) -> set[str]:
        names: set[str] = set()
        for body in self.bodies:
            names.update(body.names())
            if len(names) > _MANY:
                break
        return {name.replace(r"\[\]", "[]") for name in names} if self.shares_list else names


@dataclass(slots=True)
class _Walk:
    version: Version
    upwards: bool
    neighbours: "Sequence[_Body]"
    look_ups: dict[tuple[Location, Location, str], _LookUp] = field(default_factory=dict)
    clashes: dict[tuple[Location, Location], tuple[DeclaredChange, _LostField]] = field(
        default_factory=dict
    )

    def run(self, parts: Sequence[Part], bodies: Sequence[_Body], mistakes: Mistakes) -> None:
        walked: set[object] = set()
        for body in bodies:
            applied = [part for part in parts if body.is_changed_by(part.link)]
            key = (id(body.schema), *(part.at for part in applied))
            if applied and key not in walked:  # most statuses have the same schema and changes
                walked.add(key)
                self._walk(body.schema, applied)
        there = [one for one in self.look_ups.values() if Presence.DECLARED in one.presences]
        fields, places = {one.inner for one in there}, {one.place for one in there}
        for (_, _, name), found in self.look_ups.items():
            # A group describes whole objects, and a request may have only some of their fields.
            if found.inner not in fields or found.place not in places:
                self._report(name, found, mistakes)
        for clash in self.clashes.values():
            self._report_clash(*clash, mistakes)

    def _walk(self, schema: Schema, parts: Sequence[Part]) -> None:
        fields = BodyFields(schema)
        for part in parts:
            for change in self._changes(part):
                use, own = change.field_use, change._replace(place="").field_use
                missing: list[OptionalRead] = []
                for one, inner in zip(self._sought(use), self._sought(own), strict=True):
                    if (found_as := presence_of(one, fields)) is None:
                        continue
                    used = _used_at(change)
                    new = _LookUp(
                        (id(change.section), inner.name),
                        (used, change.place),
                        change.at,
                        change.use,
                        renamed(use, upwards=self.upwards),
                        change.section.shares_list,
                    )
                    found = self.look_ups.setdefault((used, change.at, one.name), new)
                    found.presences.add(found_as)
                    if found_as is not Presence.DECLARED:
                        found.bodies.append(fields.copy())
                        found.taken |= presence_of(one, BodyFields(schema)) is Presence.DECLARED
                        missing.append(one)
                for clash in _lost_fields(fields, use, upwards=self.upwards):
                    self.clashes.setdefault((_used_at(change), change.at), (change, clash))
                for one in missing:  # so that later changes do not report the field again
                    assume(one, fields)
                fields.apply(*change.change(part.link), upwards=self.upwards)

    def _sought(self, use: FieldUse) -> Iterator[OptionalRead]:
        return sought(use, upwards=self.upwards)

    def _changes(self, part: Part) -> Iterable[DeclaredChange]:
        changes = list(part.changes())
        return changes if self.upwards else reversed(changes)

    def _report(self, path: str, found: _LookUp, mistakes: Mistakes) -> None:
        walk = "an upgrade" if self.upwards else "a downgrade"
        known = _suggestion(path, found.names())
        if _is_in(found.other, found.bodies) and self._is_beside(path):
            known = _swapped(path, found.other, upwards=self.upwards)
        elif found.taken:
            side, order = ("above", "before") if self.upwards else ("below", "after")
            taken = f"the changes {side} remove it; list this one {order} them"
            known = taken if known.startswith("known") else f"{known} Or {taken}"
        text = (
            f"no body of version {self.version} has '{path}' at this point of {walk};"
            f" {known}{found.use}"
        )
        if found.presences == {Presence.FORBIDDEN}:
            mistakes.add(text, *found.at)
        else:
            mistakes.warn(f"warning: {text}", *found.at)

    def _is_beside(self, path: str) -> bool:
        return _is_in(path, (BodyFields(body.schema) for body in self.neighbours))

    def _report_clash(self, change: DeclaredChange, lost: _LostField, mistakes: Mistakes) -> None:
        mistakes.warn(
            f"warning: where a body of version {self.version} has '{lost.name}' beside"
            f" '{lost.source}', it is refused: '{lost.source}' becomes '{lost.target}' here, and"
            f" '{lost.name}' would be lost; list a change that removes it"
            f" {'above' if self.upwards else 'below'} this one{change.use}",
            *change.at,
        )


def _is_in(name: str, bodies: Iterable[BodyFields]) -> bool:
    one = OptionalRead(name)
    return any(presence_of(one, fields) is Presence.DECLARED for fields in bodies)


def _used_at(change: DeclaredChange) -> Location:
    return change.used or change.at


def _suggestion(path: str, names: set[str]) -> str:
    text = suggest(path, names)
    if not text.startswith("known"):
        return text
    beside = path.rpartition(".")[0]
    near = {name for name in names if name.rpartition(".")[0] == beside}
    return suggest(path, near or {name for name in names if "." not in name})
