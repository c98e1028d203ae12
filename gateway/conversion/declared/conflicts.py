"""Checks for conflicts between changes that apply to the same messages."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from gateway.base.mistakes import Location, Mistakes, place
from gateway.base.path_templates import ANY, Router, Template, shared_path
from gateway.conversion.changes.change_section import ParameterSection
from gateway.conversion.changes.field_use import WHOLE, FieldUse, ValueKinds
from gateway.conversion.declared.conversion import Part
from gateway.conversion.operation import MappedOperation, OperationPattern, OperationTable
from gateway.conversion.version_step import MessageKind, VersionLink
from gateway.versions.version import Version

AskedPaths = Iterable[tuple[Template, Template]]
"""The public paths of endpoints, each with the path of the endpoint's requests to services."""


class _Endpoint(NamedTuple):
    public: Template
    asked: Template


class LinkOverlap:
    def __init__(self, asked: AskedPaths, links: Mapping[Version, Sequence[VersionLink]]) -> None:
        self._endpoints = {public.text: _Endpoint(public, path) for public, path in asked}
        shapes = {each.public.shape: each.public for each in self._endpoints.values()}
        self._router = Router((public, public) for public in shapes.values())
        self._operations = {
            older: tuple(dict.fromkeys(each for link in some for each in link.operations or ()))
            for older, some in links.items()
        }
        self._tables: dict[tuple[Version, bool], OperationTable] = {}

    def overlap(self, one: VersionLink, other: VersionLink) -> bool:
        # Errors with different statuses are different messages.
        if not (one.on & other.on - {MessageKind.ERROR} or one.statuses & other.statuses):
            return False
        if not _share_media_types(one, other):
            return False
        if one.operations is not None:
            return any(self._applies(other, each) for each in one.operations)
        if other.operations is not None:
            return any(self._applies(one, each) for each in other.operations)
        return _overlap(one.methods, other.methods) and _overlap(one.paths, other.paths)

    def _applies(self, link: VersionLink, operation: MappedOperation) -> bool:
        if link.operations is not None:
            return operation in link.operations
        if not _takes(operation, link.methods):
            return False
        return link.paths is None or any(
            self._leads(self._endpoints[path], operation, link)
            for path in link.paths
            if path in self._endpoints
        )

    def _leads(self, endpoint: _Endpoint, operation: MappedOperation, link: VersionLink) -> bool:
        """Return whether requests to an endpoint can belong to an operation.

        They can if their path matches the path of the operation in one of the two versions of the
        link, and if no other operation or endpoint takes precedence for this path.
        """
        for asked in self._on_the_way(endpoint.asked, link.older):
            for newer in (True, False):
                side = operation.side(newer=newer)
                path = None if side is None else shared_path(asked, side.template)
                if side is None or path is None:
                    continue
                if not self._has_first(operation, side, path, link, newer=newer):
                    continue
                # If other version steps have mapped the path, its endpoint cannot be determined.
                if asked is not endpoint.asked or self._comes_to(endpoint, path):
                    return True
        return False

    def _on_the_way(self, asked: Template, older: Version) -> list[Template]:
        moves = [
            (each.newer.template, each.older.template)
            for version, some in self._operations.items()
            if version != older
            for each in some
            if each.newer is not None and each.older is not None
        ]
        found = [asked]
        for path in found:  # the list grows, because each equivalent may have equivalents too
            for sides in moves:
                if sides[0] != sides[1] and any(shared_path(path, side) for side in sides):
                    found += [side for side in sides if side not in found]
        return found

    def _has_first(
        self,
        operation: MappedOperation,
        side: OperationPattern,
        path: str,
        link: VersionLink,
        *,
        newer: bool,
    ) -> bool:
        key = link.older, newer
        if key not in self._tables:
            self._tables[key] = OperationTable(self._operations[link.older], newer=newer)
        query = side.written(dict.fromkeys(side.captures, ANY), [])
        methods = [side.method] if side.method is not None else link.methods or [ANY]
        found = (self._tables[key].find(method, path, query) for method in methods)
        return any(one is not None and one.operation is operation for one in found)

    def _comes_to(self, endpoint: _Endpoint, path: str) -> bool:
        _, captures = Router([(endpoint.asked, endpoint.asked)]).find(path) or (None, {})
        public = endpoint.public.fill({**dict.fromkeys(endpoint.public.captures, ANY), **captures})
        found = self._router.find(public)
        return found is not None and found[0].shape == endpoint.public.shape


