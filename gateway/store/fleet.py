"""The state of a replica, which it shares with other replicas in PostgreSQL.

A heartbeat every second reports the replica, writes a batch of its counts, and reads the overrides.
Unwritten counts stay in the outbox, and the last overrides stay in force.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from uuid import uuid4

import msgspec
import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.sql.dml import ReturningInsert

from gateway.base.overrides import VersionKey
from gateway.base.steady_clock import steady_seconds
from gateway.observe import log
from gateway.rollout.cutovers import (
    CUTOVERS,
    CurrentCutover,
    Cutovers,
    published_evidence,
)
from gateway.rollout.decisions import OVERRIDES, AuditEntry, ChangeRequest, Draft, overrides_of
from gateway.rollout.gates import GateEvidence
from gateway.store.documents import (
    EVIDENCE,
    RESETS,
    REVISION_NAME,
    lock,
    open_draft,
    read_documents,
    read_shared,
    restart_counting,
    revision_of,
    select_shared,
    write_document,
    write_draft,
)
from gateway.store.leader import (
    KEEP_GONE,
    NO_LEASE,
    Leader,
    Lease,
    delete_shadow,
    mark_gone,
    read_lease,
    read_replicas,
    shadow_resets,
    write_lease,
)
from gateway.store.local_cache import LastOverrides, LastStart, StartRecord
from gateway.store.outbox import Outbox
from gateway.store.postgres import (
    LOCK_LEADER,
    NOTIFY_ADMITTED,
    PostgresConnection,
    PostgresDatabase,
    Statement,
    StatementsForgottenError,
)
from gateway.store.reading import (
    read_audit,
    read_fleet,
    read_history,
    read_version,
)
from gateway.store.replicas import (
    DEPUTY,
    FleetClock,
    ReplicaRow,
    fleet_view,
    lost,
    not_here,
    row_of,
)
from gateway.store.state import (
    LAG_SECONDS,
    Apply,
    Change,
    DataGap,
    FailoverRank,
    FleetView,
    Membership,
    SetAhead,
    State,
    StateError,
    StateUnreachableError,
    StateView,
    UnknownReplicaError,
    VersionReading,
    log_events,
    report_lost_overrides,
)
from gateway.store.tables import batches, documents, leases, replicas
from gateway.usage.delta import Admitted, Delta
from gateway.usage.history import HistoryQuery, HistoryView, whole_history

# Seconds between heartbeats, between attempts to listen for notifications, and between rounds of
# the leader while batches are waiting.
_INTERVAL, _LISTEN_AGAIN, _CATCH_UP = 1.0, 5.0, 0.05
# The maximum number of rows about shared rate limits in a heartbeat, and in a notification, which
# has at most 8,000 bytes.
_MOST_ADMITTED, _ADMITTED_PART = 8192, 64
# If the clock was wrong by more than this number of seconds, the times of counts are corrected.
_TOLERATED = 1.0
_CACHED = (OVERRIDES, CUTOVERS, REVISION_NAME)
_LACKS = "the database lacks confirmed counts, as after a restore from a backup"
_CLOCK_SET = "the clock of the database was set"
_CUT_OFF = "this replica ended with unwritten counts while it could not reach the database"


HeartbeatReply = tuple[Mapping[str, object], Lease, float]
"""The shared documents, the lease of the leader, and the time of the database."""


async def send_heartbeat(
    database: PostgresDatabase,
    row: ReplicaRow,
    outbox: Outbox,
    clock: FleetClock,
    heard: float = 0.0,
    before: StartRecord | None = None,
) -> HeartbeatReply:
    """Report a replica, write a batch, read the shared documents, and set the clock.

    Args:
        row: the row of this start; this function sets its times and its batch number.
        heard: the time of the last confirmed heartbeat of this start, by the clock of the database;
            0 without such a heartbeat.

    Raises:
        StateError: the batch may or may not be written. The next heartbeat repeats it.
    """
    sent_at = steady_seconds()
    async with database.transaction() as (connection, now):
        behind = clock.set(now, sent_at)
        if abs(behind) > _TOLERATED:
            outbox.shift(behind)
        batch = outbox.batch()
        row = row._replace(started=now, heard=now, sequence=outbox.sequence)
        # The time of the previous heartbeat of this start; 0 if this heartbeat is the first.
        ((former,),) = await connection.fetch(_REPORT, of=row.start, **row._asdict())
        lacking = _LACKS if former < heard else _CLOCK_SET if clock.was_set else ""
        if before is not None:
            lacking = await _take_place(connection, before, now) or lacking
        if lacking:
            await restart_counting(connection, now)
            log.event("state_went_back", "error", reason=lacking)
        content = None if batch is None else batch.content
        handed = {"of": row.start, "number": outbox.sequence, "content": content}
        found = await read_shared(connection, _HAND_IN, **handed)
        lease = msgspec.convert(found.pop(_LEASE, NO_LEASE), Lease)
        reply = found, lease, now
    clock.was_set = False
    if batch is not None:
        outbox.confirm(batch.sequence)
    return reply


async def _take_place(connection: PostgresConnection, before: StartRecord, now: float) -> str:
    """Mark an earlier, ended start as gone. Return why counts may be missing, or ""."""
    same = replicas.c.start == before.start
    row = await connection.execute(sa.select(replicas.c.heard).where(same))
    heard = row.scalar_one_or_none() or 0.0
    await connection.execute(
        sa.update(replicas).where(same, replicas.c.gone.is_(None)).values(gone=now)
    )
    if before.cut_off:
        return _CUT_OFF
    # After KEEP_GONE, the rows of starts that are gone are deleted.
    return _LACKS if heard < before.heard and before.heard > now - KEEP_GONE else ""


def _reporting() -> ReturningInsert[tuple[float]]:
    statement = insert(replicas)
    reported = ("version", "rules", "refused", "failing", "admin")
    changing = (*reported, "heard", "sequence", "applied", "gone")
    # A subquery in RETURNING reads the table as it was before the statement.
    former = replicas.alias("former")
    heard = sa.select(former.c.heard).where(former.c.start == sa.bindparam("of"))
    return statement.on_conflict_do_update(
        index_elements=["start"], set_={name: statement.excluded[name] for name in changing}
    ).returning(sa.func.coalesce(heard.scalar_subquery(), 0.0))


def _handing_in() -> sa.ClauseElement:
    content = sa.bindparam("content", type_=sa.LargeBinary)
    number = sa.bindparam("number", type_=sa.BigInteger)
    batch = sa.select(sa.bindparam("of", type_=sa.Text), number, content).where(
        content.is_not(None)
    )
    handed = insert(batches).from_select(batches.columns.keys(), batch).on_conflict_do_nothing()
    lease = sa.func.json_build_array(leases.c.start, leases.c.token, leases.c.renewed)
    name: sa.ColumnElement[str] = sa.literal_column(f"'{_LEASE}'")
    beside: sa.Select[str, str] = sa.select(name, sa.cast(lease, sa.Text)).select_from(leases)
    reply: sa.CompoundSelect[str, str] = sa.union_all(select_shared(), beside)
    return reply.add_cte(handed.cte("handed"))


_LEASE = "lease"
_REPORT = Statement(_reporting())
_HAND_IN = Statement(_handing_in())


class FleetState(State):
    """The state of a replica of a fleet. Use `open` to create an instance."""

    def __init__(self, url: str, membership: Membership) -> None:
        self._database, self._clock = PostgresDatabase(url), FleetClock()
        super().__init__(membership, self._database.name, self._clock.now)
        self._start = uuid4().hex
        file, name = membership.overrides_file, self._database.name
        self._last = LastOverrides(file, name)
        of_start = file.with_name(f"{file.name}.{self.replica}")
        self._last_start = LastStart(of_start, name, self._start)
        self._outbox = Outbox(self._clock.now)
        self._leader = Leader(self._start, membership, self._clock)
        self._lease = NO_LEASE
        self._lock, self._notified = asyncio.Lock(), asyncio.Event()
        self._admitted: list[Admitted] = []
        self._applied, self._changed, self._prepared = -1, 0.0, False
        self.unheard = self._last_start.unheard
        self.tasks = {
            "state": self._send_heartbeats,
            "overrides": self._listen,
            "cutovers": self._lead_on,
        }

    @classmethod
    async def open(cls, url: str, membership: Membership) -> "FleetState":
        """Join the fleet of a database.

        If the database cannot be reached, the overrides in the local cache are used.

        Raises:
            StateError: the database cannot be used, or it cannot be reached and the cache is empty.
        """
        state = cls(url, membership)
        try:
            try:
                await state._join()
            except StatementsForgottenError:
                await state._join()
        except StateUnreachableError as error:
            cached = state._last.read()
            if cached is None:
                await state._release()
                raise StateError(
                    f"{error}; the local cache has no overrides, so a start without the"
                    " database could undo changes"
                ) from None
            state._health.missed(error)
            state._read(cached)
            state._applied = revision_of(cached)
            await state._note()
        except StateError:
            await state._release()
            raise
        return state

    @property
    def leads(self) -> bool:
        return self.stale_since is None and not self.failover.rank

    @property
    def failover(self) -> FailoverRank:
        if self._lease.start == self._start or not self._health.heard:
            return FailoverRank(0, self._lease.token)
        rank = 1 if self._documents.get(DEPUTY) == self._start else 2
        return FailoverRank(rank, self._lease.token)

    def follow(self, apply: Apply, set_ahead: SetAhead) -> None:
        super().follow(apply, set_ahead)
        self._clock.follow(set_ahead)

    def absorb(self, delta: Delta) -> None:
        # Only the leader judges cutovers, so the totals of a replica need no evidence.
        sums = [msgspec.structs.replace(each, rows=[]) for each in delta.outcomes]
        super().absorb(msgspec.structs.replace(delta, outcomes=sums))
        self._outbox.absorb(delta)
        self._admitted = (self._admitted + delta.admitted)[:_MOST_ADMITTED]

    async def close(self) -> None:
        try:
            if self._prepared:
                async with self._lock:
                    for _ in range(2):  # first the unconfirmed batch, then all other counts
                        await self._hand_in()
                    await self._leave()
                    self._health.behind = False
        except StateError as error:
            log.event("state_unwritten", "error", reason=str(error))
            self._health.behind = True
        finally:
            await self._note(last=True)
            await self._release()

    async def view(
        self, key: VersionKey | None = None, replica: str | None = None, *, clients: bool = True
    ) -> StateView:
        if replica == self.replica:
            return self._own_view()
        if replica is not None:
            raise UnknownReplicaError(not_here(replica, await self.fleet(), self.replica))
        try:
            async with self._health.reading():
                return await read_fleet(self._database, key, clients=clients)
        except StateUnreachableError as error:
            return self._own_view(DataGap(None, self._health.missed(error)))

    async def version(self, key: VersionKey) -> VersionReading:
        try:
            async with self._health.reading():
                return await read_version(self._database, key)
        except StateUnreachableError as error:
            view = self._own_view(DataGap(None, self._health.missed(error)))
            days, minutes = (
                self.totals.history.view(query, view.now).series.get(key, {})
                for query in whole_history(key)
            )
            return VersionReading(view, days, minutes, None)

    async def history(self, query: HistoryQuery) -> HistoryView:
        try:
            async with self._health.reading(), self._database.transaction() as (connection, now):
                return await read_history(connection, query, now)
        except StateUnreachableError as error:
            self._health.missed(error)
            return self.totals.history.view(query, self._clock.now(), self.replica)

    async def audit(self) -> list[AuditEntry]:
        async with self._health.reading(), self._database.transaction() as (connection, _):
            return await read_audit(connection)

    def cutover(self, key: VersionKey) -> CurrentCutover:
        evidence = published_evidence(self._documents.get(EVIDENCE)).get(key, GateEvidence())
        cutover = self._cutovers_configured[key]
        return self._loaded(self._documents).current(cutover, evidence, self._moment)

    async def fleet(self) -> FleetView:
        async with self._health.reading(), self._database.transaction() as (connection, now):
            rows, lease = await read_replicas(connection), await read_lease(connection)
        leader = "" if lease.is_free(now) else lease.start
        return fleet_view(rows, now, leader, revision_of(self._documents), self._changed)

    async def forget(self, replica: str, request: ChangeRequest) -> None:
        async with self._draft() as (draft, connection):
            for row in lost(replica, await read_replicas(connection), self._clock.now()):
                await mark_gone(connection, row.start, self._clock.now())
            draft.record(request, "replica forgotten", (replica, ""), "lost", "forgotten")

    async def reset_shadow(self, key: VersionKey, request: ChangeRequest) -> None:
        """Delete the counts of a version's shadow, except counts that are not written yet."""
        async with self._draft() as (draft, connection):
            await delete_shadow(connection, key)
            resets = shadow_resets(draft.documents)
            resets[key] = resets.get(key, 0) + 1
            draft.put(RESETS, [[*other, times] for other, times in resets.items()])
            draft.record(request, "shadow reset", key)
        log.event("shadow_reset", api=key[0], version=key[1])

    async def read_document(self, name: str) -> tuple[object, float]:
        async with self._database.transaction() as (connection, now):
            return (await read_documents(connection, name)).get(name), now

    async def change_document(self, name: str, change: Callable[[object], object]) -> None:
        async with self._database.transaction() as (connection, _):
            await lock(connection)
            found = (await read_documents(connection, name)).get(name)
            await write_document(connection, name, change(found))

    async def _change(
        self, change: Change, key: VersionKey | None = None, *, applies: bool = True
    ) -> None:
        async with self._draft() as (draft, _):
            change(draft, self._loaded(draft.documents), self._moment)

    @asynccontextmanager
    async def _draft(self) -> AsyncIterator[tuple[Draft, PostgresConnection]]:
        """Yield a draft. At the end of the block, write it and put it in force in this replica."""
        async with self._lock:
            try:
                async with self._database.transaction() as (connection, now):
                    draft = await open_draft(connection, now)
                    yield draft, connection
                    await write_draft(connection, draft)
            except StateUnreachableError as error:
                self._health.missed(error)
                raise
            log_events(draft.events)
            await self._adopt(draft.documents)

    async def _join(self) -> None:
        await self._database.prepare()
        async with self._database.transaction() as (connection, now):
            # Counting begins when the first replica of the fleet starts.
            since = insert(documents).on_conflict_do_nothing()
            await connection.execute(since, {"name": "since", "document": repr(now)})
        self._prepared = True
        await self._send_heartbeat()

    async def _leave(self) -> None:
        async with self._database.transaction() as (connection, now):
            await mark_gone(connection, self._start, now)
            await connection.execute(sa.text(f"SELECT pg_advisory_xact_lock({LOCK_LEADER})"))
            lease = await read_lease(connection)
            if lease.start == self._start:
                await write_lease(connection, lease._replace(renewed=0.0))

    async def _send_heartbeats(self) -> None:
        while True:
            async with self._lock:
                try:
                    await (self._send_heartbeat() if self._prepared else self._join())
                except StateError as error:
                    self._health.missed(error)
                except TimeoutError:
                    reason = "a worker has not acknowledged the overrides"
                    log.event("cutover_late", "error", reason=reason)
            self._clock.pass_on()
            await self._note()
            with suppress(TimeoutError):
                async with asyncio.timeout(_INTERVAL):
                    await self._notified.wait()
            self._notified.clear()

    async def _send_heartbeat(self) -> None:
        # Not repeated after an error: a replica without the database limits requests by itself.
        admitted, self._admitted = self._admitted, []
        documents, self._lease, now = await self._hand_in()
        self._health.reached(now)
        self._last_start.take_place()
        await self._adopt(documents)
        if admitted:
            async with self._database.transaction() as (connection, _):
                for begin in range(0, len(admitted), _ADMITTED_PART):
                    part = self._start, admitted[begin : begin + _ADMITTED_PART]
                    message = msgspec.json.encode(part).decode()
                    await connection.fetch(NOTIFY_ADMITTED, message=message)

    async def _listen(self) -> None:
        while True:
            # Without notifications, the next heartbeat reads the change.
            with suppress(StateError):
                await self._database.listen(self._notified.set, self._receive_admitted)
            await asyncio.sleep(_LISTEN_AGAIN)

    def _receive_admitted(self, message: str) -> None:
        with suppress(msgspec.DecodeError):  # another release writes it differently
            start, admitted = msgspec.json.decode(message, type=tuple[str, list[Admitted]])
            if start != self._start:
                self.add_debt(admitted)

    async def _lead_on(self) -> None:
        while True:
            may = not self.failover.rank or self._lease.is_free(self._clock.now())
            if may and self._prepared and self.stale_since is None:
                try:
                    await self._leader.lead(self._database)
                except StateError as error:
                    log.event("not_judged", "warning", reason=str(error))
            await asyncio.sleep(_CATCH_UP if self._leader.behind else _INTERVAL)

    async def _note(self, *, last: bool = False) -> None:
        await self._last.keep()
        health = self._health
        await self._last_start.note(health.heard, cut_off=health.behind, last=last)

    def _read(self, found: Mapping[str, object]) -> None:
        if found.get(OVERRIDES) != self._documents.get(OVERRIDES):
            self.in_force = overrides_of(found, report_lost_overrides)
        self._documents = found

    async def _adopt(self, found: Mapping[str, object]) -> None:
        """Put changed overrides in force. A restored database may repeat a revision number."""
        former, before, revision = self.in_force, self._documents, revision_of(found)
        self._read(found)
        if revision != revision_of(before):
            self._changed = self._clock.now()
        if revision == self._applied and self.in_force == former:
            return
        if self._apply is not None:
            await self._apply(self.in_force)
        if self._applied >= 0:
            log.event("overrides_applied", revision=revision)
        self._applied = revision
        await self._last.keep({name: found[name] for name in _CACHED if name in found})

    async def _release(self) -> None:
        self._last_start.close()
        await self._database.close()

    async def _hand_in(self) -> HeartbeatReply:
        row = row_of(self, self._start, self._clock.now(), max(self._applied, 0))
        heard, before = self._health.heard, self._last_start.before
        return await send_heartbeat(self._database, row, self._outbox, self._clock, heard, before)

    def _own_view(self, *missing: DataGap) -> StateView:
        now = self._clock.now()
        return StateView(self.totals, now, now - LAG_SECONDS, self.replica, missing)

    def _loaded(self, found: Mapping[str, object]) -> Cutovers:
        cutovers = Cutovers()
        cutovers.load(found, self._moment)
        return cutovers
