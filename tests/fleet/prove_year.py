"""More than a year of a fleet, day by day: counts are exact, and the tables stay bounded.

The replicas, the leader and the SQL are real. The time is simulated: the database and the replicas
use the time of a calendar in which a day passes at once.
"""

from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from random import Random
from types import SimpleNamespace

import pytest
from sqlalchemy import event, text

from gateway.base.overrides import Overrides
from gateway.findings.retirement import verdict
from gateway.store import postgres
from gateway.store.fleet import FleetState
from gateway.store.postgres import Statement
from gateway.usage.delta import CounterDelta, Delta, UsageDelta
from gateway.usage.history import HistoryQuery, Resolution
from gateway.usage.totals import ROWS_AFTER_CUT
from tests.fleet.cluster import Cluster
from tests.fleet.prove_state import KEY, SHIFTING, judged, membership

DAY, DAYS = 86_400, 410
LAST_DAY_OF_1 = 100
REPLICAS, MINUTES = 2, 4
# One client calls each minute, and this many others call once.
STRANGERS = 4
# The bounds in docs/fleet-promises.md.
BOUNDS = {
    "SELECT max(count) FROM (SELECT count(*) FROM gateway.usage GROUP BY version) q": 3
    * ROWS_AFTER_CUT
    + 1,
    "SELECT max(count) FROM (SELECT count(*) FROM gateway.counts GROUP BY kind) q": 2 * 257,
    "SELECT count(*) FROM gateway.batches": 0,
    "SELECT count(*) FROM gateway.audit": 10_000 + 10,  # and entries since the last cleanup
    "SELECT count(*) FROM gateway.documents": 12,
    "SELECT count(*) FROM gateway.leases": 1,
    # Replicas that left or vanished in 90 days, two per five days, plus up to a week until cleanup.
    "SELECT count(*) FROM gateway.replicas": REPLICAS + 2 * (90 + 8) // 5 + 10,
    "SELECT max(count) FROM (SELECT count(*) FROM gateway.history WHERE by = 'minute'"
    " GROUP BY version) q": 1_440,
    "SELECT max(count) FROM (SELECT count(*) FROM gateway.history WHERE by = 'day'"
    " GROUP BY version) q": 400,
}
BYTES = "SELECT coalesce(max(octet_length(content)), 0) FROM gateway.batches"
FILL_AUDIT = """
INSERT INTO gateway.audit (at, who, origin, what, api, version, why, before, after)
SELECT 1, 'ann', '', 'cutover', 'person', '1', '', '5%', '6%' FROM generate_series(1, 11000)
"""


