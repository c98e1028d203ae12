"""The writer of the state: what could not be written is written later, and nothing is lost."""

import asyncio
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from gateway.store import state_writer
from gateway.store.ledger import DraftLedger
from gateway.store.sqlite.sqlite_store import SqliteStore
from gateway.store.state_store import open_store
from gateway.store.state_writer import StateWriter
from gateway.usage.delta import CounterDelta, Delta, UsageDelta
from gateway.usage.history import HistoryQuery, HistoryView
from gateway.usage.interval import Resolution
from gateway.usage.state_changes import StateChanges, StateError, StateUnsureError
from tests.gateway.kit import DEADLINE

USAGES = [UsageDelta("a", "1", "/p", client, 2, 1, 0, 1) for client in ("", "acme")]
DELTA = Delta(5.0, USAGES, [], [CounterDelta("differences", ("a", "1", "name"), 3)], [], [])


async def stored(path: Path) -> StateChanges:
    store = open_store(path, read_only=True)
    try:
        return await store.read()
    finally:
        await store.close()


async def test_a_file_that_was_removed_has_all_of_the_state_again(
    tmp_path: Path, events: list[str]
) -> None:
    path = tmp_path / "state.db"
    writer = StateWriter(open_store(path))
    writer.totals.absorb(DELTA)
    await writer.keep("overrides", {"paused": []})
    before = await stored(path)
    path.unlink()
    writer.totals.absorb(Delta(6.0, [UsageDelta("a", "2", "/p", "x", 1, 0, 0, 1)], [], [], [], []))
    await writer.write()
    assert events == ["state_unwritten"]
    await writer.close()
    assert (writer.failing_since, writer.failing_reason) == (None, "")
    assert events == ["state_unwritten", "state_written"]
    after = await stored(path)
    assert sorted(after.usage)[:2] == sorted(before.usage)
    assert len(after.usage) == 3
    assert (after.counts, after.documents) == (before.counts, before.documents)
    assert path.stat().st_mode & 0o777 == 0o600


async def test_a_file_that_was_removed_is_noticed_while_nothing_changes(
    tmp_path: Path, events: list[str]
) -> None:
    path = tmp_path / "state.db"
    writer = StateWriter(open_store(path))
    await writer.keep("overrides", {"paused": []})
    before = await stored(path)
    for _ in range(2):
        path.unlink()
        await writer.write()
        await writer.write()
        assert (await stored(path)).documents == before.documents
    assert events == ["state_unwritten", "state_written"] * 2
    await writer.close()


async def test_a_file_that_is_removed_before_the_end_has_all_of_the_state_again(
    tmp_path: Path,
) -> None:
    path = tmp_path / "state.db"
    writer = StateWriter(open_store(path))
    await writer.keep("overrides", {"paused": []})
    before = await stored(path)
    path.unlink()
    await writer.close()
    assert (await stored(path)).documents == before.documents


async def test_a_file_that_was_replaced_is_reported_once(tmp_path: Path, events: list[str]) -> None:
    path = tmp_path / "state.db"
    writer = StateWriter(open_store(path))
    writer.totals.absorb(DELTA)
    path.rename(tmp_path / "former.db")
    path.write_bytes(b"")
    for _ in range(3):
        await writer.write()
        assert writer.failing_since is not None
        assert writer.failing_reason.startswith(f"{path}: ")
    assert events == ["state_unwritten"]
    path.unlink()
    (tmp_path / "former.db").rename(path)
    await writer.close()
    assert events == ["state_unwritten", "state_written"]
    assert len((await stored(path)).usage) == 2


async def test_an_error_of_any_kind_loses_no_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, events: list[str]
) -> None:
    path = tmp_path / "state.db"
    writer = StateWriter(open_store(path))
    writer.totals.absorb(DELTA)
    for error in (MemoryError(), StateError("full")):
        with monkeypatch.context() as patch:

            async def fail(*_: object, error: Exception = error) -> None:
                raise error

            patch.setattr(SqliteStore, "write", fail)
            if isinstance(error, StateError):
                await writer.write()
            else:
                with pytest.raises(MemoryError):
                    await writer.write()
    await writer.close()
    assert len((await stored(path)).usage) == 2


async def test_counts_that_a_worker_lost_have_counting_begin_anew(tmp_path: Path) -> None:
    """Also after a restart: what was lost may have been the last call of a version."""
    path = tmp_path / "state.db"
    writer = StateWriter(open_store(path))
    began = writer.totals.since
    writer.totals.absorb(replace(DELTA, at=began + 50, lost=True))
    writer.totals.absorb(replace(DELTA, at=began + 60))
    assert writer.totals.since == began + 50
    await writer.close()
    assert (await stored(path)).documents["since"] == began + 50


