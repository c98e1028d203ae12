"""Beat: the one transaction a second of a replica."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
from sqlalchemy import (
    BigInteger,
    ClauseElement,
    ColumnElement,
    CompoundSelect,
    LargeBinary,
    Select,
    Text,
    bindparam,
    cast,
    func,
    literal_column,
    select,
    text,
    union_all,
    update,
)
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.sql.dml import ReturningInsert

from gateway import __version__
from gateway.base.steady_clock import passed
from gateway.observe import log
from gateway.observe.failing_service import FailingService
from gateway.routing.snapshot import Snapshot
from gateway.store.fleet.database.fixed_statement import FixedStatement
from gateway.store.fleet.database.postgres_connection import PostgresConnection
from gateway.store.fleet.fleet_clock import FleetClock
from gateway.store.fleet.judge import KEEP_GONE, mark_gone, read_lease, write_lease
from gateway.store.fleet.kept.last_start import StartRecord
from gateway.store.fleet.lease import NO_LEASE, Lease
from gateway.store.fleet.outbox import Outbox
from gateway.store.fleet.postgres import LOCK_JUDGE, PostgresDatabase
from gateway.store.fleet.roster import encode_failing
from gateway.store.fleet.transaction_ledger import count_anew, read_shared, select_shared
from gateway.store.schema.state_tables import batches, documents, leases, replicas

# A clock that is off by so many seconds is not corrected in what was counted by it.
_TOLERATED = 1.0
# Why counting begins anew.
_LACKS = "the database lacks what it had confirmed, as one from a backup does"
_CLOCK_SET = "the clock of the database was set"
_CUT_OFF = "this replica ended while it was cut off, with what it had counted"


class Membership(NamedTuple):
    """How a gateway takes part in a fleet.

    Attributes:
        url: of the database.
        replica: the name of this gateway.
        rules: returns the snapshot in force.
        rules_hash: returns the hash of its text.
        last: the file with the overrides that were heard last.
        refused: returns why the rules on disk are not in force; empty if they are.
    """

    url: str
    replica: str
    rules: Callable[[], Snapshot]
    rules_hash: Callable[[], str]
    last: Path
    refused: Callable[[], str] = str

    @property
    def last_start(self) -> Path:
        """The file with the mark of its last start."""
        return self.last.with_name(f"{self.last.name}.{self.replica}")


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
        before: the start whose place it takes.
        refused: why the rules on disk are not in force; empty if they are.
        failing: the services with targets that fail in it.
    """

    start: str
    replica: str
    rules: str
    admin: str
    applied: int
    heard: float = 0.0
    before: StartRecord | None = None
    refused: str = ""
    failing: Sequence[FailingService] = ()


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
    asked = passed()
    async with database.transaction() as (connection, now):
        behind = clock.set(now, asked)
        # Set for the first time since the start, or to another time.
        if abs(behind) > _TOLERATED:
            outbox.shift(behind)
        batch = outbox.batch()
        former = await report_start(connection, report, outbox.sequence, now)
        lacking = _LACKS if former < report.heard else _CLOCK_SET if clock.was_set else ""
        if report.before is not None:
            lacking = await _take_place(connection, report.before, now) or lacking
        if lacking:
            await count_anew(connection, now)
            log.event("state_went_back", "error", reason=lacking)
        content = None if batch is None else batch.content
        handed = {"of": report.start, "number": outbox.sequence, "content": content}
        found = await read_shared(connection, _HAND_IN, **handed)
        lease = msgspec.convert(found.pop(_LEASE, NO_LEASE), Lease)
        heard = Heard(found, lease, now)
    clock.was_set = False
    if batch is not None:
        outbox.confirm(batch.sequence)
    return heard


async def _take_place(connection: PostgresConnection, before: StartRecord, now: float) -> str:
    """Mark a start as gone, whose process has ended; return why its counts may be missing."""
    same = replicas.c.start == before.start
    row = await connection.execute(select(replicas.c.heard).where(same))
    heard = row.scalar_one_or_none() or 0.0
    await connection.execute(
        update(replicas).where(same, replicas.c.gone.is_(None)).values(gone=now)
    )
    if before.cut_off:
        return _CUT_OFF
    # Their rows are removed after a while.
    return _LACKS if heard < before.heard and before.heard > now - KEEP_GONE else ""


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
    row = {
        "of": report.start,
        "start": report.start,
        "replica": report.replica,
        "started": now,
        "merged": 0,
        "version": __version__,
        "rules": report.rules,
        "refused": report.refused,
        "failing": encode_failing(report.failing),
        "admin": report.admin,
        "heard": now,
        "sequence": sequence,
        "applied": report.applied,
        "gone": gone,
    }
    ((former,),) = await connection.fetch(_REPORT, **row)
    return float(former)


def _reporting() -> ReturningInsert[tuple[float]]:
    statement = insert(replicas)
    told = ("version", "rules", "refused", "failing", "admin")
    changing = (*told, "heard", "sequence", "applied", "gone")
    # A query in RETURNING sees the table as it was before the statement.
    former = replicas.alias("former")
    heard = select(former.c.heard).where(former.c.start == bindparam("of"))
    return statement.on_conflict_do_update(
        index_elements=["start"], set_={name: statement.excluded[name] for name in changing}
    ).returning(func.coalesce(heard.scalar_subquery(), 0.0))


def _handing_in() -> ClauseElement:
    """Return the query for what is heard, which hands a batch in as well if it has a content."""
    content = bindparam("content", type_=LargeBinary)
    number = bindparam("number", type_=BigInteger)
    batch = select(bindparam("of", type_=Text), number, content).where(content.is_not(None))
    handed = insert(batches).from_select(batches.columns.keys(), batch).on_conflict_do_nothing()
    lease = func.json_build_array(leases.c.start, leases.c.token, leases.c.renewed)
    name: ColumnElement[str] = literal_column(f"'{_LEASE}'")
    beside: Select[str, str] = select(name, cast(lease, Text)).select_from(leases)
    heard: CompoundSelect[str, str] = union_all(select_shared(), beside)
    return heard.add_cte(handed.cte("handed"))


# As what the lease is among the documents.
_LEASE = "lease"
_REPORT = FixedStatement(_reporting(), kept=True)
_HAND_IN = FixedStatement(_handing_in(), kept=True)
