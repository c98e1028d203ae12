"""The leader: the only replica that adds batches to the sums and decides cutovers.

Each round, once a second, is one transaction under an exclusive lock, which is rolled back as a
whole if a step fails. The lease uses only the clock of the database. A leader that resumes after a
suspension changes nothing, since its lease has expired.

Only the leader changes sums, so transactions do not conflict. The cost of a round depends on the
size of the batches, not on the size of the sums.
"""

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, Insert, insert

from gateway.base.overrides import VersionKey
from gateway.observe import log
from gateway.rollout.cutovers import ClockTime, Cutovers, evidence_document
from gateway.rollout.decisions import BY_GATEWAY, Draft
from gateway.store.documents import (
    EVIDENCE,
    RESETS,
    open_draft,
    read_documents,
    restart_counting,
    write_document,
    write_draft,
)
from gateway.store.outbox import decode
from gateway.store.postgres import (
    LOCK_LEADER,
    PostgresConnection,
    PostgresDatabase,
    Statement,
    Transaction,
)
from gateway.store.replicas import DEPUTY, FleetClock, ReplicaRow, deputy
from gateway.store.state import Membership, log_events, report_lost_cutover
from gateway.store.tables import (
    audit,
    batches,
    called,
    counts,
    cut_history,
    documents,
    encoded,
    floors,
    history,
    leases,
    replicas,
    usage,
    write_rows,
)
from gateway.usage.delta import CutoverDelta, Delta, SampleDelta
from gateway.usage.history import History, IntervalRow
from gateway.usage.totals import (
    BOUNDED_KINDS,
    MAX_NAMES,
    OTHERS,
    ROWS_AFTER_CUT,
    SHADOW_KINDS,
    ClientUsage,
    CountKey,
    Occurrences,
    StateRows,
    TopClients,
    Totals,
    usage_row,
)

_IntervalKey = tuple[str, str, str, int]


class Merging:
    """Adds totals to the sums. A replica that becomes the leader again needs a new instance."""

    def __init__(self) -> None:
        self._rows: Counter[VersionKey] | None = None
        self._names: dict[CountKey, set[str]] = {}
        self._floors: dict[VersionKey, int] = {}
        self._intervals: dict[_IntervalKey, IntervalRow] = {}

    async def merge(self, connection: PostgresConnection, totals: Totals) -> None:
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
        found = await connection.execute(sa.select(*version, sa.func.count()).group_by(*version))
        return Counter({(api, name): count for api, name, count in found})

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
            if rows[key] > 3 * ROWS_AFTER_CUT:  # an upper bound: updated rows were counted as new
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
        # A cache: the next round usually has the same intervals.
        self._intervals = {row[:4]: row for row in merged.rows()}
        await connection.execute_each(
            _WRITE_HISTORY, (row._asdict() for row in self._intervals.values())
        )
        if len(known) < len(rows):
            await connection.run_sync(cut_history, {row[:3] for row in rows})


async def delete_shadow(connection: PostgresConnection, key: VersionKey) -> None:
    shadow = counts.c.kind.in_(SHADOW_KINDS)
    of_version = sa.func.starts_with(counts.c.labels, labels_begin(key))
    await connection.execute(sa.delete(counts).where(shadow, of_version))
    samples = documents.c.name == samples_name(("differences", *key))
    await connection.execute(sa.delete(documents).where(samples))


def labels_begin(key: VersionKey) -> str:
    """Return the common prefix of the encoded labels of all counts of a version."""
    return encoded(key)[:-1]


def samples_name(place: tuple[str, str, str]) -> str:
    return f"samples {encoded(place)}"


def samples_of(document: object) -> list[SampleDelta]:
    """Return the samples in a document; empty if another release used another format."""
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
            changes.deleted_usage.append((*key, *place))
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


_ADD_USAGE = _adding(
    usage,
    ("count", "refused", "failed", "rejected"),
    ("first",),
    ("last", "served", "rejected_at"),
)
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


LEASE_SECONDS = 2.5
KEEP_GONE = 90 * 86_400.0
"""The number of seconds until the row of a replica that is gone is deleted."""
_NAME = "judge"
_Reset = tuple[str, str, int]
# The maximum number of bytes of the batches in one transaction, which correspond to some thousand
# rows. The last batch may exceed the maximum.
_MAX_BYTES = 256 * 1024
# The time-out of a round in seconds. After an outage of the database, batches are large.
_PATIENCE = 60.0
# The number of seconds within which a replica reports a new configuration.
_REPORTED = 5.0
_KEEP_AUDIT = 10_000
# The number of rounds between deletions of old rows.
_TIDY = 600


class Lease(NamedTuple):
    """The lease of the leader.

    Attributes:
        renewed: the time of the last renewal, by the clock of the database; 0 if the lease was
            released.
    """

    start: str
    token: int
    renewed: float

    def is_free(self, now: float) -> bool:
        return not 0 <= now - self.renewed <= LEASE_SECONDS

    def acquired(self, start: str, now: float) -> "Lease | None":
        """Return the lease that a start acquires or renews; None if another replica has it.

        A leader whose lease has expired acquires it again with a new token, since another leader
        may have changed the state in the meantime.
        """
        if self.is_free(now):
            return Lease(start, self.token + 1, now)
        return self._replace(renewed=now) if self.start == start else None


