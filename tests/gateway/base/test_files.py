"""A file is read completely or not at all. Devices and pipes never block the reader."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.base.files import MAX_BYTES, read_regular, write_whole


def pipe(path: Path) -> Path:
    os.mkfifo(path)
    return path


def enormous(path: Path) -> Path:
    with path.open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    return path


def test_a_regular_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "it"
    path.write_bytes(b"a\nb")
    (tmp_path / "link").symlink_to(path)
    assert read_regular(path) == read_regular(tmp_path / "link") == b"a\nb"


def test_files_that_are_not_regular_are_refused(tmp_path: Path) -> None:
    for path, reason in (
        (Path("/dev/zero"), "not a regular file"),
        (pipe(tmp_path / "pipe"), "not a regular file"),
        (tmp_path, "Is a directory"),
        (enormous(tmp_path / "enormous"), "larger than 16 MiB"),
        (tmp_path / "absent", "No such file or directory"),
    ):
        with pytest.raises(OSError) as refused:  # noqa: PT011  # its reason is compared below
            read_regular(path)
        assert refused.value.strerror == reason


class KilledError(BaseException):
    """Simulates that the process is killed before a system call."""


def stop(error: BaseException) -> Callable[..., None]:
    def call(*_: object, **__: object) -> None:
        raise error

    return call


@pytest.mark.parametrize("former", [None, b"a former, longer content"])
def test_a_written_file_is_replaced_and_readable_by_its_owner_only(
    tmp_path: Path, former: bytes | None
) -> None:
    path = tmp_path / "file"
    if former is not None:
        path.write_bytes(former)
    write_whole(path, b"content")
    assert path.read_bytes() == b"content"
    assert path.stat().st_mode & 0o777 == 0o600
    assert [*tmp_path.iterdir()] == [path]


@pytest.mark.parametrize(("where", "call"), [(os, "open"), (os, "fsync"), (Path, "replace")])
def test_a_failed_write_leaves_the_old_content(
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
    assert [*tmp_path.iterdir()] == [path]  # the file of the killed attempt is gone


def test_content_and_name_are_synced_to_disk_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The content is synced before the renaming, and the folder before the function returns."""
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


def test_a_write_succeeds_even_if_the_folder_cannot_be_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some file systems refuse to sync a folder."""
    sync = os.fsync

    def refuse(descriptor: int) -> None:
        if Path(f"/proc/self/fd/{descriptor}").readlink() == tmp_path:
            raise OSError(22, "Invalid argument")
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", refuse)
    write_whole(tmp_path / "file", b"content")
    assert (tmp_path / "file").read_bytes() == b"content"
