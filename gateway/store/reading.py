"""Functions that read the sums of a fleet, including batches that are not merged yet."""

from collections.abc import Mapping
from math import ceil

import msgspec
import sqlalchemy as sa

from gateway.base.overrides import VersionKey
from gateway.rollout.decisions import OVERRIDES, AuditEntry
from gateway.store.documents import read_documents
from gateway.store.leader import labels_begin, read_replicas, samples_name, samples_of
from gateway.store.outbox import decode
from gateway.store.postgres import PostgresConnection, PostgresDatabase, Statement
from gateway.store.replicas import state_view
from gateway.store.state import StateView, VersionReading
from gateway.store.tables import (
    ALL_BUT_CALLERS,
    LATEST_AUDIT,
    audit,
    batches,
    called,
    counts,
    floors,
    history,
    replicas,
    usage,
)
from gateway.usage.history import History, HistoryQuery, HistoryView, Resolution, whole_history
from gateway.usage.totals import ClientUsage, Occurrences, RowKey, StateRows, Totals

# The number of rows per fetch from large tables, which takes some MB.
_ROWS = 5000
# The time-out for reading the sums of all versions, in seconds.
_PATIENCE = 30.0


async def read_fleet(
    database: PostgresDatabase, key: VersionKey | None, *, clients: bool = True
) -> StateView:
    """Return the sums of a version, or of all versions. For `clients`, see `State.view`."""
    async with database.transaction(_PATIENCE, snapshot=True) as (connection, now):
        return await _read(connection, now, key, clients=clients)


async def read_version(database: PostgresDatabase, key: VersionKey) -> VersionReading:
    """Return all data about a version from one snapshot; raises StateError."""
    by_day, by_minute = whole_history(key)
    async with database.transaction(_PATIENCE, snapshot=True) as (connection, now):
        view = await _read(connection, now, key)
        # Batches that are not merged yet also contain history.
        found = History(view.totals.history.rows(), bounded=False)
        since = {"days": ceil(by_day.since(now)), "minutes": ceil(by_minute.since(now))}
        of = {"api": key[0], "label": key[1]}
        async for part in connection.parts(_OF_VERSION, None, **of, **since):
            found.add(part)
        latest = await connection.fetch(_LATEST_CHANGE, **of)
    days, minutes = (found.view(query, now).series.get(key, {}) for query in (by_day, by_minute))
    return VersionReading(view, days, minutes, AuditEntry(*latest[0]) if latest else None)


async def read_history(
    connection: PostgresConnection, query: HistoryQuery, now: float
) -> HistoryView:
    found = History(bounded=False)
    asked = {"by": query.by.value, "api": query.api, "label": query.version}
    times = {"since": ceil(query.since(now)), "callers": ceil(query.callers_since(now))}
    async for part in connection.parts(_HISTORY, _ROWS, **times, **asked):
        found.add(part)
    return found.view(query, now)


async def read_audit(connection: PostgresConnection) -> list[AuditEntry]:
    return [AuditEntry(*row) for row in await connection.fetch(_LATEST_AUDIT)][::-1]


async def read_stored_fleet(
    url: str, query: HistoryQuery | None
) -> tuple[StateView, Mapping[str, object], HistoryView | None]:
    """Return the sums, the document with the overrides and the history, for `--state`."""
    database = PostgresDatabase(url, keeps=False)
    try:
        await database.check()
        view = await read_fleet(database, None)
        async with database.transaction(_PATIENCE, snapshot=True) as (connection, now):
            documents = await read_documents(connection, OVERRIDES)
            found = None if query is None else await read_history(connection, query, now)
            return view, documents, found
    finally:
        await database.close()


