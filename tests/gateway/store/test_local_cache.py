"""The local cache: the last overrides, the previous start, and a hanging disk."""

import asyncio
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from errno import ENOSPC
from pathlib import Path
from threading import Event

import pytest

from gateway.base.files import write_whole
from gateway.observe import log
from gateway.store import local_cache
from gateway.store.local_cache import CacheFile, LastOverrides, LastStart, StartRecord
from tests.gateway.kit import DEADLINE
from tests.gateway.talk import soon

DB = "postgresql://db/one"


@pytest.fixture
def reasons(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found: list[str] = []
    monkeypatch.setattr(log, "event", lambda *_, reason, **__: found.append(reason))
    return found


def last_start(path: Path, start: str, database: str = DB) -> LastStart:
    return LastStart(path / "start", database, start)


async def test_a_start_replaces_the_last_start_with_a_row_in_the_database(tmp_path: Path) -> None:
    first = last_start(tmp_path, "one")
    assert first.before is None
    await first.note(100.0, cut_off=False)
    await first.note(159.0, cut_off=False)  # not written, since less than a minute has passed
    first.close()
    second = last_start(tmp_path, "two")
    assert second.before == StartRecord(DB, "one", 100.0, cut_off=False)
    await second.note(0.0, cut_off=True)  # the database has no row for this start
    second.close()
    third = last_start(tmp_path, "three")
    assert third.before == StartRecord(DB, "one", 100.0, cut_off=True)
    third.before = None
    await third.note(200.0, cut_off=False)
    await third.note(201.0, cut_off=False, last=True)
    third.close()
    assert last_start(tmp_path, "four").before == StartRecord(DB, "three", 201.0, cut_off=False)
    assert (tmp_path / "start").stat().st_mode & 0o777 == 0o600


async def test_a_running_start_is_not_replaced_by_another_gateway(
    tmp_path: Path, reasons: list[str]
) -> None:
    first = last_start(tmp_path, "one")
    await first.note(100.0, cut_off=False)
    second = last_start(tmp_path, "two")
    assert second.before is None
    await second.note(100.0, cut_off=True)
    second.close()
    first.close()
    found = last_start(tmp_path, "three").before
    assert found == StartRecord(DB, "one", 100.0, cut_off=False)
    use = f"{tmp_path / 'start'}: another gateway uses it; give each its own GATEWAY_REPLICA"
    assert reasons == [use]


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"database": 1}'])
async def test_an_unreadable_start_record_is_ignored(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "start").write_bytes(content)
    assert last_start(tmp_path, "one").before is None


async def test_a_start_with_another_database_does_not_replace_the_previous_start(
    tmp_path: Path,
) -> None:
    first = last_start(tmp_path, "one")
    await first.note(100.0, cut_off=True)
    first.close()
    assert last_start(tmp_path, "two", "postgresql://db/two").before is None


class KilledError(Exception):
    """Represents a process that is killed during a system call."""


