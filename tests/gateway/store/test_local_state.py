"""The state of one gateway: an operator's act is stored and in force, or refused and neither."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from gateway.base.overrides import NO_OVERRIDES, Overrides
from gateway.rollout.route_outcomes import OUTCOMES
from gateway.store.ledger import ChangedMeanwhileError, Order
from gateway.store.local_state import LocalState
from gateway.store.state_store import open_store
from gateway.store.state_writer import StateWriter
from gateway.usage.delta import CounterDelta, CutoverDelta, Delta
from gateway.usage.state_changes import StateError
from tests.gateway.rules.rules import edited, loaded

KEY = ("person", "1")
ANN = Order("ann", "192.0.2.7", "a test")
RULES = loaded(
    edited(
        "{ service: old }",
        '{ service: old, cutover: { via: "2", percent: 5,'
        " gates: { errors: 10%, window: 30s, minimum: 10, then: roll_back } } }",
    )
)
ACTS: dict[str, Callable[[LocalState], Awaitable[None]]] = {
    "set": lambda state: state.set_percent(KEY, 50, ANN),
    "hold": lambda state: state.set_percent(KEY, None, ANN),
    "clear": lambda state: state.clear_percent(KEY, ANN),
    "pause": lambda state: state.pause(KEY, ANN),
    "resume": lambda state: state.resume(KEY, ANN),
    "reset": lambda state: state.reset_shadow(KEY, ANN),
    "record": lambda state: state.record(ANN, "notification test", "ops"),
}


@asynccontextmanager
async def opened(path: Path | None = None) -> AsyncIterator[tuple[LocalState, list[Overrides]]]:
    """Yield a state, and the overrides that were applied, one after the other."""
    if path is None:
        writer = StateWriter(None)
    else:
        store = open_store(path)
        writer = StateWriter(store, await store.read())
    state, applied = LocalState(writer, "a", lambda: RULES, lambda: "hash"), list[Overrides]()

    async def apply(now: Overrides) -> None:
        applied.append(now)

    state.follow(apply, lambda _: None)
    try:
        yield state, applied
    finally:
        await state.close()


def failed(requests: int) -> Delta:
    ends = [requests if name == "5xx" else 0 for name in OUTCOMES]
    new = CutoverDelta(*KEY, "new", -1, requests, 0, ends, 0.1, 0.01, [requests], 0.1)
    return Delta(1.0, [], [], [], [new], [])


@pytest.mark.parametrize("name", ACTS)
async def test_what_cannot_be_stored_is_refused_as_a_whole(
    name: str, tmp_path: Path, events: list[str]
) -> None:
    path, former = tmp_path / "state.db", tmp_path / "former.db"
    async with opened(path) as (state, applied):
        state.absorb(Delta(1.0, [], [], [CounterDelta("compared", KEY, 7)], [], []))
        await state.cutovers.decide(1.0)
        await state.set_percent(KEY, 25, ANN)
        await state.pause(KEY, ANN)
        now, before = state.in_force, await state.cutover(KEY)
        path.rename(former)
        path.write_bytes(b"")  # another file: nothing is written to it
        applied.clear()
        events.clear()
        with pytest.raises(StateError, match="was replaced"):
            await ACTS[name](state)
        assert (state.in_force, applied, events) == (now, [], ["state_unwritten"])
        after = await state.cutover(KEY)
        assert after.state._replace(since=0) == before.state._replace(since=0)
        assert [entry.what for entry in await state.audit()] == ["cutover", "brownout pause"]
        assert state.totals.counts[("compared", KEY)].count == 7
        path.unlink()
        former.rename(path)
    async with opened(path) as (state, _):
        assert state.in_force == now
        assert (await state.cutover(KEY)).state.percent == 25
        assert len(await state.audit()) == 2
        await ACTS[name](state)  # nothing of the refused one is in its way
        assert len(await state.audit()) == (2 if name == "hold" else 3)  # it changes no percentage


async def test_a_rollback_waits_for_no_disk(tmp_path: Path, events: list[str]) -> None:
    path = tmp_path / "state.db"
    async with opened(path) as (state, applied):
        await state.cutovers.decide(1.0)
        path.rename(tmp_path / "former.db")
        path.write_bytes(b"")
        state.absorb(failed(100))
        await state.cutovers.decide(10.0)
        assert applied[-1].percents == {KEY: 0.0}
        assert events == ["gate_exceeded", "state_unwritten", "cutover_set"]


async def test_what_was_set_outlives_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    async with opened(path) as (state, applied):
        await state.set_percent(KEY, 25, ANN)
        assert applied[-1].percents == {KEY: 25.0}
        assert (await state.cutover(KEY)).state.percent == 25
    async with opened(path) as (state, applied):
        assert state.in_force.percents == {KEY: 25.0}
        await state.clear_percent(KEY, ANN)
        assert applied == [NO_OVERRIDES]
    async with opened(path) as (state, _):
        assert state.in_force == NO_OVERRIDES
        assert [(entry.before, entry.after) for entry in await state.audit()] == [
            ("5% by the rules", "25%"),
            ("25%", "5% by the rules"),
        ]


async def test_of_two_who_saw_the_same_one_acts() -> None:
    applying = asyncio.Event()
    async with opened() as (state, _):

        async def apply(_: Overrides) -> None:
            await applying.wait()

        state.follow(apply, lambda _: None)
        first = asyncio.create_task(state.set_percent(KEY, 25.0, ANN))
        await asyncio.sleep(0)  # it has the lock
        seen = ANN._replace(seen="running")
        acts = [state.pause(KEY, seen), state.pause(KEY, seen._replace(who="bob"))]
        both = asyncio.gather(*acts, return_exceptions=True)
        second = asyncio.create_task(state.set_percent(KEY, 50.0, ANN))
        await asyncio.sleep(0)
        applying.set()
        found = await both
        await asyncio.gather(first, second)
        assert [type(each) for each in found] == [type(None), ChangedMeanwhileError]
        assert str(found[1]) == "The brownouts are paused now."
        assert [(entry.what, entry.before, entry.after) for entry in await state.audit()] == [
            ("cutover", "5% by the rules", "25%"),
            ("brownout pause", "by the rules", "paused"),
            ("cutover", "25%", "50%"),
        ]


@pytest.mark.parametrize("jump", [86400.0, -86400.0])
async def test_a_clock_that_was_set_has_counting_begin_anew(
    jump: float, events: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was counted has times of the former one, so that a version in use would look unused."""
    before = time.time()
    now = [before]
    monkeypatch.setattr("time.time", lambda: now[0])
    monkeypatch.setattr("gateway.store.local_state.passed", lambda: 7.0)
    async with opened() as (state, _):
        for _ in range(3):  # a machine that was busy, not a clock that was set
            now[0] += 50
            assert (await state.view()).totals.since == before
        assert events == []
        now[0] += jump
        for _ in range(2):
            assert (await state.view()).totals.since == now[0]
        assert events == ["state_went_back"]
