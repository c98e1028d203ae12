"""A file that is replaced as a whole, for good: also a machine that loses power leaves no half."""

import os
from contextlib import suppress
from errno import ENOSPC
from pathlib import Path

_MODE = 0o600


def write_whole(path: Path, content: bytes) -> None:
    """Replace what a file has; it has the former content or this one, whatever ends amid it.

    On return, it is on the disk under its name. Only its owner can read it.

    Raises:
        OSError: the file is as it was.
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
    # The name is in the folder, which is written by itself. It is replaced by now in any case.
    with suppress(OSError):
        _sync_folder(path.parent)


def write_in_place(descriptor: int, content: bytes) -> None:
    """Overwrite the content of a small file, which works on a full disk.

    The file never gets shorter: spaces fill it up, so that one write is enough, and a process that
    is killed leaves no end of the former content.

    Raises:
        OSError: the content is the former one, or a part of this one.
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
