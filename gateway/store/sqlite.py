"""The state in an SQLite file, which only one gateway at a time may write."""

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

import msgspec

# SQLAlchemy: one definition of tables and statements for SQLite and PostgreSQL.
from sqlalchemy import Connection, Engine, StaticPool, create_engine, event
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from gateway.base.daemon_thread import in_daemon_thread
from gateway.base.files import open_regular, system_reason, write_in_place, write_whole
from gateway.observe import log
from gateway.store.state import StateError, StateLostError
from gateway.store.tables import (
    OLDEST,
    REVISION,
    create_tables,
    read_history,
    read_rows,
    upgrade_tables,
    write_history,
    write_rows,
)
from gateway.usage.history import History, HistoryQuery
from gateway.usage.totals import StateRows

T = TypeVar("T")

# PRAGMA application_id: "vgws", the state of a version gateway.
_APPLICATION = 0x76677773
# PRAGMA user_version of files with Alembic's table of revisions. Earlier files have 1 to 3, and
# earlier gateways refuse this number as too new.
_ALEMBIC = 4
_MODE = 0o600
_WRITES = "writes"
# The suffixes of SQLite's write-ahead log and of its index. Without these files, writes are lost.
_BESIDE = ("-wal", "-shm")
_UNREADABLE = (
    *(SQLAlchemyError, sqlite3.Error, msgspec.DecodeError),
    *(ValueError, TypeError, LookupError),
)
_ANOTHER = "move it away, or name another file in 'state'"
# The upgrade of schemas 1 to 3: the statements that convert a schema to the next one, and the
# columns to copy from each table. In these schemas, the row with a NULL client is the sum of all
# other clients.
_STEPS = {
    1: (
        "ALTER TABLE usage ADD COLUMN served REAL NOT NULL DEFAULT 0",
        "UPDATE usage SET served = last WHERE count > refused",
    ),
    2: ("UPDATE OR REPLACE documents SET name = 'overrides' WHERE name = 'orders'",),
    3: (),
}
_FORMER_COLUMNS = {
    "usage": "api, version, endpoint, ifnull(client, ''), client IS NULL,"
    " count, refused, failed, slack, first, last, served, 0, 0.0",
    "floors": "*",
    "counts": "*",
    "documents": "*",
}


