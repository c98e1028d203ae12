"""FleetReading: the sums of a fleet as any replica reads them, batches that wait included."""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec
from sqlalchemy import (
    Text,
    bindparam,
    or_,
    select,
)

from gateway.base.overrides import VersionKey
from gateway.store.fleet.beat import Membership
from gateway.store.fleet.contact import Contact
from gateway.store.fleet.database.fixed_statement import FixedStatement
from gateway.store.fleet.database.history_reading import add_history, of_version, read_history
from gateway.store.fleet.database.postgres_connection import PostgresConnection
from gateway.store.fleet.fleet_clock import FleetClock
from gateway.store.fleet.judge import read_lease, read_replicas
from gateway.store.fleet.lease import is_free
from gateway.store.fleet.merging import labels_begin, samples_name, samples_of
from gateway.store.fleet.outbox import decode
from gateway.store.fleet.postgres import PostgresDatabase
from gateway.store.fleet.roster import ReplicaRow, fleet_view, heard_by, silences
from gateway.store.fleet.transaction_ledger import read_documents
from gateway.store.ledger import AuditEntry
from gateway.store.schema.state_tables import (
    LATEST_AUDIT,
    audit,
    batches,
    called,
    counts,
    floors,
    replicas,
    usage,
)
from gateway.store.state_access import (
    LAG_SECONDS,
    Doubt,
    FleetView,
    StateView,
    VersionReading,
)
from gateway.usage.history import History, HistoryQuery, HistoryView, whole_history
from gateway.usage.state_changes import StateChanges, StateUnreachableError
from gateway.usage.top_clients import ClientUsage, RowKey
from gateway.usage.totals import Occurrences, Totals

# So many rows are fetched at a time of what is not bounded, as those of a version are.
_ROWS = 5000
# As long as the sums of all versions may take, in seconds.
_PATIENCE = 30.0


class FleetReading(NamedTuple):
    """What the database has at one moment.

    Attributes:
        totals: the sums.
        now: the time of the database, in seconds since 1970.
        rows: all starts of replicas.
    """

    totals: Totals
    now: float
    rows: list[ReplicaRow]

    @property
    def view(self) -> StateView:
        """The sums, with what they may lack."""
        counted = heard_by(self.rows, self.now) - LAG_SECONDS
        doubts = silences(self.rows, self.now)
        return StateView(self.totals, self.now, counted, None, doubts)


async def read_fleet(
    database: PostgresDatabase,
    key: VersionKey | None,
    *,
    clients: bool = True,
) -> FleetReading:
    """Return the sums for a version, or for all.

    Args:
        database: of the fleet.
        key: the version; None for all.
        clients: whether the rows of clients are read; see StateAccess.view.

    Raises:
        StateError: the database cannot be reached or used.
    """
    async with database.transaction(_PATIENCE, snapshot=True) as (connection, now):
        return await _read(connection, now, key, clients=clients)


async def _read(
    connection: PostgresConnection,
    now: float,
    key: VersionKey | None,
    *,
    clients: bool = True,
) -> FleetReading:
    samples = "" if key is None else samples_name(("differences", *key))
    documents = await read_documents(connection, "since", samples)
    rows = await read_replicas(connection)
    totals = Totals(StateChanges(documents=documents))
    await _add_clients(connection, totals, key, clients=clients)
    await _add_counts(connection, totals, key, clients=clients)
    async for ((content,),) in connection.parts(_WAITING, 1):
        try:
            counted = decode(content)
        except msgspec.DecodeError:
            totals.since = now  # the judge reports it
            continue
        totals.merge(counted.totals)
        if counted.lost:
            totals.since = now
    for sample in samples_of(documents.get(samples)):
        totals.sample(sample)
    return FleetReading(totals, now, rows)


class FleetReader:
    """What a replica reads of the fleet; while the database is away, what it has counted alone."""

    def __init__(self, membership: Membership) -> None:
        self._membership = membership
        self._database = PostgresDatabase(membership.url)
        self._clock = FleetClock()
        self._contact = Contact(self._database.name, self._clock.now)
        self.replica = membership.replica
        self.totals = Totals(StateChanges())

    async def version(self, key: VersionKey) -> VersionReading:
        """Return what is known of one version, in one transaction."""
        by_day, by_minute = whole_history(key)
        try:
            begun = self._database.transaction(_PATIENCE, snapshot=True)
            async with self._contact.reading(), begun as (connection, now):
                view = (await _read(connection, now, key)).view
                # The sums have what waits to be merged; so has this.
                history = History(view.totals.history.rows(), bounded=False)
                await add_history(connection, history, key, by_day.since(now), by_minute.since(now))
                latest = await connection.fetch(_LATEST_CHANGE, api=key[0], label=key[1])
        except StateUnreachableError as error:
            view, latest = self._own_view(Doubt(None, self._contact.missed(error))), []
            history = self.totals.history
        days, minutes = (
            history.view(query, view.now).series.get(key, {}) for query in (by_day, by_minute)
        )
        return VersionReading(view, days, minutes, AuditEntry(*latest[0]) if latest else None)

    async def history(self, query: HistoryQuery) -> HistoryView:
        """Return the history of the fleet, or of this replica while the database is away."""
        try:
            async with self._contact.reading(), self._database.transaction() as (connection, now):
                return await read_history(connection, query, now)
        except StateUnreachableError as error:
            self._contact.missed(error)
            return self.totals.history.view(query, self._clock.now(), self.replica)

    async def audit(self) -> list[AuditEntry]:
        """Return the latest changes, the latest last."""
        async with self._contact.reading(), self._database.transaction() as (connection, _):
            return [AuditEntry(*row) for row in await connection.fetch(_LATEST_AUDIT)][::-1]

    async def _sums(self, key: VersionKey | None, *, clients: bool) -> StateView:
        try:
            async with self._contact.reading():
                return (await read_fleet(self._database, key, clients=clients)).view
        except StateUnreachableError as error:
            return self._own_view(Doubt(None, self._contact.missed(error)))

    def _own_view(self, *doubts: Doubt) -> StateView:
        now = self._clock.now()
        return StateView(self.totals, now, now - LAG_SECONDS, self.replica, doubts)


