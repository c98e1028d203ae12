"""The documented operations of a version, for which its usage is counted."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import NamedTuple

from gateway.base.overrides import VersionKey
from gateway.base.path_templates import Router, Template
from gateway.routing.snapshot import Snapshot


class DocumentedOperation(NamedTuple):
    """An operation in the OpenAPI document of a version.

    Attributes:
        path: the path in the document.
        endpoint: the path of the endpoint that routes to it.
        public: the template of the paths of its requests; None if no template describes them.
    """

    method: str
    path: str
    endpoint: str
    public: Template | None = None


Documented = frozenset[DocumentedOperation] | None
FindDocumented = Callable[[Snapshot, VersionKey], Awaitable[Documented]]
"""A function that returns the operations of a version. It returns None if the version has no
document, or if the document is not available yet."""
# The maximum memory of the cache for each version, in bytes.
_CACHE_BYTES = 512 * 1024


class OperationIndex:
    """Finds the documented operation of a request."""

    __slots__ = ("_router",)

    def __init__(self, operations: Iterable[DocumentedOperation]) -> None:
        by_shape: dict[object, tuple[Template, dict[str, str]]] = {}
        for method, path, _, public in sorted(operations, key=lambda each: each[:3]):
            if public is not None:
                _, names = by_shape.setdefault(public.shape, (public, {}))
                names.setdefault(method, f"{method} {path}")
                if method == "GET":
                    names.setdefault("HEAD", f"HEAD {path}")
        self._router = Router(by_shape.values(), _CACHE_BYTES)

    def find(self, method: str, path: str) -> str | None:
        """Return the method and path of the operation, or None if the document lacks it."""
        found = self._router.find(path)
        return None if found is None else found[0].get(method)


class OperationIndexes:
    """The indexes of versions, created on their first use after each load of a configuration.

    An index is created in the background. Until then, the index of the former configuration is
    used, or none.
    """

    def __init__(self, find: FindDocumented) -> None:
        self._find = find
        self._rules: Snapshot | None = None
        self._known: dict[VersionKey, OperationIndex] = {}
        self._current: set[VersionKey] = set()
        self._making: dict[VersionKey, asyncio.Task[None]] = {}

    def of(self, rules: Snapshot, key: VersionKey) -> OperationIndex | None:
        if rules is not self._rules:
            self._rules, self._current, self._making = rules, set(), {}
        if key not in self._current and key not in self._making:
            self._making[key] = asyncio.ensure_future(self._make(rules, key))
        return self._known.get(key)

    async def _make(self, rules: Snapshot, key: VersionKey) -> None:
        found = await self._find(rules, key)
        if rules is self._rules:
            if found is not None:
                self._known[key] = OperationIndex(found)
                self._current.add(key)
            del self._making[key]