def _overlap(one: frozenset[str] | None, other: frozenset[str] | None) -> bool:
    """Return whether two sets have a common name. None is the set of all names."""
    return one is None or other is None or bool(one & other)


def _share_media_types(one: VersionLink, other: VersionLink) -> bool:
    if one.media is not None and other.media is not None and not one.media.overlaps(other.media):
        return False
    types = one.response_type, other.response_type
    return types[0] is None or types[1] is None or types[0].overlaps(types[1])


def _takes(operation: MappedOperation, methods: frozenset[str] | None) -> bool:
    sides = [side for side in (operation.newer, operation.older) if side is not None]
    return methods is None or any(side.takes(method) for side in sides for method in methods)


_ORDER = "changes are listed in the order that upgrades a document"


class _Use(NamedTuple):
    at: Location
    taken: tuple[str, ...]
    makes: tuple[str, ...]
    use: str


def find_conflicts(part: Part, before: Sequence[Part], mistakes: Mistakes) -> None:
    """Report changes that conflict with other changes between the same two versions.

    Conflicts are:

    - A change reads a field that an earlier change removed.
    - Two changes write the same field.
    - A change of bodies cannot read the type of value that an earlier change wrote.
    - A change of links names a query parameter by its name in the other version.

    Args:
        before: The earlier entries between the same versions that apply to some of the same
            messages.
    """
    for parts in ([part], *([other, part] for other in before)):
        _find(_uses_of(parts, "changes"), _within, mistakes)
        _find_unreadable(parts, mistakes)
        _find_misnamed(parts, mistakes)
        _find(_uses_of(parts, "query"), str.__eq__, mistakes)
        _find(_uses_of(parts, "headers", str.lower), str.__eq__, mistakes)


def _uses_of(
    parts: Sequence[Part], key: str, spelling: Callable[[str], str] = str
) -> Iterator[_Use]:
    for part in parts:
        uses: Iterable[tuple[Location, FieldUse, str, bool]] = (
            (
                (change.at, change.field_use, change.use, change.section.shares_list)
                for change in part.changes()
                if not change.is_conditional
            )
            if key == "changes"
            else (
                (at, section.parameter_use, "", section.shares_list)
                for at, section in _parameters(part, key)
            )
        )
        for at, one, use, shared in uses:
            takes, makes = (
                tuple(spelling(field) for field in fields if field != WHOLE)
                for fields in (one.takes, one.makes)
            )
            yield (
                _Use(at, takes or makes, makes or takes, use)
                if shared
                else _Use(at, takes, makes, use)
            )


def _parameters(part: Part, key: str) -> Iterator[tuple[Location, ParameterSection]]:
    for index, entry in enumerate(getattr(part.config, key)):
        for name, section in entry.named().items() if entry.when is None else ():
            yield (*part.at, key, index, name), section


def _find(changes: Iterator[_Use], within: Callable[[str, str], bool], mistakes: Mistakes) -> None:
    walk = _Walk(within, mistakes)
    for change in changes:
        walk.check(change)
        walk.add(change)


