"""Merging: adds the counts of batches to the sums of the database, within bounds.

Only the judge merges, so that no two transactions change the same row. It has no sums in memory;
the cost of a merge depends on the size of the batches, not on that of the sums.
"""

from collections import Counter
from collections.abc import Iterator

import msgspec
import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, insert

from gateway.base.overrides import VersionKey
from gateway.store.documents import read_documents, write_document
from gateway.store.postgres import PostgresConnection, Statement
from gateway.store.tables import (
    called,
    counts,
    cut_history,
    documents,
    encoded,
    floors,
    history,
    usage,
    write_rows,
)
from gateway.usage.delta import SampleDelta
from gateway.usage.history import History, IntervalRow
from gateway.usage.top_clients import KEPT, ClientUsage, TopClients
from gateway.usage.totals import (
    BOUNDED_KINDS,
    MAX_NAMES,
    OTHERS,
    SHADOW_KINDS,
    CountKey,
    Occurrences,
    StateRows,
    Totals,
    usage_row,
)

_IntervalKey = tuple[str, str, str, int]


class Merging:
    """Merges totals; it remembers names and floors instead of reading them each time.

    So a replica that becomes the judge again needs another Merging.
    """

    def __init__(self) -> None:
        self._rows: Counter[VersionKey] | None = None
        self._names: dict[CountKey, set[str]] = {}
        self._floors: dict[VersionKey, int] = {}
        self._intervals: dict[_IntervalKey, IntervalRow] = {}

    async def merge(self, connection: PostgresConnection, totals: Totals) -> None:
        """Add totals to the sums."""
        if self._rows is None:
            self._rows = await self._load(connection)
        await self._usage(connection, self._rows, totals)
        await self._counts(connection, totals)
        await self._samples(connection, totals)
        await self._history(connection, totals.history.rows())

    async def _load(self, connection: PostgresConnection) -> Counter[VersionKey]:
        for kind, labels in await connection.execute(sa.select(counts.c.kind, counts.c.labels)):
            *first, last = msgspec.json.decode(labels, type=list[str])
            self._names.setdefault((kind, tuple(first)), set()).add(last)
        for api, name, floor in await connection.execute(sa.select(floors)):
            self._floors[api, name] = floor
        version = usage.c.api, usage.c.version
        latest = sa.func.max(usage.c.last), sa.func.max(usage.c.served)
        found = await connection.execute(
            sa.select(*version, sa.func.count(), *latest).group_by(*version)
        )
        rows: Counter[VersionKey] = Counter()
        known = []
        for api, name, count, last, served in found:
            rows[api, name] = count
            known.append({"api": api, "version": name, "last": last, "served": served})
        # A judge of the release before has not written it.
        await connection.execute_each(_ADD_CALLED, known)
        return rows

    async def _usage(
        self, connection: PostgresConnection, rows: Counter[VersionKey], totals: Totals
    ) -> None:
        values = []
        for key, clients in totals.clients.items():
            floor = self._floors.get(key, 0)
            if clients.floor:
                await _raise_floor(connection, key, clients.floor)
                self._floors[key] = floor + clients.floor
            for (endpoint, client), row in clients.rows.items():
                api, version, _, _, *numbers = usage_row(*key, (endpoint, client), row)
                slack = 0 if client is None else floor + row.slack
                numbers[3] = slack
                values.append((api, version, endpoint, client or "", client is None, *numbers))
            rows[key] += len(clients.rows)
        if values:
            names = usage.columns.keys()
            parameters = (dict(zip(names, each, strict=True)) for each in values)
            await connection.execute_each(_ADD_USAGE, parameters)
            latest = (
                {"api": key[0], "version": key[1], "last": found.last, "served": found.served}
                for key, found in totals.clients.items()
            )
            await connection.execute_each(_ADD_CALLED, latest)
        for key in totals.clients:
            if rows[key] > 3 * KEPT:  # an estimate: many of them were there before
                clients = await _cut(connection, key, self._floors.get(key, 0))
                rows[key], self._floors[key] = len(clients.rows), clients.floor

    async def _counts(self, connection: PostgresConnection, totals: Totals) -> None:
        added: dict[CountKey, Occurrences] = {}
        for (kind, labels), times in totals.counts.items():
            group, name = (kind, labels[:-1]), labels[-1]
            names = self._names.setdefault(group, set())
            if name not in names and len(names) >= MAX_NAMES and kind not in BOUNDED_KINDS:
                name = OTHERS
            names.add(name)
            added.setdefault((kind, (*labels[:-1], name)), Occurrences()).add(times)
        await connection.execute_each(_ADD_COUNTS, _count_rows(added))

    async def _samples(self, connection: PostgresConnection, totals: Totals) -> None:
        for place, latest in totals.samples.items():
            name = samples_name(place)
            known = Totals()
            found = (await read_documents(connection, name)).get(name)
            for sample in (*samples_of(found), *latest):
                known.sample(sample)
            await write_document(connection, name, msgspec.to_builtins([*known.samples[place]]))

    async def _history(self, connection: PostgresConnection, rows: list[IntervalRow]) -> None:
        former, self._intervals = self._intervals, {}
        known = [former[key] for row in rows if (key := row[:4]) in former]
        if unknown := [row[:4] for row in rows if row[:4] not in former]:
            keys = zip(*unknown, strict=True)
            places = dict(zip(("api", "version", "by", "start"), map(list, keys), strict=True))
            found = await connection.fetch(_READ_HISTORY, **places)
            known += [IntervalRow(*row) for row in found]
        merged = History(known, bounded=False)
        merged.add(rows)
        # The intervals of this second are often those of the next.
        self._intervals = {row[:4]: row for row in merged.rows()}
        await connection.execute_each(
            _WRITE_HISTORY, (row._asdict() for row in self._intervals.values())
        )
        if len(known) < len(rows):
            await connection.run_sync(cut_history, {row[:3] for row in rows})


