"""FleetReading: the sums of a fleet as any replica reads them, batches that wait included."""

from collections.abc import Collection, Mapping
from typing import NamedTuple

import msgspec
from sqlalchemy import ColumnElement, func, or_, select

from gateway.core.overrides import VersionKey
from gateway.state.fleet.database.postgres_connection import PostgresConnection
from gateway.state.fleet.judge import read_lease, read_replicas
from gateway.state.fleet.lease import is_free
from gateway.state.fleet.merging import counted_for, samples_name, samples_of
from gateway.state.fleet.outbox import decode
from gateway.state.fleet.postgres import PostgresDatabase
from gateway.state.fleet.roster import ReplicaRow, fleet_view, heard_by, silences
from gateway.state.fleet.transaction_ledger import read_documents
from gateway.state.history.history import History, HistoryQuery, HistoryView
from gateway.state.history.interval import IntervalRow
from gateway.state.schema.history_table import select_history
from gateway.state.schema.state_tables import batches, counts, floors, replicas, usage
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
        waiting = select(batches.c.content).outerjoin(replicas, replicas.c.start == batches.c.start)
        unmerged = or_(replicas.c.merged.is_(None), replicas.c.merged < batches.c.sequence)
        async for (content,) in connection.rows(waiting.where(unmerged), 1):
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
    async for row in connection.rows(select_history(query, now), _PART):
        found.add((IntervalRow(*row),))
    return found.view(query, now)


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
    of_version = _of(key, floors.c.api, floors.c.version)
    async for api, version, floor in connection.rows(select(floors).where(*of_version), _PART):
        totals.clients_of(api, version).floor = floor
    version_columns = usage.c.api, usage.c.version
    of_version = _of(key, *version_columns)
    if clients:
        async for row in connection.rows(select(usage).where(*of_version), _PART):
            api, version, endpoint, client, others, *numbers = row
            place = endpoint, None if others else client
            totals.clients_of(api, version).put(place, ClientUsage(*numbers))
    else:
        latest = select(*version_columns, func.max(usage.c.last), func.max(usage.c.served))
        called = latest.where(*of_version).group_by(*version_columns)
        async for api, version, last, served in connection.rows(called, _PART):
            found = totals.clients_of(api, version)
            found.last, found.served = last, served
    of_key = () if key is None else (counted_for(key),)
    async for row in connection.rows(select(counts).where(*of_key), _PART):
        kind, encoded, count, first, last = row
        labels = msgspec.json.decode(encoded, type=tuple[str, ...])
        totals.put_count(kind, labels, Occurrences(count, first, last))
    return totals


def _of(
    key: VersionKey | None, api: ColumnElement[str], version: ColumnElement[str]
) -> tuple[ColumnElement[bool], ...]:
    return () if key is None else (api == key[0], version == key[1])
