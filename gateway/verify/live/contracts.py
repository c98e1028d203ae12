"""Contracts: the OpenAPI documents that live messages are validated by, loaded when needed."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from gateway.observe import log
from gateway.proxy.replay import TrialRequest
from gateway.rollout.differences import RefusedField

if TYPE_CHECKING:
    from gateway.verify.live.contract import Contract

# For how many seconds nothing is validated after a document could not be loaded. One that was too
# large stays so as a rule.
_PATIENCE, _LONG_PATIENCE = 60.0, 3600.0


@dataclass(slots=True)
class Contracts:
    """Loads contracts by the locations of their documents, and keeps them.

    Attributes:
        folder: the folder that relative paths of documents start from.
    """

    folder: Path
    _known: "dict[str, Contract | float]" = field(default_factory=dict)
    _failures: dict[str, str] = field(default_factory=dict)

    def forget(self) -> None:
        """Discard the loaded documents, after a reload of the rules."""
        self._known.clear()
        self._failures.clear()

    async def get(self, location: str, level: str = "error") -> "Contract | None":
        """Return a contract; None if its document cannot be had, which the log has once."""
        # Imported when first needed, since most gateways never validate.
        from gateway.verify.openapi.openapi import DocumentError, TooLargeError

        loop = asyncio.get_running_loop()
        known = self._known.get(location)
        if isinstance(known, float):
            if loop.time() < known:
                return None
            known = None
        if known is None:
            # Whoever comes while it is loaded need not wait.
            self._known[location] = loop.time() + _PATIENCE
            try:
                # In a thread: a large one is parsed for a second, and requests go on meanwhile.
                known = await asyncio.to_thread(_load, location, self.folder)
            except DocumentError as error:
                reason, is_large = str(error), isinstance(error, TooLargeError)
                if self._failures.get(location) != reason:
                    self._failures[location] = reason
                    # A document that exists was meant to be used.
                    log.event("check_failed", "error" if is_large else level, reason=reason)
                self._known[location] = loop.time() + (_LONG_PATIENCE if is_large else _PATIENCE)
                return None
            self._known[location] = known
        return known

    async def validate(self, request: TrialRequest) -> list[RefusedField] | None:
        """Return what a service would refuse of a request; None if its document cannot be had."""
        contract = await self.get(request.document)
        if contract is None:
            return None
        # Compiling a schema and validating a body take time that requests must not wait for.
        return await asyncio.to_thread(contract.refusals, request)


def _load(location: str, folder: Path) -> "Contract":
    from gateway.verify.live.contract import Contract
    from gateway.verify.openapi.document_source import SERVING, fetch

    return Contract(asyncio.run(fetch([location], folder, SERVING))[location])
