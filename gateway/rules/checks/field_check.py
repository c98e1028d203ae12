"""The fields that declared changes name, looked up in the OpenAPI documents of the two versions.

An upgrade starts from a body of the older version's document, and a downgrade from one of the newer
version's. Each change must find its fields in what the changes before it leave.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gateway.base.files import read_regular
from gateway.base.mistakes import Location, Mistakes, suggest
from gateway.conversion.changes.field_use import FieldUse, SoughtField
from gateway.conversion.declared.conversion import Part
from gateway.conversion.declared.groups import DeclaredChange
from gateway.conversion.schema import Schema
from gateway.conversion.version_step import VersionLink
from gateway.routing.snapshot import Api
from gateway.rules.checks.bodies import (
    AskedOperation,
    LostField,
    asked_operations,
    assume,
    lost,
    presence_of,
    renamed,
    sought,
    swapped,
    warn_of_unreached,
)
from gateway.rules.checks.moved_path_check import warn_of_left_out
from gateway.rules.checks.overwriting_check import warn_of_overwriting
from gateway.rules.checks.parameter_check import look_up_parameters
from gateway.rules.root import Config
from gateway.verify.located_operation import LocatedOperation, locate
from gateway.verify.openapi.body_fields import BodyFields, Presence
from gateway.verify.openapi.document_source import SERVING
from gateway.verify.openapi.document_source import read as read_description
from gateway.verify.openapi.openapi import (
    Description,
    DocumentError,
    TooLargeError,
    statuses_of,
)
from gateway.versions.version import Version


class DocumentFolder:
    """The OpenAPI documents at paths that start from a folder; each is read once.

    Attributes:
        too_large: why a process that serves does not load a document, by location.
    """

    def __init__(self, folder: Path) -> None:
        self.too_large: dict[str, TooLargeError] = {}
        self._folder = folder
        self._known: dict[str, Description | DocumentError] = {}

    def read(self, location: str) -> Description:
        """Return the document at a path; raises DocumentError."""
        if location not in self._known:
            try:
                content = read_regular(self._folder / location)
                self._known[location] = self._read(content, location)
            except DocumentError as error:
                self._known[location] = error
            except OSError as error:
                reason = f"{location}: cannot be read: {error.strerror}"
                self._known[location] = DocumentError(reason)
        known = self._known[location]
        if isinstance(known, DocumentError):
            raise known
        return known

    def _read(self, content: bytes, location: str) -> Description:
        try:
            return read_description(content, location, SERVING)
        except TooLargeError as error:
            self.too_large[location] = error
            return read_description(content, location)


def look_up_fields(
    config: Config, apis: Iterable[Api], documents: DocumentFolder, mistakes: Mistakes
) -> None:
    """Report the fields that changes name and that no body has where they look for them."""
    for api in apis:
        section = config.apis[api.name]
        parts = section.parts(api)
        described = described_versions(api, documents, mistakes)
        for one in described.values():
            warn_of_unreached(api, one.version, one.located, mistakes)
            one.look_up(parts, mistakes, described, upwards=True)
            one.look_up(parts, mistakes, described, upwards=False)
        located = {version: one.located for version, one in described.items()}
        warn_of_left_out(api, parts, located, mistakes)
        warn_of_overwriting(api, parts, located, mistakes)


@dataclass(frozen=True, slots=True)
class DescribedVersion:
    """A version of an API, as its OpenAPI document describes it.

    Attributes:
        version: the version.
        located: the operations of the document, with the endpoints that lead to them.
        asked: those to which endpoints lead.
        bodies: the bodies of their messages.
    """

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
        """Report what changes name and no message of the version has, when a message comes there.

        Args:
            parts: of the conversions of the API, in the order of their declarations.
            mistakes: takes what is found.
            described: the versions with documents, so that names of the other one are recognised.
            upwards: whether messages are converted to the newer version, rather than to the older.
        """
        if upwards:
            here = [part for part in parts if part.link.older == self.version]
        else:
            here = [part for part in parts if part.link.newer == self.version][::-1]
        ends = [part.link.newer if upwards else part.link.older for part in here[:1]]
        other = next((described[end] for end in ends if end in described), None)
        _Walk(self.version, upwards, other.bodies if other else ()).run(here, self.bodies, mistakes)
        asked = self.asked, other.asked if other else ()
        look_up_parameters(self.version, here, *asked, mistakes, upwards=upwards)


def described_versions(
    api: Api, documents: DocumentFolder, mistakes: Mistakes
) -> dict[Version, DescribedVersion]:
    """Return the versions whose documents are in a folder; warn of those that cannot be read."""
    found = {}
    for version, description in _described(api, documents, mistakes):
        located = locate(api.endpoints, version, description)
        asked = list(asked_operations(api, version, located))
        bodies = [body for one in asked for body in _bodies(one)]
        found[version] = DescribedVersion(version, located, asked, bodies)
    return found


def _described(
    api: Api, documents: DocumentFolder, mistakes: Mistakes
) -> Iterator[tuple[Version, Description]]:
    for label, version in api.versions.items():
        location = api.schemas.get(version, "http://")
        if location.startswith(("http://", "https://")):
            continue
        try:
            yield version, documents.read(location)
        except DocumentError as error:
            at = ("apis", api.name, "versions", label, "schema")
            mistakes.warn(f"warning: the fields of changes are not looked up: {error}", *at)


@dataclass(frozen=True, slots=True)
class _Body:
    """A body that a document declares, of a request or, with a status, of a response."""

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
        for status in statuses_of(key) if answer is not None else ():
            if operation.key(status) == key:
                assert answer is not None
                yield _Body(answer, asked, status)


@dataclass(slots=True)
class _LookUp:
    """One field of one change, looked up in many bodies.

    Attributes:
        inner: the change and the field, as its group has them.
        place: where the group is used, or the change itself stands.
        at: where the change is declared.
        use: what is said of the use.
        other: the name that the other version has for it, by a rename; empty for another change.
        taken: whether a body has it before the changes that come first.
    """

    inner: tuple[int, str]
    place: tuple[Location, str]
    at: Location
    use: str
    other: str = ""
    presences: set[Presence] = field(default_factory=set)
    taken: bool = False
    names: set[str] = field(default_factory=set)


@dataclass(slots=True)
class _Walk:
    """All bodies of one version, walked through the changes to a neighbouring one."""

    version: Version
    upwards: bool
    neighbours: "Sequence[_Body]"
    look_ups: dict[tuple[Location, Location, str], _LookUp] = field(default_factory=dict)
    clashes: dict[tuple[Location, Location], tuple[DeclaredChange, LostField]] = field(
        default_factory=dict
    )

    def run(self, parts: Sequence[Part], bodies: Sequence[_Body], mistakes: Mistakes) -> None:
        """Report the fields that are in no body, of the parts in the order of the direction."""
        walked: set[object] = set()
        for body in bodies:
            applied = [part for part in parts if body.is_changed_by(part.link)]
            key = (id(body.schema), *(part.at for part in applied))
            if applied and key not in walked:  # most statuses share a schema and the changes
                walked.add(key)
                self._walk(body.schema, applied)
        there = [one for one in self.look_ups.values() if Presence.DECLARED in one.presences]
        fields, places = {one.inner for one in there}, {one.place for one in there}
        for (_, _, name), found in self.look_ups.items():
            # A group is of whole objects, of which a request may have a part.
            if found.inner not in fields or found.place not in places:
                self._report(name, found, mistakes)
        for clash in self.clashes.values():
            self._report_clash(*clash, mistakes)

    def _walk(self, schema: Schema, parts: Sequence[Part]) -> None:
        fields = BodyFields(schema)
        for part in parts:
            for change in self._changes(part):
                use, own = change.field_use, change._replace(place="").field_use
                missing: list[SoughtField] = []
                for one, inner in zip(self._sought(use), self._sought(own), strict=True):
                    if (found_as := presence_of(one, fields)) is None:
                        continue
                    used = _used_at(change)
                    new = _LookUp(
                        (id(change.section), inner.name),
                        (used, change.place),
                        change.at,
                        change.use,
                        renamed(change.section, use, upwards=self.upwards),
                    )
                    found = self.look_ups.setdefault((used, change.at, one.name), new)
                    found.presences.add(found_as)
                    if found_as is not Presence.DECLARED:
                        found.names |= set(fields.names())
                        found.taken |= presence_of(one, BodyFields(schema)) is Presence.DECLARED
                        missing.append(one)
                for clash in lost(fields, use, upwards=self.upwards):
                    self.clashes.setdefault((_used_at(change), change.at), (change, clash))
                for one in missing:  # so that it is reported once, and not by changes after it
                    assume(one, fields)
                fields.apply(change.change(part.link), change.place, upwards=self.upwards)

    def _sought(self, use: FieldUse) -> Iterator[SoughtField]:
        return sought(use, upwards=self.upwards)

    def _changes(self, part: Part) -> Iterable[DeclaredChange]:
        changes = list(part.changes())
        return changes if self.upwards else reversed(changes)

    def _report(self, path: str, found: _LookUp, mistakes: Mistakes) -> None:
        walk = "an upgrade" if self.upwards else "a downgrade"
        known = _suggestion(path, found.names)
        if found.other in found.names and self._is_beside(path):
            known = swapped(path, found.other, upwards=self.upwards)
        elif found.taken:
            side, order = ("above", "before") if self.upwards else ("below", "after")
            taken = f"the changes {side} have taken it away; list this one {order} them"
            known = taken if known.startswith("known") else f"{known} Or {taken}"
        text = (
            f"no body of version {self.version} has '{path}' when {walk} comes here;"
            f" {known}{found.use}"
        )
        if found.presences == {Presence.FORBIDDEN}:
            mistakes.add(text, *found.at)
        else:
            mistakes.warn(f"warning: {text}", *found.at)

    def _is_beside(self, path: str) -> bool:
        """Return whether the neighbouring version has a field that this one lacks."""
        one = SoughtField(path)
        bodies = (BodyFields(body.schema) for body in self.neighbours)
        return any(presence_of(one, fields) is Presence.DECLARED for fields in bodies)

    def _report_clash(self, change: DeclaredChange, lost: LostField, mistakes: Mistakes) -> None:
        mistakes.warn(
            f"warning: where a body of version {self.version} has '{lost.name}' beside"
            f" '{lost.source}', it is refused: '{lost.source}' becomes '{lost.target}' here, and"
            f" '{lost.name}' would be lost; list a change that takes it away"
            f" {'above' if self.upwards else 'below'} this one{change.use}",
            *change.at,
        )


def _used_at(change: DeclaredChange) -> Location:
    return change.used or change.at


def _suggestion(path: str, names: set[str]) -> str:
    text = suggest(path, names)
    if not text.startswith("known"):
        return text
    beside = path.rpartition(".")[0]
    near = {name for name in names if name.rpartition(".")[0] == beside}
    return suggest(path, near or {name for name in names if "." not in name})
