"""The Store: the file in which a gateway keeps what must outlive it. SQLite, one writer."""

import errno
import fcntl
import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import msgspec

from gateway.state.state_changes import StateChanges, StateError

# What stands in the head of the file (PRAGMA application_id): "vgws", version gateway's state.
_APPLICATION = 0x76677773
_SCHEMA = 3
_TABLES = """
CREATE TABLE usage (
    api TEXT NOT NULL,
    version TEXT NOT NULL,
    endpoint TEXT NOT NULL,
    client TEXT, -- empty: nothing named it; NULL: all others
    count INTEGER NOT NULL,
    refused INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    slack INTEGER NOT NULL, -- it may be this much more than the count
    first REAL NOT NULL, -- seconds since 1970
    last REAL NOT NULL,
    served REAL NOT NULL -- when one was let through last, or 0
);
CREATE UNIQUE INDEX usage_key ON usage (api, version, endpoint, ifnull(client, 0));
CREATE TABLE floors (
    api TEXT NOT NULL,
    version TEXT NOT NULL,
    floor INTEGER NOT NULL,
    PRIMARY KEY (api, version)
) WITHOUT ROWID;
CREATE TABLE counts (
    kind TEXT NOT NULL,
    labels TEXT NOT NULL, -- a JSON array
    count INTEGER NOT NULL,
    first REAL NOT NULL,
    last REAL NOT NULL,
    PRIMARY KEY (kind, labels)
) WITHOUT ROWID;
CREATE TABLE documents (
    name TEXT PRIMARY KEY,
    document TEXT NOT NULL -- JSON
) WITHOUT ROWID;
"""


# By the schema that they start from. The first did not hold when a client was served last; the
# second called overrides orders.
_UPGRADES = {
    1: """
ALTER TABLE usage ADD COLUMN served REAL NOT NULL DEFAULT 0;
UPDATE usage SET served = last WHERE count > refused;
""",
    2: """
UPDATE OR REPLACE documents SET name = 'overrides' WHERE name = 'orders';
""",
}


class SqliteStore:
    """An open state file; used by one thread at a time.

    Args:
        path: of the file, which is made if it is not there.
        watching: whether it is looked at only, by another process than the one that writes it.

    Raises:
        StateError: it cannot be used.
    """

    def __init__(self, path: Path, *, watching: bool = False) -> None:
        self.path = path
        self._held: int | None = None
        try:
            if not watching:
                self._held = _hold(path)
            where = f"{path.absolute().as_uri()}?mode={'ro' if watching else 'rwc'}"
            self._database = sqlite3.connect(where, uri=True, check_same_thread=False)
            try:
                _check(self._database, path, watching=watching)
            except BaseException:
                self._database.close()
                raise
        except sqlite3.Error as error:
            self._release()
            raise StateError(_reason(path, error, watching=watching)) from None
        except BaseException:
            self._release()
            raise

    def read(self) -> StateChanges:
        """Return all that is in it; raises StateError."""
        try:
            with closing(self._database.cursor()) as cursor:
                usage = cursor.execute("SELECT * FROM usage").fetchall()
                floors = cursor.execute("SELECT * FROM floors").fetchall()
                counts = cursor.execute("SELECT * FROM counts").fetchall()
                documents = cursor.execute("SELECT * FROM documents").fetchall()
            return StateChanges(
                usage=usage,
                floors={(api, version): floor for api, version, floor in floors},
                counts=[
                    (kind, msgspec.json.decode(labels, type=tuple[str, ...]), *rest)
                    for kind, labels, *rest in counts
                ],
                documents={name: msgspec.json.decode(document) for name, document in documents},
            )
        except (sqlite3.Error, msgspec.DecodeError) as error:
            raise StateError(_reason(self.path, error)) from None

    def write(self, records: StateChanges) -> None:
        """Put records in, all or none of them; raises StateError."""
        try:
            self._write(records)
        except sqlite3.Error as error:
            raise StateError(f"{self.path}: the state cannot be written: {error}") from None

    def _write(self, records: StateChanges) -> None:
        with self._database as transaction:
            transaction.executemany(
                "DELETE FROM usage WHERE api = ? AND version = ? AND endpoint = ?"
                " AND ifnull(client, 0) = ifnull(?, 0)",
                records.gone,
            )
            transaction.executemany(
                "INSERT OR REPLACE INTO usage VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                records.usage,
            )
            transaction.executemany(
                "INSERT OR REPLACE INTO floors VALUES (?, ?, ?)",
                [(*key, floor) for key, floor in records.floors.items()],
            )
            transaction.executemany(
                "INSERT OR REPLACE INTO counts VALUES (?, ?, ?, ?, ?)",
                [(kind, _json(labels), *rest) for kind, labels, *rest in records.counts],
            )
            transaction.executemany(
                "DELETE FROM counts WHERE kind = ? AND labels = ?",
                [(kind, _json(labels)) for kind, labels in records.uncounted],
            )
            transaction.executemany(
                "INSERT OR REPLACE INTO documents VALUES (?, ?)",
                [(name, _json(document)) for name, document in records.documents.items()],
            )

    def close(self) -> None:
        """Leave one file that is whole."""
        with suppress(sqlite3.Error):  # the log beside the file is taken up at the next start
            self._database.close()
        self._release()

    def _release(self) -> None:
        if self._held is not None:
            os.close(self._held)
            self._held = None


