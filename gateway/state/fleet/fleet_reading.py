"""FleetReading: the sums of a fleet as any replica reads them, batches that wait included."""

from collections.abc import Collection, Mapping
from typing import NamedTuple

import msgspec
from sqlalchemy import ColumnElement, Float, Table, Text, bindparam, func, or_, select

from gateway.core.overrides import VersionKey
from gateway.state.fleet.database.fixed_statement import FixedStatement
from gateway.state.fleet.database.postgres_connection import PostgresConnection
from gateway.state.fleet.judge import read_lease, read_replicas
from gateway.state.fleet.lease import is_free
from gateway.state.fleet.merging import labels_begin, samples_name, samples_of
from gateway.state.fleet.outbox import decode
from gateway.state.fleet.postgres import PostgresDatabase
from gateway.state.fleet.roster import ReplicaRow, fleet_view, heard_by, silences
from gateway.state.fleet.transaction_ledger import read_documents
from gateway.state.history.history import History, HistoryQuery, HistoryView
from gateway.state.history.interval import IntervalRow
from gateway.state.ledger import AuditEntry
from gateway.state.schema.history_table import history
from gateway.state.schema.state_tables import LATEST_AUDIT, batches, counts, floors, replicas, usage
from gateway.state.state_access import LAG_SECONDS, FleetView, LogReading, StateView
from gateway.state.state_changes import StateChanges
from gateway.state.top_clients import ClientUsage
from gateway.state.totals import Occurrences, Totals

# Rows are read in parts of about a millisecond, so that requests are answered in between.
_PART = 250
# As long as the sums of all versions may take, in seconds.
_PATIENCE = 30.0


class FleetReading(NamedTuple):
    """What the database has at one moment.

    Attributes:
        totals: the sums.
        now: the time of the database, in seconds since 1970.
        rows: all starts of replicas.
        logs: how far the logs of front proxies were counted.
    """

    totals: Totals
    now: float
    rows: list[ReplicaRow]
    logs: tuple[LogReading, ...]

    @property
    def view(self) -> StateView:
        """The sums, with what they may lack."""
        counted = heard_by(self.rows, self.now) - LAG_SECONDS
        doubts = silences(self.rows, self.now)
        return StateView(self.totals, self.now, counted, None, doubts, self.logs)


class _Counted(msgspec.Struct):
    since: float
    until: float
    reason: str


def log_document(name: str) -> str:
    """Return the name of the document with how far the log of a front proxy was counted."""
    return f"log {name}"


async def read_fleet(
    database: PostgresDatabase,
    key: VersionKey | None,
    proxies: Collection[str],
    *,
    clients: bool = True,
) -> FleetReading:
    """Return the sums for a version, or for all, with the logs of these front proxies.

    Args:
        database: of the fleet.
        key: the version; None for all.
        proxies: the front proxies whose logs count.
        clients: whether the rows of clients are read; see StateAccess.view.

    Raises:
        StateError: the database cannot be reached or used.
    """
    async with database.transaction(_PATIENCE, snapshot=True) as (connection, now):
        rows = await read_replicas(connection)
        totals = await _sums(connection, key, clients=clients)
        async for ((content,),) in connection.parts(_WAITING, 1):
            try:
                counted = decode(content)
            except msgspec.DecodeError:
                totals.since = now  # the judge reports it
                continue
            totals.merge(counted.totals)
            if counted.lost:
                totals.since = now
        if key is not None:
            name = samples_name(("differences", *key))
            for sample in samples_of((await read_documents(connection, name)).get(name)):
                totals.sample(sample)
        logs = await read_logs(connection, proxies)
    return FleetReading(totals, now, rows, logs)


async def read_replica_views(
    database: PostgresDatabase, proxies: Collection[str], revision: int
) -> FleetView:
    """Return the replicas, with what is wrong with them and with the logs of these front proxies.

    Args:
        database: of the fleet.
        proxies: the front proxies.
        revision: of the overrides.

    Raises:
        StateError: the database cannot be reached or used.
    """
    async with database.transaction() as (connection, now):
        rows, lease = await read_replicas(connection), await read_lease(connection)
        logs = await read_logs(connection, proxies)
    return fleet_view(rows, logs, now, "" if is_free(lease, now) else lease.start, revision)