class SqliteFile:
    """An open state file. With `read_only`, another process may write it. Raises StateError."""

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

    async def read(self) -> StateRows:
        """Return all rows except the history; if rows are lost, counting restarts now."""
        rows = await self._in_thread(lambda: self._read(read_rows))
        writes = rows.documents.pop(_WRITES, 0)
        self._writes = writes if isinstance(writes, int) else 0
        if lost := self._mark.loss(self._writes):
            rows.documents["since"] = time.time()
            if not self._read_only:
                log.event("state_went_back", "error", reason=f"{self.name}: {lost}")
        return rows

    async def write(self, changes: StateRows) -> None:
        """Store changes in one transaction; without changes, only check that the file exists.

        Raises:
            StateLostError: the file was removed and created again, so all rows must be written.
            StateError: nothing was stored.
        """
        await self._in_thread(lambda: self._write(changes))

    async def history(self, query: HistoryQuery, now: float) -> History:
        return await self._in_thread(
            lambda: self._read(partial(read_history, query=query, now=now))
        )

    async def close(self) -> None:
        """Merge the write-ahead log into the file, update the mark file, and release both."""
        await self._in_thread(self._close)
        if not self._read_only:
            self._mark.close(self._writes)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        """Call a function in a daemon thread, so that a hanging disk does not block the process."""

        async def take_turn() -> T:
            async with self._turn:
                try:
                    return await in_daemon_thread(work)
                except RuntimeError as error:  # no thread could be started
                    raise StateError(
                        f"{self.name}: the state cannot be used now: {error}"
                    ) from None

        # Shielded: if the caller is cancelled, the thread continues, and other calls must wait
        # for its end.
        return await asyncio.shield(take_turn())

    def _read(self, read: Callable[[Connection], T]) -> T:
        try:
            with self._engine.begin() as connection:
                return read(connection)
        except _UNREADABLE as error:
            raise StateError(self._reason(error)) from None

    def _write(self, changes: StateRows) -> None:
        try:
            self._check_file()
            if changes:
                counted = changes.documents | {_WRITES: self._writes + 1}
                with self._engine.begin() as connection:
                    write_rows(connection, replace(changes, documents=counted))
                    write_history(connection, changes.history)
                self._beside = self._beside or self._files_beside()
                self._writes += 1
        except (*_UNREADABLE, StateError) as error:
            self._mark.note(self._writes, unwritten=True)
            if isinstance(error, StateError):
                raise
            raise StateError(
                f"{self.name}: the state cannot be written: {_original(error)}"
            ) from None
        self._mark.note(self._writes, unwritten=False)

    def _check_file(self) -> None:
        # SQLite would continue to write to a removed, replaced or emptied file.
        if self._lock is None:  # an earlier attempt to create the file again failed
            raise self._recreated("removed")
        try:
            found = self._path.stat()
        except FileNotFoundError:
            raise self._recreated("removed") from None
        except OSError as error:
            raise StateError(
                f"{self.name}: the state cannot be written: {error.strerror}"
            ) from None
        if not os.path.samestat(found, os.fstat(self._lock)):
            raise StateError(
                f"{self.name}: the state file was replaced while the gateway ran;"
                " restore the previous file, or restart the gateway to use this one"
            )
        if not found.st_size:
            self._path.unlink()
            raise self._recreated("emptied")
        if self._beside not in (None, self._files_beside()):
            # Closing the engine merges the open log into the file.
            raise self._recreated("separated from its -wal and -shm files")

    def _files_beside(self) -> list[int | None]:
        paths = [Path(f"{self._path}{end}") for end in _BESIDE]
        return [path.stat().st_ino if path.exists() else None for path in paths]

    def _recreated(self, what: str) -> StateLostError:
        self._close()
        self._engine = self._open()
        return StateLostError(f"{self.name}: the state file was {what}")

    def _open(self) -> Engine:
        if self._read_only:
            self._check_readable()
        else:
            self._lock = _lock(self._path)
        self._beside = None
        try:
            engine = _engine(self._path, read_only=self._read_only)
            try:
                with engine.begin() as connection:
                    self._check_schema(connection)
                if not self._read_only:
                    with closing(engine.raw_connection().cursor()) as cursor:
                        # A commit survives a crash of the process. After a power failure, the last
                        # commits may be missing.
                        cursor.execute("PRAGMA journal_mode = WAL")
                        cursor.execute("PRAGMA synchronous = NORMAL")
            except BaseException:
                engine.dispose()
                raise
        except BaseException as error:
            self._release()
            if isinstance(error, _UNREADABLE):
                raise StateError(self._reason(error)) from None
            raise
        return engine

    def _close(self) -> None:
        with suppress(SQLAlchemyError):  # the next start reads the write-ahead log
            self._engine.dispose()
        self._release()

    def _release(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _check_readable(self) -> None:
        """Raise StateError with the system's reason, which SQLite does not report."""
        try:
            with open_regular(self._path):
                pass
        except OSError as error:
            raise StateError(
                f"{self.name}: the state cannot be read: {error.strerror}; is the path right?"
            ) from None

    def _check_schema(self, connection: Connection) -> None:
        application, schema, tables = (
            connection.exec_driver_sql(query).scalar_one()
            for query in (
                "PRAGMA application_id",
                "PRAGMA user_version",
                "SELECT count(*) FROM sqlite_schema",
            )
        )
        if application != _APPLICATION and (tables or self._read_only):
            raise StateError(self._foreign())
        query = "SELECT version_num FROM alembic_version"
        revision = connection.exec_driver_sql(query).scalar_one() if schema >= _ALEMBIC else ""
        if revision > REVISION or schema > _ALEMBIC:
            raise StateError(
                f"{self.name}: written by a newer gateway (schema {revision or schema};"
                f" this one supports {REVISION}); run that release, or name another file in 'state'"
            )
        if "" < revision < OLDEST:
            raise StateError(
                f"{self.name}: written by an unreleased gateway (schema {revision}); {_ANOTHER}"
            )
        if self._read_only:
            if revision < REVISION:
                raise StateError(
                    f"{self.name}: written by an older gateway; start this one with it first"
                )
            return
        if not revision:
            _create(connection, schema)
        elif revision < REVISION:
            upgrade_tables(connection)
        # Report an unwritable file now, not at the first write.
        with connection.begin_nested() as probe:
            write_rows(connection, StateRows(documents={"probe": None}))
            probe.rollback()

    def _foreign(self) -> str:
        remedy = "is the path right?" if self._read_only else _ANOTHER
        return f"{self.name}: not the state of a gateway; {remedy}"

    def _reason(self, error: Exception) -> str:
        original = _original(error)
        if isinstance(original, msgspec.ValidationError):
            reason = (
                f"a value has a wrong type {original}; put a backup in its place, or {_ANOTHER}"
            )
        elif "locked" in str(original):
            reason = "another program has locked the state; end it, or name another file in 'state'"
        elif not isinstance(original, sqlite3.OperationalError):
            return self._foreign()
        elif self._read_only:
            # To read a file, SQLite creates -shm, and uses -wal if it exists.
            reason = (
                f"the state cannot be read: {original}; copy it with its -wal and -shm"
                " files, if any, to an empty writable folder on a disk that is not full"
            )
        else:
            reason = (
                f"the state cannot be kept there: {original}; name a file that can be written in"
                " 'state'"
            )
        return f"{self.name}: {reason}"


def _engine(path: Path, *, read_only: bool) -> Engine:
    where = f"{path.absolute().as_uri()}?mode={'ro' if read_only else 'rw'}"

    def connect() -> sqlite3.Connection:
        # Without an isolation level, since the driver does not begin transactions for schema
        # changes.
        return sqlite3.connect(where, uri=True, check_same_thread=False, isolation_level=None)

    engine = create_engine("sqlite://", creator=connect, poolclass=StaticPool)
    begin = "BEGIN" if read_only else "BEGIN IMMEDIATE"
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql(begin))
    return engine


