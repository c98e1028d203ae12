"""The state of a single gateway: a change is stored and takes effect, or is refused."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from gateway.base.overrides import NO_OVERRIDES, Overrides
from gateway.rollout.decisions import ChangedMeanwhileError, ChangeRequest, Draft
from gateway.rollout.evidence import EvidenceRow
from gateway.rollout.route_outcomes import OUTCOMES
from gateway.store import local
from gateway.store.local import LocalState
from gateway.store.sqlite import SqliteFile
from gateway.store.state import Membership, StateError, StateUnsureError
from gateway.usage.delta import CounterDelta, CutoverDelta, Delta, UsageDelta
from gateway.usage.history import HistoryQuery, HistoryView, Resolution
from gateway.usage.totals import StateRows
from tests.gateway.kit import DEADLINE
from tests.gateway.rules.rules import edited, loaded

KEY = ("person", "1")
ANN = ChangeRequest("ann", "192.0.2.7", "a test")
CONFIGURED = loaded(
    edited(
        "{ service: old }",
        '{ service: old, cutover: { via: "2", percent: 5,'
        " gates: { errors: 10%, window: 30s, minimum: 10, then: roll_back } } }",
    )
)
MEMBER = Membership("a", lambda: CONFIGURED, lambda: "hash")
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
    file = None if path is None else SqliteFile(path)
    state = LocalState(MEMBER, file, None if file is None else await file.read())
    applied = list[Overrides]()

    async def apply(now: Overrides) -> None:
        applied.append(now)

    state.follow(apply, lambda _: None)
    try:
        yield state, applied
    finally:
        await state.close()


def failing(clients: int) -> Delta:
    """Return counts in which each client has a request on each route; the new route fails."""
    outcomes = []
    for route, outcome, counts in (("old", "2xx", {}), ("new", "5xx", {"5xx": 1})):
        ends = [clients if name == outcome else 0 for name in OUTCOMES]
        rows = [EvidenceRow(f"{number}", "GET /p", 1, {**counts}) for number in range(clients)]
        outcomes.append(CutoverDelta(*KEY, route, clients, 0, ends, 0.1, [clients], 0.1, rows=rows))
    return Delta(1.0, [], [], [], outcomes, [])


@pytest.mark.parametrize("name", ACTS)
async def test_a_change_that_cannot_be_stored_is_refused_as_a_whole(
    name: str, tmp_path: Path, events: list[str]
) -> None:
    path, former = tmp_path / "state.db", tmp_path / "former.db"
    async with opened(path) as (state, applied):
        state.absorb(Delta(1.0, [], [], [CounterDelta("compared", KEY, 7)], [], []))
        await state._decide()
        await state.set_percent(KEY, 25, ANN)
        await state.pause(KEY, ANN)
        now, before = state.in_force, state.cutover(KEY)
        path.rename(former)
        path.write_bytes(b"")  # a different file, to which the gateway must not write
        applied.clear()
        events.clear()
        with pytest.raises(StateError, match="was replaced"):
            await ACTS[name](state)
        assert (state.in_force, applied, events) == (now, [], ["state_unwritten"])
        after = state.cutover(KEY)
        assert after.state._replace(since=0) == before.state._replace(since=0)
        assert [entry.what for entry in await state.audit()] == ["cutover", "brownout pause"]
        assert state.totals.counts[("compared", KEY)].count == 7
        path.unlink()
        former.rename(path)
    async with opened(path) as (state, _):
        assert state.in_force == now
        assert state.cutover(KEY).state.percent == 25
        assert len(await state.audit()) == 2
        await ACTS[name](state)  # the refused change had no effect
        assert len(await state.audit()) == (
            2 if name == "hold" else 3
        )  # "hold" changes no percentage


async def test_a_rollback_takes_effect_even_if_it_cannot_be_stored(
    tmp_path: Path, events: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "state.db"
    async with opened(path) as (state, applied):
        await state._decide()
        path.rename(tmp_path / "former.db")
        path.write_bytes(b"")
        state.absorb(failing(100))
        now = time.monotonic() + 9
        monkeypatch.setattr("time.monotonic", lambda: now)
        await state._decide()
        assert applied[-1].percents == {KEY: 0.0}
        assert events == ["gate_exceeded", "cutover_set", "state_unwritten"]


async def test_an_override_outlives_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    async with opened(path) as (state, applied):
        await state.set_percent(KEY, 25, ANN)
        assert applied[-1].percents == {KEY: 25.0}
        assert state.cutover(KEY).state.percent == 25
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


async def test_the_second_of_two_operators_who_saw_the_same_state_is_refused() -> None:
    applying = asyncio.Event()
    async with opened() as (state, _):

        async def apply(_: Overrides) -> None:
            await applying.wait()

        state.follow(apply, lambda _: None)
        first = asyncio.create_task(state.set_percent(KEY, 25.0, ANN))
        await asyncio.sleep(0)  # the first change holds the lock
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
async def test_counting_restarts_after_the_clock_was_set(
    jump: float, events: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise, a used version could seem unused, since the times of earlier counts are wrong."""
    before = time.time()
    now = [before]
    monkeypatch.setattr("time.time", lambda: now[0])
    monkeypatch.setattr("gateway.store.local.steady_seconds", lambda: 7.0)
    async with opened() as (state, _):
        for _ in range(3):  # the machine was busy, but the clock was not set
            now[0] += 50
            assert (await state.view()).totals.since == before
        assert events == []
        now[0] += jump
        for _ in range(2):
            assert (await state.view()).totals.since == now[0]
        assert events == ["state_went_back"]


