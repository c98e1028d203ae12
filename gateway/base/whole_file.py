"""A file that is replaced as a whole, for good: also a machine that loses power leaves no half."""

import os
from contextlib import suppress
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


def _sync_folder(path: Path) -> None:
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
