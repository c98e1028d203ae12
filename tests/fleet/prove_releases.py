"""A rolling update: a replica of an earlier release and a current one share a database.

The SQL statements of the former release are copied here unchanged.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

# asyncpg executes the statements of the former release without code of this one.
import asyncpg
import msgspec
import pytest

from gateway.base.overrides import Overrides
from gateway.store.fleet import FleetState
from gateway.store.postgres import PostgresDatabase
from tests.fleet.cluster import Cluster
from tests.fleet.prove_state import ANN, KEY, counted, delta, judged, opened

REPORT = """
INSERT INTO replicas (start, replica, version, rules, admin, started, heard, sequence, merged,
 applied, gone) VALUES ($1, $2, '1.0.0', 'hash', '', $3, $3, $4, 0, $5, NULL)
ON CONFLICT (start) DO UPDATE SET version = excluded.version, rules = excluded.rules,
 admin = excluded.admin, heard = excluded.heard, sequence = excluded.sequence,
 applied = excluded.applied, gone = excluded.gone
RETURNING coalesce((SELECT former.heard FROM replicas AS former WHERE former.start = $1), 0)
"""
HAND_IN = """
INSERT INTO batches (start, sequence, content) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING
"""
READ_SHARED = """
SELECT name, document FROM documents WHERE name IN
 ('overrides', 'cutovers', 'evidence', 'shadow_resets', 'deputy', 'revision')
"""
TRY_LOCK, LOCK = (
    f"SELECT {function}({number})"
    for function, number in (
        ("pg_try_advisory_xact_lock", 1986492162),
        ("pg_advisory_xact_lock", 1986492163),
    )
)
READ_LEASE = "SELECT start, token, renewed FROM leases WHERE name = 'judge'"
WRITE_LEASE = """
UPDATE leases SET start = $1, token = $2, renewed = $3 WHERE name = 'judge' RETURNING token
"""
ADD_LEASE = "INSERT INTO leases (name, start, token, renewed) VALUES ('judge', $1, $2, $3)"
READ_REPLICAS = """
SELECT start, replica, version, rules, admin, started, heard, sequence, merged, applied, gone
FROM replicas
"""
WAITING = """
SELECT b.start, b.sequence, b.content, replicas.merged
FROM batches b LEFT OUTER JOIN replicas ON replicas.start = b.start ORDER BY b.start, b.sequence
"""
ADD_USAGE = """
INSERT INTO usage (api, version, endpoint, client, others, count, refused, failed, slack, first,
 last, served) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
ON CONFLICT (api, version, endpoint, client, others) DO UPDATE SET
 count = usage.count + excluded.count, refused = usage.refused + excluded.refused,
 failed = usage.failed + excluded.failed, first = least(usage.first, excluded.first),
 last = greatest(usage.last, excluded.last), served = greatest(usage.served, excluded.served)
"""
ADD_COUNTS = """
INSERT INTO counts (kind, labels, count, first, last) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (kind, labels) DO UPDATE SET count = counts.count + excluded.count,
 first = least(counts.first, excluded.first), last = greatest(counts.last, excluded.last)
"""
WRITE_HISTORY = """
INSERT INTO history (api, version, by, start, requests, errors, refused, seconds, buckets, callers)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
ON CONFLICT (api, version, by, start) DO UPDATE SET requests = excluded.requests,
 errors = excluded.errors, refused = excluded.refused, seconds = excluded.seconds,
 buckets = excluded.buckets, callers = excluded.callers
