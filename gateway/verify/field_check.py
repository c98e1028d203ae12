"""The fields that declared changes name, looked up in the OpenAPI documents of the two versions.

An upgrade starts from a body of the older version's document, and a downgrade from one of the newer
version's. Each change must find its fields in what the changes before it leave.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from gateway.config.changes.change_section import WHOLE
from gateway.config.conversions.clashes import Part
from gateway.config.conversions.groups import DeclaredChange
from gateway.config.root import Config
from gateway.config.sections.api_section import ApiConfig
from gateway.config.text.mistakes import ConfigError, Issue, Location, Mistakes, suggest
from gateway.config.text.source import read
from gateway.core.conversion.chain import VersionLink
from gateway.core.conversion.field_path import parse_path
from gateway.core.snapshot import Api, Snapshot
from gateway.core.versions.version import Version
from gateway.verify.located_operation import locate
from gateway.verify.openapi.body_shape import BodyShape, FieldShape, Presence
from gateway.verify.openapi.document_source import read as read_description
from gateway.verify.openapi.json_schema import Schema
from gateway.verify.openapi.openapi import Description, DocumentError, statuses_of


def check_fields(path: Path, environment: Mapping[str, str], snapshot: Snapshot) -> list[Issue]:
    """Return warnings about the fields that changes name; documents at URLs are not asked for.

    Args:
        path: of gateway.yaml.
        environment: the values of its variables.
        snapshot: the rules in it.

    Raises:
        ConfigError: a change names a field that the document forbids.
    """
    rules = read(path.read_bytes(), str(path), environment)
    config = Config.model_validate_json(json.dumps(rules.data))
    mistakes = Mistakes()
    for api in snapshot.apis:
        parts = _parts(api, config.apis[api.name])
        for version, description in _documents(api, path.absolute().parent, mistakes):
            bodies = list(_bodies(api, version, description))
            _Walk(version, "up").run(
                [part for part in parts if part.link.older == version], bodies, mistakes
            )
            _Walk(version, "down").run(
                [part for part in reversed(parts) if part.link.newer == version], bodies, mistakes
            )
    if mistakes.found:
        issues = [rules.issue(mistake.location, mistake.text) for mistake in mistakes.found]
        raise ConfigError(str(path), issues)
    return [rules.issue(warning.location, warning.text) for warning in mistakes.warnings]


def _parts(api: Api, config: ApiConfig) -> list[Part]:
    """Return the parts of all conversions; links are in the order of their declarations."""
    links = {older: iter(declared) for older, declared in api.links.items()}
    return [
        Part(
            conversion, ("apis", api.name, "conversions", index), next(links[older]), config.groups
        )
        for index, conversion in enumerate(config.conversions)
        for older in (api.versions[conversion.between[0]],)
    ]


def _documents(api: Api, folder: Path, mistakes: Mistakes) -> Iterator[tuple[Version, Description]]:
    for label, version in api.versions.items():
        location = api.schemas.get(version, "http://")
        if location.startswith(("http://", "https://")):
            continue
        try:
            yield version, read_description((folder / location).read_bytes(), location)
        except DocumentError as error:
            at = ("apis", api.name, "versions", label, "schema")
            mistakes.warn(f"warning: the fields of changes are not looked up: {error}", *at)


@dataclass(frozen=True, slots=True)
class _Body:
    """A body that a document declares, of a request or, with a status, of a response."""

    schema: Schema
    path: str
    method: str
    status: int | None

    def is_changed_by(self, link: VersionLink) -> bool:
        return (link.paths is None or self.path in link.paths) and link.applies(
            self.method, self.status
        )


def _bodies(api: Api, version: Version, description: Description) -> Iterator[_Body]:
    for located in locate(api.endpoints, version, description):
        operation = located.operation
        for path in located.captures:
            if operation.request is not None:
                yield _Body(operation.request, path, operation.method, None)
            for key, schema in operation.responses.items():
                for status in statuses_of(key) if schema is not None else ():
                    if operation.key(status) == key:
                        assert schema is not None
                        yield _Body(schema, path, operation.method, status)


@dataclass(slots=True)
class _LookUp:
    """One field of one change, looked up in many bodies."""

    presences: set[Presence] = field(default_factory=set)
    names: set[str] = field(default_factory=set)


@dataclass(slots=True)
class _Walk:
    """All bodies of one version, walked through the changes to a neighbouring one."""

    version: Version
    direction: Literal["up", "down"]
    look_ups: dict[tuple[Location, str], _LookUp] = field(default_factory=dict)

    def run(self, parts: Sequence[Part], bodies: Sequence[_Body], mistakes: Mistakes) -> None:
        """Report the fields that are in no body, of the parts in the order of the direction."""
        walked: set[object] = set()
        for body in bodies:
            applied = [part for part in parts if body.is_changed_by(part.link)]
            key = (id(body.schema), *(part.at for part in applied))
            if applied and key not in walked:  # most statuses share a schema and the changes
                walked.add(key)
                self._walk(BodyShape.of(body.schema), applied)
        for (at, name), found in self.look_ups.items():
            if Presence.DECLARED not in found.presences:
                self._report(at, name, found, mistakes)

    def _walk(self, shape: BodyShape, parts: Sequence[Part]) -> None:
        for part in parts:
            for change in self._changes(part):
                upgrade, at = change.upgrade(), change.at
                taken, made = _named(upgrade.takes), _named(upgrade.makes)
                if self.direction == "down":
                    taken, made = made, taken
                for path in taken:
                    found = self.look_ups.setdefault((at, path), _LookUp())
                    found.presences.add(presence := shape.look_up(parse_path(path)))
                    if presence is not Presence.DECLARED:
                        found.names |= set(shape.names())
                shape = _changed(shape, taken, made)

    def _changes(self, part: Part) -> Iterable[DeclaredChange]:
        changes = list(part.changes())
        return changes if self.direction == "up" else reversed(changes)

    def _report(self, at: Location, path: str, found: _LookUp, mistakes: Mistakes) -> None:
        walk = "an upgrade" if self.direction == "up" else "a downgrade"
        text = (
            f"no body of version {self.version} has '{path}' when {walk} comes here;"
            f" {_suggestion(path, found.names)}"
        )
        if found.presences == {Presence.FORBIDDEN}:
            mistakes.add(text, *at)
        else:
            mistakes.warn(f"warning: {text}", *at)


def _named(fields: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for name in fields if name != WHOLE)


def _changed(shape: BodyShape, taken: Sequence[str], made: Sequence[str]) -> BodyShape:
    """Return the shape that a change leaves; a value that is not only moved may be anything."""
    if not taken and not made:  # a change of the whole body
        return BodyShape()
    shapes = [shape.take(parse_path(path)) for path in taken]
    moved = shapes[0] if len(taken) == len(made) == 1 and taken != made else FieldShape()
    for path in made:
        shape.put(parse_path(path), moved)
    return shape


def _suggestion(path: str, names: set[str]) -> str:
    text = suggest(path, names)
    if not text.startswith("known"):
        return text
    beside = path.rpartition(".")[0]
    near = {name for name in names if name.rpartition(".")[0] == beside}
    return suggest(path, near or {name for name in names if "." not in name})