class Hang:
    """A disk that does not answer: each write begins, and ends when the disk is back."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(state_writer, "_PATIENCE", 0.2)
        self.begun = 0
        self._back = threading.Event()
        written, read = SqliteStore._write, SqliteStore._read

        def write(store: SqliteStore, changes: StateChanges) -> None:
            self.begun += 1
            assert self._back.wait(DEADLINE)
            written(store, changes)

        def read_history(store: SqliteStore, take: Any) -> Any:
            assert self._back.wait(DEADLINE)
            return read(store, take)

        monkeypatch.setattr(SqliteStore, "_write", write)
        monkeypatch.setattr(SqliteStore, "_read", read_history)

    def end(self) -> None:
        self._back.set()


async def ended(writer: StateWriter) -> None:
    """Return when the disk has answered and all is written."""
    async with asyncio.timeout(DEADLINE):
        while writer.failing_since is not None:
            await asyncio.sleep(0.01)
            await writer.write()


def requests(found: HistoryView) -> int:
    return sum(each.requests for series in found.series.values() for each in series.values())


async def test_a_disk_that_does_not_answer_is_noticed_and_keeps_nothing_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, events: list[str]
) -> None:
    """Neither a rollback nor an operator waits for it, and what is counted is counted once."""
    path, threads = tmp_path / "state.db", set(threading.enumerate())
    writer = StateWriter(open_store(path))
    hang = Hang(monkeypatch)
    now = time.time()
    writer.totals.absorb(replace(DELTA, at=now))
    query = HistoryQuery(Resolution.DAY, span=86_400 * 2)
    async with asyncio.timeout(DEADLINE):
        with pytest.raises(StateError, match="does not answer"):
            await writer.history(query)
        await writer.write()
        assert events == ["state_unwritten"]
        assert writer.failing_since is not None
        assert writer.failing_reason == (
            f"{path}: the state cannot be written or read: the disk does not answer"
        )
        await writer.keep("cutovers", [1])
        await writer.write()
        with pytest.raises(StateError, match="does not answer"):
            await writer.history(query)
        with pytest.raises(StateError, match="does not answer"):
            await writer.commit(DraftLedger(writer.documents, now))
    assert hang.begun <= 1
    assert all(each.daemon for each in set(threading.enumerate()) - threads)
    hang.end()
    await ended(writer)
    assert events == ["state_unwritten", "state_written"]
    await writer.write()
    assert requests(await writer.history(query)) == 4
    await writer.close()
    assert (await stored(path)).documents["cutovers"] == [1]


async def test_what_an_operator_changed_meanwhile_is_not_in_force_after_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "state.db"
    writer = StateWriter(open_store(path))
    await writer.keep("overrides", "former")
    hang = Hang(monkeypatch)
    acts = [DraftLedger(writer.documents, 1.0) for _ in range(2)]
    for act in acts:
        await act.keep("overrides", "latter")
    async with asyncio.timeout(DEADLINE):
        found = await asyncio.gather(*map(writer.commit, acts), return_exceptions=True)
    assert [type(error) for error in found] == [StateUnsureError] * 2
    assert writer.documents["overrides"] == "former"
    hang.end()
    await ended(writer)
    await writer.write()
    await writer.close()
    assert (await stored(path)).documents["overrides"] == "former"


async def test_a_disk_that_does_not_answer_does_not_keep_the_gateway_from_ending(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, events: list[str]
) -> None:
    writer = StateWriter(open_store(tmp_path / "state.db"))
    writer.totals.absorb(DELTA)
    hang = Hang(monkeypatch)
    async with asyncio.timeout(DEADLINE):
        await writer.close()
    assert events == ["state_unwritten"]
    hang.end()


async def test_where_no_thread_is_to_be_had_a_rollback_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, events: list[str]
) -> None:
    """As where the container has as many as it may."""
    path = tmp_path / "state.db"
    writer = StateWriter(open_store(path))
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", no_thread)
        await writer.keep("cutovers", [1])
        with pytest.raises(StateError, match="can't start new thread"):
            await writer.commit(DraftLedger(writer.documents, 1.0))
    assert events == ["state_unwritten"]
    await writer.close()
    assert (await stored(path)).documents["cutovers"] == [1]


def no_thread(_: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")
