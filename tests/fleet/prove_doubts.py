"""Possible gaps in the counts of a fleet are reported until they are filled or old enough."""

import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import pytest

from gateway.base.overrides import NO_OVERRIDES
from gateway.base.steady_clock import steady_seconds
from gateway.findings.retirement import verdict
from gateway.store import postgres
from gateway.store.fleet import FleetState
from gateway.store.state import StateUnreachableError
from tests.fleet.cluster import Execute
from tests.fleet.prove_state import (
    ANN,
    KEY,
    SHIFTING,
    counted,
    delta,
    judged,
    membership,
    opened,
    unreachable,
)

DAY = 86_400.0
SINCE = "UPDATE gateway.documents SET document = '{}' WHERE name = 'since'"
AGED = "UPDATE gateway.replicas SET heard = heard - {} WHERE replica = '{}'"


async def since(state: FleetState) -> float:
    view = await state.view(KEY)
    return view.now - view.totals.since


async def answers(state: FleetState) -> set[str]:
    found = verdict(KEY, await state.view(KEY), SHIFTING, NO_OVERRIDES, within="1d")
    return {each.answer for each in found.reasons if "since counting began" in each.text}


def count_long(execute: Execute) -> None:
    execute(SINCE.format(time.time() - 3 * DAY))


async def ended(state: FleetState) -> None:
    await state._note()
    await state._release()


async def test_counts_lost_by_a_worker_are_reported_as_a_gap(
    database: str, execute: Execute, tmp_path: Path
) -> None:
    """The worker is lost before or after its batch is added to the sums."""
    async with opened(database, tmp_path, "a") as (state,):
        count_long(execute)
        assert await since(state) > 2 * DAY
        assert await answers(state) == set()
        state.absorb(msgspec.structs.replace(delta(), usages=[], counts=[], samples=[], lost=True))
        await state._send_heartbeat()
        assert await since(state) == 0
        assert await answers(state) == {"unknown"}
        assert await judged(state)
        assert 0 < await since(state) < 60
        assert await answers(state) == {"unknown"}
        settled = (await state.view(KEY)).totals.since
        state.absorb(delta())
        await state._send_heartbeat()
        assert await judged(state)
        assert (await state.view(KEY)).totals.since == settled


async def test_a_namesake_does_not_fill_the_gap_of_a_cut_off_replica(
    database: str, execute: Execute, tmp_path: Path
) -> None:
    """A namesake on the same disk fills it only if it starts after the first replica has ended."""
    not_here = tmp_path / "elsewhere"
    not_here.mkdir()
    async with opened(database, tmp_path, "a") as (first,), opened(database, tmp_path, "b") as (b,):
        execute(AGED.format(60, "a"))
        for folder in (not_here, tmp_path):
            async with opened(database, folder, "a"):
                await b._send_heartbeat()
                assert [gap.replica for gap in (await b.view(KEY)).gaps] == ["a"]
        # The replica comes back and is killed.
        await first._send_heartbeat()
        assert (await b.view(KEY)).gaps == ()
        execute(AGED.format(60, "a"))
        await first._note()
        first._last_start.close()
        async with opened(database, tmp_path, "a"):
            await b._send_heartbeat()
            assert (await b.view(KEY)).gaps == ()
            assert [each.replica for each in (await b.fleet()).replicas] == ["a", "b"]


