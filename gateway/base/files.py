"""Reading and writing of files.

Configuration files, and the files that they name, are read with limits, since a draft on the page
may name any path: a device has no end, and reading a pipe waits for its writer.
"""

import errno
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from errno import ENOSPC
from pathlib import Path
from typing import BinaryIO

MAX_BYTES = 16 * 2**20
"""The maximum size of a file, in bytes; a configuration of 10,000 routes has 2 MB."""


def system_reason(error: OSError) -> str:
    """Return the reason of the system, in lower case, for a message that goes on after it."""
    return (error.strerror or str(error)).lower()


def read_regular(path: Path) -> bytes:
    """Return the content of a regular file; raises OSError, with EFBIG above MAX_BYTES."""
    with open_regular(path) as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise OSError(errno.EFBIG, f"larger than {MAX_BYTES // 2**20} MiB")
    return content


Stamp = tuple[int, int, int] | None
"""The change time (ctime), inode and size of a file, to detect changes; None for a missing file."""


def stamp(path: Path) -> Stamp:
    """Return the stamp of the file at a path; follows symbolic links."""
    try:
        status = path.stat()
    except OSError:
        return None
    # Not st_mtime_ns: a chmod that makes the file readable does not change it.
    return status.st_ctime_ns, status.st_ino, status.st_size


class ConfigFiles:
    """The files that a configuration names: certificates, keys and tokens.

    Args:
        folder: the folder of gateway.yaml, to which relative paths refer.
        given: file contents by path, used instead of the files on disk.

    Attributes:
        stamps: the stamp of each file, taken before the file was read.
        names: what each of these files contains, as in messages, such as `ca`.
        expired_keys: pairs of an expired API key, by its owner, and what to do.
    """

    def __init__(self, folder: Path = Path(), given: Mapping[str, bytes] | None = None) -> None:
        self.folder = folder
        self._given = given or {}
        self.stamps: dict[Path, Stamp] = {}
        self.contents: dict[str, bytes] = {}
        self.names: dict[str, str] = {}
        self.expired_keys: list[tuple[str, str]] = []

    def read(self, written: str, name: str) -> bytes:
        """Return the content of a file; raises ValueError if it cannot be read.

        `name` says what the file contains, for the error message.
        """
        path = self.folder / written
        known = self._given.get(str(path), self.contents.get(str(path)))
        if known is None:
            self.stamps[path] = stamp(path)
            try:
                known = read_regular(path)
            except OSError as error:
                text = f"the {name} '{written}' cannot be read: {error.strerror}"
                raise ValueError(text) from None
        self.contents[str(path)] = known
        self.names[str(path)] = name
        return known


@contextmanager
def open_regular(path: Path) -> Iterator[BinaryIO]:
    """Open a regular file for reading; raises OSError if it is another kind of file."""
    with open(path, "rb", opener=_open_at_once) as file:  # Path.open has no opener
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        yield file


def _open_at_once(path: str, flags: int) -> int:
    # Without O_NONBLOCK, opening a FIFO waits for a process that writes to it.
    return os.open(path, flags | os.O_NONBLOCK)


_MODE = 0o600


def write_whole(path: Path, content: bytes) -> None:
    """Replace the content of a file atomically and sync it; after an OSError, it is unchanged.

    If the process or the machine fails in between, the file keeps the old content. Only its owner
    can read the file.
    """
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, _MODE)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(descriptor)
        fresh.replace(path)
    except OSError:
        with suppress(OSError):
            fresh.unlink()
        raise
    # The name belongs to the folder, which needs a separate sync. An error here undoes nothing.
    with suppress(OSError):
        _sync_folder(path.parent)


def write_in_place(descriptor: int, content: bytes) -> None:
    """Overwrite the content of a small file; this works on a full disk.

    The file never shrinks: shorter content is padded with spaces. Therefore a single write
    suffices, and a killed process leaves no remainder of the old content.

    Raises:
        OSError: the file has the old content, or part of the new content.
    """
    content = content.ljust(os.fstat(descriptor).st_size)
    if os.pwrite(descriptor, content, 0) < len(content):
        raise OSError(ENOSPC, os.strerror(ENOSPC))
    os.fsync(descriptor)


def _sync_folder(path: Path) -> None:
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