class _Walk:
    """Tracks the fields that the changes of an upgrade remove, read and create, one by one."""

    def __init__(self, within: Callable[[str, str], bool], mistakes: Mistakes) -> None:
        self._within = within
        self._mistakes = mistakes
        # The fields that earlier changes have removed, read or created, each with the location of
        # the change. `_renamed` has the new names of removed fields. A name is empty if the fields
        # of a change were combined.
        self._gone: dict[str, Location] = {}
        self._used: dict[str, Location] = {}
        self._made: dict[str, Location] = {}
        self._renamed: dict[str, str] = {}

    def check(self, change: _Use) -> None:
        for field in change.taken:
            self._check_taken(change, field)
        for field in change.makes:
            self._check_made(change, field)

    def _check_taken(self, change: _Use, field: str) -> None:
        within, makes = self._within, change.makes
        for known, other in self._gone.items():
            if within(field, known):
                name = self._renamed[known] and self._renamed[known] + field[len(known) :]
                self._mistakes.add(
                    f"'{field}' is removed by {place(other)}, which comes earlier;"
                    f" {_ORDER}: {_remedy(name, field, makes)}{change.use}",
                    *change.at,
                )
        # A move of `a` to `a.b` would also move the other fields of `a`.
        part = next((m for m in makes if m != field and within(m, field)), None)
        for known, other in self._made.items() if part and field not in makes else ():
            if known != field and within(known, field):
                self._mistakes.add(
                    f"'{field}' becomes '{part}' here, and {place(other)}, which"
                    f" comes earlier, has created '{known}'; {_ORDER}{change.use}",
                    *change.at,
                )

    def _check_made(self, change: _Use, field: str) -> None:
        within, taken = self._within, change.taken
        if field in self._used and field not in taken:
            self._mistakes.add(
                f"'{field}' is created here, and {place(self._used[field])}, which"
                f" comes earlier, requires it; {_ORDER}{change.use}",
                *change.at,
            )
        for known, other in (self._used | self._made).items():
            if (
                known != field
                and within(known, field)
                and not any(within(known, each) and within(each, field) for each in taken)
            ):
                self._mistakes.add(
                    f"'{field}' is created here, and {place(other)}, which comes"
                    f" earlier, requires '{known}' in it; {_ORDER}{change.use}",
                    *change.at,
                )
        if field in self._made and field not in taken:
            self._mistakes.add(
                f"'{field}' is already created by {place(self._made[field])}; remove"
                f" one of them{change.use}",
                *change.at,
            )

    def add(self, change: _Use) -> None:
        here, taken, makes = change.at[:-1], change.taken, change.makes
        name = makes[0] if len(taken) == len(makes) == 1 else ""
        self._renamed |= dict.fromkeys(taken, name)
        gone = self._gone | {field: here for field in taken if field not in makes}
        self._gone = {
            field: other
            for field, other in gone.items()
            if not any(self._within(one, field) for one in makes)
        }
        used = {field: other for field, other in self._used.items() if field not in self._gone}
        self._used = used | {field: here for field in taken if field in makes}
        made = {f: other for f, other in self._made.items() if f not in taken or f in makes}
        self._made = made | {field: here for field in makes if field not in taken}


def _remedy(name: str, field: str, makes: Sequence[str]) -> str:
    stays = field in makes
    right = "list this one first" if stays else "remove one of them"
    return f"write '{name}' here, or {right}" if name and (stays or name not in makes) else right


_Known = dict[str, tuple[ValueKinds, Location]]


def _find_unreadable(parts: Sequence[Part], mistakes: Mistakes) -> None:
    held: _Known = {}
    for part in parts:
        for change in part.changes():
            use, here = change.field_use, change.at
            if change.is_conditional:
                held = _still_known(held, use)
                continue
            for field, read in use.reads.items():
                found, other = held.get(field, (read, here))
                if not found.overlaps(read):
                    mistakes.add(
                        f"'{field}' is {found} after {place(other[:-1])}, which comes"
                        f" earlier, and this change expects {read};"
                        f" {_ORDER}{change.use}",
                        *here,
                    )
            held = _still_known(held, use)
            held |= {field: (left, here) for field, left in use.leaves.items()}


def _find_misnamed(parts: Sequence[Part], mistakes: Mistakes) -> None:
    renamed = [one.parameter_use for part in parts for _, one in _parameters(part, "query")]
    for change in (change for part in parts for change in part.changes()):
        if change.section.linked is None:
            continue
        version, name = change.section.linked
        for use in renamed:
            own, others, other = use.makes, use.takes, "older"
            if version == "older":
                own, others, other = others, own, "newer"
            if name in others and name not in own and own:
                mistakes.add(
                    f"'{name}' is the name of the parameter in the {other} version,"
                    f" and the link is of the {version} version; write"
                    f" '{own[0]}'{change.use}",
                    *change.at,
                    "parameter",
                )


def _still_known(held: _Known, use: FieldUse) -> _Known:
    touched = (*use.takes, *use.makes)
    known = {
        field: known
        for field, known in held.items()
        if not any(_within(field, each) for each in touched)
    }
    known |= {to: held[source] for to, source in use.moves.items() if source in held}
    return known


def _within(field: str, container: str) -> bool:
    return container in (WHOLE, field) or field.startswith((f"{container}.", f"{container}["))
