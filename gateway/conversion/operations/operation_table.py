"""OperationTable: finds the declared operation that a request is for."""

import re
from collections.abc import Callable, Iterable
from itertools import takewhile
from typing import NamedTuple
from urllib.parse import unquote

from gateway.base.path_templates import Router, Template
from gateway.conversion.operations.operation import (
    END,
    Captures,
    MappedOperation,
    OperationPattern,
)
from gateway.conversion.parameter_change import ParameterLines
from gateway.versions.version import Version


class FoundOperation(NamedTuple):
    """The operation of a request.

    Attributes:
        operation: The operation.
        captures: What its path and its query capture, as a path holds it.
        rest: The query parameters that are not part of the operation.
        template: Its path.
    """

    operation: MappedOperation
    captures: Captures
    rest: ParameterLines
    template: Template


# Letters, digits, hyphen, underscore and tilde; but for dots, which may be those of a dot segment.
_UNRESERVED = re.compile(r"%(?:2[Dd]|3[0-9]|[46][1-9A-Fa-f]|[57][0-9Aa]|5[Ff]|7[Ee])")
_Entry = tuple[OperationPattern, MappedOperation]


class OperationTable:
    """The operations between two adjacent versions, as one of the two has them.

    Of several that match a request, those with query parameters come before those without, those
    with more literal text in the path before those with less, then those with more of it in the
    query, those with a method before those for all methods, and those that both versions have
    before those that one of them lacks.
    """

    __slots__ = ("_all", "_both", "_by_method", "_without_get")

    def __init__(self, operations: Iterable[MappedOperation], *, newer: bool) -> None:
        sides = [(operation.side(newer=newer), operation) for operation in operations]
        own = [(side, operation) for side, operation in sides if side is not None]
        both = ((side.template, operation.side(newer=not newer)) for side, operation in own)
        self._both = tuple((one, other.template) for one, other in both if other is not None)
        methods = {side.method for side, _ in own if side.method is not None}
        self._all = _routers(entry for entry in own if entry[0].method is None)
        self._by_method = {
            method: _routers(entry for entry in own if entry[0].takes(method)) for method in methods
        }
        # HEAD is for GET alone, in both versions.
        self._by_method["HEAD"] = _routers(
            (side, operation)
            for side, operation in own
            if side.takes("HEAD")
            and (operation.newer is None or operation.newer.takes("HEAD"))
            and (operation.older is None or operation.older.takes("HEAD"))
        )
        self._without_get = self._hidden_by_get(side for side, _ in own)

    def find(self, method: str, path: str, query: ParameterLines) -> FoundOperation | None:
        """Return the operation of a request, or None if none is declared for it.

        Unreserved characters match however they are written (RFC 3986, section 6.2.2.2). A slash
        at the end of the path may be missing in the operation, since many services ignore it.
        """
        if "%" in path:
            path = _UNRESERVED.sub(lambda match: unquote(match[0]), path)
        found = self._find(method, path, query)
        if not path.endswith("/") or (found is not None and not found.template.segments[-1].tail):
            return found
        bare = self._find(method, path[:-1], query)
        if bare is None or path.endswith("//"):
            return found
        return bare._replace(captures={**bare.captures, END: "/"})

    def _find(self, method: str, path: str, query: ParameterLines) -> FoundOperation | None:
        for router in self._by_method.get(method, self._all):
            sides, texts = router.find(path) or _NOTHING
            for side, operation in sides:
                taken = side.read(query)
                if taken is not None:
                    captures = dict(zip(side.template.captures, texts.values(), strict=True))
                    return FoundOperation(
                        operation, {**captures, **taken[0]}, taken[1], side.template
                    )
        return None

    def methods(
        self, path: str, query: ParameterLines, within: Template | None = None
    ) -> tuple[str, ...]:
        """Return the methods for which an operation is declared at a path that is not refused.

        Args:
            path: The path of a request.
            query: The query of the request.
            within: Where given, the operations whose paths have more literal text alone count.
        """
        found = {method: self.find(method, path, query) for method in sorted(self._by_method)}
        return tuple(
            method
            for method, one in found.items()
            if one is not None and (within is None or one.template.literal > within.literal)
            if one.operation.substitute is None or one.operation.substitute.service is not None
        )

    def method_of_link(self, path: Callable[[], str]) -> str:
        """Return the method of the operation that a URL is of: GET, where that has the path.

        A path such as `/orders/search` may be an operation of POST alone, although the path of
        another one, `GET /orders/{id}`, matches it too.

        Args:
            path: Returns the path of the URL.
        """
        found = None if self._without_get is None else self._without_get.find(path())
        return "GET" if found is None else found[0]

    def _hidden_by_get(self, sides: Iterable[OperationPattern]) -> Router[str] | None:
        """Return the methods of paths that GET has by a path with less literal text alone."""
        hidden: dict[object, tuple[Template, str]] = {}
        for method, template, query in sides:
            if method is not None and not query:
                path = template.fill(dict.fromkeys(template.captures, "1"))
                got = self.find("GET", path, [])
                if got is not None and got.template.literal < template.literal:
                    hidden.setdefault(template.shape, (template, method))
        return Router(hidden.values()) if hidden else None

    def above(self, prefix: str, version: Version, other: Version) -> str | None:
        """Return the longest path that the other version's operations below a prefix lie below.

        Args:
            prefix: A path of the one version, without a slash at its end.
            version: The one version.
            other: The other version.

        Returns:
            The path, without a slash at its end; None if no operation is at or below the prefix.
        """
        below = [
            _literal(there, other)
            for here, there in self._both
            if f"{here.text.replace(_VERSION, str(version))}/".startswith(f"{prefix}/")
        ]
        if not below:
            return None
        shared = takewhile(lambda column: len({*column}) == 1, zip(*below, strict=False))
        return "/".join(column[0] for column in shared)


def _literal(template: Template, version: Version) -> list[str]:
    """Return the segments of a path, up to the first with a capture."""
    segments = template.text.replace(_VERSION, str(version)).split("/")
    return list(takewhile(lambda segment: "{" not in segment, segments))


_VERSION = "{version}"
_Router = Router[tuple[_Entry, ...]]
_NOTHING: tuple[tuple[_Entry, ...], Captures] = ((), {})


def _routers(entries: Iterable[_Entry]) -> tuple[_Router, _Router]:
    """Return the operations with query parameters, and those without."""
    by_shape: tuple[dict[object, list[_Entry]], dict[object, list[_Entry]]] = {}, {}
    for entry in entries:
        side = entry[0]
        by_shape[not side.query].setdefault(side.template.shape, []).append(entry)
    with_query, without = (
        Router((some[0][0].template, tuple(sorted(some, key=_rank))) for some in shapes.values())
        for shapes in by_shape
    )
    return with_query, without


def _rank(entry: _Entry) -> tuple[int, int, bool, bool]:
    side, operation = entry
    literal = sum(len(part.value) + len(part.suffix) for part in side.query)
    lacking = operation.newer is None or operation.older is None
    return -len(side.query), -literal, side.method is None, lacking
