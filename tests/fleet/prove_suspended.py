"""A process suspended in a statement blocks no other process, whatever locks it holds."""

import asyncio
import time
from pathlib import Path

import asyncpg
import pytest

from gateway.store.leader import read_replicas
from gateway.store.postgres import LOCK_CHANGE, LOCK_LEADER, PostgresConnection, PostgresDatabase
from gateway.store.replicas import ReplicaRow
from gateway.store.state import StateError
from tests.fleet.prove_state import ANN, KEY, counted, delta, judged, opened

# The statement in which the process is suspended.
HELD = {
    "judging": f"SELECT pg_advisory_xact_lock({LOCK_LEADER})",
    "changing": f"SELECT pg_advisory_xact_lock({LOCK_CHANGE})",
    "reporting": "UPDATE gateway.replicas SET merged = merged",
}


@pytest.mark.parametrize("amid", ["a statement", "its transaction"])
@pytest.mark.parametrize("held", HELD)
async def test_locks_of_a_suspended_process_are_released(
    database: str, tmp_path: Path, held: str, amid: str
) -> None:
    """The server ends only sessions that are silent between two statements."""
    async with opened(database, tmp_path, "a") as (one,):
        one.absorb(delta())  # the leader records it in the row of the replica
        await one._send_heartbeat()
        suspended = await asyncpg.connect(database, statement_cache_size=0)
        honest = await asyncpg.connect(database, statement_cache_size=0)
        try:
            await honest.execute("BEGIN")
            await honest.prepare("SELECT 1", name="")  # another program, in its own schema
            idle = "SET LOCAL idle_in_transaction_session_timeout = '2s'"
            await suspended.execute(f"BEGIN; {idle}; {HELD[held]}")
            if amid == "a statement":
                await suspended.prepare("SELECT 1", name="")
            async with asyncio.timeout(30):
                while True:
                    try:
                        if await judged(one):
                            break
                    except StateError:
                        assert held != "judging"
                    await asyncio.sleep(0.2)
            await one.set_percent(KEY, 50.0, ANN)
            assert await honest.fetchval("SELECT 1") == 1
        finally:
            for connection in (suspended, honest):
                connection.terminate()


async def test_a_suspended_reader_continues_after_it_resumes(database: str, tmp_path: Path) -> None:
    async with opened(database, tmp_path, "a") as (one,):
        one.absorb(delta())
        await one._send_heartbeat()
        reader = await asyncpg.connect(database, statement_cache_size=0)
        shared = PostgresDatabase(database)
        try:
            await reader.execute("BEGIN; SELECT * FROM gateway.usage")
            await reader.prepare("SELECT 1", name="")
            async with shared.transaction(30.0, snapshot=True) as (connection, _):
                first = await read_replicas(connection)
                time.sleep(2.5)  # noqa: ASYNC251  # all of this process stands still
                assert await read_replicas(connection) == first
            assert await judged(one)
            assert await reader.fetchval("SELECT 1") == 1
        finally:
            reader.terminate()
            await shared.close()


async def test_many_readers_do_not_delay_heartbeats(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(database, tmp_path, "a") as (one,):
        one.absorb(delta(count=3))
        await one._send_heartbeat()
        go_on, reading = asyncio.Event(), asyncio.Semaphore(0)

        async def slow(connection: PostgresConnection) -> list[ReplicaRow]:
            reading.release()
            await go_on.wait()
            return await read_replicas(connection)

        monkeypatch.setattr("gateway.store.reading.read_replicas", slow)
        readers = [asyncio.ensure_future(counted(one)) for _ in range(8)]
        await reading.acquire()
        await reading.acquire()
        await one._send_heartbeat()
        assert await judged(one)
        await one.set_percent(KEY, 50.0, ANN)
        go_on.set()
        assert await asyncio.gather(*readers) == [{"acme": 3}] * 8
        assert one.stale_since is None
