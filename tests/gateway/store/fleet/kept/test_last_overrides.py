"""The overrides on disk: those of this database, whole, or none."""

import asyncio
from pathlib import Path
from threading import Event

import pytest

from gateway.base.whole_file import write_whole
from gateway.store.fleet.kept import last_overrides, own_disk
from gateway.store.fleet.kept.last_overrides import LastOverrides
from tests.gateway.kit import DEADLINE

FOUND: dict[str, object] = {"overrides": {"paused": [["a", "1"]], "percents": []}, "revision": 4}


def test_there_and_back(tmp_path: Path) -> None:
    kept = LastOverrides(tmp_path / "kept", "postgresql://db/one")
    assert kept.read() is None
    kept.write(FOUND)
    kept.write(FOUND)
    assert kept.read() == FOUND
    assert LastOverrides(tmp_path / "kept", "postgresql://db/two").read() is None
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"database": 1}'])
def test_what_cannot_be_read_is_not_used(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "kept").write_bytes(content)
    assert LastOverrides(tmp_path / "kept", "postgresql://db/one").read() is None


def test_a_disk_that_cannot_be_written_is_reported_once(tmp_path: Path, events: list[str]) -> None:
    kept = LastOverrides(tmp_path / "absent" / "kept", "postgresql://db/one")
    kept.write(FOUND)
    kept.write(FOUND)
    (tmp_path / "absent").mkdir()
    kept.write(FOUND)
    (tmp_path / "absent" / "kept").unlink()
    (tmp_path / "absent").rmdir()
    kept.write(FOUND)
    assert events == ["overrides_not_kept", "overrides_not_kept"]


async def test_what_a_disk_could_not_take_is_written_later(
    tmp_path: Path, events: list[str]
) -> None:
    """As a full one; a start without the database would go by what was in force before."""
    kept = LastOverrides(tmp_path / "absent" / "kept", "postgresql://db/one")
    await kept.keep(FOUND)
    assert events == ["overrides_not_kept"]
    (tmp_path / "absent").mkdir()
    await kept.keep()
    assert kept.read() == FOUND
    (tmp_path / "absent" / "kept").unlink()
    await kept.keep()
    assert kept.read() is None  # nothing is left to be written
    await kept.keep({})
    assert kept.read() == {}


async def test_the_latest_are_written_once_a_disk_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_disk, "_PATIENCE", 0.05)
    answers = Event()

    def hang(path: Path, content: bytes) -> None:
        assert answers.wait(DEADLINE)
        write_whole(path, content)

    monkeypatch.setattr(last_overrides, "write_whole", hang)
    kept = LastOverrides(tmp_path / "kept", "postgresql://db/one")
    async with asyncio.timeout(DEADLINE):
        await kept.keep({"revision": 1})
        await kept.keep({"revision": 2})
        assert kept.read() is None
        answers.set()
        while kept.read() != {"revision": 2}:
            await asyncio.sleep(0.01)
            await kept.keep()
