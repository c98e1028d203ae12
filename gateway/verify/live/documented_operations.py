"""The operations in a version's OpenAPI document, with the endpoints of the gateway."""

import asyncio
import time
from dataclasses import dataclass, field

from gateway.base.overrides import VersionKey
from gateway.base.path_templates import parse_template
from gateway.routing.snapshot import Snapshot
from gateway.usage.operations import Documented, DocumentedOperation
from gateway.verify.live.document_jobs import (
    JobQueue,
    JobResult,
    OperationList,
    documented_endpoint,
)

# The seconds until the next attempt after a document could not be used.
_PAUSE = 20.0


@dataclass(slots=True)
class DocumentedOperations:
    """Finds and caches the operations of versions, for one configuration at a time.

    Attributes:
        patience: the maximum time to wait for a document, in seconds. Loading continues after that
            time.
    """

    documents: JobQueue
    patience: float = 1.0
    _rules: Snapshot | None = None
    _known: dict[VersionKey, tuple["asyncio.Task[Documented]", float]] = field(default_factory=dict)

    async def find(self, rules: Snapshot, key: VersionKey) -> Documented:
        """Return the operations of a version.

        Returns:
            None if the version has no document, or if the document is not loaded in time.
        """
        if rules is not self._rules:
            self._rules = rules
            self._known.clear()
        loading, until = self._known.get(key, (None, 0.0))
        failed = loading is not None and loading.done() and loading.result() is None
        if loading is None or (failed and time.monotonic() >= until):
            loading = asyncio.create_task(self._load(rules, key))
            self._known[key] = loading, time.monotonic() + _PAUSE
        await asyncio.wait([loading], timeout=self.patience)
        return loading.result() if loading.done() else None

    async def _load(self, rules: Snapshot, key: VersionKey) -> Documented:
        # In threads: an API may have thousands of endpoints and operations.
        job = await asyncio.to_thread(operation_list, rules, key)
        if job is None:
            return None
        return await asyncio.to_thread(operations_of, await self.documents.ask(job))


def operation_list(rules: Snapshot, key: VersionKey) -> OperationList | None:
    api = next((api for api in rules.apis if api.name == key[0]), None)
    version = None if api is None else api.versions.get(key[1])
    if api is None or version is None or version not in api.schemas:
        return None
    endpoints = [documented_endpoint(one, version) for one in api.endpoints]
    return OperationList(api.schemas[version], key[1], endpoints)


def operations_of(result: JobResult) -> Documented:
    """Return the result of an OperationList."""
    if not result.done:
        return None
    return frozenset(
        DocumentedOperation(
            method, path, endpoint, None if public is None else parse_template(public)
        )
        for method, path, endpoint, public in result.operations
    )
