"""SqliteStore: a StateStore in one SQLite file, which one process at a time may write."""

import asyncio
import errno
import fcntl
import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from msgspec import DecodeError, ValidationError
from sqlalchemy import Connection, Engine, StaticPool, create_engine, event
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from gateway.base.daemon_thread import in_daemon_thread
from gateway.base.regular_file import open_regular
from gateway.observe import log
from gateway.store.schema.history_table import read_history, write_history
from gateway.store.schema.state_tables import REVISION, read_state, write_state
from gateway.store.sqlite.written_mark import WrittenMark
from gateway.usage.history import History, HistoryQuery
from gateway.usage.state_changes import StateChanges, StateError, StateLostError

T = TypeVar("T")

# PRAGMA application_id of the file: "vgws", the state of a version gateway.
_APPLICATION = 0x76677773
# PRAGMA user_version: the file has Alembic's table of revisions. Lower ones are those of files
# from before; a gateway of that time refuses the file as newer than itself.
_ALEMBIC = 4
_MODE = 0o600
# The document with the number of writes.
_WRITES = "writes"
# The write-ahead log of SQLite and its index. Where one is gone, what is written is for nobody.
_BESIDE = ("-wal", "-shm")
# Exceptions raised by corrupt rows.
_UNREADABLE = (SQLAlchemyError, sqlite3.Error, DecodeError, ValueError, TypeError, LookupError)
_ANOTHER = "move it away, or name another file in 'state'"