NO_LEASE = Lease("", 0, 0.0)


def _waiting() -> sa.Select[tuple[str, int, float, str | None, int, bytes, int]]:
    """Return the query for the lease and each waiting batch; one row if no batch is waiting."""
    order = batches.c.start, batches.c.sequence
    size = sa.func.octet_length(batches.c.content)
    before = (sa.func.sum(size).over(order_by=order) - size).label("before")
    sized = sa.select(*order, batches.c.content, before).subquery()
    first = sized.c.before < _MAX_BYTES
    once = sa.select(sa.literal_column("1")).subquery()  # even if there has never been a leader
    return (
        sa.select(*_LEASE, sized.c.start, sized.c.sequence, sized.c.content, replicas.c.merged)
        .select_from(once)
        .outerjoin(leases, leases.c.name == _NAME)
        .outerjoin(sized, first)
        .outerjoin(replicas, replicas.c.start == sized.c.start)
        .order_by(sized.c.start, sized.c.sequence)
    )


def _done() -> Insert:
    last = sa.func.unnest(
        sa.bindparam("starts", type_=ARRAY(sa.Text)),
        sa.bindparam("until", type_=ARRAY(sa.BigInteger)),
    ).table_valued("of", "until", name="last")
    last = last.render_derived()
    mark = sa.update(replicas).where(replicas.c.start == last.c.of)
    remove = sa.delete(batches).where(
        batches.c.start == last.c.of, batches.c.sequence <= last.c.until
    )
    merged = sa.func.greatest(replicas.c.merged, last.c.until)
    return _renewal().add_cte(mark.values(merged=merged).cte("marked"), remove.cte("removed"))


def _renewal() -> Insert:
    added = insert(leases).values(
        name=_NAME, **{each: sa.bindparam(f"new_{each}") for each in Lease._fields}
    )
    return added.on_conflict_do_update(
        index_elements=["name"], set_={each: added.excluded[each] for each in Lease._fields}
    )


_LEASE = leases.c.start, leases.c.token, leases.c.renewed
_TRY_LOCK = Statement(sa.text(f"SELECT pg_try_advisory_xact_lock({LOCK_LEADER})"))
_READ_LEASE = Statement(sa.select(*_LEASE).where(leases.c.name == _NAME))
_WRITE_LEASE = Statement(_renewal())
_READ_REPLICAS = Statement(sa.select(replicas).where(replicas.c.gone.is_(None)))
_WAITING = Statement(_waiting())
_DONE = Statement(_done())


class _Waiting(NamedTuple):
    """A waiting batch. It is a repetition if its number is at most `merged`."""

    start: str
    sequence: int
    content: bytes
    merged: int | None


class _LeaderMemory(NamedTuple):
    token: int
    merging: Merging
    seen: Totals
    cutovers: Cutovers
    resets: dict[VersionKey, int]


