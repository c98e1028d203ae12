"""StateWriter: writes what must outlive the process to a store, beside the requests."""

import asyncio
from collections.abc import Mapping

from gateway.state.state_changes import StateChanges, StateError, StateLostError
from gateway.state.state_store import StateStore
from gateway.state.totals import Totals
from gateway.telemetry import log

# A gateway that is killed loses the counts since its last write, in seconds.
_INTERVAL = 2.0


class StateWriter:
    """Holds the state in memory and writes what changed.

    A write that fails, because the disk is full say, fails no request: it is logged once, the
    changes stay in memory, and the next write has them too.

    Args:
        store: where to write; None keeps the state in memory.
        state: what the store holds at the start.

    Attributes:
        totals: all that was counted.
        documents: JSON values by name; `keep` changes them.
        failing: whether the last write failed.
    """

    def __init__(self, store: StateStore | None, state: StateChanges | None = None) -> None:
        state = state or StateChanges()
        self._store = store
        self.totals = Totals(state)
        self.documents: Mapping[str, object] = {**state.documents, "since": self.totals.since}
        self._pending: dict[str, object] = {"since": self.totals.since}
        self._lock = asyncio.Lock()
        self.failing = False

    async def keep(self, name: str, document: object) -> None:
        """Keep a document under a name; on return it is written, unless writing fails."""
        self.documents = {**self.documents, name: document}
        self._pending[name] = document
        await self.write()

    async def run(self) -> None:
        """Write every now and then, for ever."""
        while True:
            await asyncio.sleep(_INTERVAL)
            await self.write()

    async def close(self) -> None:
        """Write what is left, and release the store."""
        await self.write()
        if self._store is not None:
            await self._store.close()

    async def write(self) -> None:
        """Write what changed since the last time."""
        # Shielded: a write that is cancelled halfway would lose its changes.
        if self._store is not None:
            await asyncio.shield(self._write(self._store))

    async def _write(self, store: StateStore) -> None:
        async with self._lock:
            changes = self.totals.changes()
            changes.documents, self._pending = self._pending, {}
            if not changes:
                return
            try:
                await store.write(changes)
            except BaseException as error:
                self.totals.revert(changes)
                self._pending = changes.documents | self._pending
                if not isinstance(error, StateError):
                    raise
                if isinstance(error, StateLostError):
                    self.totals.mark_all()
                    self._pending = dict(self.documents)
                if not self.failing:
                    log.event("state_unwritten", "error", reason=str(error))
                self.failing = True
            else:
                if self.failing:
                    log.event("state_written", store=store.name)
                self.failing = False