async def test_counts_lost_by_a_cut_off_replica_are_reported_as_a_gap(
    database: str, execute: Execute, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its next start reports the gap, even after another start without the database."""
    async with opened(database, tmp_path, "b") as (b,):
        for starts in (1, 2):
            first = await FleetState.open(*membership(database, "a", tmp_path))
            count_long(execute)
            with monkeypatch.context() as patch:
                patch.setattr(postgres.PostgresDatabase, "transaction", unreachable)
                with pytest.raises(StateUnreachableError):
                    await first._send_heartbeat()
                first._health.missed(StateUnreachableError("gone"))
                first.absorb(delta())
                await ended(first)
                for _ in range(1, starts):
                    await ended(await FleetState.open(*membership(database, "a", tmp_path)))
            execute(AGED.format(60, "a"))
            await b._send_heartbeat()
            assert [gap.replica for gap in (await b.view(KEY)).gaps] == ["a"]
            assert await since(b) > 2 * DAY
            async with opened(database, tmp_path, "a"):
                assert (await b.view(KEY)).gaps == ()
                assert await since(b) < 60
                assert await answers(b) == {"unknown"}


async def test_counts_that_arrive_late_close_the_gap(
    database: str, execute: Execute, tmp_path: Path
) -> None:
    """The first heartbeat has the unconfirmed counts, the second one the later counts."""
    state = await FleetState.open(*membership(database, "a", tmp_path))
    count_long(execute)
    state._health.missed(StateUnreachableError("gone"))
    noted = []
    for _ in range(2):
        await state._note()
        noted.append(b'"cut_off":true' in (tmp_path / "a.json.a").read_bytes())
        await state._send_heartbeat()
    await state._send_heartbeat()
    await ended(state)
    assert noted == [True, True]
    async with opened(database, tmp_path, "a") as (again,):
        assert await since(again) > 2 * DAY


@pytest.mark.parametrize("lost", ["row", "beats"])
async def test_a_backup_restored_without_running_replicas_is_detected(
    database: str, execute: Execute, tmp_path: Path, lost: str
) -> None:
    """Only the next start of a replica whose counts the database had confirmed detects it."""
    async with opened(database, tmp_path, "a"):
        pass
    count_long(execute)
    async with opened(database, tmp_path, "a") as (state,):
        assert await since(state) > 2 * DAY
    execute("DELETE FROM gateway.replicas" if lost == "row" else AGED.format(5, "a"))
    async with opened(database, tmp_path, "new") as (new,):
        assert await since(new) > 2 * DAY
        async with opened(database, tmp_path, "a") as (state,):
            assert await since(state) < 60
    count_long(execute)
    async with opened(database, tmp_path, "a") as (state,):
        assert await since(state) > 2 * DAY


@pytest.mark.parametrize("by", [3600.0, -3600.0])
async def test_setting_the_database_clock_is_detected(
    database: str, execute: Execute, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: float
) -> None:
    async with opened(database, tmp_path, "a") as (state,):
        count_long(execute)
        await state._send_heartbeat()
        assert await since(state) > 2 * DAY
        # For this replica, a database clock set forward equals its own clock set back.
        monkeypatch.setattr("gateway.store.fleet.steady_seconds", lambda: steady_seconds() - by)
        monkeypatch.setattr("gateway.store.replicas.steady_seconds", lambda: steady_seconds() - by)
        execute("ALTER TABLE gateway.replicas RENAME TO hidden")
        with pytest.raises(Exception, match="relation"):
            await state._send_heartbeat()
        execute("ALTER TABLE gateway.hidden RENAME TO replicas")
        await state._send_heartbeat()
        assert await since(state) < 60
        count_long(execute)
        await state._send_heartbeat()
        assert await since(state) > 2 * DAY


async def test_setting_the_database_clock_forgets_no_replica(
    database: str, execute: Execute, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its clock, a cut-off replica has been lost for a week, but it may still serve."""
    async with opened(database, tmp_path, "a", "b") as (state, _):
        count_long(execute)
        assert await judged(state)
        execute(AGED.format(8 * DAY, "b"))
        monkeypatch.setattr(
            "gateway.store.fleet.steady_seconds", lambda: steady_seconds() - 8 * DAY
        )
        monkeypatch.setattr(
            "gateway.store.replicas.steady_seconds", lambda: steady_seconds() - 8 * DAY
        )
        for _ in range(3):  # before and after the replica detects it
            assert await judged(state)
            assert [each.presence for each in (await state.fleet()).replicas] == ["heard", "lost"]
            await state._send_heartbeat()


FULL = """
    CREATE FUNCTION gateway.full() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100';
    END $$;
    CREATE TRIGGER full_disk BEFORE INSERT OR UPDATE ON gateway.{} EXECUTE FUNCTION gateway.full()
"""
FREED = "DROP FUNCTION gateway.full CASCADE"


async def test_a_full_database_disk_loses_no_count(
    database: str, execute: Execute, tmp_path: Path
) -> None:
    async def refused(act: Callable[[], Awaitable[object]]) -> None:
        with pytest.raises(StateUnreachableError, match="is not available now: could not extend"):
            await act()

    async with opened(database, tmp_path, "a", "b") as (one, other):
        await one.set_percent(KEY, 25.0, ANN)
        await other._send_heartbeat()
        for table in ("replicas", "usage"):
            execute(FULL.format(table))
            one.absorb(delta(count=2))
            if table == "replicas":
                await refused(one._send_heartbeat)
                # A replica that starts now uses the last known heartbeats.
                await ended(other)
                again = await FleetState.open(*membership(database, "b", tmp_path))
                assert again.stale_since is not None
                assert again.in_force.percents == {KEY: 25.0}
                again.absorb(delta(count=3))
            else:
                await one._send_heartbeat()
                await refused(lambda: judged(one))
            execute(FREED)
            await one._send_heartbeat()
            await one._send_heartbeat()
            if table == "replicas":
                await again._join()
                await again._send_heartbeat()
            assert await judged(one)
        assert await counted(one) == {"acme": 7}
        await again.close()