@pytest.mark.parametrize("call", ["ftruncate", "fsync"])
async def test_a_start_record_is_complete_after_the_process_was_killed(
    call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The record is written in place, so no part of a longer earlier record may remain."""
    first = last_start(tmp_path, "one")
    await first.note(100.0, cut_off=False)

    def kill(*_: object) -> None:
        raise KilledError

    with monkeypatch.context() as patch, suppress(KilledError):
        patch.setattr(os, call, kill)
        await first.note(100.0, cut_off=True)
    first.close()
    assert last_start(tmp_path, "two").before == StartRecord(DB, "one", 100.0, cut_off=True)


async def test_a_full_disk_for_the_start_record_is_reported_once(
    tmp_path: Path, reasons: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "start").symlink_to("/dev/full")
    full = last_start(tmp_path, "one")
    await full.note(100.0, cut_off=False)
    await full.note(100.0, cut_off=True)
    full.close()
    (tmp_path / "start").unlink()
    reason = f"{tmp_path / 'start'}: {os.strerror(ENOSPC)}"
    assert reasons == [reason]
    second = last_start(tmp_path, "two")
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", lambda *_: 1)  # the disk has space for only one byte
        await second.note(100.0, cut_off=True)
    await second.note(100.0, cut_off=True)
    second.close()
    assert last_start(tmp_path, "three").before == StartRecord(DB, "two", 100.0, cut_off=True)
    assert reasons == [reason, reason]


async def test_a_missing_folder_for_the_start_record_is_reported(
    tmp_path: Path, reasons: list[str]
) -> None:
    absent = last_start(tmp_path / "absent", "one")
    await absent.note(100.0, cut_off=False)
    absent.close()
    assert reasons == [f"{tmp_path / 'absent' / 'start'}: No such file or directory"]


async def test_a_hanging_disk_does_not_delay_heartbeats(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reasons: list[str]
) -> None:
    """The record is written when the disk responds. The file stays open until then."""
    monkeypatch.setattr(local_cache, "_PATIENCE", 0.05)
    monkeypatch.setattr(local_cache, "_LONG", 0.0)
    answers, sync = Event(), os.fsync

    def hang(file: int) -> None:
        assert answers.wait(DEADLINE)
        sync(file)

    monkeypatch.setattr(os, "fsync", hang)
    start = last_start(tmp_path, "one")
    async with asyncio.timeout(DEADLINE):
        await start.note(100.0, cut_off=False)
        await start.note(101.0, cut_off=True)
        assert reasons == [f"{tmp_path / 'start'}: the disk does not respond"]
        start.close()
        answers.set()
        while b"true" not in (tmp_path / "start").read_bytes():
            await asyncio.sleep(0.01)
            await start.note(101.0, cut_off=True)
        await soon(lambda: not start._file.busy)
    start.close()
    assert last_start(tmp_path, "two").before == StartRecord(DB, "one", 100.0, cut_off=True)


FOUND: dict[str, object] = {"overrides": {"paused": [["a", "1"]], "percents": []}, "revision": 4}


def test_cached_overrides_are_read_as_written(tmp_path: Path) -> None:
    kept = LastOverrides(tmp_path / "kept", "postgresql://db/one")
    assert kept.read() is None
    kept.write(FOUND)
    kept.write(FOUND)
    assert kept.read() == FOUND
    assert LastOverrides(tmp_path / "kept", "postgresql://db/two").read() is None
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"database": 1}'])
def test_an_unreadable_file_of_overrides_is_ignored(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "kept").write_bytes(content)
    assert LastOverrides(tmp_path / "kept", "postgresql://db/one").read() is None


def test_a_failure_to_write_overrides_is_reported_once(tmp_path: Path, events: list[str]) -> None:
    kept = LastOverrides(tmp_path / "absent" / "kept", "postgresql://db/one")
    kept.write(FOUND)
    kept.write(FOUND)
    (tmp_path / "absent").mkdir()
    kept.write(FOUND)
    (tmp_path / "absent" / "kept").unlink()
    (tmp_path / "absent").rmdir()
    kept.write(FOUND)
    assert events == ["overrides_not_kept", "overrides_not_kept"]


async def test_a_failed_write_of_overrides_is_repeated_later(
    tmp_path: Path, events: list[str]
) -> None:
    """Otherwise, a start without the database would use older overrides."""
    kept = LastOverrides(tmp_path / "absent" / "kept", "postgresql://db/one")
    await kept.keep(FOUND)
    assert events == ["overrides_not_kept"]
    (tmp_path / "absent").mkdir()
    await kept.keep()
    assert kept.read() == FOUND
    (tmp_path / "absent" / "kept").unlink()
    await kept.keep()
    assert kept.read() is None  # nothing is left to write
    await kept.keep({})
    assert kept.read() == {}


async def test_the_latest_overrides_are_written_when_a_hanging_disk_responds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_cache, "_PATIENCE", 0.05)
    answers = Event()

    def hang(path: Path, content: bytes) -> None:
        assert answers.wait(DEADLINE)
        write_whole(path, content)

    monkeypatch.setattr(local_cache, "write_whole", hang)
    kept = LastOverrides(tmp_path / "kept", "postgresql://db/one")
    async with asyncio.timeout(DEADLINE):
        await kept.keep({"revision": 1})
        await kept.keep({"revision": 2})
        assert kept.read() is None
        answers.set()
        while kept.read() != {"revision": 2}:
            await asyncio.sleep(0.01)
            await kept.keep()


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Event:
    monkeypatch.setattr(local_cache, "_PATIENCE", 0.05)
    monkeypatch.setattr(local_cache, "_LONG", 0.0)
    return Event()


async def test_no_write_starts_while_another_hangs(answers: Event, reasons: list[str]) -> None:
    begun: list[int] = []
    before = set(threading.enumerate())
    disk = CacheFile(Path("file"), "cache_failed")

    def write(number: int) -> Callable[[], None]:
        def hang() -> None:
            begun.append(number)
            assert answers.wait(DEADLINE)

        return hang

    async with asyncio.timeout(DEADLINE):
        assert not await disk.write(write(1))
        assert not await disk.write(write(2))
        assert reasons == ["file: the disk does not respond"]
        assert all(each.daemon for each in set(threading.enumerate()) - before)
        answers.set()
        await soon(lambda: not disk.busy)
        assert await disk.write(write(3))
    assert begun == [1, 3]


async def test_a_write_that_cannot_start_a_thread_is_reported(
    answers: Event, monkeypatch: pytest.MonkeyPatch, reasons: list[str]
) -> None:
    def no_thread(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    disk = CacheFile(Path("file"), "cache_failed")
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", no_thread)
        assert not await disk.write(answers.set)
    assert reasons == ["file: can't start new thread"]
    assert await disk.write(answers.set)
