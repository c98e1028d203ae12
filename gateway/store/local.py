"""The state of a single gateway, in memory and optionally in a file."""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from gateway.base.overrides import VersionKey
from gateway.base.steady_clock import SET_TOLERANCE, steady_seconds
from gateway.observe import log
from gateway.rollout.cutovers import CurrentCutover, Cutovers
from gateway.rollout.decisions import (
    MAX_AUDIT,
    AuditEntry,
    ChangeRequest,
    Draft,
    overrides_of,
)
from gateway.store.replicas import fleet_view, row_of
from gateway.store.state import (
    LAG_SECONDS,
    Change,
    FailoverRank,
    FleetView,
    Membership,
    State,
    StateError,
    StateLostError,
    StateUnsureError,
    StateView,
    UnknownReplicaError,
    VersionReading,
    log_events,
    report_lost_cutover,
    report_lost_overrides,
)
from gateway.usage.history import HistoryQuery, HistoryView, whole_history
from gateway.usage.totals import StateRows, Totals

if TYPE_CHECKING:
    # Without a file, SQLAlchemy is not imported, to save memory.
    from gateway.store.sqlite import SqliteFile

# Seconds between decisions about cutovers, and between writes. A killed gateway loses the counts
# since its last write.
_DECIDE, _WRITE = 1.0, 2.0
# A write that takes longer than this number of seconds is treated as failed. SQLite's own time-out
# for a locked file is shorter.
_PATIENCE = 10.0


