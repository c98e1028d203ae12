"""WrittenMark: beside a state file, what it has to have.

The file itself does not show that it is an old copy, nor what went with a gateway that could not
write it any more.
"""

import os
from contextlib import suppress
from pathlib import Path

import msgspec

from gateway.base.whole_file import write_whole
from gateway.observe import log

# The number is noted after so many writes.
_SELDOM = 30


class _Mark(msgspec.Struct, frozen=True):
    writes: int
    unwritten: bool


class WrittenMark:
    """A file with the number of writes, and whether the last one failed.

    Args:
        path: of the state file.

    Attributes:
        unheard: the file that a worker makes while what it counts is not taken.
    """

    def __init__(self, path: Path) -> None:
        self._path = path.with_name(f"{path.name}.mark")
        self.unheard = path.with_name(f"{path.name}.unheard")
        self._missing = self.unheard.exists()
        self._failing = False
        self._noted: _Mark | None = None
        with suppress(OSError, msgspec.DecodeError):
            self._noted = msgspec.json.decode(self._path.read_bytes(), type=_Mark)

    def lacking(self, writes: int) -> str:
        """Return why a state file of so many writes lacks something; empty if it does not."""
        if self._missing:
            return "the gateway ended while what its workers counted was not taken"
        if self._noted is not None and self._noted.unwritten:
            return "the gateway ended while the state could not be written"
        if self._noted is not None and writes < self._noted.writes:
            return "the state file lacks what was written, as a copy that was put back does"
        return ""

    def note(self, writes: int, *, unwritten: bool) -> None:
        """Note the number of writes every now and then, and whether the last one failed at once.

        It is noted on a full disk, too: the file has its place there from the first write on.
        """
        if self._missing and not unwritten:  # since when is counted is written by now
            with suppress(OSError):
                self.unheard.unlink()
            self._missing = False
        noted = self._noted
        if noted is None or noted.unwritten != unwritten or abs(writes - noted.writes) > _SELDOM:
            self._write(_Mark(writes, unwritten))

    def close(self, writes: int) -> None:
        """Note the number of writes at the end."""
        if self._noted is not None and self._noted.writes != writes:
            self._write(msgspec.structs.replace(self._noted, writes=writes))

    def _write(self, mark: _Mark) -> None:
        content = msgspec.json.encode(mark)
        try:
            write_whole(self._path, content)
        except OSError as error:
            if not self._write_in_place(content):
                if not self._failing:
                    reason = f"{self._path}: {(error.strerror or str(error)).lower()}"
                    log.event("mark_not_kept", "warning", reason=reason)
                self._failing = True
                return
        self._noted, self._failing = mark, False

    def _write_in_place(self, content: bytes) -> bool:
        """Write over the former mark, as a full disk has room for nothing else; return whether.

        The file never gets shorter, so that one write is all.
        """
        try:
            file = os.open(self._path, os.O_WRONLY | os.O_CLOEXEC)
            try:
                os.pwrite(file, content.ljust(os.fstat(file).st_size), 0)
                os.fsync(file)
            finally:
                os.close(file)
        except OSError:
            return False
        return True
