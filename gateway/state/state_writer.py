"""The StateWriter: has written, beside the requests, what must outlive the process."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

from gateway.state.state_changes import StateChanges, StateError
from gateway.state.totals import Totals
from gateway.telemetry import log

if TYPE_CHECKING:
    from gateway.state.sqlite_store import SqliteStore

# A gateway that is killed loses what it counted since it last wrote, in seconds.
_INTERVAL = 2.0


class StateWriter:
    """Writes what changed, in a thread of its own.

    What cannot be written, because the disk is full say, costs no request: it is logged once, kept
    in memory and tried again.

    Args:
        store: where to; None keeps all in memory.

    Attributes:
        totals: what was counted, taken up from the store.
        documents: what others keep, by name; `keep` changes it.

    Raises:
        StateError: the store cannot be read.
    """

    def __init__(self, store: "SqliteStore | None") -> None:
        self._store = store
        records = StateChanges() if store is None else store.read()
        self.totals = Totals(records)
        self.documents: Mapping[str, object] = {**records.documents, "since": self.totals.since}
        self._pending: dict[str, object] = {"since": self.totals.since}
        self._thread = ThreadPoolExecutor(1, "state")
        self._turn = asyncio.Lock()
        self._failing = False

    async def keep(self, name: str, document: object) -> None:
        """Keep a document under a name; when this returns it is written, if it can be."""
        self.documents = {**self.documents, name: document}
        self._pending[name] = document
        await self.write()

    async def write(self) -> None:
        """Write what changed since the last time."""
        if self._store is None:
            return
        async with self._turn:
            changes = self.totals.changes()
            changes.documents, self._pending = self._pending, {}
            if not changes:
                return
            loop = asyncio.get_running_loop()
            try:
                # Shielded: a write that is cancelled while it waits for its turn would be lost.
                await asyncio.shield(loop.run_in_executor(self._thread, self._store.write, changes))
            except StateError as error:
                self.totals.revert(changes)
                self._pending = changes.documents | self._pending
                if not self._failing:
                    log.event("state_unwritten", "error", reason=str(error))
                self._failing = True
            else:
                if self._failing:
                    log.event("state_written", file=str(self._store.path))
                self._failing = False

    @asynccontextmanager
    async def keeping(self) -> AsyncIterator["StateWriter"]:
        """Write every now and then, and at the end."""
        over = asyncio.Event()

        async def always() -> None:
            while not over.is_set():
                with suppress(TimeoutError):
                    async with asyncio.timeout(_INTERVAL):
                        await over.wait()
                await self.write()

        writing = asyncio.create_task(always())
        try:
            yield self
        finally:
            over.set()
            await writing
            self._thread.shutdown()
            if self._store is not None:
                self._store.close()