"""
MARK_MERGED = """
WITH removed AS (DELETE FROM batches WHERE start = $1 AND sequence <= $2)
UPDATE replicas SET merged = greatest(replicas.merged, $2) WHERE start = $1
"""
WRITE = """
INSERT INTO documents (name, document) VALUES ($1, $2)
ON CONFLICT (name) DO UPDATE SET document = excluded.document
"""
ADD_AUDIT = """
INSERT INTO audit (at, who, origin, what, api, version, why, before, after)
VALUES ($1, 'bob', '', 'cutover', $2, $3, '', $4, $5)
"""
LEASE_SECONDS = 2.5


class Former:
    """A replica of the former release; it may be the leader."""

    def __init__(self, connection: asyncpg.Connection, start: str) -> None:
        self._connection, self._start = connection, start
        self._sequence = 0
        self.documents: dict[str, Any] = {}

    @classmethod
    @asynccontextmanager
    async def joined(cls, url: str, start: str) -> AsyncIterator[Self]:
        connection = await asyncpg.connect(url, server_settings={"search_path": "gateway"})
        try:
            yield cls(connection, start)
        finally:
            await connection.close()

    async def beat(self, client: str, count: int) -> None:
        async with Transaction(self._connection) as now:
            self._sequence += 1
            revision = self.documents.get("revision", 0)
            mine = self._start, "former", now, self._sequence, revision
            await self._connection.fetch(REPORT, *mine)
            batch = self._start, self._sequence, batch_of(client, count, now)
            await self._connection.execute(HAND_IN, *batch)
            await self._read()

    async def judge(self) -> bool:
        """Add waiting batches to the sums unless another replica leads; return whether it did."""
        async with Transaction(self._connection) as now:
            if not await self._connection.fetchval(TRY_LOCK):
                return False
            row = await self._connection.fetchrow(READ_LEASE)
            start, token, renewed = row or ("", 0, 0.0)
            if now - renewed <= LEASE_SECONDS and start != self._start:
                return False
            lease = self._start, token + (now - renewed > LEASE_SECONDS), now
            if not await self._connection.fetch(WRITE_LEASE, *lease):
                await self._connection.execute(ADD_LEASE, *lease)
            for start, sequence, content, merged in await self._connection.fetch(WAITING):
                if sequence > (merged or 0):
                    await self._merge(msgspec.msgpack.decode(content))
                await self._connection.execute(MARK_MERGED, start, sequence)
            assert await self._connection.fetch(READ_REPLICAS)
            return True

    async def set_percent(self, percent: float) -> None:
        async with Transaction(self._connection) as now:
            await self._connection.fetch(LOCK)
            await self._read()
            overrides = self.documents.get("overrides", {"paused": []})
            cutover = {"api": KEY[0], "version": KEY[1], "percent": percent}
            changed = {"overrides": {**overrides, "percents": [cutover]}}
            changed["revision"] = self.documents.get("revision", 0) + 1
            for name, document in changed.items():
                await self._connection.fetch(WRITE, name, msgspec.json.encode(document).decode())
            entry = now, *KEY, "by the rules", f"{percent:g}%"
            await self._connection.execute(ADD_AUDIT, *entry)

    async def _read(self) -> None:
        found = await self._connection.fetch(READ_SHARED)
        self.documents = {name: msgspec.json.decode(document) for name, document in found}

    async def _merge(self, content: list[Any]) -> None:
        usage, floors, counts, _, _, history, lost, *_ = content
        assert (floors, lost) == ([], False)
        for api, version, endpoint, client, *numbers in usage:
            row = api, version, endpoint, client or "", client is None, *numbers
            await self._connection.execute(ADD_USAGE, *row)
        for kind, labels, *numbers in counts:
            encoded = msgspec.json.encode(labels).decode()
            await self._connection.execute(ADD_COUNTS, kind, encoded, *numbers)
        for row in history:
            await self._connection.execute(WRITE_HISTORY, *row)


class Transaction:
    """A transaction of the former release, and the time of the database."""

    def __init__(self, connection: asyncpg.Connection) -> None:
        self._connection = connection
        self._transaction = connection.transaction()

    async def __aenter__(self) -> float:
        await self._transaction.start()
        now = "SELECT extract(epoch FROM clock_timestamp())::double precision"
        found: float = await self._connection.fetchval(now)
        return found

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await (self._transaction.rollback() if kind else self._transaction.commit())


def batch_of(client: str, count: int, now: float) -> bytes:
    """Return a batch in the encoding of the former release, with its fields in its order."""
    usage = [*KEY, "/p", client, count, 0, 0, 0, now, now, now]
    different = ["differences", [*KEY, "/name"], count, now, now]
    return msgspec.msgpack.encode([[usage], [], [different], [], [], [], False])


@pytest.fixture
async def former_database(database: str) -> str:
    made = PostgresDatabase(database)
    await made.prepare()
    await made.close()
    return database


async def heard(state: FleetState) -> dict[str, str]:
    return {each.replica: each.presence for each in (await state.fleet()).replicas}


async def test_the_former_release_works_beside_the_current_one(
    former_database: str, cluster: Cluster, tmp_path: Path
) -> None:
    name = former_database.rpartition("/")[2]

    def end_lease() -> None:
        cluster.execute("UPDATE gateway.leases SET renewed = renewed - 60", name)

    async with Former.joined(former_database, "0f") as former:
        await former.beat("acme", 1)
        assert await former.judge()
        async with opened(former_database, tmp_path, "new") as (new,):
            assert await counted(new) == {"acme": 1}
            await former.beat("acme", 2)
            assert await heard(new) == {"former": "heard", "new": "heard"}
            new.absorb(delta("acme", 4))
            await new._send_heartbeat()
            # Unmerged batches of both releases wait, and the former release merges both.
            assert await counted(new) == {"acme": 7}
            assert await former.judge()
            assert not await judged(new)
            assert await counted(new) == {"acme": 7}
            # The new release takes over the lease, then the former one does.
            await former.beat("zed", 8)
            end_lease()
            assert await judged(new)
            assert not await former.judge()
            assert await counted(new) == {"acme": 7, "zed": 8}
            # A change by one release applies in the other one.
            await new.pause(KEY, ANN)
            await former.beat("zed", 16)
            assert former.documents["overrides"]["paused"] == [[*KEY]]
            await former.set_percent(30)
            await new._send_heartbeat()
            assert new.in_force == Overrides(frozenset({KEY}), {KEY: 30.0})
            assert [each.who for each in await new.audit()] == ["ann", "bob"]
            end_lease()
            new.absorb(delta("acme", 32))
            await new._send_heartbeat()
            assert await former.judge()
            assert not await judged(new)
            found = (await new.view(KEY)).totals
            assert await counted(new) == {"acme": 39, "zed": 24}
            assert found.counts["differences", (*KEY, "/name")].count == 63
        # The new replica leaves, as in a reverted update. The former one continues.
        await former.beat("acme", 64)
        end_lease()
        assert await former.judge()
        waiting = "SELECT count(*) FROM gateway.batches"
        assert cluster.execute(waiting, name) == ["0"]
        total = "SELECT sum(count) FROM gateway.usage"
        assert cluster.execute(total, name) == ["127"]