class SqliteStore:
    """An open state file.

    Args:
        path: of the file, which is created if it is not there.
        read_only: whether another process may be writing to it.

    Raises:
        StateError: it cannot be used.
    """

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.name = str(path)
        self._path = path
        self._read_only = read_only
        self._turn = asyncio.Lock()
        self._lock: int | None = None
        self._beside: list[int | None] | None = None
        self._engine = self._open()
        self._mark = WrittenMark(path)
        self.unheard = self._mark.unheard
        self._writes = 0

    async def read(self) -> StateChanges:
        """Return all of the state; where some is lost, counting begins now. Raises StateError."""
        state = await self._in_thread(lambda: self._read(read_state))
        writes = state.documents.pop(_WRITES, 0)
        self._writes = writes if isinstance(writes, int) else 0
        if lacking := self._mark.lacking(self._writes):
            state.documents["since"] = time.time()
            if not self._read_only:
                log.event("state_went_back", "error", reason=f"{self.name}: {lacking}")
        return state

    async def write(self, changes: StateChanges) -> None:
        """Store changes, all or none of them; raises StateLostError or StateError."""
        await self._in_thread(lambda: self._write(changes))

    async def history(self, query: HistoryQuery, now: float) -> History:
        """Return the intervals that are asked for at a time; raises StateError."""
        read = partial(read_history, query=query, now=now)
        return await self._in_thread(lambda: self._read(read))

    async def close(self) -> None:
        """Leave one file with all that was written, and its mark, and release it."""
        await self._in_thread(self._close)
        if not self._read_only:
            self._mark.close(self._writes)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        """Return what a function returns, called beside the loop, one at a time.

        A disk that does not answer keeps that thread for ever, and must not keep the process.
        """

        async def take_turn() -> T:
            async with self._turn:
                try:
                    return await in_daemon_thread(work)
                except RuntimeError as error:  # no thread is to be had
                    raise StateError(
                        f"{self.name}: the state cannot be used now: {error}"
                    ) from None

        # Shielded: when nobody waits for it any more, the thread has its turn until it is done.
        return await asyncio.shield(take_turn())

    def _read(self, read: Callable[[Connection], T]) -> T:
        try:
            with self._engine.begin() as connection:
                return read(connection)
        except _UNREADABLE as error:
            raise StateError(self._reason(error)) from None

    def _write(self, changes: StateChanges) -> None:
        try:
            self._check_file()
            if changes:
                self._write_rows(changes)
        except _UNREADABLE as error:
            self._mark.note(self._writes, unwritten=True)
            raise StateError(
                f"{self.name}: the state cannot be written: {_original(error)}"
            ) from None
        except StateError:
            self._mark.note(self._writes, unwritten=True)
            raise
        self._mark.note(self._writes, unwritten=False)

    def _write_rows(self, changes: StateChanges) -> None:
        writes = {_WRITES: self._writes + 1}
        with self._engine.begin() as connection:
            write_state(connection, replace(changes, documents=changes.documents | writes))
            write_history(connection, changes.history)
        self._beside = self._beside or self._files_beside()
        self._writes += 1

    def _check_file(self) -> None:
        # SQLite goes on writing to a file that was removed, replaced or emptied, for nobody.
        if self._lock is None:  # it was removed, and could not be made again
            raise self._made_anew("removed")
        try:
            found = self._path.stat()
        except FileNotFoundError:
            raise self._made_anew("removed") from None
        except OSError as error:
            raise StateError(
                f"{self.name}: the state cannot be written: {error.strerror}"
            ) from None
        if not os.path.samestat(found, os.fstat(self._lock)):
            raise StateError(
                f"{self.name}: the state file was replaced while the gateway ran; put the former"
                " one back, or restart the gateway to use this one"
            )
        if not found.st_size:
            self._path.unlink()
            raise self._made_anew("emptied")
        if self._beside not in (None, self._files_beside()):
            # Closing moves what the log has, which is open, to the file.
            raise self._made_anew("left by the files beside it")

    def _files_beside(self) -> list[int | None]:
        paths = [Path(f"{self._path}{end}") for end in _BESIDE]
        return [path.stat().st_ino if path.exists() else None for path in paths]

    def _made_anew(self, what: str) -> StateLostError:
        """Make the file again, and return the error that has all of the state written to it."""
        self._close()
        self._engine = self._open()
        return StateLostError(f"{self.name}: the state file was {what}")

    def _open(self) -> Engine:
        if self._read_only:
            _look(self._path)
        else:
            self._lock = _lock(self._path)
        self._beside = None
        try:
            engine = _engine(self._path, read_only=self._read_only)
            try:
                with engine.begin() as connection:
                    self._check(connection)
                if not self._read_only:
                    _write_ahead(engine)
            except BaseException:
                engine.dispose()
                raise
        except _UNREADABLE as error:
            self._release()
            raise StateError(self._reason(error)) from None
        except BaseException:
            self._release()
            raise
        return engine

    def _close(self) -> None:
        with suppress(SQLAlchemyError):  # the log beside the file is read at the next start
            self._engine.dispose()
        self._release()

    def _release(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _check(self, connection: Connection) -> None:
        """Accept the file as it is, or bring its schema to the newest revision."""
        application = connection.exec_driver_sql("PRAGMA application_id").scalar_one()
        schema = connection.exec_driver_sql("PRAGMA user_version").scalar_one()
        tables = connection.exec_driver_sql("SELECT count(*) FROM sqlite_schema").scalar_one()
        if application != _APPLICATION and (tables or self._read_only):
            raise StateError(self._foreign())
        revision = (
            connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar_one()
            if schema >= _ALEMBIC
            else ""
        )
        if revision > REVISION or schema > _ALEMBIC:
            raise StateError(
                f"{self.name}: written by a newer gateway (schema {revision or schema};"
                f" this one knows {REVISION}); run that one, or name another file in 'state'"
            )
        if self._read_only:
            if revision < REVISION:
                raise StateError(
                    f"{self.name}: written by an older gateway; start this one with it first"
                )
            return
        if revision < REVISION:
            # Imported for a file that needs it: Alembic is 10 MB.
            from gateway.store.schema.revisions import upgrade
            from gateway.store.sqlite.sqlite_takeover import restore_rows, set_aside

            former = set_aside(connection, schema) if 0 < schema < _ALEMBIC else ()
            upgrade(connection)
            restore_rows(connection, former)
            connection.exec_driver_sql(f"PRAGMA application_id = {_APPLICATION}")
            connection.exec_driver_sql(f"PRAGMA user_version = {_ALEMBIC}")
        # A file that can only be read is refused now, not at the first write.
        with connection.begin_nested() as probe:
            write_state(connection, StateChanges(documents={"probe": None}))
            probe.rollback()

    def _foreign(self) -> str:
        remedy = "is the path right?" if self._read_only else _ANOTHER
        return f"{self.name}: not the state of a gateway; {remedy}"

    def _reason(self, error: Exception) -> str:
        original = _original(error)
        if isinstance(original, ValidationError):
            return (
                f"{self.name}: a value has a wrong type {original}; put a backup in its place, or"
                f" {_ANOTHER}"
            )
        if "locked" in str(original):
            return (
                f"{self.name}: another program has the state locked; end it, or name another file"
                " in 'state'"
            )
        if not isinstance(original, sqlite3.OperationalError):
            return self._foreign()
        if self._read_only:
            # SQLite makes -shm to read a file, and takes a -wal that is there for one of the file.
            return (
                f"{self.name}: the state cannot be read: {original}; copy it with the -wal and -shm"
                " that are beside it, or alone where there are none, to an empty folder that can be"
                " written, on a disk that is not full"
            )
        return (
            f"{self.name}: the state cannot be kept there: {original}; name a file that can be"
            " written in 'state'"
        )


def _look(path: Path) -> None:
    """Raise StateError with the system's reason if a file cannot be read; SQLite has no reasons."""
    try:
        with open_regular(path):
            pass
    except OSError as error:
        raise StateError(
            f"{path}: the state cannot be read: {error.strerror}; is the path right?"
        ) from None


def _engine(path: Path, *, read_only: bool) -> Engine:
    where = f"{path.absolute().as_uri()}?mode={'ro' if read_only else 'rw'}"

    def connect() -> sqlite3.Connection:
        # No isolation level: the driver would begin no transaction for a change of the schema.
        return sqlite3.connect(where, uri=True, check_same_thread=False, isolation_level=None)

    engine = create_engine("sqlite://", creator=connect, poolclass=StaticPool)
    begin = "BEGIN" if read_only else "BEGIN IMMEDIATE"
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql(begin))
    return engine


def _write_ahead(engine: Engine) -> None:
    with closing(engine.raw_connection().cursor()) as cursor:
        # What is committed is on disk with the next checkpoint, and whole after any crash.
        cursor.execute("PRAGMA journal_mode = WAL")
        cursor.execute("PRAGMA synchronous = NORMAL")


def _lock(path: Path) -> int:
    """Claim a file for this process; return the descriptor that has to stay open as long.

    Each gateway writes totals, so two of them would overwrite each other's. SQLite's own locks are
    POSIX locks, which end when any descriptor of the file is closed; this one lasts.
    """
    try:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _MODE)
    except OSError as error:
        raise StateError(
            f"{path}: the state cannot be kept there: {(error.strerror or str(error)).lower()};"
            " name a file in a folder that can be written in 'state'"
        ) from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(lock)
        if error.errno not in (errno.EAGAIN, errno.EACCES):
            raise StateError(f"{path}: the state cannot be locked: {error.strerror}") from None
        raise StateError(
            f"{path}: the state of another gateway that runs; name another file in 'state'"
        ) from None
    with suppress(PermissionError):  # a file of another user, which that user has to protect
        os.fchmod(lock, _MODE)  # names of clients are in it
    return lock


def _original(error: Exception) -> object:
    return error.orig if isinstance(error, DBAPIError) else error