async def delete_shadow(connection: PostgresConnection, key: VersionKey) -> None:
    """Delete the counts of the shadow of a version."""
    shadow = counts.c.kind.in_(SHADOW_KINDS)
    of_version = sa.func.starts_with(counts.c.labels, labels_begin(key))
    await connection.execute(sa.delete(counts).where(shadow, of_version))
    samples = documents.c.name == samples_name(("differences", *key))
    await connection.execute(sa.delete(documents).where(samples))


def labels_begin(key: VersionKey) -> str:
    """Return the begin of the encoded labels of the counts of a version."""
    return encoded(key)[:-1]


def samples_name(place: tuple[str, str, str]) -> str:
    """Return the name of the document with the samples of a kind, API and version."""
    return f"samples {encoded(place)}"


def samples_of(document: object) -> list[SampleDelta]:
    """Return the samples of a document; none if another release wrote it."""
    try:
        return msgspec.convert(document or [], list[SampleDelta])
    except msgspec.ValidationError:
        return []


async def _raise_floor(connection: PostgresConnection, key: VersionKey, more: int) -> None:
    of_version = usage.c.api == key[0], usage.c.version == key[1], ~usage.c.others
    slack = {"slack": usage.c.slack + more}
    await connection.execute(sa.update(usage).where(*of_version).values(slack))
    await connection.fetch(_ADD_FLOOR, api=key[0], version=key[1], floor=more)


async def _cut(connection: PostgresConnection, key: VersionKey, floor: int) -> TopClients:
    """Keep the busiest clients of a version, and return them."""
    same = usage.c.api == key[0], usage.c.version == key[1]
    clients = TopClients(
        {
            (endpoint, None if others else client): ClientUsage(*numbers)
            for _, _, endpoint, client, others, *numbers in await connection.execute(
                sa.select(usage).where(*same)
            )
        },
        floor,
    )
    clients.cut()
    changes = StateRows(floors={key: clients.floor})
    for place in clients.changed:
        row = clients.rows.get(place)
        if row is None:
            changes.gone.append((*key, *place))
        else:
            changes.usage.append(usage_row(*key, place, row))
    await connection.run_sync(write_rows, changes)
    return clients


def _count_rows(added: dict[CountKey, Occurrences]) -> Iterator[dict[str, object]]:
    for (kind, labels), times in added.items():
        row = {"kind": kind, "labels": encoded(labels)}
        yield row | {"count": times.count, "first": times.first, "last": times.last}


def _adding(
    table: sa.Table, sums: tuple[str, ...], firsts: tuple[str, ...], lasts: tuple[str, ...]
) -> Statement:
    statement = insert(table)
    new, old = statement.excluded, table.columns
    changed: dict[str, sa.ColumnElement[object]] = {name: old[name] + new[name] for name in sums}
    changed |= {name: sa.func.least(old[name], new[name]) for name in firsts}
    changed |= {name: sa.func.greatest(old[name], new[name]) for name in lasts}
    keys = list(table.primary_key.columns)
    adding = statement.on_conflict_do_update(index_elements=keys, set_=changed)
    return Statement(adding)


def _replacing(table: sa.Table) -> Statement:
    statement = insert(table)
    keys = list(table.primary_key.columns)
    changed = {each.name: each for each in statement.excluded if each.name not in table.primary_key}
    replacing = statement.on_conflict_do_update(index_elements=keys, set_=changed)
    return Statement(replacing)


_ADD_USAGE = _adding(usage, ("count", "refused", "failed"), ("first",), ("last", "served"))
_ADD_CALLED = _adding(called, (), (), ("last", "served"))
_ADD_COUNTS = _adding(counts, ("count",), ("first",), ("last",))
_ADD_FLOOR = _adding(floors, ("floor",), (), ())
_WRITE_HISTORY = _replacing(history)
_WANTED = (sa.bindparam(key.name, type_=ARRAY(key.type)) for key in history.primary_key)
_READ_HISTORY = Statement(
    sa.select(history).where(
        sa.tuple_(*history.primary_key).in_(
            sa.select(sa.literal_column("*")).select_from(sa.func.unnest(*_WANTED))
        )
    )
)
