"""A state file that lacks what was counted: an old copy, or one that could not be written."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from sqlalchemy.exc import SQLAlchemyError

from gateway.observe import log
from gateway.store.sqlite import sqlite_store, written_mark
from gateway.store.state_store import open_store
from gateway.store.state_writer import StateWriter
from gateway.usage.delta import Delta, UsageDelta
from gateway.usage.state_changes import StateChanges

BEGAN = 100.0
DELTA = Delta(5.0, [UsageDelta("a", "1", "/p", "acme", 1, 0, 0, 1)], [], [], [], [])


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    reasons: list[str] = []
    monkeypatch.setattr(log, "event", lambda *_, reason="", **__: reasons.append(reason))
    return reasons


class KilledError(BaseException):
    """A process that is killed amid a system call."""


@asynccontextmanager
async def opened(path: Path) -> AsyncIterator[StateWriter]:
    """Open a state file as a gateway does, which is killed or ends orderly: `close`."""
    store = open_store(path)
    writer = StateWriter(store, await store.read())
    try:
        yield writer
    finally:
        await store.close()


async def count(path: Path, times: int = 1) -> float:
    """Count and write so often; return since when that gateway counts."""
    async with opened(path) as writer:
        for _ in range(times):
            writer.totals.absorb(DELTA)
            await writer.write()
        return writer.totals.since


async def began_long_ago(path: Path) -> Path:
    async with opened(path) as writer:
        writer.totals.since = BEGAN
        await writer.write()
    return path


async def test_a_copy_that_is_put_back_is_noticed_once(tmp_path: Path, told: list[str]) -> None:
    path = await began_long_ago(tmp_path / "state.db")
    copy = path.read_bytes()
    assert await count(path) == BEGAN
    assert told == []
    path.write_bytes(copy)
    anew = await count(path)
    assert anew > BEGAN
    assert told == [
        f"{path}: the state file lacks what was written, as a copy that was put back does"
    ]
    assert await count(path) == anew
    assert len(told) == 1


async def test_a_copy_is_noticed_by_who_only_reads(tmp_path: Path, told: list[str]) -> None:
    path = await began_long_ago(tmp_path / "state.db")
    copy = path.read_bytes()
    await count(path)
    path.write_bytes(copy)
    store = open_store(path, read_only=True)
    since = (await store.read()).documents["since"]
    await store.close()
    assert isinstance(since, float)
    assert since > BEGAN
    assert told == []


async def test_it_is_noted_now_and_then(tmp_path: Path, told: list[str]) -> None:
    """One that is killed has not noted the last writes."""
    path = await began_long_ago(tmp_path / "state.db")
    mark = tmp_path / "state.db.mark"
    before = mark.read_bytes()
    async with opened(path) as writer:
        for number in range(written_mark._SELDOM + 1):
            assert (mark.read_bytes() == before) == (number <= written_mark._SELDOM)
            writer.totals.absorb(DELTA)
            await writer.write()
        noted = mark.read_bytes()
        assert noted != before
    mark.write_bytes(noted)
    assert await count(path) == BEGAN
    assert mark.stat().st_mode & 0o777 == 0o600
    assert told == []


async def test_what_could_not_be_written_is_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: list[str]
) -> None:
    """Where it was not written later on: a full disk takes the mark all the same."""
    path = await began_long_ago(tmp_path / "state.db")

    def full(*_: object) -> None:
        raise SQLAlchemyError("full")

    for later in (True, False):
        async with opened(path) as writer:
            writer.totals.absorb(DELTA)
            with monkeypatch.context() as patch:
                patch.setattr(sqlite_store, "write_state", full)
                await writer.write()
            if later:
                await writer.write()
    told.clear()
    anew = await count(path)
    assert anew > BEGAN
    assert told == [f"{path}: the gateway ended while the state could not be written"]
    assert await count(path) == anew


async def test_no_mark_is_no_doubt(tmp_path: Path, told: list[str]) -> None:
    """Such as that of a file that was moved to another machine."""
    path = await began_long_ago(tmp_path / "state.db")
    mark = tmp_path / "state.db.mark"
    for content in (None, b"", b"{", b"[]"):
        mark.unlink()
        if content is not None:
            mark.write_bytes(content)
        assert await count(path) == BEGAN
    assert told == []


async def test_a_full_disk_takes_the_mark_in_place_of_the_former_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: list[str]
) -> None:
    """No end of a longer one is left behind it, also where it is killed as soon as it is there."""
    path = await began_long_ago(tmp_path / "state.db")
    mark = written_mark.WrittenMark(path)
    sync, kills = os.fsync, False

    def full(file: int) -> None:
        if Path(f"/proc/self/fd/{file}").readlink().suffix != ".mark":  # a file that is made anew
            raise OSError(28, "No space left on device")
        if kills:
            raise KilledError
        sync(file)

    with monkeypatch.context() as patch, suppress(KilledError):
        patch.setattr(os, "fsync", full)
        mark.note(100_000, unwritten=False)
        kills = True
        mark.note(1, unwritten=True)
    assert not (tmp_path / f"state.db.mark.{os.getpid()}").exists()
    assert await count(path) > BEGAN
    assert told == [f"{path}: the gateway ended while the state could not be written"]


async def test_a_machine_that_ends_amid_a_mark_leaves_the_former_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: list[str]
) -> None:
    """It is made anew, whole, and takes the name of the former one then."""
    path = await began_long_ago(tmp_path / "state.db")
    file = tmp_path / "state.db.mark"
    former = file.read_bytes()
    for where, call in ((os, "fsync"), (Path, "replace")):

        def end(*_: object) -> None:
            raise KilledError

        with monkeypatch.context() as patch:
            patch.setattr(where, call, end)
            with pytest.raises(KilledError):
                written_mark.WrittenMark(path).note(1, unwritten=True)
        assert file.read_bytes() == former
    assert told == []


async def test_a_mark_that_cannot_be_written_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = list[tuple[str, object]]()
    monkeypatch.setattr(log, "event", lambda name, *_, reason="", **__: told.append((name, reason)))

    def refuse(*_: object) -> None:
        raise OSError(5, "Input/output error")

    store = open_store(tmp_path / "state.db")
    monkeypatch.setattr(os, "fsync", refuse)
    for _ in range(2):
        await store.write(StateChanges(documents={"since": 1.0}))
    await store.close()
    assert told == [("mark_not_kept", f"{tmp_path / 'state.db.mark'}: input/output error")]
