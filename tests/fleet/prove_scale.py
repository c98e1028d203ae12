"""A large simulated fleet: the size of the database is bounded, and a verdict reads few rows.

It has 100 replicas, 50 versions and 100,000 clients. A year is not simulated here (see
prove_year.py): the tables are filled to their bounds first, and must stay within them.
"""

import json
import sys
import time
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from gateway.store import reading
from gateway.store.fleet import FleetState, send_heartbeat
from gateway.store.outbox import Outbox
from gateway.store.postgres import PostgresConnection, PostgresDatabase, Statement
from gateway.store.reading import read_fleet
from gateway.store.replicas import FleetClock, ReplicaRow
from gateway.usage.delta import CounterDelta, Delta, UsageDelta
from gateway.usage.history import HistoryQuery, Resolution
from gateway.usage.totals import ROWS_AFTER_CUT
from tests.fleet.cluster import Cluster
from tests.fleet.prove_state import judged, membership

REPLICAS, VERSIONS, CLIENTS = 100, 50, 100_000
# A version has at most this many rows before the leader merges them; see docs/fleet-promises.md.
MOST_ROWS = 3 * ROWS_AFTER_CUT
FILL = f"""
INSERT INTO gateway.usage
SELECT 'person', v::text, '/v{{version}}/person', 'client' || c, false, 9, 0, 0, 0, 1, 1, 1
FROM generate_series(1, {VERSIONS}) v, generate_series(1, {MOST_ROWS}) c;
INSERT INTO gateway.counts
SELECT kind, '["person","' || v || '","/field' || n || '"]', 1, 1, 1
FROM generate_series(1, {VERSIONS}) v, generate_series(1, 257) n,
  unnest(ARRAY['differences', 'noise']) kind;
INSERT INTO gateway.history SELECT 'person', v::text, by, start, 9, 0, 0, 1, '', ''
FROM generate_series(1, {VERSIONS}) v, (
  SELECT 'day' AS by, (extract(epoch FROM now())::bigint / 86400 - i) * 86400 AS start
  FROM generate_series(0, 399) i
  UNION ALL
  SELECT 'minute', (extract(epoch FROM now())::bigint / 60 - i) * 60
  FROM generate_series(0, 1439) i
) h;
ANALYZE gateway.usage; ANALYZE gateway.counts; ANALYZE gateway.history;
"""  # noqa: S608  # numbers of this page

TODAY = int(time.time()) // 86_400 * 86_400
QUERIES = (
    # A statement, its values, and the maximum number of rows that the database reads.
    (reading._USAGE, "'person', '7'", MOST_ROWS + 2),
    (reading._COUNTS_OF, """'["person","7"', '["person","7#'""", 2 * 257 + 1),
    (reading._VIOLATIONS, "'violations'", 0),
    (reading._CALLED, "NULL, NULL", VERSIONS),
    (
        reading._HISTORY,
        f"{TODAY - 6 * 86_400}, '', 'day', {TODAY - 29 * 86_400}, NULL, NULL",
        30 * VERSIONS,
    ),
    (
        reading._OF_VERSION,
        f"'day', {TODAY - 399 * 86_400}, 'person', '7', '', 'minute', {TODAY - 86_400}",
        400 + 1440,
    ),
)


def second(replica: int, turn: int) -> Delta:
    numbers = range(VERSIONS)
    usages = [
        UsageDelta("person", str(v + 1), "/v{version}/person", f"client{client}", 1, 0, 0, 1)
        for v in numbers
        for client in ((replica * 977 + turn * 31 + v) % CLIENTS, replica)
    ]
    counts = [CounterDelta("differences", ("person", str(v + 1), "/field1"), 1) for v in numbers]
    return Delta(1.0, usages, [], counts, [], [])


