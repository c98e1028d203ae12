"""The OpenAPI documents against which live messages are validated, loaded on first use."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from gateway.observe import log
from gateway.proxy.replay import TrialRequest
from gateway.rollout.differences import RefusedField

if TYPE_CHECKING:
    from gateway.verify.live.contract import Contract

# The seconds until the next attempt after a document could not be loaded. The second value applies
# to a document that is too large, since its size rarely changes.
_PATIENCE, _LONG_PATIENCE = 60.0, 3600.0


@dataclass(slots=True)
class Contracts:
    folder: Path
    _known: "dict[str, Contract | float]" = field(default_factory=dict)
    _failures: dict[str, str] = field(default_factory=dict)

    def forget(self) -> None:
        self._known.clear()
        self._failures.clear()

    async def get(self, location: str, level: str = "error") -> "Contract | None":
        """Return a contract; None if its document cannot be loaded, which is logged once."""
        loop = asyncio.get_running_loop()
        known = self._known.get(location)
        if isinstance(known, float):
            if loop.time() < known:
                return None
            known = None
        if known is None:
            # Concurrent calls return None while the document is loading.
            self._known[location] = loop.time() + _PATIENCE
            # In a thread: parsing a large document takes a second.
            loaded, reason, is_large = await asyncio.to_thread(_load, location, self.folder)
            if loaded is None:
                if self._failures.get(location) != reason:
                    self._failures[location] = reason
                    # If a document exists but is too large, an operator must act.
                    log.event("check_failed", "error" if is_large else level, reason=reason)
                self._known[location] = loop.time() + (_LONG_PATIENCE if is_large else _PATIENCE)
                return None
            self._known[location] = known = loaded
        return known

    async def validate(self, request: TrialRequest) -> list[RefusedField] | None:
        """Return the parts of a request that a service would refuse; None without the document."""
        contract = await self.get(request.document)
        if contract is None:
            return None
        # In a thread: compiling a schema and validating a body take time.
        return await asyncio.to_thread(contract.refusals, request)


def _load(location: str, folder: Path) -> "tuple[Contract | None, str, bool]":
    # Imported here, since most gateways never validate messages. This saves 1.3 MB in each worker.
    from gateway.verify.live.contract import load_contract

    return load_contract(location, folder)
