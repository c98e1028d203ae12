"""A process that is suspended amid a statement holds nobody up, whichever lock it has."""

import asyncio
from pathlib import Path

import asyncpg
import pytest

from gateway.state.fleet.postgres import LOCK_CHANGE, LOCK_JUDGE
from gateway.state.state_changes import StateError
from tests.fleet.prove_state import ANN, KEY, delta, judged, opened

# What a process had done.
HELD = {
    "judging": f"SELECT pg_advisory_xact_lock({LOCK_JUDGE})",
    "changing": f"SELECT pg_advisory_xact_lock({LOCK_CHANGE})",
    "reporting": "UPDATE gateway.replicas SET merged = merged",
}


@pytest.mark.parametrize("amid", ["a statement", "its transaction"])
@pytest.mark.parametrize("held", HELD)
async def test_its_locks_are_free_again(
    database: str, tmp_path: Path, held: str, amid: str
) -> None:
    """The server itself ends those that are silent between two statements, and no others."""
    async with opened(database, tmp_path, "a") as (one,):
        one.absorb(delta())  # which the judge notes in the row of the replica
        await one._beat()
        suspended = await asyncpg.connect(database, statement_cache_size=0)
        honest = await asyncpg.connect(database, statement_cache_size=0)
        try:
            await honest.execute("BEGIN")
            await honest.prepare("SELECT 1", name="")  # of another program, in its own schema
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
