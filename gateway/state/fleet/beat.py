"""Beat: the one transaction a second of a replica."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import func, select, text
from sqlalchemy.dialects.postgresql import insert

from gateway import __version__
from gateway.core.snapshot import Snapshot
from gateway.state.fleet.fleet_clock import FleetClock
from gateway.state.fleet.judge import mark_gone, read_lease, write_lease
from gateway.state.fleet.lease import Lease
from gateway.state.fleet.outbox import Outbox
from gateway.state.fleet.postgres import LOCK_JUDGE, PostgresConnection, PostgresDatabase
from gateway.state.fleet.transaction_ledger import count_anew, shared_documents
from gateway.state.schema.state_tables import batches, documents, replicas
from gateway.telemetry import log

# A clock that is off by so many seconds is not corrected in what was counted by it.
_TOLERATED = 1.0


class Membership(NamedTuple):
    """How a gateway takes part in a fleet.

    Attributes:
        url: of the database.
        replica: the name of this gateway.
        rules: returns the snapshot in force.
        rules_hash: returns the hash of its text.
        last: the file with the overrides that were heard last.
    """

    url: str
    replica: str
    rules: Callable[[], Snapshot]
    rules_hash: Callable[[], str]
    last: Path


class Report(NamedTuple):
    """What a replica reports of itself.

    Attributes:
        start: the mark of this start.
        replica: its name.
        rules: the hash of the rules in force.
        admin: the address of its admin port; empty while it has none.
        applied: the revision of the overrides in force.
        heard: when the database confirmed this the last time, in seconds since 1970 by the
            database; 0 if it never did.
    """

    start: str
    replica: str
    rules: str
    admin: str
    applied: int
    heard: float = 0.0


class Heard(NamedTuple):
    """What a replica hears: the documents that all share, and the lease of the judge."""

    documents: Mapping[str, object]
    lease: Lease
    now: float


async def beat(
    database: PostgresDatabase, report: Report, outbox: Outbox, clock: FleetClock
) -> Heard:
    """Report, hand in a batch, and return what is heard; sets the clock.

    Raises:
        StateError: the batch may have arrived or not; it is handed in again.
    """
    asked = time.monotonic()
    async with database.transaction() as (connection, now):
        behind = clock.set(now, asked)
        # Set for the first time since the start, or after this machine slept.
        if abs(behind) > _TOLERATED:
            outbox.shift(behind)
        batch = outbox.batch()
        former = await report_start(connection, report, outbox.sequence, now)
        if former < report.heard:
            await count_anew(connection, now)
            reason = "the database lacks what it had confirmed, as one from a backup does"
            log.event("state_went_back", "error", reason=reason)
        if batch is not None:
            row = {"start": report.start, **batch._asdict()}
            await connection.execute(insert(batches).on_conflict_do_nothing(), row)
        heard = Heard(await shared_documents(connection), await read_lease(connection), now)
    if batch is not None:
        outbox.confirm(batch.sequence)
    return heard


async def begin_counting(database: PostgresDatabase) -> None:
    """Note since when the fleet counts, if this is its first replica; raises StateError."""
    async with database.transaction() as (connection, now):
        since = insert(documents).on_conflict_do_nothing()
        await connection.execute(since, {"name": "since", "document": repr(now)})


async def leave(database: PostgresDatabase, start: str) -> None:
    """Report that a replica leaves, and give up its lease; raises StateError."""
    async with database.transaction() as (connection, now):
        await mark_gone(connection, start, now)
        await connection.execute(text(f"SELECT pg_advisory_xact_lock({LOCK_JUDGE})"))
        lease = await read_lease(connection)
        if lease.start == start:
            await write_lease(connection, lease._replace(renewed=0.0))


async def report_start(
    connection: PostgresConnection,
    report: Report,
    sequence: int,
    now: float,
    gone: float | None = None,
) -> float:
    """Write the row of a start; return when it was written before, 0 if it was not.

    Args:
        connection: in a transaction.
        report: what it reports of itself.
        sequence: the number of its last batch.
        now: the time of the database, in seconds since 1970.
        gone: that time for one that only counts, and is no replica.

    Raises:
        SQLAlchemyError: it was not written.
    """
    changing = {
        "version": __version__,
        "rules": report.rules,
        "admin": report.admin,
        "heard": now,
        "sequence": sequence,
        "applied": report.applied,
        "gone": gone,
    }
    first = {"start": report.start, "replica": report.replica, "started": now, "merged": 0}
    statement = insert(replicas).values(**first, **changing)
    # A query in RETURNING sees the table as it was before the statement.
    of_before = replicas.alias("former")
    former = select(of_before.c.heard).where(of_before.c.start == report.start)
    found = await connection.execute(
        statement.on_conflict_do_update(index_elements=["start"], set_=changing).returning(
            func.coalesce(former.scalar_subquery(), 0.0)
        )
    )
    return float(found.scalar_one())