async def test_the_database_of_a_large_fleet_stays_bounded_for_a_year(
    database: str,
    cluster: Cluster,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name = database.rpartition("/")[2]
    judge = await FleetState.open(*membership(database, "judge", tmp_path))
    shared = PostgresDatabase(database)
    begun: list[object] = []
    event.listen(shared._engine, "checkout", lambda *taken: begun.append(taken))
    filled = time.time()

    def left(most: int, length: int) -> range:
        return range(most - (int(time.time()) // length - int(filled) // length), most + 1)

    try:
        cluster.execute(FILL, name)
        outboxes = [Outbox(FleetClock().now) for _ in range(REPLICAS)]
        assert await judged(judge)
        for turn in range(3):
            begun.clear()
            sent = 0
            for replica, outbox in enumerate(outboxes):
                outbox.absorb(second(replica, turn))
                batch = outbox.batch()
                assert batch is not None
                sent += len(batch.content)
                named = f"start{replica}", f"r{replica}", "1.0.0", "hash", ""
                report = ReplicaRow(*named, 0.0, 0.0, 0, 0, 0, None)
                await send_heartbeat(shared, report, outbox, FleetClock())
            assert len(begun) == REPLICAS, "one transaction a second each"
            while cluster.execute("SELECT count(*) FROM gateway.batches", name) != ["0"]:
                assert await judged(judge)
        most = VERSIONS * (MOST_ROWS + 1)
        rows = int(cluster.execute("SELECT count(*) FROM gateway.usage", name)[0])
        assert rows <= most
        counts = int(cluster.execute("SELECT count(*) FROM gateway.counts", name)[0])
        assert counts <= VERSIONS * 2 * 257

        begun.clear()
        began = time.perf_counter()
        found = await read_fleet(shared, ("person", "7"))
        seconds = time.perf_counter() - began
        assert len(begun) == 1
        assert set(found.totals.clients) == {("person", "7")}
        rows_read = len(found.totals.clients["person", "7"].rows)
        assert {key[1][:2] for key in found.totals.counts} == {("person", "7")}
        # A view of a version reads only its own rows, in one transaction with few round trips.
        begun.clear()
        event.listen(judge._database._engine, "checkout", lambda *taken: begun.append(taken))
        answers, run = list[int](), PostgresConnection._run

        async def counted(self: PostgresConnection, work: Awaitable[Any]) -> Any:
            answer = await run(self, work)
            answers.append(len(answer) if isinstance(answer, list) else 0)
            return answer

        monkeypatch.setattr(PostgresConnection, "_run", counted)
        trips = list[int]()
        for _ in range(4):
            begun.clear()
            answers.clear()
            reading = await judge.version(("person", "7"))
            assert len(begun) == 1
            assert len(reading.view.totals.clients["person", "7"].rows) == rows_read
            assert len(reading.days) in left(400, 86_400)
            assert len(reading.minutes) in left(1440, 60)
            trips.append(len(answers))
        # Each connection of the pool prepares each statement once.
        assert (max(trips) <= 21, min(trips)) == (True, 12)
        assert sum(answers) <= rows_read + 2 * 257 + 400 + 1440 + REPLICAS + 10
        # The list of all versions reads only their last calls and latest days.
        for _ in range(2):
            answers.clear()
            assert len((await judge.view(clients=False)).totals.clients) == VERSIONS
            month = HistoryQuery(Resolution.DAY, span=30 * 86_400)
            series = (await judge.history(month)).series
            assert {len(days) for days in series.values()} == {30}
        assert len(answers) <= 24
        assert sum(answers) <= VERSIONS * (2 + 30) + REPLICAS + 10
        for statement, values, bound in QUERIES:
            assert scanned(cluster, name, statement, values) <= bound, "by an index"
        size = cluster.execute("SELECT pg_database_size(current_database())", name)[0]
        with capfd.disabled():
            sys.stdout.write(
                f"\n{rows} rows of usage (at most {most}), {counts} of counts,"
                f" {int(size) / 2**20:.0f} MiB; {sent // REPLICAS} bytes a batch;"
                f" a verdict takes {seconds:.2f} s\n"
            )
    finally:
        await shared.close()
        await judge.close()


def scanned(cluster: Cluster, name: str, statement: Statement, values: str) -> int:
    explain = f"EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE asked({values})"
    script = f"SET search_path TO gateway; PREPARE asked AS {statement.text}; {explain}"
    (plan,) = json.loads("\n".join(cluster.execute(script, name)))
    return looked_at(plan["Plan"])


def looked_at(node: dict[str, Any]) -> int:
    here = 0
    if "Relation Name" in node:
        dropped = sum(node.get(f"Rows Removed by {how}", 0) for how in ("Filter", "Index Recheck"))
        here = (node["Actual Rows"] + dropped) * node["Actual Loops"]
    return here + sum(map(looked_at, node.get("Plans", [])))
