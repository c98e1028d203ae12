"""A replica that starts while the database cannot be reached."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.store.fleet import FleetState
from gateway.store.local_cache import LastOverrides
from gateway.store.state import Membership, StateUnreachableError
from tests.gateway.rules.rules import RULES, loaded


@pytest.fixture
async def stale(tmp_path: Path) -> AsyncIterator[FleetState]:
    name = "postgresql://127.0.0.1:1/vgw"
    LastOverrides(tmp_path / "last", name).write({"revision": 4})
    rules = loaded(RULES)
    membership = Membership("a", lambda: rules, str, overrides_file=tmp_path / "last")
    state = await FleetState.open(name, membership)
    yield state
    await state.close()


async def test_each_reader_of_an_unreachable_database_gets_a_separate_error(
    stale: FleetState,
) -> None:
    looks = (stale.fleet(), stale.audit(), stale.fleet())
    found = await asyncio.gather(*looks, return_exceptions=True)
    assert {type(each) for each in found} == {StateUnreachableError}
    assert len({str(each) for each in found}) == 1
    assert len({id(each) for each in found}) == 3


async def test_setting_the_clock_of_the_machine_does_not_change_the_time_of_the_state(
    stale: FleetState, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time comes from the clock of the database.

    The replica continues it with a steady clock.
    """
    before = stale.now
    monkeypatch.setattr("time.time", lambda: 5.0)
    assert 0 <= stale.now - before < 60
    assert "cannot be reached" in stale.stale_reason


async def test_a_replica_that_does_not_know_the_leader_has_failover_rank_zero(
    stale: FleetState,
) -> None:
    assert stale.stale_since is not None
    assert (stale.leads, stale.failover) == (False, (0, 0))
