"""The local cache: files on the disk of a replica, for its next start."""

import asyncio
import fcntl
import os
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import msgspec

from gateway.base.daemon_thread import in_daemon_thread
from gateway.base.files import system_reason, write_in_place, write_whole
from gateway.observe import log

# The number of seconds to wait for a write, which is less than the leader's lease. The second value
# is the number of seconds after which a hanging write is reported.
_PATIENCE, _LONG = 1.0, 10.0
# The number of seconds between writes of the last heartbeat's time.
_NOTE_AGAIN = 60.0
_MAX_BYTES = 1024 * 1024


class CacheFile:
    """A file that is written in a daemon thread, one write at a time.

    So a hanging network disk blocks neither the heartbeats nor the shutdown of a replica.
    """

    def __init__(self, path: Path, event: str) -> None:
        self._path = path
        self._event = event
        self._writing: asyncio.Future[None] | None = None
        self._began = 0.0
        self.failing = False

    @property
    def busy(self) -> bool:
        return self._writing is not None and not self._writing.done()

    async def write(self, call: Callable[[], None]) -> bool:
        """Call a function that writes; return False if it is slow or another write runs."""
        if self.busy:
            if time.monotonic() - self._began > _LONG:
                self.report("the disk does not respond")
            return False
        self._began = time.monotonic()
        writing = self._writing = asyncio.ensure_future(in_daemon_thread(call))
        done, _ = await asyncio.wait([writing], timeout=_PATIENCE)
        try:
            if done:
                writing.result()
        except RuntimeError as error:  # the thread cannot be started
            self.report(str(error))
            return False
        return bool(done)

    def report(self, reason: str) -> None:
        if not self.failing:
            log.event(self._event, "warning", reason=f"{self._path}: {reason}")
        self.failing = True


class _Cached(msgspec.Struct):
    database: str
    documents: dict[str, object]


class LastOverrides:
    """A file with the last overrides of a database, for a start without the database."""

    def __init__(self, path: Path, database: str) -> None:
        self._path = path
        self._database = database
        self._file = CacheFile(path, "overrides_not_kept")
        self._unwritten: dict[str, object] | None = None

    def read(self) -> dict[str, object] | None:
        """Return the documents by name; None if the file has no documents of this database."""
        try:
            cached = msgspec.json.decode(self._path.read_bytes(), type=_Cached)
        except (OSError, msgspec.DecodeError):
            return None
        return cached.documents if cached.database == self._database else None

    async def keep(self, documents: dict[str, object] | None = None) -> None:
        """Write documents; without an argument, repeat the last failed write."""
        if documents is not None:
            self._unwritten = documents
        latest = self._unwritten
        if latest is None or not await self._file.write(partial(self.write, latest)):
            return
        if latest is self._unwritten and not self._file.failing:
            self._unwritten = None

    def write(self, documents: dict[str, object]) -> None:
        content = msgspec.json.encode(_Cached(self._database, documents))
        try:
            write_whole(self._path, content)
        except OSError as error:
            self._file.report(system_reason(error))
        else:
            self._file.failing = False


class StartRecord(msgspec.Struct, frozen=True):
    """A record of the previous start.

    Attributes:
        start: the id of the last start that may have a row in the database.
        heard: the time of the last recorded heartbeat of this start, by the clock of the database;
            0 without a heartbeat.
        cut_off: whether the database may lack counts of this start or of a later one.
    """

    database: str
    start: str
    heard: float
    cut_off: bool


class LastStart:
    """A file with a StartRecord, which is locked while its process runs.

    The database alone cannot distinguish a dead replica from a replica without a network, even if
    another replica of the same name sends heartbeats. If a new start gets the lock on this file,
    the process of the previous start has ended, and the new start replaces it.

    Attributes:
        before: the previous start, whose process has ended; None if it is unknown or already
            replaced.
    """

    def __init__(self, path: Path, database: str, start: str) -> None:
        self._path = path
        self._database = database
        self._start = start
        self._descriptor: int | None = None
        self._file = CacheFile(path, "start_not_kept")
        self._heard = 0.0
        self._written: StartRecord | None = None
        self.unheard = path.with_name(f"{path.name}.unheard")
        self._missing = self.unheard.exists()
        self.before = self._take()

    async def note(self, heard: float, *, cut_off: bool, last: bool = False) -> None:
        """Write the record of this start if it changed. `heard` alone is written at intervals."""
        if last or heard - self._heard > _NOTE_AGAIN:
            self._heard = heard
        # The previous start stays in the record until this start has a row in the database.
        former = self.before or StartRecord(self._database, self._start, self._heard, cut_off)
        record = msgspec.structs.replace(former, cut_off=cut_off)
        if self._descriptor is not None and record != self._written:
            await self._file.write(partial(self._write, self._descriptor, record))

    def take_place(self) -> None:
        self.before = None
        if self._missing:
            with suppress(OSError):
                self.unheard.unlink()
            self._missing = False

    def close(self) -> None:
        """Release the file; if a write is running, it stays locked until the process exits."""
        if self._descriptor is not None and not self._file.busy:
            os.close(self._descriptor)
            self._descriptor = None

    def _take(self) -> StartRecord | None:
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            self._file.report(error.strerror or str(error))
            return None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            self._file.report("another gateway uses it; give each its own GATEWAY_REPLICA")
            return None
        self._descriptor = descriptor
        try:
            found = msgspec.json.decode(os.read(descriptor, _MAX_BYTES), type=StartRecord)
        except (OSError, msgspec.DecodeError):
            return None
        if self._missing:
            found = msgspec.structs.replace(found, cut_off=True)
        return found if found.database == self._database else None

    def _write(self, descriptor: int, record: StartRecord) -> None:
        try:
            write_in_place(descriptor, msgspec.json.encode(record))
        except OSError as error:
            self._file.report(error.strerror or str(error))
        else:
            self._written, self._file.failing = record, False
