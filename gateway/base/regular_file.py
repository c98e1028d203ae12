"""RegularFile: reads the files of rules and those that rules name, within bounds.

A draft of rules, which anybody who can read the page may have checked, names files too. A device
has no end, and a pipe none before somebody writes to it.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

MAX_BYTES = 16 * 2**20
"""The size of the largest file; rules of 10,000 routes are 2 MB."""


def read_regular(path: Path, most: int = MAX_BYTES) -> bytes:
    """Return the content of a regular file of at most `most` bytes.

    Raises:
        OSError: the file cannot be read or is no regular file; EFBIG if it is larger.
    """
    with open_regular(path) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, f"larger than {most // 2**20} MiB")
    return content


@contextmanager
def open_regular(path: Path) -> Iterator[BinaryIO]:
    """Have a regular file open to read it; raises OSError, with a text."""
    with open(path, "rb", opener=_open_at_once) as file:  # Path.open has no opener
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        yield file


def _open_at_once(path: str, flags: int) -> int:
    # Without O_NONBLOCK, opening a FIFO waits for a process that writes to it.
    return os.open(path, flags | os.O_NONBLOCK)
