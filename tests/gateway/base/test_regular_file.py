"""A file is read whole, or not at all: neither a device nor a pipe keeps the reader."""

import os
from pathlib import Path

import pytest

from gateway.base.files import MAX_BYTES, read_regular


def pipe(path: Path) -> Path:
    os.mkfifo(path)
    return path


def enormous(path: Path) -> Path:
    with path.open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    return path


def test_a_file(tmp_path: Path) -> None:
    path = tmp_path / "it"
    path.write_bytes(b"a\nb")
    (tmp_path / "link").symlink_to(path)
    assert read_regular(path) == read_regular(tmp_path / "link") == b"a\nb"


def test_what_is_none(tmp_path: Path) -> None:
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
