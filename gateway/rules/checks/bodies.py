"""The operations of a version's OpenAPI document, as `check` looks at them."""

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple

from gateway.base.mistakes import Mistakes
from gateway.conversion.chain import compose
from gateway.conversion.changes.change_section import ChangeSection
from gateway.conversion.changes.field_use import WHOLE, FieldUse, SoughtField
from gateway.conversion.changes.rename import RenameSection
from gateway.conversion.field_path import FieldPath, parse_path, spell
from gateway.conversion.operation import MappedOperation
from gateway.conversion.version_step import VersionLink
from gateway.routing.snapshot import Api
from gateway.verify.located_operation import LocatedOperation, find_operation
from gateway.verify.openapi.body_fields import BodyFields, Presence
from gateway.verify.openapi.openapi import Operation
from gateway.versions.version import Version

# A warning lists so many operations.
_LISTED = 5


@dataclass(frozen=True, slots=True)
class AskedOperation:
    """An operation of a document, at one endpoint that leads to it.

    Attributes:
        operation: as the document has it.
        path: of the endpoint.
        mapped: the operations that the rules declare for it, towards the neighbouring versions.
    """

    operation: Operation
    path: str
    mapped: frozenset[MappedOperation] = frozenset()

    def is_changed_by(self, link: VersionLink, status: int | None) -> bool:
        """Whether a link applies to the request, or to the answer with a status."""
        if link.operations is not None:
            if self.mapped.isdisjoint(link.operations):
                return False
            link = replace(link, operations=None)
        here = link.paths is None or self.path in link.paths
        return here and link.applies(self.operation.method, status)


def asked_operations(
    api: Api, version: Version, located: Iterable[LocatedOperation]
) -> Iterator[AskedOperation]:
    """Yield the operations of a version's document to which endpoints lead."""
    ladder = list(api.versions.values())
    place = ladder.index(version)
    ways = [
        (compose(ladder, api.links, version, other), compose(ladder, api.links, other, version))
        for other in (*ladder[max(0, place - 1) : place], *ladder[place + 1 : place + 2])
        if min(version, other) in api.links
    ]
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
            yield AskedOperation(one.operation, path, declared)


def warn_of_unreached(
    api: Api, version: Version, located: Iterable[LocatedOperation], mistakes: Mistakes
) -> None:
    """Warn of the operations of a version's document to which no endpoint leads."""
    at = ("apis", api.name, "versions", str(version), "schema")
    names = []
    for one in located:
        if one.twin:
            mistakes.warn(
                f"warning: {one.name} of this document is {one.twin} but for the names of its"
                " parameters, so that no request is for it; keep one of the two",
                *at,
            )
        elif one.reason:
            names.append(one.name)
    if names:
        more = f" and {len(names) - _LISTED} more" if names[_LISTED:] else ""
        listed = ", ".join(names[:_LISTED])
        mistakes.warn(f"warning: no endpoint leads to {listed}{more} of this document", *at)


# The place of a group may be what no path of a field ends in, such as members of members.
_OBJECTS = re.compile(r"(?:\[\]|(?<!\\)\.\*)+\Z")
_LAST = re.compile(r"(?:\\.|[^.\\])+\Z", re.DOTALL)


def presence_of(one: SoughtField, fields: BodyFields) -> Presence | None:
    """Return whether bodies may have a field; None for the whole body, which is always there."""
    if one.anywhere:
        return Presence.DECLARED if fields.has_anywhere(one.name) else Presence.UNDECLARED
    path = _path(one.name)
    if path is None:
        return None
    if one.prefix is None:
        return fields.look_up(path)
    return fields.look_up_prefixed(path, one.prefix, one.but)


def assume(one: SoughtField, fields: BodyFields) -> None:
    """Let bodies have a field."""
    path = _path(one.name)
    if path is not None and one.prefix is None and not one.anywhere:
        fields.assume(path)


def sought(use: FieldUse, *, upwards: bool) -> Iterator[SoughtField]:
    """Yield the fields that a change looks for on the way to a version, each once."""
    names = (*use.takes, *use.moves.values()) if upwards else (*use.makes, *use.moves)
    # Where its elements or members are looked for, the list or map is as well.
    holders = {name[:-2] for name in names if name.endswith(("[]", ".*"))}
    found = (SoughtField(name) for name in names if name not in holders)
    yield from dict.fromkeys((*found, *use.beside.get(upwards, ())))


class LostField(NamedTuple):
    """A field in the place that another gets, so that one of the two would be lost.

    Attributes:
        name: the field.
        source: the other one.
        target: what the other one becomes.
    """

    name: str
    source: str
    target: str


def lost(fields: BodyFields, use: FieldUse, *, upwards: bool) -> Iterator[LostField]:
    """Yield the fields in whose place a change moves others, and which it does not take."""
    taken = use.takes if upwards else use.makes
    for newer, older in use.moves.items():
        target, source = (newer, older) if upwards else (older, newer)
        to, way = _path(target), _path(source)
        if to is not None and way is not None and target not in taken:
            outer = target if way.keys[: len(to.keys)] == to.keys else _LAST.sub("", target)[:-1]
            for name in fields.in_place_of(to, way):
                yield LostField(f"{outer}.{spell(name)}" if outer else spell(name), source, target)


def _path(name: str) -> FieldPath | None:
    """Return the path of a field, or of what holds the objects of a group; None for the body."""
    inner = _OBJECTS.sub("", name)
    if inner in (WHOLE, "*"):
        return None
    with suppress(ValueError):
        return parse_path(name)
    return parse_path(inner)


def renamed(section: ChangeSection, use: FieldUse, *, upwards: bool) -> str:
    """Return the name that a rename gives what it looks for; empty for any other change.

    Args:
        section: the change.
        use: what it does with fields, by their names from outside of a group.
        upwards: whether messages are converted to the newer version.
    """
    if not isinstance(section, RenameSection):
        return ""
    return next(iter(use.makes if upwards else use.takes), "")


def swapped(missing: str, there: str, *, upwards: bool) -> str:
    """Return what would be right where each version has the name that is said of the other."""
    other = "newer" if upwards else "older"
    return f"it has '{there}', and the {other} version has '{missing}': swap 'field' and 'to'"
