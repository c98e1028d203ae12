"""Judge: what the one replica that judges does once a second, in one transaction.

The transaction takes a lock that one has at a time, checks the lease, adds the waiting batches to
the sums, judges the cutovers by what was counted since it is the judge, and writes what it decided.
If any of it fails, all of it is undone, and the next judgement begins from what the database has.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import (
    BigInteger,
    Select,
    Text,
    bindparam,
    delete,
    func,
    literal_column,
    select,
    text,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY, Insert, insert

from gateway.base.overrides import VersionKey
from gateway.observe import log
from gateway.routing.snapshot import Snapshot
from gateway.store.active_overrides import ActiveOverrides
from gateway.store.cutover_controller import CutoverController
from gateway.store.fleet.database.fixed_statement import FixedStatement
from gateway.store.fleet.database.postgres_connection import PostgresConnection
from gateway.store.fleet.fleet_clock import FleetClock
from gateway.store.fleet.lease import NO_LEASE, Lease, taken
from gateway.store.fleet.merging import Merging
from gateway.store.fleet.outbox import decode
from gateway.store.fleet.postgres import (
    LOCK_JUDGE,
    PostgresDatabase,
    Transaction,
)
from gateway.store.fleet.roster import DEPUTY, ReplicaRow, deputy, is_over
from gateway.store.fleet.transaction_ledger import TransactionLedger, count_anew, read_documents
from gateway.store.ledger import BY_GATEWAY
from gateway.store.schema.state_tables import audit, batches, leases, replicas
from gateway.usage.delta import CutoverDelta, Delta
from gateway.usage.state_changes import StateChanges
from gateway.usage.totals import Totals

_NAME = "judge"
RESETS = "shadow_resets"
"""The document with how often the counts of each shadow were deleted."""
_Reset = tuple[str, str, int]
# So many bytes of batches, and one more batch, are added in one transaction: some thousand rows.
_MAX_BYTES = 256 * 1024
# One batch may be of a long time without the database, in seconds.
_PATIENCE = 60.0
KEEP_GONE = 90 * 86_400.0
"""For so many seconds, the row of a start that is gone is kept."""
# Within so many seconds, a replica has reported that it loaded other rules.
_REPORTED = 5.0
# So many entries of the audit log are kept.
_KEEP_AUDIT = 10_000
# Old rows are removed with every so many judgements.
_TIDY = 600


def _waiting() -> Select[tuple[str, int, float, str | None, int, bytes, int]]:
    """Return the query for the lease, beside each of the batches that are waiting, or once."""
    order = batches.c.start, batches.c.sequence
    size = func.octet_length(batches.c.content)
    before = (func.sum(size).over(order_by=order) - size).label("before")
    sized = select(*order, batches.c.content, before).subquery()
    first = sized.c.before < _MAX_BYTES
    once = select(literal_column("1")).subquery()  # also before there ever was a judge
    return (
        select(*_LEASE, sized.c.start, sized.c.sequence, sized.c.content, replicas.c.merged)
        .select_from(once)
        .outerjoin(leases, leases.c.name == _NAME)
        .outerjoin(sized, first)
        .outerjoin(replicas, replicas.c.start == sized.c.start)
        .order_by(sized.c.start, sized.c.sequence)
    )


def _done() -> Insert:
    """Return the statement that writes the lease, and ends the batches that are in the sums."""
    last = func.unnest(
        bindparam("starts", type_=ARRAY(Text)), bindparam("until", type_=ARRAY(BigInteger))
    ).table_valued("of", "until", name="last")
    last = last.render_derived()
    mark = update(replicas).where(replicas.c.start == last.c.of)
    remove = delete(batches).where(batches.c.start == last.c.of, batches.c.sequence <= last.c.until)
    merged = func.greatest(replicas.c.merged, last.c.until)
    return _renewal().add_cte(mark.values(merged=merged).cte("marked"), remove.cte("removed"))


def _renewal() -> Insert:
    added = insert(leases).values(
        name=_NAME, **{each: bindparam(f"new_{each}") for each in Lease._fields}
    )
    return added.on_conflict_do_update(
        index_elements=["name"], set_={each: added.excluded[each] for each in Lease._fields}
    )


_LEASE = leases.c.start, leases.c.token, leases.c.renewed
_TRY_LOCK = FixedStatement(text(f"SELECT pg_try_advisory_xact_lock({LOCK_JUDGE})"), kept=True)
_READ_LEASE = FixedStatement(select(*_LEASE).where(leases.c.name == _NAME))
_WRITE_LEASE = FixedStatement(_renewal())
_READ_REPLICAS = FixedStatement(select(replicas).where(replicas.c.gone.is_(None)), kept=True)
_WAITING = FixedStatement(_waiting(), kept=True)
_DONE = FixedStatement(_done(), kept=True)


class _Waiting(NamedTuple):
    """A batch that is not in the sums, or was sent again; `merged` is the last of its start."""

    start: str
    sequence: int
    content: bytes
    merged: int | None


class _Held(NamedTuple):
    """What a judge knows while its lease lasts."""

    token: int
    merging: Merging
    seen: Totals
    resets: dict[VersionKey, int]
    controller: CutoverController | None = None


class Judge:
    """Judges while the lease is its own.

    Args:
        start: the mark of this start of the replica.
        rules: returns the snapshot in force.
        rules_hash: returns the hash of its text.
        clock: the time of the database.

    Attributes:
        behind: whether more batches wait than the last judgement added.
    """

    def __init__(
        self,
        start: str,
        rules: Callable[[], Snapshot],
        rules_hash: Callable[[], str],
        clock: FleetClock,
    ) -> None:
        self._start = start
        self._rules = rules
        self._rules_hash = rules_hash
        self._clock = clock
        self._held: _Held | None = None
        self._judgements = 0
        self.behind = False

    async def judge(self, database: PostgresDatabase) -> bool:
        """Judge, if no other replica does; return whether that was so.

        Raises:
            StateError: nothing was changed.
        """
        try:
            if self._held is None:  # the judge before may be suspended, with its locks
                await database.end_silent()
            async with database.transaction(_PATIENCE) as transaction:
                connection, now = transaction
                ((locked,),) = await connection.fetch(_TRY_LOCK)
                found = await connection.fetch(_WAITING) if locked else []
                lease = taken(_lease_of(found), self._start, now)
                if lease is None or not locked:
                    self._held = None
                    return False
                waiting = [_Waiting(*row) for _, _, _, *row in found if row[0] is not None]
                ledger = await self._judge(transaction, lease, waiting)
            ledger.log()
        except BaseException:
            self._held = None
            raise
        return True

    async def _judge(
        self, transaction: Transaction, lease: Lease, waiting: list[_Waiting]
    ) -> TransactionLedger:
        connection, now = transaction
        held = self._held
        if held is None or held.token != lease.token:
            log.event("judge", token=lease.token)
            held = _Held(lease.token, Merging(), _nothing(), {})
        # Before the lock for changes, since it may take a while.
        await self._merge(connection, held, waiting, now)
        ledger = await TransactionLedger.open(transaction, held.seen)
        controller = self._controller(ledger, held)
        self._held = held = held._replace(controller=controller)
        _follow_resets(held, controller, shadow_resets(ledger.documents))
        rows = await read_replicas(connection)
        await controller.decide(time.monotonic(), self._forgotten(rows))
        await ledger.keep("evidence", controller.published())
        for row in await self._over(connection, rows, now):
            await mark_gone(connection, row.start, now)
            ledger.record(BY_GATEWAY, "replica forgotten", (row.replica, ""), "lost", "forgotten")
        await ledger.keep(DEPUTY, deputy(rows, self._start, now))
        await ledger.write()
        # After the lock for changes, as all who change rows of replicas.
        last = {each.start: each.sequence for each in waiting}  # they are in order
        ended = {"starts": [*last], "until": [*last.values()]}
        await connection.fetch(_DONE, **_values(lease), **ended)
        self._judgements += 1
        if self._judgements % _TIDY == 1:
            await _tidy(connection, now)
        return ledger

    async def _over(
        self, connection: PostgresConnection, rows: list[ReplicaRow], now: float
    ) -> list[ReplicaRow]:
        """Return the rows of those that were lost for long enough."""
        lost_for = self._rules().forget_after
        over = [row for row in rows if is_over(row, now, lost_for)]
        # Where its clock was set, the next beat has counting begin anew.
        if not over or self._clock.differs(now):
            return []
        since = (await read_documents(connection, "since")).get("since")
        began = float(since) if isinstance(since, int | float) else 0.0
        return [row for row in over if is_over(row, now, lost_for, began)]

    def _forgotten(self, rows: list[ReplicaRow]) -> float:
        """Return how long the state of a cutover that the rules lack has to have stood.

        While another goes by other rules, it may have that cutover, and what was set is in force
        there. One that has just loaded its rules reports them with its next beat.
        """
        own = self._rules_hash()
        alike = all(row.rules == own for row in rows)
        return _REPORTED if alike else inf

    def _controller(self, ledger: TransactionLedger, held: _Held) -> CutoverController:
        overrides = ActiveOverrides(ledger)
        if held.controller is None:
            held.resets.update(shadow_resets(ledger.documents))
            return CutoverController(ledger, overrides, self._rules, self._clock.now)
        held.controller.resume(ledger, overrides)
        return held.controller

    async def _merge(
        self, connection: PostgresConnection, held: _Held, waiting: list[_Waiting], now: float
    ) -> None:
        self.behind = sum(len(each.content) for each in waiting) >= _MAX_BYTES
        marks: dict[str, int] = {}
        totals, outcomes = _nothing(), list[CutoverDelta]()
        for start, sequence, content, mark in waiting:
            # One that is in the sums already was sent again, after its confirmation was lost.
            if sequence <= max(mark or 0, marks.get(start, 0)):
                continue
            marks[start] = sequence
            try:
                counted = decode(content)
            except msgspec.DecodeError as error:
                log.event("batch_lost", "error", start=start, sequence=sequence, reason=str(error))
                await count_anew(connection, now)
                continue
            if counted.lost:
                await count_anew(connection, now)
            totals.merge(counted.totals)
            outcomes += counted.outcomes
        if waiting:
            await held.merging.merge(connection, totals)
        for (kind, labels), times in totals.counts.items():
            held.seen.count(kind, labels, times)
        held.seen.absorb(Delta(self._clock.now(), outcomes=outcomes))


def shadow_resets(documents: Mapping[str, object]) -> dict[VersionKey, int]:
    """Return how often the counts of the shadow of each version were deleted."""
    found = documents.get(RESETS, [])
    return {(api, version): times for api, version, times in msgspec.convert(found, list[_Reset])}


def _follow_resets(
    held: _Held, controller: CutoverController, resets: Mapping[VersionKey, int]
) -> None:
    for key, times in resets.items():
        if held.resets.get(key) != times:
            held.resets[key] = times
            held.seen.reset_shadow(key)
            controller.reset_shadow(key)


async def read_lease(connection: PostgresConnection) -> Lease:
    """Return the lease of the judge; raises SQLAlchemyError."""
    rows = await connection.fetch(_READ_LEASE)
    return Lease(*rows[0]) if rows else NO_LEASE


async def write_lease(connection: PostgresConnection, lease: Lease) -> None:
    """Replace the lease of the judge; raises SQLAlchemyError."""
    await connection.fetch(_WRITE_LEASE, **_values(lease))


def _lease_of(found: Sequence[Sequence[Any]]) -> Lease:
    start, *rest = found[0][:3] if found else NO_LEASE
    return NO_LEASE if start is None else Lease(start, *rest)


def _values(lease: Lease) -> dict[str, object]:
    return {f"new_{name}": value for name, value in lease._asdict().items()}


async def read_replicas(connection: PostgresConnection) -> list[ReplicaRow]:
    """Return the starts of replicas that take part; raises SQLAlchemyError."""
    return [ReplicaRow(*row) for row in await connection.fetch(_READ_REPLICAS)]


async def mark_gone(connection: PostgresConnection, start: str, now: float) -> None:
    """Mark that a start of a replica takes part no more; raises SQLAlchemyError."""
    await connection.execute(update(replicas).where(replicas.c.start == start).values(gone=now))


async def _tidy(connection: PostgresConnection, now: float) -> None:
    await connection.execute(delete(replicas).where(replicas.c.gone < now - KEEP_GONE))
    newest = select(func.coalesce(func.max(audit.c.id), 0)).scalar_subquery()
    await connection.execute(delete(audit).where(audit.c.id <= newest - _KEEP_AUDIT))


def _nothing() -> Totals:
    return Totals(StateChanges())
