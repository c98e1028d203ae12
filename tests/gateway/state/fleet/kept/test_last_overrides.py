"""The overrides on disk: those of this database, whole, or none."""

from pathlib import Path

import pytest

from gateway.state.fleet.kept.last_overrides import LastOverrides

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