class LocalState(State):
    """The state in memory. Changes are written to the file in the background.

    A failed write, for example on a full disk, does not affect requests: it is logged once, the
    changes stay in memory, and the next write includes them. A slow write is treated as failed
    until it ends, and no other write starts meanwhile. An operator's change is stored before it
    takes effect. If the change cannot be stored, it is refused, since a restart would undo it. A
    decision of the gates takes effect even if it cannot be stored, so a rollback does not depend on
    the disk.
    """

    def __init__(
        self,
        membership: Membership,
        file: "SqliteFile | None" = None,
        rows: StateRows | None = None,
    ) -> None:
        super().__init__(membership, "" if file is None else file.name, lambda: time.time())
        rows = rows or StateRows()
        self._file = file
        self.unheard = None if file is None else file.unheard
        self.totals = Totals(rows)
        self._documents = {**rows.documents, "since": self.totals.since}
        self.in_force = overrides_of(self._documents, report_lost_overrides)
        self._cutovers = Cutovers()
        self._cutovers.load(self._documents, self._moment, report=report_lost_cutover)
        self._audit = deque(rows.audit, maxlen=MAX_AUDIT)
        # The names of unwritten documents, and unwritten entries of the audit log.
        self._unwritten = {"since"}
        self._unwritten_entries: list[AuditEntry] = []
        self._changing, self._writing = asyncio.Lock(), asyncio.Lock()
        self._hangs = False
        self._given_up: list[Draft] = []
        self._started = time.time()
        self._ahead = self._started - steady_seconds()
        self.tasks = {"state": self._write_on, "cutovers": self._decide_on}

    @property
    def leads(self) -> bool:
        return True

    @property
    def failover(self) -> FailoverRank:
        return FailoverRank(0, 0)

    async def close(self) -> None:
        """Write the last changes and release the file, unless the disk hangs."""
        await self._write()
        if self.stale_since is not None:
            await self._write()  # if the file was removed, the first write only created it again
        if self._file is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(0 if self._hangs else _PATIENCE):
                    await self._file.close()

    async def view(
        self, key: VersionKey | None = None, replica: str | None = None, *, clients: bool = True
    ) -> StateView:
        if replica not in (None, self.replica):
            raise UnknownReplicaError(
                f"no replica is called '{replica}'; this gateway, {self.replica}, keeps its state"
                " alone"
            )
        self._check_clock()
        now = time.time()
        return StateView(self.totals, now, now - LAG_SECONDS, None, ())

    async def version(self, key: VersionKey) -> VersionReading:
        view = await self.view(key)
        days, minutes = [await self.history(query) for query in whole_history(key)]
        latest = (each for each in reversed(self._audit) if (each.api, each.version) == key)
        series = days.series.get(key, {}), minutes.series.get(key, {})
        return VersionReading(view, *series, next(latest, None))

    async def history(self, query: HistoryQuery) -> HistoryView:
        found, now = self.totals.history, time.time()
        if self._file is not None:
            if self._hangs:
                raise StateError(self.stale_reason)
            try:
                async with asyncio.timeout(_PATIENCE):
                    stored = await self._file.history(query, now)
            except TimeoutError:
                raise StateError(_hanging(self._file.name)) from None
            stored.add(found.rows())
            found = stored
        return found.view(query, now)

    def cutover(self, key: VersionKey) -> CurrentCutover:
        cutover, at = self._cutovers_configured[key], self._moment
        evidence = self._cutovers.evidence(cutover, self.totals.route_counts, at)
        return self._cutovers.current(cutover, evidence, at)

    async def audit(self) -> list[AuditEntry]:
        return list(self._audit)

    async def fleet(self) -> FleetView:
        row = row_of(self, "", self._started)._replace(heard=self.now)
        return fleet_view([row], self.now, "", 0, 0.0)

    async def forget(self, replica: str, request: ChangeRequest) -> None:
        raise UnknownReplicaError(
            f"no replica is called '{replica}'; this gateway, {self.replica}, is alone"
        )

    async def reset_shadow(self, key: VersionKey, request: ChangeRequest) -> None:
        async with self._changing:
            draft = Draft(self._documents, time.time())
            draft.record(request, "shadow reset", key)
            await self._write(draft)
            # Each process delivers its counts before it acknowledges overrides.
            await self._apply_overrides()
            self.totals.reset_shadow(key)
            self._cutovers.reset_shadow(key)
            await self._write()
        log.event("shadow_reset", api=key[0], version=key[1])

    async def read_document(self, name: str) -> tuple[object, float]:
        return self._documents.get(name), time.time()

    async def change_document(self, name: str, change: Callable[[object], object]) -> None:
        self._documents = {**self._documents, name: change(self._documents.get(name))}
        self._unwritten.add(name)
        await self._write()

    async def _change(
        self, change: Change, key: VersionKey | None = None, *, applies: bool = True
    ) -> None:
        async with self._changing:
            draft = Draft(self._documents, time.time())
            change(draft, self._cutovers, self._moment)
            await self._write(draft)
            log_events(draft.events)
            try:
                if applies:
                    await self._apply_overrides()
            finally:
                if key is not None:
                    self._cutovers.load(self._documents, self._moment, {key})
                    self.cutover(key)  # starts collecting evidence for the new percentage

    async def _apply_overrides(self) -> None:
        if self._apply is not None:
            await self._apply(self.in_force)

    async def _decide_on(self) -> None:
        while True:
            self._check_clock()
            try:
                async with self._changing:
                    await self._decide()
            except TimeoutError:
                reason = "a worker has not acknowledged the overrides"
                log.event("cutover_late", "error", reason=reason)
            await asyncio.sleep(_DECIDE)

    async def _decide(self) -> None:
        draft, before = Draft(self._documents, time.time()), self.in_force
        counted = self.totals.route_counts
        self._cutovers.decide(draft, self._cutovers_configured, counted, self._moment)
        self._adopt(draft)
        if self._file is not None:
            self._unwritten |= draft.changed
            unwritten = [*self._unwritten_entries, *draft.entries]
            self._unwritten_entries = unwritten[-MAX_AUDIT:]
        try:
            if self.in_force != before:
                await self._apply_overrides()
        finally:
            log_events(draft.events)
        if draft:
            await self._write()

    def _adopt(self, draft: Draft) -> None:
        changed = {name: draft.documents[name] for name in draft.changed}
        self._documents = {**self._documents, **changed}
        self.in_force = draft.overrides
        self._audit.extend(draft.entries)

    def _check_clock(self) -> None:
        """Restart counting if the clock was set, since the times of earlier counts are wrong."""
        now = time.time()
        former, self._ahead = self._ahead, now - steady_seconds()
        if abs(self._ahead - former) > SET_TOLERANCE:
            self.totals.since = now
            log.event("state_went_back", "error", reason="the clock of this machine was set")

    async def _write_on(self) -> None:
        while True:
            await asyncio.sleep(_WRITE)
            await self._write()

    async def _write(self, draft: Draft | None = None) -> None:
        """Write all changes and a draft; raises StateError if the draft could not be stored."""
        file = self._file
        if file is None:
            if draft is not None:
                self._adopt(draft)
            return
        if self._hangs:
            if draft is not None:
                raise StateError(self.stale_reason)
            return
        # A separate task: a cancelled write would lose its changes.
        writing = asyncio.create_task(self._write_in_turn(file, draft))
        writing.add_done_callback(lambda done: done.cancelled() or done.exception())
        await asyncio.wait([writing], timeout=_PATIENCE)
        if writing.done():
            writing.result()
            return
        self._hangs = True
        self._health.missed(StateError(_hanging(file.name)))
        if draft is not None:
            self._given_up.append(draft)
            raise StateUnsureError(self.stale_reason)

    async def _write_in_turn(self, file: "SqliteFile", draft: Draft | None) -> None:
        async with self._writing:
            try:
                await self._write_rows(file, None if draft in self._given_up else draft)
            finally:
                self._hangs = False
                self._given_up = [each for each in self._given_up if each is not draft]

    async def _write_rows(self, file: "SqliteFile", draft: Draft | None) -> None:
        rows = self.totals.changes()
        if self._documents["since"] != self.totals.since:
            self._documents = {**self._documents, "since": self.totals.since}
            self._unwritten.add("since")
        names, self._unwritten = self._unwritten, set()
        entries, self._unwritten_entries = self._unwritten_entries, []
        rows.documents = {name: self._documents.get(name) for name in names}
        rows.audit = [*entries]
        if draft is not None:
            rows.documents |= {name: draft.documents[name] for name in draft.changed}
            rows.audit += draft.entries
        try:
            await file.write(rows)  # even without changes, to detect that the file was removed
        except BaseException as error:
            self.totals.revert(rows)
            self._unwritten |= names
            self._unwritten_entries = [*entries, *self._unwritten_entries]
            if not isinstance(error, StateError):
                raise
            if isinstance(error, StateLostError):
                self.totals.mark_all()
                self._unwritten = set(self._documents)
                self._unwritten_entries = list(self._audit)
            self._health.missed(error)
            if draft is not None:
                raise
            return
        if draft is not None and draft in self._given_up:
            self._unwritten |= draft.changed  # the next write restores the value in force
        elif draft is not None:
            self._adopt(draft)
        self._health.reached(self.now)


def _hanging(name: str) -> str:
    return f"{name}: the state cannot be written or read: the disk does not respond"
