"""The writer of the state: what could not be written is written later, and nothing is lost."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from gateway.state.sqlite.sqlite_store import SqliteStore
from gateway.state.state_changes import StateChanges, StateError
from gateway.state.state_store import open_store
from gateway.state.state_writer import StateWriter
from gateway.telemetry.delta import CounterDelta, Delta, UsageDelta

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
