"""A file that is replaced as a whole: whatever ends amid it, it has the former content or this."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.base.files import write_whole


class KilledError(BaseException):
    """A process that is killed before a system call."""


def stop(error: BaseException) -> Callable[..., None]:
    def call(*_: object, **__: object) -> None:
        raise error

    return call


@pytest.mark.parametrize("former", [None, b"a former, longer content"])
def test_it_is_replaced_and_only_its_owner_reads_it(tmp_path: Path, former: bytes | None) -> None:
    path = tmp_path / "file"
    if former is not None:
        path.write_bytes(former)
    write_whole(path, b"content")
    assert path.read_bytes() == b"content"
    assert path.stat().st_mode & 0o777 == 0o600
    assert [*tmp_path.iterdir()] == [path]


@pytest.mark.parametrize(("where", "call"), [(os, "open"), (os, "fsync"), (Path, "replace")])
def test_what_ends_amid_it_leaves_the_former_content(
    where: object, call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"former")
    for error in (KilledError(), OSError(28, "No space left on device")):
        with monkeypatch.context() as patch:
            patch.setattr(where, call, stop(error))
            with pytest.raises(type(error)):
                write_whole(path, b"content")
        assert path.read_bytes() == b"former"
    assert [*tmp_path.iterdir()] == [path]  # also what the killed one left


def test_content_and_name_are_on_the_disk_in_their_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The content before the name that leads to it, and the name before it returns."""
    path, calls = tmp_path / "file", list[str]()
    sync, rename = os.fsync, Path.replace

    def note_sync(descriptor: int) -> None:
        found = Path(f"/proc/self/fd/{descriptor}").readlink()
        calls.append("folder" if found == tmp_path else found.read_text())
        sync(descriptor)

    def note_rename(self: Path, target: Path) -> Path:
        calls.append("rename")
        return rename(self, target)

    monkeypatch.setattr(os, "fsync", note_sync)
    monkeypatch.setattr(Path, "replace", note_rename)
    write_whole(path, b"content")
    assert calls == ["content", "rename", "folder"]


def test_a_folder_that_cannot_be_synced_has_the_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some file systems refuse that; the file is replaced all the same."""
    sync = os.fsync

    def refuse(descriptor: int) -> None:
        if Path(f"/proc/self/fd/{descriptor}").readlink() == tmp_path:
            raise OSError(22, "Invalid argument")
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", refuse)
    write_whole(tmp_path / "file", b"content")
    assert (tmp_path / "file").read_bytes() == b"content"
