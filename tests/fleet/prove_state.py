"""The state in PostgreSQL: each batch is counted once, and unusable databases are refused."""

import asyncio
import re
import struct
import subprocess
import sys
import sysconfig
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import FrameType

import asyncpg
import msgspec
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, text

from gateway.base.overrides import Overrides, SetAside
from gateway.observe.failing_targets import FailingService, TargetError
from gateway.rollout.decisions import ChangedMeanwhileError, ChangeRequest
from gateway.routing.snapshot import Snapshot
from gateway.store import leader, postgres
from gateway.store.fleet import FleetState
from gateway.store.postgres import PostgresDatabase
from gateway.store.reading import read_stored_fleet
from gateway.store.state import Membership, StateError, StateUnreachableError
from gateway.store.tables import REVISION, metadata, upgrade_tables
from gateway.usage import totals
from gateway.usage.delta import Admitted, CounterDelta, Delta, SampleDelta, UsageDelta
from gateway.usage.history import HistoryQuery, Resolution
from tests.fleet.cluster import Cluster, Execute
from tests.gateway.kit import DEADLINE, ROOT
from tests.gateway.rules.rules import RULES, edited, loaded

KEY = ("person", "1")
STANDARD_LIBRARY = f"{sysconfig.get_path('stdlib')}/"
ANN = ChangeRequest("ann", "192.0.2.7", "a test")
SHIFTING = loaded(edited("{ service: old }", '{ service: old, cutover: { via: "2", percent: 5 } }'))


def delta(client: str = "acme", count: int = 1, *, label: str = "/name") -> Delta:
    usage = UsageDelta(*KEY, "/p", client, count, 0, 0, count)
    counts = [CounterDelta("differences", (*KEY, label), count)]
    samples = [SampleDelta("differences", *KEY, {"n": count}, {})]
    return Delta(1.0, [usage], [], counts, [], samples)


def membership(
    url: str, replica: str, folder: Path, rules: Snapshot = SHIFTING
) -> tuple[str, Membership]:
    file = folder / f"{replica}.json"
    return url, Membership(replica, lambda: rules, lambda: "hash", overrides_file=file)


@asynccontextmanager
async def opened(url: str, folder: Path, *names: str) -> AsyncIterator[list[FleetState]]:
    """Open replicas without tasks, so that a test triggers heartbeats and the leader's work."""
    states = [await FleetState.open(*membership(url, name, folder)) for name in names]
    try:
        yield states
    finally:
        for state in states:
            await state.close()


def unreachable(self: PostgresDatabase, *_: object, **__: object) -> None:
    raise StateUnreachableError("gone")


def followed(state: FleetState) -> list[Overrides]:
    applied: list[Overrides] = []

    async def apply(overrides: Overrides) -> None:
        applied.append(overrides)

    state.follow(apply, lambda _: None)
    return applied


async def forget_statements(database: PostgresDatabase) -> None:
    """Simulate a connection pooler that uses another connection for each transaction."""
    async with database.transaction() as (connection, _):
        await connection.run("DEALLOCATE ALL")


def is_stale(state: FleetState) -> bool:
    return state.stale_since is not None


async def judged(state: FleetState) -> bool:
    return await state._leader.lead(state._database)


async def counted(state: FleetState) -> dict[str | None, int]:
    view = await state.view(KEY)
    return {client: row.count for (_, client), row in view.totals.clients[KEY]}


async def test_each_batch_is_counted_once(database: str, tmp_path: Path) -> None:
    async with opened(database, tmp_path, "a", "b") as (one, other):
        one.absorb(delta("acme", 3))
        other.absorb(delta("acme", 4))
        other.absorb(delta("zed", 1))
        batch = one._outbox.batch()
        assert batch is not None
        await one._send_heartbeat()
        # The commit succeeded but its response was lost. The same batch is sent again, before and
        # after it is added to the sums.
        for _ in range(2):
            one._outbox._sent = batch
            await one._send_heartbeat()
            assert await counted(one) == {"acme": 3}
            assert await judged(one)
        await other._send_heartbeat()
        for state in (one, other):
            assert await counted(state) == {"acme": 7, "zed": 1}
        assert await judged(one)
        for state in (one, other):
            assert await counted(state) == {"acme": 7, "zed": 1}
            found = (await state.view(KEY)).totals
            assert found.counts["differences", (*KEY, "/name")].count == 8
            assert len(found.samples["differences", *KEY]) == 3
            brief = (await state.view(clients=False)).totals.clients[KEY]
            assert not brief.rows
            whole = found.clients[KEY]
            assert brief.last == whole.last > 0
            assert brief.served == whole.served > 0
        own = (await other.view(KEY, "b")).totals
        assert sum(row.count for _, row in own.clients[KEY]) == 5


