"""What the next start knows: whose place it takes, and whether anything went with that one."""

import asyncio
import os
from contextlib import suppress
from errno import ENOSPC
from pathlib import Path
from threading import Event

import pytest

from gateway.observe import log
from gateway.store.fleet.kept import own_disk
from gateway.store.fleet.kept.last_start import LastStart, StartRecord
from tests.gateway.kit import DEADLINE
from tests.gateway.talk import soon

DB = "postgresql://db/one"


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    reasons: list[str] = []
    monkeypatch.setattr(log, "event", lambda *_, reason, **__: reasons.append(reason))
    return reasons


def kept(path: Path, start: str, database: str = DB) -> LastStart:
    return LastStart(path / "kept", database, start)


async def test_the_next_start_takes_the_place_of_the_last_that_was_heard(tmp_path: Path) -> None:
    first = kept(tmp_path, "one")
    assert first.before is None
    await first.note(100.0, cut_off=False)
    await first.note(159.0, cut_off=False)  # noted every minute
    first.close()
    second = kept(tmp_path, "two")
    assert second.before == StartRecord(DB, "one", 100.0, cut_off=False)
    await second.note(0.0, cut_off=True)  # the database does not know it
    second.close()
    third = kept(tmp_path, "three")
    assert third.before == StartRecord(DB, "one", 100.0, cut_off=True)
    third.before = None
    await third.note(200.0, cut_off=False)
    await third.note(201.0, cut_off=False, last=True)
    third.close()
    assert kept(tmp_path, "four").before == StartRecord(DB, "three", 201.0, cut_off=False)
    assert (tmp_path / "kept").stat().st_mode & 0o777 == 0o600


async def test_one_that_runs_keeps_its_place(tmp_path: Path, told: list[str]) -> None:
    first = kept(tmp_path, "one")
    await first.note(100.0, cut_off=False)
    second = kept(tmp_path, "two")
    assert second.before is None
    await second.note(100.0, cut_off=True)
    second.close()
    first.close()
    found = kept(tmp_path, "three").before
    assert found == StartRecord(DB, "one", 100.0, cut_off=False)
    use = f"{tmp_path / 'kept'}: another gateway uses it; give each its own GATEWAY_REPLICA"
    assert told == [use]


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"database": 1}'])
async def test_what_cannot_be_read_takes_no_place(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "kept").write_bytes(content)
    assert kept(tmp_path, "one").before is None


async def test_a_start_with_another_database_has_another_place(tmp_path: Path) -> None:
    first = kept(tmp_path, "one")
    await first.note(100.0, cut_off=True)
    first.close()
    assert kept(tmp_path, "two", "postgresql://db/two").before is None


class KilledError(Exception):
    """A process that is killed amid a system call."""


@pytest.mark.parametrize("call", ["ftruncate", "fsync"])
async def test_one_that_is_killed_amid_a_note_has_made_it(
    call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is written in place, and no end of a longer one may be left behind it."""
    first = kept(tmp_path, "one")
    await first.note(100.0, cut_off=False)

    def kill(*_: object) -> None:
        raise KilledError

    with monkeypatch.context() as patch, suppress(KilledError):
        patch.setattr(os, call, kill)
        await first.note(100.0, cut_off=True)
    first.close()
    assert kept(tmp_path, "two").before == StartRecord(DB, "one", 100.0, cut_off=True)


async def test_a_disk_that_is_full_is_reported_once(
    tmp_path: Path, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what was not written is, as soon as it can be."""
    (tmp_path / "kept").symlink_to("/dev/full")
    full = kept(tmp_path, "one")
    await full.note(100.0, cut_off=False)
    await full.note(100.0, cut_off=True)
    full.close()
    (tmp_path / "kept").unlink()
    reason = f"{tmp_path / 'kept'}: {os.strerror(ENOSPC)}"
    assert told == [reason]
    second = kept(tmp_path, "two")
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", lambda *_: 1)  # as much as there was room for
        await second.note(100.0, cut_off=True)
    await second.note(100.0, cut_off=True)
    second.close()
    assert kept(tmp_path, "three").before == StartRecord(DB, "two", 100.0, cut_off=True)
    assert told == [reason, reason]


async def test_a_folder_that_is_not_there_is_reported(tmp_path: Path, told: list[str]) -> None:
    absent = kept(tmp_path / "absent", "one")
    await absent.note(100.0, cut_off=False)
    absent.close()
    assert told == [f"{tmp_path / 'absent' / 'kept'}: No such file or directory"]


async def test_a_disk_that_does_not_answer_keeps_no_beat_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: list[str]
) -> None:
    """What it could not take is written once it answers, and the file is not closed amid that."""
    monkeypatch.setattr(own_disk, "_PATIENCE", 0.05)
    monkeypatch.setattr(own_disk, "_LONG", 0.0)
    answers, sync = Event(), os.fsync

    def hang(file: int) -> None:
        assert answers.wait(DEADLINE)
        sync(file)

    monkeypatch.setattr(os, "fsync", hang)
    start = kept(tmp_path, "one")
    async with asyncio.timeout(DEADLINE):
        await start.note(100.0, cut_off=False)
        await start.note(101.0, cut_off=True)
        assert told == [f"{tmp_path / 'kept'}: the disk does not answer"]
        start.close()
        answers.set()
        while b"true" not in (tmp_path / "kept").read_bytes():
            await asyncio.sleep(0.01)
            await start.note(101.0, cut_off=True)
        await soon(lambda: not start._disk.busy)
    start.close()
    assert kept(tmp_path, "two").before == StartRecord(DB, "one", 100.0, cut_off=True)