USAGES = [UsageDelta("a", "1", "/p", client, 2, 1, 0, 1) for client in ("", "acme")]
DELTA = Delta(5.0, USAGES, [], [CounterDelta("differences", ("a", "1", "name"), 3)], [], [])


async def stored(path: Path) -> StateRows:
    store = SqliteFile(path, read_only=True)
    try:
        return await store.read()
    finally:
        await store.close()


async def test_a_removed_file_is_written_again_from_memory_with_all_rows(
    tmp_path: Path, events: list[str]
) -> None:
    path = tmp_path / "state.db"
    state = LocalState(MEMBER, SqliteFile(path))
    state.totals.absorb(DELTA)
    await state.change_document("overrides", lambda _: {"paused": []})
    before = await stored(path)
    path.unlink()
    state.totals.absorb(Delta(6.0, [UsageDelta("a", "2", "/p", "x", 1, 0, 0, 1)], [], [], [], []))
    await state._write()
    assert events == ["state_unwritten"]
    await state.close()
    assert (state.stale_since, state.stale_reason) == (None, "")
    assert events == ["state_unwritten", "state_written"]
    after = await stored(path)
    assert sorted(after.usage)[:2] == sorted(before.usage)
    assert len(after.usage) == 3
    assert (after.counts, after.documents) == (before.counts, before.documents)
    assert path.stat().st_mode & 0o777 == 0o600


async def test_a_removed_file_is_created_again_without_new_changes(
    tmp_path: Path, events: list[str]
) -> None:
    path = tmp_path / "state.db"
    state = LocalState(MEMBER, SqliteFile(path))
    await state.change_document("overrides", lambda _: {"paused": []})
    before = await stored(path)
    for _ in range(2):
        path.unlink()
        await state._write()
        await state._write()
        assert (await stored(path)).documents == before.documents
    assert events == ["state_unwritten", "state_written"] * 2
    await state.close()


async def test_a_file_removed_before_the_shutdown_is_written_again(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    state = LocalState(MEMBER, SqliteFile(path))
    await state.change_document("overrides", lambda _: {"paused": []})
    before = await stored(path)
    path.unlink()
    await state.close()
    assert (await stored(path)).documents == before.documents


async def test_a_replaced_file_is_reported_once(tmp_path: Path, events: list[str]) -> None:
    path = tmp_path / "state.db"
    state = LocalState(MEMBER, SqliteFile(path))
    state.totals.absorb(DELTA)
    path.rename(tmp_path / "former.db")
    path.write_bytes(b"")
    for _ in range(3):
        await state._write()
        assert state.stale_since is not None
        assert state.stale_reason.startswith(f"{path}: ")
    assert events == ["state_unwritten"]
    path.unlink()
    (tmp_path / "former.db").rename(path)
    await state.close()
    assert events == ["state_unwritten", "state_written"]
    assert len((await stored(path)).usage) == 2


async def test_changes_are_kept_after_a_write_that_raises_any_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, events: list[str]
) -> None:
    path = tmp_path / "state.db"
    state = LocalState(MEMBER, SqliteFile(path))
    state.totals.absorb(DELTA)
    for error in (MemoryError(), StateError("full")):
        with monkeypatch.context() as patch:

            async def fail(*_: object, error: Exception = error) -> None:
                raise error

            patch.setattr(SqliteFile, "write", fail)
            if isinstance(error, StateError):
                await state._write()
            else:
                with pytest.raises(MemoryError):
                    await state._write()
    await state.close()
    assert len((await stored(path)).usage) == 2