def _hold(path: Path) -> int:
    """Claim a file for this process; return what has to stay open as long.

    Each gateway writes totals, so two of them would undo each other's. SQLite's own locks are
    others (POSIX), which end when any descriptor of the file is closed: this one outlives them.
    """
    try:
        held = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise StateError(
            f"{path}: the state cannot be kept there: {(error.strerror or str(error)).lower()};"
            " name a file in a folder that can be written in 'state'"
        ) from None
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(held)
        if error.errno not in (errno.EAGAIN, errno.EACCES):
            raise StateError(f"{path}: the state cannot be locked: {error.strerror}") from None
        raise StateError(
            f"{path}: the state of another gateway that runs; name another file in 'state'"
        ) from None
    return held


def _check(database: sqlite3.Connection, path: Path, *, watching: bool) -> None:
    (application,) = database.execute("PRAGMA application_id").fetchone()
    (schema,) = database.execute("PRAGMA user_version").fetchone()
    (tables,) = database.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if application != _APPLICATION and (tables or watching):
        raise StateError(
            f"{path}: not the state of a gateway; move it away, or name another file in 'state'"
        )
    if schema > _SCHEMA:
        raise StateError(
            f"{path}: written by a newer gateway (schema {schema}; this one knows {_SCHEMA});"
            " run that one, or name another file in 'state'"
        )
    if watching:
        if schema < _SCHEMA:
            raise StateError(f"{path}: written by an older gateway; start this one with it first")
        return
    # A transaction is on disk when the next checkpoint is, and whole after any crash.
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = NORMAL")
    if schema < _SCHEMA:
        upgrades = (
            "".join(_UPGRADES[each] for each in range(schema, _SCHEMA)) if schema else _TABLES
        )
        database.executescript(
            f"BEGIN; {upgrades} PRAGMA application_id = {_APPLICATION};"
            f" PRAGMA user_version = {_SCHEMA}; COMMIT;"
        )
    # What can be read only is found out now, not at the first write.
    database.execute("BEGIN IMMEDIATE")
    database.execute("INSERT OR REPLACE INTO documents VALUES ('probe', 'null')")
    database.rollback()


def _reason(path: Path, error: Exception, *, watching: bool = False) -> str:
    if isinstance(error, sqlite3.OperationalError) and watching:
        return f"{path}: the state cannot be read: {error}; is the path right?"
    if isinstance(error, sqlite3.OperationalError):
        return (
            f"{path}: the state cannot be kept there: {error}; name a file that can be written in"
            " 'state'"
        )
    return f"{path}: not the state of a gateway; move it away, or name another file in 'state'"


def _json(document: object) -> str:
    return msgspec.json.encode(document).decode()