async def _read(
    connection: PostgresConnection, now: float, key: VersionKey | None, *, clients: bool = True
) -> StateView:
    samples = "" if key is None else samples_name(("differences", *key))
    documents = await read_documents(connection, "since", samples)
    totals = Totals(StateRows(documents=documents))
    await _add_clients(connection, totals, key, clients=clients)
    await _add_counts(connection, totals, key, clients=clients)
    async for ((content,),) in connection.parts(_WAITING, 1):
        try:
            counted, _, lost = decode(content)
        except msgspec.DecodeError:
            totals.since = now  # the leader logs this error
            continue
        totals.merge(counted)
        if lost:
            totals.since = now
    for sample in samples_of(documents.get(samples)):
        totals.sample(sample)
    return state_view(totals, await read_replicas(connection), now)


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
            # Lists are faster here than generators.
            found.last = max([row.last for row in rows.values()])
            found.served = max([row.served for row in rows.values()])


async def _add_counts(
    connection: PostgresConnection, totals: Totals, key: VersionKey | None, *, clients: bool
) -> None:
    if key is None:
        parts = connection.parts(_COUNTS if clients else _VIOLATIONS, _ROWS)
    else:
        # The prefix ends with a quotation mark. In ASCII, # follows the quotation mark.
        first = labels_begin(key)
        parts = connection.parts(_COUNTS_OF, None, first=first, end=f"{first[:-1]}#")
    async for part in parts:
        for kind, encoded, *times in part:
            labels = msgspec.json.decode(encoded, type=tuple[str, ...])
            totals.put_count(kind, labels, Occurrences(*times))


def _of_version(table: sa.Table) -> tuple[sa.ColumnElement[bool], ...]:
    """Return the conditions for rows of an API and a version; a null parameter matches all rows."""
    api, label = sa.bindparam("api", type_=sa.Text), sa.bindparam("label", type_=sa.Text)
    columns = table.columns
    return sa.or_(api.is_(None), columns.api == api), sa.or_(
        label.is_(None), columns.version == label
    )


def _since(name: str) -> sa.ColumnElement[bool]:
    # The parameter has the type of the column, so PostgreSQL can use the index.
    return history.c.start >= sa.bindparam(name, type_=sa.BigInteger)


_KEY = usage.c.api, usage.c.version
_FLOORS = Statement(sa.select(floors).where(*_of_version(floors)))
_USAGE = Statement(
    sa.select(*(each for each in usage.columns if each not in _KEY)).where(*_of_version(usage))
)
_VERSIONS = Statement(sa.select(*_KEY).distinct())
_CALLED = Statement(sa.select(called).where(*_of_version(called)))
_COUNTS = Statement(sa.select(counts))
_VIOLATIONS = Statement(sa.select(counts).where(counts.c.kind == "violations"))
# Strings are compared by bytes, since the index does not support the collation of the database.
_FIRST, _END = (
    counts.c.labels.bool_op(compared)(sa.bindparam(name, type_=sa.Text))
    for compared, name in (("~>=~", "first"), ("~<~", "end"))
)
_COUNTS_OF = Statement(sa.select(counts).where(_FIRST, _END))
_LATEST_AUDIT = Statement(LATEST_AUDIT)
_LATEST_CHANGE = Statement(LATEST_AUDIT.where(*_of_version(audit)).limit(1))
_WAITING = Statement(
    sa.select(batches.c.content)
    .outerjoin(replicas, replicas.c.start == batches.c.start)
    .where(sa.or_(replicas.c.merged.is_(None), replicas.c.merged < batches.c.sequence))
)
_NO_CALLERS = sa.literal(b"", sa.LargeBinary)
_HISTORY = Statement(
    sa.select(
        *ALL_BUT_CALLERS, sa.case((_since("callers"), history.c.callers), else_=_NO_CALLERS)
    ).where(history.c.by == sa.bindparam("by"), _since("since"), *_of_version(history))
)
# The callers of minutes, which are half of the data, are not needed.
_OF_VERSION = Statement(
    sa.union_all(
        *(
            sa.select(*ALL_BUT_CALLERS, callers).where(
                history.c.by == by.value, _since(name), *_of_version(history)
            )
            for by, name, callers in (
                (Resolution.DAY, "days", history.c.callers),
                (Resolution.MINUTE, "minutes", _NO_CALLERS),
            )
        )
    )
)