class Leader:
    """Runs the leader's rounds. `behind` is true if batches were left after the last round."""

    def __init__(self, start: str, membership: Membership, clock: FleetClock) -> None:
        self._start = start
        self._membership = membership
        self._clock = clock
        self._memory: _LeaderMemory | None = None
        self._rounds = 0
        self.behind = False

    async def lead(self, database: PostgresDatabase) -> bool:
        """Run one round; return False if another replica leads. Raises StateError if it fails."""
        try:
            if self._memory is None:  # a suspended leader may hold its locks
                await database.end_silent()
            async with database.transaction(_PATIENCE) as transaction:
                connection, now = transaction
                ((locked,),) = await connection.fetch(_TRY_LOCK)
                found = await connection.fetch(_WAITING) if locked else []
                lease = _lease_of(found).acquired(self._start, now)
                if lease is None or not locked:
                    self._memory = None
                    return False
                waiting = [_Waiting(*row) for _, _, _, *row in found if row[0] is not None]
                draft = await self._run_round(transaction, lease, waiting)
        except BaseException:
            self._memory = None
            raise
        log_events(draft.events)
        return True

    async def _run_round(
        self, transaction: Transaction, lease: Lease, waiting: list[_Waiting]
    ) -> Draft:
        connection, now = transaction
        memory, is_new = self._memory, False
        if memory is None or memory.token != lease.token:
            log.event("judge", token=lease.token)
            memory, is_new = _LeaderMemory(lease.token, Merging(), Totals(), Cutovers(), {}), True
        # Merge before taking the lock for changes, since merging may take a long time.
        await self._merge(connection, memory, waiting, now)
        draft = await open_draft(connection, now)
        self._memory = memory
        resets = shadow_resets(draft.documents)
        if is_new:
            memory.resets.update(resets)
        at = ClockTime(time.monotonic(), self._clock.now())
        memory.cutovers.load(draft.documents, at, report=report_lost_cutover)
        _follow_resets(memory, resets)
        rows = await read_replicas(connection)
        configured, counted = self._membership.rules().cutovers, memory.seen.route_counts
        memory.cutovers.decide(draft, configured, counted, at, self._forget_after(rows))
        draft.put(EVIDENCE, evidence_document(memory.cutovers, configured, counted, at))
        for row in await self._to_forget(connection, rows, now):
            await mark_gone(connection, row.start, now)
            draft.record(BY_GATEWAY, "replica forgotten", (row.replica, ""), "lost", "forgotten")
        draft.put(DEPUTY, deputy(rows, self._start, now))
        await write_draft(connection, draft)
        # Every transaction takes the lock for changes before it changes rows of the table
        # `replicas`.
        last = {each.start: each.sequence for each in waiting}  # in ascending order
        ended = {"starts": [*last], "until": [*last.values()]}
        await connection.fetch(_DONE, **_values(lease), **ended)
        self._rounds += 1
        if self._rounds % _TIDY == 1:
            await _tidy(connection, now)
        return draft

    async def _to_forget(
        self, connection: PostgresConnection, rows: list[ReplicaRow], now: float
    ) -> list[ReplicaRow]:
        lost_for = self._membership.rules().forget_after
        over = [row for row in rows if row.is_expired(now, lost_for)]
        # If the clock was set, the next heartbeat restarts counting.
        if not over or self._clock.differs(now):
            return []
        since = (await read_documents(connection, "since")).get("since")
        began = float(since) if isinstance(since, int | float) else 0.0
        return [row for row in over if row.is_expired(now, lost_for, began)]

    def _forget_after(self, rows: list[ReplicaRow]) -> float:
        """Return the age at which the state of an unconfigured cutover is deleted.

        It is infinite while another replica may still have the cutover in its configuration.
        """
        own = self._membership.rules_hash()
        return _REPORTED if all(row.rules == own for row in rows) else inf

    async def _merge(
        self,
        connection: PostgresConnection,
        memory: _LeaderMemory,
        waiting: list[_Waiting],
        now: float,
    ) -> None:
        self.behind = sum(len(each.content) for each in waiting) >= _MAX_BYTES
        marks: dict[str, int] = {}
        totals, outcomes = Totals(), list[CutoverDelta]()
        for start, sequence, content, merged in waiting:
            # A batch is repeated if its confirmation was lost.
            if sequence <= max(merged or 0, marks.get(start, 0)):
                continue
            marks[start] = sequence
            try:
                counted, ended, lost = decode(content)
            except msgspec.DecodeError as error:
                log.event("batch_lost", "error", start=start, sequence=sequence, reason=str(error))
                await restart_counting(connection, now)
                continue
            if lost:
                await restart_counting(connection, now)
            totals.merge(counted)
            outcomes += ended
        if waiting:
            await memory.merging.merge(connection, totals)
        for (kind, labels), times in totals.counts.items():
            memory.seen.count(kind, labels, times)
        memory.seen.absorb(Delta(self._clock.now(), outcomes=outcomes))


def shadow_resets(documents: Mapping[str, object]) -> dict[VersionKey, int]:
    found = documents.get(RESETS, [])
    return {(api, version): times for api, version, times in msgspec.convert(found, list[_Reset])}


def _follow_resets(memory: _LeaderMemory, resets: Mapping[VersionKey, int]) -> None:
    for key, times in resets.items():
        if memory.resets.get(key) != times:
            memory.resets[key] = times
            memory.seen.reset_shadow(key)
            memory.cutovers.reset_shadow(key)


async def read_lease(connection: PostgresConnection) -> Lease:
    rows = await connection.fetch(_READ_LEASE)
    return Lease(*rows[0]) if rows else NO_LEASE


async def write_lease(connection: PostgresConnection, lease: Lease) -> None:
    await connection.fetch(_WRITE_LEASE, **_values(lease))


def _lease_of(found: Sequence[Sequence[Any]]) -> Lease:
    start, *rest = found[0][:3] if found else NO_LEASE
    return NO_LEASE if start is None else Lease(start, *rest)


def _values(lease: Lease) -> dict[str, object]:
    return {f"new_{name}": value for name, value in lease._asdict().items()}


async def read_replicas(connection: PostgresConnection) -> list[ReplicaRow]:
    return [ReplicaRow(*row) for row in await connection.fetch(_READ_REPLICAS)]


async def mark_gone(connection: PostgresConnection, start: str, now: float) -> None:
    await connection.execute(sa.update(replicas).where(replicas.c.start == start).values(gone=now))


async def _tidy(connection: PostgresConnection, now: float) -> None:
    await connection.execute(sa.delete(replicas).where(replicas.c.gone < now - KEEP_GONE))
    newest = sa.select(sa.func.coalesce(sa.func.max(audit.c.id), 0)).scalar_subquery()
    await connection.execute(sa.delete(audit).where(audit.c.id <= newest - _KEEP_AUDIT))
