"""Meeting: whether there are messages to which two links between the same versions apply.

A link names endpoints and methods, or operations. An endpoint is of an operation if a request that
comes to it is asked of the service at the path that the operation has there.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from gateway.base.path_templates import Router, Template
from gateway.conversion.declared.shared_path import ANY, shared_path
from gateway.conversion.operations.operation import MappedOperation, OperationPattern
from gateway.conversion.operations.operation_table import OperationTable
from gateway.conversion.version_link import MessageKind, VersionLink
from gateway.versions.version import Version

AskedPaths = Iterable[tuple[Template, Template]]
"""The paths of endpoints, each with the path that services are asked for there."""


class _Endpoint(NamedTuple):
    """The public path of an endpoint, and the path that services are asked for there."""

    public: Template
    asked: Template


class Meeting:
    """Tells whether two links of an API apply to the same messages.

    Args:
        asked: the paths of its endpoints.
        links: all its links, by the older version.
    """

    def __init__(self, asked: AskedPaths, links: Mapping[Version, Sequence[VersionLink]]) -> None:
        self._endpoints = {public.text: _Endpoint(public, path) for public, path in asked}
        shapes = {each.public.shape: each.public for each in self._endpoints.values()}
        self._router = Router((public, public) for public in shapes.values())
        self._operations = {
            older: tuple(dict.fromkeys(each for link in some for each in link.operations or ()))
            for older, some in links.items()
        }
        self._tables: dict[tuple[Version, bool], OperationTable] = {}

    def meet(self, one: VersionLink, other: VersionLink) -> bool:
        """Return whether there are messages to which both apply."""
        # Errors of different statuses are different messages.
        if not (one.on & other.on - {MessageKind.ERROR} or one.statuses & other.statuses):
            return False
        if one.operations is not None:
            return any(self._applies(other, each) for each in one.operations)
        if other.operations is not None:
            return any(self._applies(one, each) for each in other.operations)
        return _overlap(one.methods, other.methods) and _overlap(one.paths, other.paths)

    def _applies(self, link: VersionLink, operation: MappedOperation) -> bool:
        """Return whether a link applies to some requests of an operation."""
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
        """Return whether requests that come to an endpoint can be of an operation.

        They can if they have a path between the versions of the link that is the operation's, and
        neither another operation nor another endpoint has that path for itself.
        """
        for asked in self._on_the_way(endpoint.asked, link.older):
            for newer in (True, False):
                side = operation.side(newer=newer)
                path = None if side is None else shared_path(asked, side.template)
                if side is None or path is None:
                    continue
                if not self._has_first(operation, side, path, link, newer=newer):
                    continue
                # What a path has become elsewhere does not show which endpoint it came to.
                if asked is not endpoint.asked or self._comes_to(endpoint, path):
                    return True
        return False

    def _on_the_way(self, asked: Template, older: Version) -> list[Template]:
        """Return the path that is asked for, and what it becomes between other versions."""
        moves = [
            (each.newer.template, each.older.template)
            for version, some in self._operations.items()
            if version != older
            for each in some
            if each.newer is not None and each.older is not None
        ]
        found = [asked]
        for path in found:  # which grows: what it becomes may become something else
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
        """Return whether no other operation comes before one at a path that it has on a side."""
        key = link.older, newer
        if key not in self._tables:
            self._tables[key] = OperationTable(self._operations[link.older], newer=newer)
        query = side.written(dict.fromkeys(side.captures, ANY), [])
        methods = [side.method] if side.method is not None else link.methods or [ANY]
        found = (self._tables[key].find(method, path, query) for method in methods)
        return any(one is not None and one.operation is operation for one in found)

    def _comes_to(self, endpoint: _Endpoint, path: str) -> bool:
        """Return whether a path of the service is asked for at an endpoint, and at no other one."""
        _, captures = Router([(endpoint.asked, endpoint.asked)]).find(path) or (None, {})
        public = endpoint.public.fill({**dict.fromkeys(endpoint.public.captures, ANY), **captures})
        found = self._router.find(public)
        return found is not None and found[0].shape == endpoint.public.shape


def _overlap(one: frozenset[str] | None, other: frozenset[str] | None) -> bool:
    """Return whether two sets of names have one in common; None is all names."""
    return one is None or other is None or bool(one & other)


def _takes(operation: MappedOperation, methods: frozenset[str] | None) -> bool:
    """Return whether an operation takes one of some methods in either version; None is all."""
    sides = [side for side in (operation.newer, operation.older) if side is not None]
    return methods is None or any(side.takes(method) for side in sides for method in methods)