def _lock(path: Path) -> int:
    """Lock a file for this process while the returned descriptor is open.

    Two gateways would overwrite each other's totals. SQLite's own locks are not sufficient: they
    are POSIX locks, which end when any descriptor of the file is closed.
    """
    try:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _MODE)
    except OSError as error:
        raise StateError(
            f"{path}: the state cannot be kept there: {system_reason(error)};"
            " name a file in a folder that can be written in 'state'"
        ) from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(lock)
        if error.errno not in (errno.EAGAIN, errno.EACCES):
            raise StateError(f"{path}: the state cannot be locked: {error.strerror}") from None
        raise StateError(
            f"{path}: another running gateway uses the state; name another file in 'state'"
        ) from None
    with suppress(PermissionError):  # the file belongs to another user
        os.fchmod(lock, _MODE)  # the file contains client names
    return lock


def _create(connection: Connection, schema: int) -> None:
    former = _FORMER_COLUMNS if schema in _STEPS else {}
    for step in range(schema, _ALEMBIC) if former else ():
        for statement in _STEPS[step]:
            connection.exec_driver_sql(statement)
    for table in former:
        connection.exec_driver_sql(f"ALTER TABLE {table} RENAME TO former_{table}")
    create_tables(connection)
    for table, columns in former.items():
        connection.exec_driver_sql(f"INSERT INTO {table} SELECT {columns} FROM former_{table}")  # noqa: S608  # constants
        connection.exec_driver_sql(f"DROP TABLE former_{table}")
    connection.exec_driver_sql(f"PRAGMA application_id = {_APPLICATION}")
    connection.exec_driver_sql(f"PRAGMA user_version = {_ALEMBIC}")


def _original(error: Exception) -> object:
    return error.orig if isinstance(error, DBAPIError) else error


class _Mark(msgspec.Struct, frozen=True):
    writes: int
    unwritten: bool


# The number of writes between updates of the mark file.
_NOTE_AFTER = 30


class WrittenMark:
    """A file next to a state file with the number of writes, and whether the last write failed.

    The mark file reveals that the state file is an old copy, or that a gateway ended with unwritten
    counts.
    """

    def __init__(self, path: Path) -> None:
        self._path = path.with_name(f"{path.name}.mark")
        self.unheard = path.with_name(f"{path.name}.unheard")
        self._missing = self.unheard.exists()
        self._failing = False
        self._noted: _Mark | None = None
        with suppress(OSError, msgspec.DecodeError):
            self._noted = msgspec.json.decode(self._path.read_bytes(), type=_Mark)

    def loss(self, writes: int) -> str:
        """Return the reason why a state file with this number of writes lacks counts, or ""."""
        if self._missing:
            return "the gateway ended while counts of its workers were not delivered"
        if self._noted is not None and self._noted.unwritten:
            return "the gateway ended while the state could not be written"
        if self._noted is not None and writes < self._noted.writes:
            return "the state file lacks written counts, as after a restore of an old copy"
        return ""

    def note(self, writes: int, *, unwritten: bool) -> None:
        """Record the number of writes at intervals, and a failed write at once.

        This works even on a full disk, since the mark file already exists.
        """
        if self._missing and not unwritten:  # the restart of counting is stored
            with suppress(OSError):
                self.unheard.unlink()
            self._missing = False
        noted = self._noted
        if (
            noted is None
            or noted.unwritten != unwritten
            or abs(writes - noted.writes) > _NOTE_AFTER
        ):
            self._write(_Mark(writes, unwritten))

    def close(self, writes: int) -> None:
        if self._noted is not None and self._noted.writes != writes:
            self._write(msgspec.structs.replace(self._noted, writes=writes))

    def _write(self, mark: _Mark) -> None:
        content = msgspec.json.encode(mark)
        try:
            write_whole(self._path, content)
        except OSError as error:
            try:  # a full disk has no room for a second file
                with self._path.open("r+b") as file:
                    write_in_place(file.fileno(), content)
            except OSError:
                if not self._failing:
                    reason = f"{self._path}: {system_reason(error)}"
                    log.event("mark_not_kept", "warning", reason=reason)
                self._failing = True
                return
        self._noted, self._failing = mark, False
