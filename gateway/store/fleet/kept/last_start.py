"""LastStart: which start of a replica ran here before, on its own disk.

The database cannot know whether a replica that it does not hear any more is dead or cut off, not
even where another of the same name is heard. The file of a start is locked for as long as its
process runs: whoever gets the lock knows that the start before it is over, and takes its place.
"""

import fcntl
import os
from contextlib import suppress
from errno import ENOSPC
from functools import partial
from pathlib import Path

import msgspec

from gateway.observe import log
from gateway.store.fleet.kept.own_disk import OwnDisk

# So often, in seconds, it is noted when the database was heard.
_NOTE_AGAIN = 60.0
_MAX_BYTES = 1024 * 1024


class StartRecord(msgspec.Struct, frozen=True):
    """What is known of the start before.

    Attributes:
        database: the name of its database.
        start: the mark of the last one that the database may have a row of.
        heard: when the database confirmed a beat of its the last time that was noted, in seconds
            since 1970 by the database; 0 if it never did.
        cut_off: whether it, or one after it, had counted what the database may lack.
    """

    database: str
    start: str
    heard: float
    cut_off: bool


class LastStart:
    """A file with a StartRecord, locked from here on until it is closed.

    Args:
        path: of the file.
        database: the name of the database; the place of a start with another is not taken.
        start: the mark of this start.

    Attributes:
        before: the start before, whose process has ended; None if none is known, or once this one
            took its place.
        unheard: the file that a worker makes while what it counts is not taken.
    """

    def __init__(self, path: Path, database: str, start: str) -> None:
        self._path = path
        self._database = database
        self._start = start
        self._file: int | None = None
        self._failing = False
        self._disk = OwnDisk(self._report)
        self._heard = 0.0
        self._written: StartRecord | None = None
        self.unheard = path.with_name(f"{path.name}.unheard")
        self._missing = self.unheard.exists()
        self.before = self._take()

    async def note(self, heard: float, *, cut_off: bool, last: bool = False) -> None:
        """Note how this start stands with the database, on the disk where that has changed.

        Args:
            heard: when the database confirmed a beat the last time; noted every now and then.
            cut_off: whether the database may lack what this start has counted.
            last: whether the start ends.
        """
        if last or heard - self._heard > _NOTE_AGAIN:
            self._heard = heard
        # One that the database has not heard yet may have no row there.
        former = self.before or StartRecord(self._database, self._start, self._heard, cut_off)
        record = msgspec.structs.replace(former, cut_off=cut_off)
        if self._file is not None and record != self._written:
            await self._disk.write(partial(self._write, self._file, record))

    def take_place(self) -> None:
        """Note that this start took the place of the one before."""
        self.before = None
        if self._missing:
            with suppress(OSError):
                self.unheard.unlink()
            self._missing = False

    def close(self) -> None:
        """Release the file; while it is being written, that is left to the end of the process."""
        if self._file is not None and not self._disk.busy:
            os.close(self._file)
            self._file = None

    def _take(self) -> StartRecord | None:
        try:
            file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            self._report(error.strerror or str(error))
            return None
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(file)
            self._report("another gateway uses it; give each its own GATEWAY_REPLICA")
            return None
        self._file = file
        try:
            found = msgspec.json.decode(os.read(file, _MAX_BYTES), type=StartRecord)
        except (OSError, msgspec.DecodeError):
            return None
        if self._missing:
            found = msgspec.structs.replace(found, cut_off=True)
        return found if found.database == self._database else None

    def _write(self, file: int, record: StartRecord) -> None:
        try:
            # In place, which needs no room; never shorter, so that no end of a former one is left
            # by a process that is killed amid it.
            content = msgspec.json.encode(record).ljust(os.fstat(file).st_size)
            if os.pwrite(file, content, 0) < len(content):
                raise OSError(ENOSPC, os.strerror(ENOSPC))
            os.fsync(file)
        except OSError as error:
            self._report(error.strerror or str(error))
        else:
            self._written, self._failing = record, False

    def _report(self, reason: str) -> None:
        if not self._failing:
            log.event("start_not_kept", "warning", reason=f"{self._path}: {reason}")
        self._failing = True