async def test_rows_and_names_in_the_database_are_bounded(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(totals, "ROWS_AFTER_CUT", 4)
    monkeypatch.setattr("gateway.store.leader.ROWS_AFTER_CUT", 4)
    monkeypatch.setattr("gateway.store.leader.MAX_NAMES", 4)
    async with opened(database, tmp_path, "a", "b") as states:
        for number in range(60):
            state = states[number % 2]
            state.absorb(delta(f"client{number}", label=f"/field{number}"))
            state.absorb(delta("acme", 5))
            await state._send_heartbeat()
            assert await judged(states[0])
        for state in states:
            found = (await state.view(KEY)).totals
            rows = found.clients[KEY].rows
            assert sum(row.count for row in rows.values()) == 360
            assert rows["/p", "acme"].count == 300
            assert len(rows) <= 3 * 4 + 4
            labels = [labels[-1] for labels, _ in found.counted("differences", *KEY)]
            assert len(labels) == 5
            assert "(others)" in labels
            assert sum(times.count for _, times in found.counted("differences", *KEY)) == 360


async def test_another_replica_becomes_leader_after_the_leader_has_gone(
    database: str, execute: Execute, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(database, tmp_path, "a", "b") as (one, other):
        assert await judged(one)
        assert not await judged(other)
        await one._send_heartbeat()
        await other._send_heartbeat()
        assert (one.leads, other.leads) == (True, False)
        with monkeypatch.context() as patch:
            patch.setattr(one._health, "stale_since", 5.0)
            assert not one.leads
            assert (one.failover, other.failover) == ((0, 1), (1, 1))
        # The leader is suspended until its lease expires and another replica leads. Then it
        # resumes.
        execute("UPDATE gateway.leases SET renewed = renewed - 60")
        assert await judged(other)
        assert not await judged(one)
        assert one._leader._memory is None
        assert execute("SELECT token FROM gateway.leases") == ["2"]
        # A replica that stops cleanly is replaced as leader at once.
        await other.close()
        assert await judged(one)
        assert [each.replica for each in (await one.fleet()).replicas] == ["a"]


async def test_a_leader_suspended_in_a_transaction_blocks_no_replica(
    database: str, tmp_path: Path
) -> None:
    async with opened(database, tmp_path, "a", "b") as (one, other):

        async def sleep_while_judging() -> None:
            async with one._database.transaction() as transaction:
                assert await transaction.connection.fetch(leader._TRY_LOCK) == [(True,)]
                assert not await judged(other)
                async with asyncio.timeout(DEADLINE):
                    while not await judged(other):  # noqa: ASYNC110  (the database is asked)
                        await asyncio.sleep(0.1)
                await transaction.connection.execute(text("SELECT 1"))

        with pytest.raises(StateUnreachableError):
            await sleep_while_judging()
        assert not await judged(one)


async def test_a_change_applies_on_other_replicas_at_the_next_heartbeat(
    database: str, tmp_path: Path
) -> None:
    async with opened(database, tmp_path, "a", "b") as (one, other):
        applied = followed(other)
        await one.set_percent(KEY, 25.0, ANN)
        await one.pause(KEY, ANN)
        assert one.in_force == Overrides(frozenset({KEY}), {KEY: 25.0})
        await other._send_heartbeat()
        await other._send_heartbeat()
        assert applied == [one.in_force]
        assert other.cutover(KEY).state.percent == 25
        await other.clear_percent(KEY, ANN)
        await one._send_heartbeat()
        assert one.in_force == Overrides(frozenset({KEY}), {})
        changes = [(entry.what, entry.before, entry.after) for entry in await one.audit()]
        assert changes == [
            ("cutover", "5% by the rules", "25%"),
            ("brownout pause", "by the rules", "paused"),
            ("cutover", "25%", "5% by the rules"),
        ]


async def test_a_client_that_is_set_aside_is_known_to_all_replicas(
    database: str, tmp_path: Path
) -> None:
    async with opened(database, tmp_path, "a", "b") as (one, other):
        until = one.now + 3600
        await one.set_aside("acme", until, ANN)
        await other._send_heartbeat()
        assert other.in_force.aside(other.now) == {"acme": SetAside(until, ANN.why)}
        assert other.in_force.aside(until) == {}
        await other.set_aside("acme", None, ANN)
        await one._send_heartbeat()
        assert one.in_force == Overrides()
        with pytest.raises(ValueError, match="'until' is in the past"):
            await one.set_aside("acme", one.now - 1, ANN)
        found = [(entry.what, entry.api, entry.why) for entry in await one.audit()]
        assert found == [(f"usage {what}", "acme", ANN.why) for what in ("set-aside", "include")]


async def test_rejected_requests_of_all_replicas_are_added(database: str, tmp_path: Path) -> None:
    async with opened(database, tmp_path, "a", "b") as states:
        for state in states:
            state.absorb(Delta(1.0, [UsageDelta(*KEY, "GET /p", "zed", 3, 0, 0, 1, 2)]))
            await state._send_heartbeat()
        assert await judged(states[0])
        for state in states:
            (row,) = (await state.view(KEY)).totals.clients[KEY].rows.values()
            assert (row.count, row.rejected) == (6, 4)
            assert row.served == row.rejected_at > 0


async def test_a_change_that_just_happened_causes_no_warning(database: str, tmp_path: Path) -> None:
    """Replicas report the changes that they have applied with their next heartbeat."""
    async with opened(database, tmp_path, "a", "b") as (one, other):
        await other._send_heartbeat()
        await one.set_percent(KEY, 25.0, ANN)
        assert (await one.fleet()).warnings == []
        one._changed -= 5
        assert "b has not applied the last change of the overrides" in (await one.fleet()).warnings
        await other._send_heartbeat()
        await other._send_heartbeat()
        assert not any("b has not" in each for each in (await one.fleet()).warnings)


async def test_an_override_stays_while_any_replica_has_the_cutover(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The leader may use rules with or without the cutover, because replicas get rules in turn."""
    without = loaded(RULES)
    async with opened(database, tmp_path, "a") as (one,):
        _, other = membership(database, "b", tmp_path, without)
        judging = await FleetState.open(database, other._replace(rules_hash=lambda: "other"))
        await one._send_heartbeat()
        await one.set_percent(KEY, 0.0, ANN)
        assert await judged(judging)
        monkeypatch.setattr(leader, "_REPORTED", 0.0)
        for _ in range(3):
            assert await judged(judging)
            await one._send_heartbeat()
            assert one.in_force.percents == {KEY: 0.0}
        assert one.cutover(KEY).state.percent == 0
        # No replica has the cutover any more.
        one.membership = one.membership._replace(rules_hash=lambda: "other")
        await one._send_heartbeat()
        assert await judged(judging)
        await one._send_heartbeat()
        assert one.in_force.percents == {}
        await judging.close()


async def test_only_one_of_two_conflicting_changes_succeeds(database: str, tmp_path: Path) -> None:
    """Both replicas send the change before either has received the other's change."""
    ann, bob = (ANN._replace(who=who, seen="5-rules") for who in ("ann", "bob"))
    async with opened(database, tmp_path, "a", "b") as (one, other):
        await one.set_percent(KEY, 25.0, ann)
        with pytest.raises(ChangedMeanwhileError, match="is now at 25%: an operator has set it"):
            await other.set_percent(KEY, 0.0, bob)
        with pytest.raises(ChangedMeanwhileError):
            await other.clear_percent(KEY, bob)
        await other.set_percent(KEY, None, bob._replace(seen="25-operator"))
        await one.pause(KEY, ann._replace(seen="running"))
        with pytest.raises(ChangedMeanwhileError, match="are paused now"):
            await other.pause(KEY, bob._replace(seen="running"))
        await other.resume(KEY, bob._replace(seen="paused"))
        entries = [(entry.who, entry.what, entry.after) for entry in await other.audit()]
        assert entries == [
            ("ann", "cutover", "25%"),
            ("ann", "brownout pause", "paused"),
            ("bob", "brownout resume", "by the rules"),
        ]


async def test_a_command_without_effect_is_in_the_audit_log(database: str, tmp_path: Path) -> None:
    async with opened(database, tmp_path, "a", "b") as (one, other):
        await one.record(ANN, "notification test", "ops")
        (entry,) = await other.audit()
        assert entry[1:] == (*ANN[:2], "notification test", "ops", "", ANN.why, "", "")


async def test_resetting_a_shadow_clears_its_counts(database: str, tmp_path: Path) -> None:
    async with opened(database, tmp_path, "a", "b") as (one, other):
        one.absorb(delta())
        await one._send_heartbeat()
        await judged(one)
        await other.reset_shadow(KEY, ANN)
        found = (await one.view(KEY)).totals
        assert not list(found.counted("differences", *KEY))
        assert not found.samples
        assert await counted(one) == {"acme": 1}
        assert await judged(one)


async def test_a_replica_without_heartbeats_is_lost_until_it_is_forgotten(
    database: str, execute: Execute, tmp_path: Path
) -> None:
    silent = "UPDATE gateway.replicas SET heard = heard - {} WHERE replica = 'b'"
    async with opened(database, tmp_path, "a", "b") as (one, other):
        assert (await one.view(KEY)).gaps == ()
        execute(silent.format(60))
        await one._send_heartbeat()
        assert [gap.replica for gap in (await one.view(KEY)).gaps] == ["b"]
        await one.forget("b", ANN)
        assert (await one.view(KEY)).gaps == ()
        # The replica was cut off and comes back. Its counts are added.
        other.absorb(delta("late"))
        await other._send_heartbeat()
        assert [each.replica for each in (await one.fleet()).replicas] == ["a", "b"]
        assert await counted(one) == {"late": 1}
        execute(silent.format(8 * 86_400))
        began = "UPDATE gateway.documents SET document = '0' WHERE name = 'since'"
        execute(began)
        assert await judged(one)
        assert (await one.view(KEY)).gaps == ()
        assert [entry.who for entry in await one.audit()] == ["ann", "gateway"]


async def test_a_refused_configuration_of_one_replica_is_known_to_all(
    database: str, tmp_path: Path
) -> None:
    async with opened(database, tmp_path, "a") as (here,):
        wrong = ["line 3, apis: a mistake"]
        _, member = membership(database, "b", tmp_path)
        other = await FleetState.open(database, member._replace(refused=lambda: wrong[0]))
        try:
            refused = {each.replica: each.refused for each in (await here.fleet()).replicas}
            assert refused == {"a": "", "b": wrong[0]}
            wrong[0] = ""
            await other._send_heartbeat()
            assert not any(each.refused for each in (await here.fleet()).replicas)
        finally:
            await other.close()


async def test_failures_in_one_replica_are_known_to_all(database: str, tmp_path: Path) -> None:
    async with opened(database, tmp_path, "a", "b") as (here, other):
        service = FailingService("s", 2, 1, 3.5, [TargetError("h:1", 3.5, "a \0 refused")])
        met = [service] * 101
        other.failing = lambda: met
        await other._send_heartbeat()
        failing = {each.replica: each.failing for each in (await here.fleet()).replicas}
        assert failing == {"a": [], "b": [service] * 100}
        met.clear()
        await other._send_heartbeat()
        assert not any(each.failing for each in (await here.fleet()).replicas)


async def test_a_new_database_has_the_described_tables_without_alembic(
    cluster: Cluster, database: str
) -> None:
    found = PostgresDatabase(database)
    await found.prepare()

    def compare(connection: Connection) -> object:
        upgrade_tables(connection)  # there is nothing to upgrade
        return compare_metadata(MigrationContext.configure(connection), metadata)

    async with found.transaction() as (connection, _):
        assert not await connection.run_sync(compare)
    await found.close()
    name = database.rpartition("/")[2]
    program = (
        "import asyncio, sys; from gateway.store.postgres import PostgresDatabase as D;"
        f"d = D('{cluster.create(f'{name}_new')}'); asyncio.run(d.prepare());"
        "sys.exit('alembic' in sys.modules)"
    )
    command = [sys.executable, "-c", program]
    await asyncio.to_thread(subprocess.run, command, check=True, cwd=ROOT)


async def test_one_second_of_a_replica_costs_few_database_calls(
    database: str, tmp_path: Path
) -> None:
    async with opened(database, tmp_path, "a") as (one,):
        costs = []
        for _ in range(5):
            one.absorb(msgspec.structs.replace(delta("acme", 10_000), samples=[]))
            costs.append(await calls(one._send_heartbeat(), judged(one)))
        assert min(costs) < 1600


async def test_a_pooler_that_drops_prepared_statements_costs_one_heartbeat(
    database: str, tmp_path: Path
) -> None:
    async with opened(database, tmp_path, "a") as (one,):
        one.absorb(delta(count=3))
        await one._send_heartbeat()
        await forget_statements(one._database)
        with pytest.raises(StateUnreachableError, match=r"pooler loses prepared statements"):
            await one._send_heartbeat()
        for _ in range(2):
            one.absorb(delta(count=4))
            await one._send_heartbeat()
            assert await judged(one)
            await forget_statements(one._database)
        assert await counted(one) == {"acme": 11}


async def test_a_pooler_that_drops_prepared_statements_blocks_no_start(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(database, tmp_path, "a") as (one,):
        one.absorb(delta())
        await one._send_heartbeat()

    prepare, check = PostgresDatabase.prepare, PostgresDatabase.check

    async def prepared(self: PostgresDatabase) -> None:
        await prepare(self)
        await forget_statements(self)

    async def checked(self: PostgresDatabase) -> None:
        await check(self)
        await forget_statements(self)

    monkeypatch.setattr(PostgresDatabase, "prepare", prepared)
    monkeypatch.setattr(PostgresDatabase, "check", checked)
    async with opened(database, tmp_path, "b") as (state,):
        assert not is_stale(state)
        assert await counted(state) == {"acme": 1}
    view, _, _ = await read_stored_fleet(database, None)
    assert [client for (_, client), _ in view.totals.clients[KEY]] == ["acme"]


async def calls(*works: Awaitable[object]) -> int:
    """Return the number of consecutive calls, without those of the test's event loop."""
    count = 0

    def profile(frame: FrameType, event: str, _: object) -> None:
        nonlocal count
        name = frame.f_code.co_filename
        count += event in ("call", "c_call") and not name.startswith(STANDARD_LIBRARY)

    sys.setprofile(profile)
    try:
        for work in works:
            await work
    finally:
        sys.setprofile(None)
    return count


async def test_the_history_has_the_counts_of_all_replicas(database: str, tmp_path: Path) -> None:
    async with opened(database, tmp_path, "a", "b") as (one, other):
        for state in (one, other):
            state.absorb(delta("acme", 3))
            state.absorb(delta(state.replica, 1))
            await state._send_heartbeat()
        assert await judged(one)
        other.absorb(delta("acme", 2))
        await other._send_heartbeat()
        assert await judged(one)
        for by in Resolution:
            view = await other.history(HistoryQuery(by, KEY[0]))
            intervals = view.series[KEY].values()
            assert sum(each.requests for each in intervals) == 10
            assert {3} >= {each.callers.count for each in intervals} - {1, 2}
            assert all(view.now - start < 86_400 for start in view.series[KEY])
            assert (await one.history(HistoryQuery(by, "users"))).series == {}
            unasked = (await one.history(HistoryQuery(by, callers=-3600.0))).series[KEY].values()
            assert sum(each.requests for each in unasked) == 10
            assert {each.callers.count for each in unasked} == {0}
        assert view.replica is None


async def test_the_report_on_a_version_covers_all_replicas(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(database, tmp_path, "a", "b") as (one, other):
        for state in (one, other):
            state.absorb(msgspec.structs.replace(delta(state.replica), at=time.time()))
            await state._send_heartbeat()
        assert await judged(one)
        other.absorb(delta("waits"))
        await other._send_heartbeat()
        await other.pause(KEY, ANN)
        await other.record(ANN, "something else", "orders")
        found = await one.version(KEY)
        clients = found.view.totals.clients[KEY]
        assert {client for (_, client), _ in clients} == {"a", "b", "waits"}
        assert clients.last == max(row.last for _, row in clients) > 0
        assert clients.served == max(row.served for _, row in clients) > 0
        assert [sum(each.requests for each in by.values()) for by in found[1:3]] == [3, 3]
        assert found.latest is not None
        assert (found.latest.what, found.latest.who) == ("brownout pause", "ann")
        assert (await one.version(("orders", "1"))).latest is None
        with monkeypatch.context() as patch:
            patch.setattr(PostgresDatabase, "transaction", unreachable)
            found = await one.version(KEY)
        assert (found.view.replica, found.latest) == ("a", None)
        assert {client for (_, client), _ in found.view.totals.clients[KEY]} == {"a"}
        assert [sum(each.requests for each in by.values()) for by in found[1:3]] == [1, 1]


async def test_concurrent_document_changes_are_serialized(database: str, tmp_path: Path) -> None:
    async with opened(database, tmp_path, "a", "b") as (one, other):
        assert (one.leads, other.leads) == (False, False)
        assert await judged(one)
        for state in (one, other):
            await state._send_heartbeat()
        assert (one.leads, other.leads) == (True, False)
        await asyncio.gather(
            *(
                state.change_document("notifications", lambda found: [*(found or []), 1])  # type: ignore[misc]  # a list
                for state in (one, other) * 5
            )
        )
        found, now = await other.read_document("notifications")
        assert found == [1] * 10
        assert abs(now - one._clock.now()) < 60
        assert (await one.read_document("none"))[0] is None


async def test_replicas_that_start_together_migrate_once(database: str, tmp_path: Path) -> None:
    names = [f"replica{number}" for number in range(6)]
    states = await asyncio.gather(
        *(FleetState.open(*membership(database, name, tmp_path)) for name in names)
    )
    try:
        view = await states[0].fleet()
        assert [each.replica for each in view.replicas] == names
        assert view.warnings == []
    finally:
        for state in states:
            await state.close()


async def test_a_database_of_the_former_revision_is_upgraded(
    database: str, execute: Execute, tmp_path: Path
) -> None:
    async with opened(database, tmp_path, "a") as (state,):
        state.absorb(delta())
        await state._send_heartbeat()
        await judged(state)
    for name in ("rejected", "rejected_at"):
        execute(f"ALTER TABLE gateway.usage DROP COLUMN {name}")
    execute("UPDATE gateway.alembic_version SET version_num = '0006'")
    async with opened(database, tmp_path, "b") as (state,):
        assert await counted(state) == {"acme": 1}
        (row,) = (await state.view(KEY)).totals.clients[KEY].rows.values()
        assert row.rejected == 0


async def test_releases_one_apart_share_the_database(
    database: str, execute: Execute, tmp_path: Path
) -> None:
    """The next release has added a table and columns, and has recorded this in `serves`."""
    async with opened(database, tmp_path, "a") as (old,):
        for table in metadata.tables:
            execute(f"ALTER TABLE gateway.{table} ADD COLUMN added TEXT")
        execute("CREATE TABLE gateway.added (name TEXT)")
        execute("UPDATE gateway.alembic_version SET version_num = '0999'")
        execute("DELETE FROM gateway.documents WHERE name = 'serves'")
        refused = f"written by a newer gateway \\(schema 0999; this one supports {REVISION}\\)"
        with pytest.raises(StateError, match=refused):
            await FleetState.open(*membership(database, "b", tmp_path))
        serves = """INSERT INTO gateway.documents (name, document) VALUES ('serves', '"0001"')"""
        execute(serves)
        async with opened(database, tmp_path, "b") as (new,):
            for state in (old, new):
                state.absorb(delta())
                await state._send_heartbeat()
                await judged(state)
                await state.pause(KEY, ANN)
            assert await counted(old) == await counted(new) == {"acme": 2}
            assert len(await old.audit()) == 2
            assert old._documents["overrides"] == new._documents["overrides"]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        pytest.param(
            lambda url: url.replace("s3cret", "wrong"),
            "the user or the password is refused; correct them in 'state'",
            id="a wrong password",
        ),
        pytest.param(
            lambda url: f"{url}x",
            "there is no such database; create it, or name another in 'state'",
            id="no such database",
        ),
        pytest.param(
            lambda url: f"{url}?sslmode=require",
            "the server refuses TLS; set it up there, or leave sslmode out of the URL in 'state'",
            id="no TLS",
        ),
        pytest.param(
            lambda url: f"{url}?sslmode=perhaps",
            "no such sslmode; write one of disable, allow, prefer, require, verify-ca, verify-full",
            id="no mode of TLS",
        ),
        pytest.param(
            lambda url: f"{url}?connect_timeout=5",
            'unrecognized configuration parameter "connect_timeout" in the URL;'
            " correct or remove it",
            id="an unknown parameter",
        ),
        pytest.param(
            lambda url: f"{url}?sslmode=verify-full",
            "the authority of the server's certificate is unknown; add sslrootcert=FILE",
            id="no authority",
        ),
        pytest.param(
            lambda url: f"{url}?sslmode=verify-full&sslrootcert=/absent.pem",
            "sslrootcert=/absent.pem is not a file; correct it in 'state'",
            id="an authority that is not there",
        ),
        pytest.param(
            lambda url: re.sub(r":[0-9]+/", ":1/", url),
            "the database cannot be reached: ",
            id="another port",
        ),
    ],
)
async def test_an_unusable_database_is_refused(
    database: str, tmp_path: Path, change: Callable[[str], str], reason: str
) -> None:
    with pytest.raises(StateError) as caught:
        await FleetState.open(*membership(change(database), "a", tmp_path))
    assert "\n" not in str(caught.value)
    assert reason in str(caught.value)
    assert "pass@" not in str(caught.value)
    assert "%2F" not in str(caught.value)
    assert str(caught.value).startswith("postgresql://127.0.0.1:")


async def test_the_error_for_missing_rights_names_the_grants(
    database: str, cluster: Cluster, tmp_path: Path
) -> None:
    name = database.rpartition("/")[2]
    user = f"reader_{name}"
    cluster.execute(f"CREATE USER {user} PASSWORD 'x'")
    url = database.replace("postgres:s3cret%2Fpass", f"{user}:x")
    for _ in range(2):
        with pytest.raises(StateError, match="no right to keep state there; grant it CREATE on"):
            await FleetState.open(*membership(url, "a", tmp_path))
        async with opened(database, tmp_path, "b"):
            pass
    # All rights except the right to record commands and rollbacks.
    rights = "SELECT, INSERT, UPDATE, DELETE ON ALL TABLES"
    cluster.execute(f"GRANT USAGE ON SCHEMA gateway TO {user}", name)
    cluster.execute(f"GRANT {rights} IN SCHEMA gateway TO {user}", name)
    with pytest.raises(StateError, match="USAGE on the schema gateway and its sequences"):
        await FleetState.open(*membership(url, "a", tmp_path))
    cluster.execute(f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA gateway TO {user}", name)
    async with opened(url, tmp_path, "a") as (state,):
        await state.set_percent(KEY, 50.0, ANN)
        assert await judged(state)


async def test_a_start_without_the_database_applies_the_last_overrides(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(database, tmp_path, "a") as (state,):
        await state.set_percent(KEY, 0.0, ANN)
    with monkeypatch.context() as patch:
        patch.setattr(postgres.PostgresDatabase, "transaction", unreachable)
        with pytest.raises(StateError, match="the local cache has no overrides"):
            await FleetState.open(*membership(database, "new", tmp_path))
        state = await FleetState.open(*membership(database, "a", tmp_path))
        assert state.in_force == Overrides(frozenset(), {KEY: 0.0})
        assert is_stale(state)
        state.absorb(delta())
        view = await state.view(KEY)
        assert (view.replica, [gap.replica for gap in view.gaps]) == ("a", [None])
        with pytest.raises(StateUnreachableError):
            await state.pause(KEY, ANN)
    await state._join()
    assert not is_stale(state)
    assert await counted(state) == {"acme": 1}
    await state.close()


async def test_remaining_counts_are_written_at_shutdown(database: str, tmp_path: Path) -> None:
    async with opened(database, tmp_path, "a", "b") as (one, other):
        one.absorb(delta(count=2))
        await one._hand_in()
        one.absorb(delta(count=3))
        await one.close()
        assert await counted(other) == {"acme": 5}
        assert [each.replica for each in (await other.fleet()).replicas] == ["b"]


async def test_counts_under_a_wrong_clock_get_the_database_time(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A replica with a slow clock that starts without the database still counts all callers."""
    async with opened(database, tmp_path, "a"):
        pass
    right = time.time
    with monkeypatch.context() as patch:
        patch.setattr("time.time", lambda: right() - 3600)
        patch.setattr(postgres.PostgresDatabase, "transaction", unreachable)
        state = await FleetState.open(*membership(database, "a", tmp_path))
        state.absorb(delta())
    await state._join()
    view = await state.view(KEY)
    (row,) = view.totals.clients[KEY].rows.values()
    assert abs(row.served - view.now) < 60
    await state.close()


async def test_a_restored_backup_reports_its_missing_counts(
    database: str, execute: Execute, tmp_path: Path
) -> None:
    """This holds even if a replica has counted nothing since or was not in the backup."""
    since = "SELECT document FROM gateway.documents WHERE name = 'since'"
    async with opened(database, tmp_path, "a") as (one,):
        rows = "CREATE TABLE gateway.kept AS SELECT * FROM gateway.replicas"
        execute(rows)
        for late in (False, True):
            async with opened(database, tmp_path, "b") as (other,):
                other.absorb(delta())
                await other._send_heartbeat()
                for state in (one, other):
                    await state._send_heartbeat()
                before = execute(since)
                execute("DELETE FROM gateway.replicas")
                execute("DELETE FROM gateway.batches")
                if not late:
                    execute("INSERT INTO gateway.replicas SELECT * FROM gateway.kept")
                await (other if late else one)._send_heartbeat()
                (after,) = execute(since)
                assert float(after) > float(before[0])
                await one._send_heartbeat()
                await other._send_heartbeat()
                (settled,) = execute(since)
            await one._send_heartbeat()
            assert execute(since) == [settled]
        assert abs((await one.view(KEY)).totals.since - float(settled)) < 1e-3


async def test_unreadable_counts_are_reported_as_a_gap(
    database: str, execute: Execute, tmp_path: Path
) -> None:
    """Counts are unreadable before or after they are added to the sums."""
    async with opened(database, tmp_path, "a") as (state,):
        began = (await state.view(KEY)).totals.since
        state.absorb(delta())
        await state._send_heartbeat()
        execute("UPDATE gateway.batches SET content = 'from another release'")
        found = await state.view(KEY)
        assert found.totals.since == found.now
        assert await judged(state)
        assert began < (await state.view(KEY)).totals.since < (await state.view(KEY)).now


async def test_replicas_wait_for_a_read_only_database(
    database: str, cluster: Cluster, tmp_path: Path
) -> None:
    """A standby is read-only too. A replica that starts now uses the last known heartbeats."""
    name = database.rpartition("/")[2]
    async with opened(database, tmp_path, "a") as (state,):
        state.absorb(delta())
        for value in ("on", "off"):
            cluster.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = {value}")
            await state._database.close()  # connections have the setting from their start
            if value == "on":
                with pytest.raises(StateUnreachableError, match="is not available now"):
                    await state._send_heartbeat()
                with pytest.raises(StateUnreachableError):
                    await state.pause(KEY, ANN)
                second = await FleetState.open(*membership(database, "a", tmp_path))
                assert is_stale(second)
                await second._database.close()
        await state._send_heartbeat()
        assert await counted(state) == {"acme": 1}


async def test_replicas_wait_for_a_server_that_is_shutting_down(
    database: str, tmp_path: Path
) -> None:
    """The server has announced the shutdown but has not closed the connection yet."""
    fields = b"SFATAL\0C57P01\0Mterminating connection due to administrator command\0\0"
    ending = b"E" + struct.pack("!i", len(fields) + 4) + fields
    async with opened(database, tmp_path, "a") as (state,):
        state.absorb(delta())
        async with state._database.transaction() as (connection, _):
            driver = connection._driver
        driver._protocol.data_received(ending)
        with pytest.raises(StateUnreachableError, match="the connection broke off"):
            await state._send_heartbeat()
        await state._send_heartbeat()
        assert await counted(state) == {"acme": 1}

        ended: list[str] = []
        connecting = asyncpg.connect

        async def connect(*words: object, **named: object) -> asyncpg.Connection:
            connection = await connecting(*words, **named)
            connection._protocol.data_received(ending)
            return connection

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(asyncpg, "connect", connect)
            with pytest.raises(StateUnreachableError):
                await state._database.listen(lambda: ended.append("heard"), ended.append)
        assert ended == []


async def test_replicas_wait_for_a_server_that_does_not_match_the_url(
    database: str, cluster: Cluster, tmp_path: Path
) -> None:
    name = database.rpartition("/")[2]
    async with opened(database, tmp_path, "a"):
        pass
    asked = f"{database}?target_session_attrs=read-write"
    for value, stale in (("on", True), ("off", False)):
        cluster.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = {value}")
        async with opened(asked, tmp_path, "a") as (state,):
            assert is_stale(state) is stale
            if stale:
                with pytest.raises(
                    StateUnreachableError, match="is not available now: None of the"
                ):
                    await state._database.listen(lambda: None, lambda _: None)


async def test_a_change_after_a_restored_backup_applies(
    database: str, execute: Execute, tmp_path: Path
) -> None:
    """Its number equals that of another change that this replica applied before the restore."""
    async with opened(database, tmp_path, "a", "b") as (one, other):
        applied = followed(other)
        await one.set_percent(KEY, 25.0, ANN)
        await other._send_heartbeat()
        back = "UPDATE gateway.documents SET document = {} WHERE name = '{}'"
        execute(back.format("'0'", "revision"))
        await one.set_percent(KEY, 0.0, ANN)
        await other._send_heartbeat()
        assert [each.percents for each in applied] == [{KEY: 25.0}, {KEY: 0.0}]


async def test_requests_within_a_shared_limit_are_known_to_all_other_replicas(
    database: str, tmp_path: Path
) -> None:
    """A heartbeat may have more of them than one notification can carry."""
    admitted = [("default", 2**64 - number, 3) for number in range(1, 201)]
    received: dict[str, list[Admitted]] = {"a": [], "b": []}
    async with opened(database, tmp_path, "a", "b") as (a, b):
        a.add_debt, b.add_debt = received["a"].extend, received["b"].extend
        listening = [asyncio.create_task(each.tasks["overrides"]()) for each in (a, b)]
        while len(received["b"]) < len(admitted):  # b listens after a moment
            a.absorb(Delta(0.0, admitted=admitted))
            await a._send_heartbeat()
            await asyncio.sleep(0.1)
        for task in listening:
            task.cancel()
    assert {*received["b"]} == {*admitted}
    assert received["a"] == []