async def read_stored_fleet(
    url: str, proxies: Collection[str], query: HistoryQuery | None
) -> tuple[StateView, Mapping[str, object], HistoryView | None]:
    """Return what the database of a fleet has, without being one of it.

    Args:
        url: of the database.
        proxies: the front proxies whose logs count.
        query: the history that is wanted.

    Returns:
        The sums, the documents of the overrides, and the history.

    Raises:
        StateError: it cannot be read.
    """
    database = PostgresDatabase(url)
    try:
        await database.check()
        view = (await read_fleet(database, None, proxies)).view
        async with database.transaction(_PATIENCE, snapshot=True) as (connection, now):
            documents = await read_documents(connection, "overrides")
            if query is None:
                return view, documents, None
            return view, documents, await read_history(connection, query, now)
    finally:
        await database.close()


async def read_history(
    connection: PostgresConnection, query: HistoryQuery, now: float
) -> HistoryView:
    """Return the intervals that are asked for at a time; raises SQLAlchemyError."""
    found = History(bounded=False)
    asked = {"by": query.by.value, "api": query.api, "label": query.version}
    async for part in connection.parts(_HISTORY, _PART, since=query.since(now), **asked):
        found.add(map(IntervalRow._make, part))
    return found.view(query, now)


async def read_audit(connection: PostgresConnection) -> list[AuditEntry]:
    """Return the latest entries of the audit log, the latest last; raises SQLAlchemyError."""
    return [AuditEntry(*row) for row in await connection.fetch(_LATEST_AUDIT)][::-1]


async def read_logs(
    connection: PostgresConnection, proxies: Collection[str]
) -> tuple[LogReading, ...]:
    """Return how far the logs of front proxies were counted; raises SQLAlchemyError."""
    found = await read_documents(connection, *map(log_document, proxies))
    never = _Counted(0.0, 0.0, "")
    counted = (
        (
            name,
            msgspec.convert(found.get(log_document(name), never), _Counted, from_attributes=True),
        )
        for name in proxies
    )
    return tuple(LogReading(name, each.since, each.until, each.reason) for name, each in counted)


async def _sums(connection: PostgresConnection, key: VersionKey | None, *, clients: bool) -> Totals:
    totals = Totals(StateChanges(documents=await read_documents(connection, "since")))
    api, label = (None, None) if key is None else key
    of = {"api": api, "label": label}
    async for part in connection.parts(_FLOORS, _PART, **of):
        for name, version, floor in part:
            totals.clients_of(name, version).floor = floor
    for name, version, last, served in await connection.fetch(_CALLED, **of):
        found = totals.clients_of(name, version)
        found.last, found.served = last, served
        if clients:
            async for part in connection.parts(_USAGE, _PART, api=name, label=version):
                for endpoint, client, others, *numbers in part:
                    found.rows[endpoint, None if others else client] = ClientUsage(*numbers)
    first = None if key is None else labels_begin(key)
    async for part in connection.parts(_COUNTS, _PART, first=first):
        for kind, encoded, *times in part:
            labels = msgspec.json.decode(encoded, type=tuple[str, ...])
            totals.put_count(kind, labels, Occurrences(*times))
    return totals


def _of(table: Table) -> tuple[ColumnElement[bool], ...]:
    """Return the condition that a row is of an API and a version, each if it is not null."""
    api, label = bindparam("api", type_=Text), bindparam("label", type_=Text)
    columns = table.columns
    return or_(api.is_(None), columns.api == api), or_(label.is_(None), columns.version == label)


_FLOORS = FixedStatement(select(floors).where(*_of(floors)))
_KEY = usage.c.api, usage.c.version
_USAGE = FixedStatement(
    select(*(each for each in usage.columns if each not in _KEY)).where(*_of(usage))
)
_CALLED = FixedStatement(
    select(*_KEY, func.max(usage.c.last), func.max(usage.c.served))
    .where(*_of(usage))
    .group_by(*_KEY)
)
_FIRST = bindparam("first", type_=Text)
_COUNTS = FixedStatement(
    select(counts).where(or_(_FIRST.is_(None), func.starts_with(counts.c.labels, _FIRST)))
)
_LATEST_AUDIT = FixedStatement(LATEST_AUDIT)
_WAITING = FixedStatement(
    select(batches.c.content)
    .outerjoin(replicas, replicas.c.start == batches.c.start)
    .where(or_(replicas.c.merged.is_(None), replicas.c.merged < batches.c.sequence))
)
_SINCE = history.c.start >= bindparam("since", type_=Float(53))
_HISTORY = FixedStatement(
    select(history).where(history.c.by == bindparam("by"), _SINCE, *_of(history))
)