async def read_replica_views(
    database: PostgresDatabase, revision: int, changed: float
) -> FleetView:
    """Return the replicas, with what is wrong with them.

    Args:
        database: of the fleet.
        revision: of the overrides.
        changed: when they were changed last, in seconds since 1970.

    Raises:
        StateError: the database cannot be reached or used.
    """
    async with database.transaction() as (connection, now):
        rows, lease = await read_replicas(connection), await read_lease(connection)
    judge = "" if is_free(lease, now) else lease.start
    return fleet_view(rows, now, judge, revision, changed)


async def read_stored_fleet(
    url: str, query: HistoryQuery | None
) -> tuple[StateView, Mapping[str, object], HistoryView | None]:
    """Return what the database of a fleet has, without being one of it.

    Args:
        url: of the database.
        query: the history that is wanted.

    Returns:
        The sums, the documents of the overrides, and the history.

    Raises:
        StateError: it cannot be read.
    """
    database = PostgresDatabase(url, keeps=False)
    try:
        await database.check()
        view = (await read_fleet(database, None)).view
        async with database.transaction(_PATIENCE, snapshot=True) as (connection, now):
            documents = await read_documents(connection, "overrides")
            if query is None:
                return view, documents, None
            return view, documents, await read_history(connection, query, now)
    finally:
        await database.close()


async def _add_clients(
    connection: PostgresConnection, totals: Totals, key: VersionKey | None, *, clients: bool
) -> None:
    api, label = (None, None) if key is None else key
    of = {"api": api, "label": label}
    for name, version, floor in await connection.fetch(_FLOORS, **of):
        totals.clients_of(name, version).floor = floor
    if not clients:
        for name, version, last, served in await connection.fetch(_CALLED, **of):
            found = totals.clients_of(name, version)
            found.last, found.served = last, served
        return
    for name, version in await connection.fetch(_VERSIONS) if key is None else [key]:
        rows: dict[RowKey, ClientUsage] = {}
        of = {"api": name, "label": version}
        async for part in connection.parts(_USAGE, None, **of):
            for endpoint, client, others, *numbers in part:
                rows[endpoint, None if others else client] = ClientUsage(*numbers)
        if rows:
            found = totals.clients_of(name, version)
            found.rows = rows
            # Lists: a generator would be called for each row.
            found.last = max([row.last for row in rows.values()])
            found.served = max([row.served for row in rows.values()])


async def _add_counts(
    connection: PostgresConnection, totals: Totals, key: VersionKey | None, *, clients: bool
) -> None:
    if key is None:
        parts = connection.parts(_COUNTS if clients else _FEW, _ROWS)
    else:
        # They begin with a quotation mark at the end, and so come before what has # there.
        first = labels_begin(key)
        parts = connection.parts(_COUNTS_OF, None, first=first, end=f"{first[:-1]}#")
    async for part in parts:
        for kind, encoded, *times in part:
            labels = msgspec.json.decode(encoded, type=tuple[str, ...])
            totals.put_count(kind, labels, Occurrences(*times))


_FLOORS = FixedStatement(select(floors).where(*of_version(floors)), kept=True)
_KEY = usage.c.api, usage.c.version
_USAGE = FixedStatement(
    select(*(each for each in usage.columns if each not in _KEY)).where(*of_version(usage)),
    kept=True,
)
_VERSIONS = FixedStatement(select(*_KEY).distinct())
_CALLED = FixedStatement(select(called).where(*of_version(called)), kept=True)
_COUNTS = FixedStatement(select(counts))
_FEW = FixedStatement(select(counts).where(counts.c.kind == "violations"))
# By the order of bytes, as the index has them; the order of the database's language has no use.
_FIRST, _END = (
    counts.c.labels.bool_op(compared)(bindparam(name, type_=Text))
    for compared, name in (("~>=~", "first"), ("~<~", "end"))
)
_COUNTS_OF = FixedStatement(select(counts).where(_FIRST, _END), kept=True)
_LATEST_AUDIT = FixedStatement(LATEST_AUDIT)
_LATEST_CHANGE = FixedStatement(LATEST_AUDIT.where(*of_version(audit)).limit(1), kept=True)
_WAITING = FixedStatement(
    select(batches.c.content)
    .outerjoin(replicas, replicas.c.start == batches.c.start)
    .where(or_(replicas.c.merged.is_(None), replicas.c.merged < batches.c.sequence)),
    kept=True,
)
