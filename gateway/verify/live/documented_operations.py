"""The operations in a version's OpenAPI document, with the endpoints of the gateway."""

import asyncio
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from gateway.base.overrides import VersionKey
from gateway.base.path_templates import Template, parse_template
from gateway.routing.snapshot import Endpoint, Snapshot
from gateway.usage.operations import Documented, DocumentedOperation

# The seconds until the next attempt after a document could not be loaded.
_PAUSE = 60.0


@dataclass(slots=True)
class DocumentedOperations:
    """Finds and caches the operations of versions, for one configuration at a time.

    Attributes:
        patience: the maximum time to wait for a document, in seconds. Loading continues after that
            time.
        serves: whether the process serves requests. Such a process does not load large documents.
    """

    folder: Path
    patience: float = 1.0
    serves: bool = True
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
            # In a thread: parsing a large document takes a second.
            loading = asyncio.create_task(asyncio.to_thread(_read, rules, key, self))
            self._known[key] = loading, time.monotonic() + _PAUSE
        await asyncio.wait([loading], timeout=self.patience)
        return loading.result() if loading.done() else None


def _read(rules: Snapshot, key: VersionKey, source: DocumentedOperations) -> Documented:
    label = key[1]
    api = next((api for api in rules.apis if api.name == key[0]), None)
    version = None if api is None else api.versions.get(label)
    if api is None or version is None or version not in api.schemas:
        return None
    # Imported here, since most gateways never read a document. This saves 0.5 MB.
    from gateway.verify.located_operation import locate
    from gateway.verify.openapi.document_source import SERVING, fetch
    from gateway.verify.openapi.openapi import DocumentError

    location, bound = api.schemas[version], SERVING if source.serves else None
    try:
        description = asyncio.run(fetch([location], source.folder, bound))[location]
    except DocumentError:
        return None
    endpoints = {endpoint.template.text: endpoint for endpoint in api.endpoints}
    return frozenset(
        DocumentedOperation(
            located.operation.method,
            located.operation.path,
            text,
            _public(endpoints[text], captures),
        )
        for located in locate(api.endpoints, version, description)
        for text, captures in located.captures.items()
    )


def _public(endpoint: Endpoint, captures: Mapping[str, str]) -> Template | None:
    """Return the paths of requests for an operation; None if they cannot be written.

    Args:
        captures: what the captures of the endpoint match, with `{}` for each parameter.
    """
    number = count()
    try:
        filled = endpoint.template.fill({"version": "{}", **captures})
        return parse_template(re.sub(r"\{\}", lambda _: f"{{p{next(number)}}}", filled))
    except (KeyError, ValueError):  # such as two parameters in one segment
        return None