async def test_counting_restarts_when_a_worker_has_lost_counts(tmp_path: Path) -> None:
    """The new start of counting is stored, since the last request for a version may be lost."""
    path = tmp_path / "state.db"
    state = LocalState(MEMBER, SqliteFile(path))
    began = state.totals.since
    state.totals.absorb(replace(DELTA, at=began + 50, lost=True))
    state.totals.absorb(replace(DELTA, at=began + 60))
    assert state.totals.since == began + 50
    await state.close()
    assert (await stored(path)).documents["since"] == began + 50


class Hang:
    """A disk that does not respond: reads and writes block until `end` is called."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(local, "_PATIENCE", 0.2)
        self.begun = 0
        self._back = threading.Event()
        written, read = SqliteFile._write, SqliteFile._read

        def write(file: SqliteFile, changes: StateRows) -> None:
            self.begun += 1
            assert self._back.wait(DEADLINE)
            written(file, changes)

        def read_history(file: SqliteFile, take: Any) -> Any:
            assert self._back.wait(DEADLINE)
            return read(file, take)

        monkeypatch.setattr(SqliteFile, "_write", write)
        monkeypatch.setattr(SqliteFile, "_read", read_history)

    def end(self) -> None:
        self._back.set()


async def ended(state: LocalState) -> None:
    async with asyncio.timeout(DEADLINE):
        while state.stale_since is not None:
            await asyncio.sleep(0.01)
            await state._write()


def requests(found: HistoryView) -> int:
    return sum(each.requests for series in found.series.values() for each in series.values())


async def test_a_hanging_disk_blocks_neither_rollbacks_nor_operators(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, events: list[str]
) -> None:
    path, threads = tmp_path / "state.db", set(threading.enumerate())
    state = LocalState(MEMBER, SqliteFile(path))
    hang = Hang(monkeypatch)
    now = time.time()
    state.totals.absorb(replace(DELTA, at=now))
    query = HistoryQuery(Resolution.DAY, span=86_400 * 2)
    async with asyncio.timeout(DEADLINE):
        with pytest.raises(StateError, match="does not respond"):
            await state.history(query)
        await state._write()
        assert events == ["state_unwritten"]
        assert state.stale_since is not None
        assert state.stale_reason == (
            f"{path}: the state cannot be written or read: the disk does not respond"
        )
        await state.change_document("cutovers", lambda _: [1])
        await state._write()
        with pytest.raises(StateError, match="does not respond"):
            await state.history(query)
        with pytest.raises(StateError, match="does not respond"):
            await state._write(Draft(state._documents, now))
    assert hang.begun <= 1
    assert all(each.daemon for each in set(threading.enumerate()) - threads)
    hang.end()
    await ended(state)
    assert events == ["state_unwritten", "state_written"]
    await state._write()
    assert requests(await state.history(query)) == 4
    await state.close()
    assert (await stored(path)).documents["cutovers"] == [1]


async def test_a_change_refused_on_a_hanging_disk_is_not_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "state.db"
    state = LocalState(MEMBER, SqliteFile(path))
    await state.change_document("overrides", lambda _: "former")
    hang = Hang(monkeypatch)
    drafts = [Draft(state._documents, 1.0) for _ in range(2)]
    for draft in drafts:
        draft.put("overrides", "latter")
    async with asyncio.timeout(DEADLINE):
        found = await asyncio.gather(*map(state._write, drafts), return_exceptions=True)
    assert [type(error) for error in found] == [StateUnsureError] * 2
    assert state._documents["overrides"] == "former"
    hang.end()
    await ended(state)
    await state._write()
    await state.close()
    assert (await stored(path)).documents["overrides"] == "former"


async def test_a_gateway_with_a_hanging_disk_can_shut_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, events: list[str]
) -> None:
    state = LocalState(MEMBER, SqliteFile(tmp_path / "state.db"))
    state.totals.absorb(DELTA)
    hang = Hang(monkeypatch)
    async with asyncio.timeout(DEADLINE):
        await state.close()
    assert events == ["state_unwritten"]
    hang.end()


async def test_a_rollback_succeeds_when_no_thread_can_be_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, events: list[str]
) -> None:
    """A container may have reached its maximum number of threads."""
    path = tmp_path / "state.db"
    state = LocalState(MEMBER, SqliteFile(path))
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", no_thread)
        await state.change_document("cutovers", lambda _: [1])
        with pytest.raises(StateError, match="can't start new thread"):
            await state._write(Draft(state._documents, 1.0))
    assert events == ["state_unwritten"]
    await state.close()
    assert (await stored(path)).documents["cutovers"] == [1]


def no_thread(_: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")