class Calendar:
    """The simulated time of the database and all replicas, in seconds since 1970."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._patch = patch
        self.now = 1_700_006_400.0  # the start of a day
        clock = SimpleNamespace(time=lambda: self.now, monotonic=lambda: self.now)
        patch.setattr("gateway.store.replicas.time", clock)
        patch.setattr("gateway.base.steady_clock.time", clock)
        self.turn_to(self.now)

    def turn_to(self, now: float) -> None:
        self.now = now
        asked = Statement(text(f"SELECT CAST({now} AS double precision)"))
        self._patch.setattr(postgres, "_NOW", asked)


class Transactions:
    def __init__(self) -> None:
        self._begun = 0

    def watch(self, state: FleetState) -> None:
        event.listen(state._database._engine, "checkout", self._note)

    def _note(self, *_: object) -> None:
        self._begun += 1

    @contextmanager
    def are(self, count: int) -> Iterator[None]:
        before = self._begun
        yield
        assert self._begun - before == count


def minute(day: int, chance: Random) -> Delta:
    versions = ("1", "2") if day <= LAST_DAY_OF_1 else ("2",)
    clients = ("acme", *(f"{chance.getrandbits(64):x}" for _ in range(STRANGERS)))
    usages = [
        UsageDelta("person", version, "/p", client, 1, 0, 0, 1)
        for version in versions
        for client in clients
    ]
    counts = [CounterDelta("differences", ("person", each, f"/{day}"), 1) for each in versions]
    return Delta(0.0, usages, [], counts, [], [])


class Year:
    def __init__(self, url: str, folder: Path, stack: AsyncExitStack, calendar: Calendar) -> None:
        self._url, self._folder, self._stack, self._calendar = url, folder, stack, calendar
        self._chance = Random(3)
        self._first = calendar.now
        self._transactions = Transactions()
        self._started = 0
        self._judge: FleetState | None = None
        self.states: list[FleetState] = []
        self.vanished: dict[str, int] = {}
        self.counted = 0

    async def serve(self, day: int) -> None:
        while len(self.states) < REPLICAS:
            name = f"r{self._started}"
            state = await FleetState.open(*membership(self._url, name, self._folder))
            self._stack.push_async_callback(state._database.close)
            self._transactions.watch(state)
            self.states.append(state)
            self._started += 1
        for number in range(MINUTES):
            self._calendar.turn_to(self._first + day * DAY + number * 60)
            for state in self.states:
                self._absorb(state, day)

    async def beat(self) -> None:
        for state in self.states:
            with self._transactions.are(1):
                await state._send_heartbeat()

    async def judge(self) -> None:
        """Make one replica the leader; the lease of the previous day has expired."""
        self._judge = self._chance.choice(self.states)
        await self._succeed(self._judge)

    async def _succeed(self, state: FleetState) -> None:
        # A new leader first checks the sessions of its predecessor.
        is_new = state._leader._memory is None
        with self._transactions.are(1 + is_new):
            assert await judged(state)

    async def come_and_go(self, day: int) -> None:
        if day % 5 == 1:
            left = self.states.pop(self._chance.randrange(REPLICAS))
            self._absorb(left, day)
            await left.close()
            successor = self.states[0] if left is self._judge else self._judge
            assert successor is not None
            await self._succeed(successor)
        elif day % 5 == 3:
            gone = self.states.pop(self._chance.randrange(REPLICAS))
            gone.absorb(minute(day, self._chance))
            self.vanished[gone.replica] = day

    def _absorb(self, state: FleetState, day: int) -> None:
        made = minute(day, self._chance)
        state.absorb(made)
        self.counted += len(made.usages)


async def test_more_than_a_year_of_days_is_counted_in_bounded_tables(
    database: str, cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Old rows are removed at each 600th turn of the leader: a day has 86,400 turns, here only one.
    monkeypatch.setattr("gateway.store.leader._TIDY", 10)
    name, calendar, most_bytes = database.rpartition("/")[2], Calendar(monkeypatch), 0
    # No power failure is simulated, so commits need not wait for a disk.
    cluster.execute(f"ALTER DATABASE {name} SET synchronous_commit = off")
    async with AsyncExitStack() as stack:
        year = Year(database, tmp_path, stack, calendar)
        for day in range(DAYS):
            looks = day % 43 == 42
            await year.serve(day)
            await year.beat()
            if looks:
                most_bytes = max(most_bytes, int(cluster.execute(BYTES, name)[0]))
            await year.judge()
            await year.come_and_go(day)
            if day == DAYS // 2:
                cluster.execute(FILL_AUDIT, name)
            elif looks:
                found = {query: int(cluster.execute(query, name)[0]) for query in BOUNDS}
                assert {query for query in BOUNDS if found[query] > BOUNDS[query]} == set()
                doubts = {gap.replica for gap in (await year.states[0].view(KEY)).gaps}
                assert doubts == {each for each, at in year.vanished.items() if 0 < day - at <= 7}

        assert cluster.execute("SELECT sum(count) FROM gateway.usage", name) == [str(year.counted)]
        days = await year.states[0].history(HistoryQuery(Resolution.DAY, "person", version="2"))
        last = int(calendar.now) // DAY * DAY
        assert list(days.series["person", "2"]) == list(range(last - 399 * DAY, last + 1, DAY))
        a_day = REPLICAS * MINUTES * (STRANGERS + 1)
        of_days = {one.requests - a_day for one in days.series["person", "2"].values()}
        assert of_days == {0, STRANGERS + 1}, "those of one that left are among them"
        view = await year.states[0].view(KEY)
        for within, answer in (("300d", "yes"), ("400d", "no")):
            reasons = verdict(KEY, view, SHIFTING, Overrides(), within=within).reasons
            assert [one.answer for one in reasons if "called it in the last" in one.text] == [
                answer
            ]
        assert 0 < most_bytes < 64 * 1024
        cluster.execute("VACUUM FULL", name)
        size = cluster.execute("SELECT pg_database_size(current_database())", name)[0]
        assert int(size) < 32 * 2**20
