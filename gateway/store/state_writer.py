"""StateWriter: writes what must outlive the process to a store, beside the requests."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from gateway.base.overrides import VersionKey
from gateway.observe import log
from gateway.store.ledger import AuditEntry, DraftLedger, Order
from gateway.store.state_store import StateStore
from gateway.usage.history import HistoryQuery, HistoryView
from gateway.usage.state_changes import (
    StateChanges,
    StateError,
    StateLostError,
    StateUnsureError,
)
from gateway.usage.totals import Totals

# A gateway that is killed loses the counts since its last write, in seconds.
_INTERVAL = 2.0
# What takes longer, in seconds, is waited for no more: a disk that does not answer is no better
# than a full one. It is longer than SQLite waits for another process that has locked the file.
_PATIENCE = 10.0
# So many entries of the audit log are kept in memory.
_MAX_AUDIT = 1000


class StateWriter:
    """Holds the state in memory and writes what changed.

    A write that fails, because the disk is full say, fails no request: it is logged once, the
    changes stay in memory, and the next write has them too. What an operator changes is refused
    instead, so that nothing is in force that a restart would undo. A write that takes too long
    counts as one that fails, until it ends; nobody waits for it, and no other begins.

    Args:
        store: where to write; None keeps the state in memory.
        state: what the store holds at the start.

    Attributes:
        totals: all that was counted.
        documents: JSON values by name; `keep` changes them.
        audit: the latest changes that were made, the latest last.
        unheard: the file that a worker makes while what it counts is not taken; None without one.
        failing_since: since when writing fails, in seconds since 1970; None if it does not.
    """

    def __init__(self, store: StateStore | None, state: StateChanges | None = None) -> None:
        state = state or StateChanges()
        self._store = store
        self.unheard = None if store is None else store.unheard
        self.totals = Totals(state)
        self.documents: Mapping[str, object] = {**state.documents, "since": self.totals.since}
        self._pending: dict[str, object] = {"since": self.totals.since}
        self._lock = asyncio.Lock()
        self._hangs = False
        self._given_up: list[DraftLedger] = []
        self.audit = deque((AuditEntry(*row) for row in state.audit), maxlen=_MAX_AUDIT)
        self._unwritten: list[AuditEntry] = []
        self.failing_since: float | None = None
        self.failing_reason = ""

    async def keep(self, name: str, document: object) -> None:
        """Keep a document under a name; on return it is written, unless writing fails."""
        self.documents = {**self.documents, name: document}
        self._pending[name] = document
        await self.write()

    async def read(self, name: str) -> tuple[object, float]:
        """Return a document, None if there is none, and the time."""
        return self.documents.get(name), time.time()

    async def change(self, name: str, change: Callable[[object], object]) -> None:
        """Replace a document by what a function makes of it."""
        await self.keep(name, change(self.documents.get(name)))

    def record(self, order: Order, what: str, key: VersionKey, before: str, after: str) -> None:
        """Add an entry to the audit log; the next write has it."""
        who, origin, why, _ = order
        entry = AuditEntry(time.time(), who, origin, what, *key, why, before, after)
        self.audit.append(entry)
        if self._store is not None:
            self._unwritten = [*self._unwritten, entry][-_MAX_AUDIT:]

    def announce(self, event: str, **fields: Any) -> None:
        """Write an event to the log."""
        log.event(event, **fields)

    async def commit(self, act: DraftLedger) -> None:
        """Write what an act changes, all of it or nothing; raises StateError."""
        if self._store is None:
            self._adopt(act)
        else:
            await self._write(self._store, act)

    async def history(self, query: HistoryQuery) -> HistoryView:
        """Return the intervals that are asked for; raises StateError."""
        found, now = self.totals.history, time.time()
        if self._store is not None:
            if self._hangs:
                raise StateError(self.failing_reason)
            try:
                async with asyncio.timeout(_PATIENCE):
                    stored = await self._store.history(query, now)
            except TimeoutError:
                raise StateError(_hanging(self._store)) from None
            stored.add(found.rows())  # what is not written yet
            found = stored
        return found.view(query, now)

    async def run(self) -> None:
        """Write every now and then, for ever."""
        while True:
            await asyncio.sleep(_INTERVAL)
            await self.write()

    async def close(self) -> None:
        """Write what is left, and release the store; a disk that does not answer keeps both."""
        await self.write()
        if self.failing_since is not None:
            await self.write()  # of a file that was gone, the first one made an empty one
        if self._store is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(0 if self._hangs else _PATIENCE):
                    await self._store.close()

    async def write(self) -> None:
        """Write what changed since the last time."""
        if self._store is not None:
            await self._write(self._store)

    def _adopt(self, act: DraftLedger) -> None:
        self.documents = {**self.documents} | {name: act.documents[name] for name in act.changed}
        self.audit.extend(act.entries)

    async def _write(self, store: StateStore, act: DraftLedger | None = None) -> None:
        """Write, and wait for it as long as it may take."""
        if self._hangs and act is not None:
            raise StateError(self.failing_reason)
        if self._hangs:
            return
        # A task of its own: a write that is cancelled halfway would lose its changes.
        writing = asyncio.create_task(self._write_in_turn(store, act))
        writing.add_done_callback(lambda done: done.cancelled() or done.exception())
        await asyncio.wait([writing], timeout=_PATIENCE)
        if writing.done():
            writing.result()
            return
        self._hangs = True
        self._fail(_hanging(store))
        if act is not None:
            self._given_up.append(act)
            raise StateUnsureError(self.failing_reason)

    async def _write_in_turn(self, store: StateStore, act: DraftLedger | None) -> None:
        async with self._lock:
            try:
                await self._write_all(store, None if act in self._given_up else act)
            finally:
                self._hangs = False
                self._given_up = [each for each in self._given_up if each is not act]

    async def _write_all(self, store: StateStore, act: DraftLedger | None) -> None:
        changes = self.totals.changes()
        if self.documents["since"] != self.totals.since:
            since = {"since": self.totals.since}
            self.documents, self._pending = {**self.documents, **since}, self._pending | since
        pending, self._pending = self._pending, {}
        unwritten, self._unwritten = self._unwritten, []
        changes.documents, changes.audit = {**pending}, [*unwritten]
        if act is not None:
            changes.documents |= {name: act.documents[name] for name in act.changed}
            changes.audit += act.entries
        try:
            await store.write(changes)  # none are written, too: the file may be gone
        except BaseException as error:
            self.totals.revert(changes)
            self._pending = pending | self._pending
            self._unwritten = [*unwritten, *self._unwritten]
            if not isinstance(error, StateError):
                raise
            if isinstance(error, StateLostError):
                self.totals.mark_all()
                self._pending = dict(self.documents)
                self._unwritten = list(self.audit)
            self._fail(str(error))
            if act is not None:
                raise
        else:
            if act is not None and act in self._given_up:
                former = {name: self.documents.get(name) for name in act.changed}
                self._pending = former | self._pending
            elif act is not None:
                self._adopt(act)
            if self.failing_since is not None:
                log.event("state_written", store=store.name)
            self.failing_since, self.failing_reason = None, ""

    def _fail(self, reason: str) -> None:
        if self.failing_since is None:
            log.event("state_unwritten", "error", reason=reason)
            self.failing_since = time.time()
        self.failing_reason = reason


def _hanging(store: StateStore) -> str:
    return f"{store.name}: the state cannot be written or read: the disk does not answer"
