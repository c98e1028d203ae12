"""Connections to the database, and all that is particular to SQLite and to PostgreSQL.

SQLite has one writer at a time. Here that is one connection which requests wait for in turn, so
that they do not meet each other's locks; reads have connections of their own, which in WAL mode
wait for no one. Another kind of database gets one ordinary pool for both.
"""

import os
from pathlib import Path
from typing import Any
from urllib.parse import quote

# The SQL toolkit that knows both SQLite and what may follow it; aiosqlite, its driver, keeps each
# connection in a thread of its own, off the event loop.
from sqlalchemy import URL, Connection, event, make_url
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

# A file's device and number, or None where it is gone: of the database, its log, the log's index.
Files = tuple[tuple[int, int] | None, ...]

SQLITE_READERS = 4
_ASYNCPG = "postgresql+asyncpg"


def database_url(text: object) -> URL:
    """Return the URL of a database that can be used here; nothing connects to it yet.

    A URL as PostgreSQL has it is taken as well: it gets the driver for asyncio.

    Raises:
        ValueError: it is no URL, its driver is missing or not for asyncio, or it is an SQLite
            database that is in memory or has options, either of which may lose what was stored. Or
            a part of a password with @ and a slash would be taken for the name of the database.
    """
    try:
        url = _with_driver(make_url(str(text)))
        if _is_sqlite(url) and (url.query or url.database in (None, "", ":memory:")):
            raise ValueError("not durable")
        if not _is_sqlite(url) and "@" in (url.database or ""):
            raise ValueError("the end of a password that is not escaped")
        create_async_engine(url)  # loads the driver
    except (SQLAlchemyError, ImportError, TypeError, ValueError):
        raise ValueError("not usable") from None  # their words may hold the password
    return url


def shown(url: URL) -> str:
    """Return the URL of a database without user, password and parameters, which may be secret."""
    scheme = url.get_backend_name()
    return URL.create(scheme, None, None, url.host, url.port, url.database).render_as_string()


def engines(url: URL, wait: float) -> tuple[AsyncEngine, AsyncEngine]:
    """Return one engine to read with and one to write with, perhaps the same.

    An SQLite database that is not there is made here, and only here: later, a file that has gone is
    an error, and not replaced by an empty one. `wait` is how many seconds to wait for a
    connection, and again for a lock.

    Raises:
        OSError: the file cannot be made.
    """
    if not _is_sqlite(url):
        limits = {"timeout": wait, "command_timeout": wait} if url.drivername == _ASYNCPG else {}
        engine = create_async_engine(
            url, hide_parameters=True, pool_pre_ping=True, pool_timeout=wait, connect_args=limits
        )
        return engine, engine
    file = Path(url.database or "").absolute()
    # Makes it, or shows that it can be written, without waiting for a reader where it is a pipe. It
    # has people's names and dates of birth.
    os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o600))
    reader = _sqlite_engine(file, wait, SQLITE_READERS)
    writer = _sqlite_engine(file, wait, 1)
    event.listen(writer.sync_engine, "begin", _begin_to_write)
    return reader, writer


def files_of(url: URL) -> Files:
    """Return which files an SQLite database is in; of another kind, none.

    Raises:
        OSError: the database has gone.
    """
    if not _is_sqlite(url):
        return ()
    file = os.path.realpath(str(url.database))  # beside which SQLite has its files
    return _identity(file), *(_beside(f"{file}{end}") for end in ("-wal", "-shm"))


def _beside(file: str) -> tuple[int, int] | None:
    try:
        return _identity(file)
    except FileNotFoundError:
        return None


def _identity(file: str) -> tuple[int, int]:
    found = os.stat(file)  # noqa: PTH116 (a raw result, on the way of each request)
    return found.st_dev, found.st_ino


def _with_driver(url: URL) -> URL:
    if url.drivername not in ("postgres", "postgresql", _ASYNCPG):
        return url
    query = dict(url.query)
    if "sslmode" in query:  # libpq's name; asyncpg has another
        query["ssl"] = query.pop("sslmode")
    return url.set(drivername=_ASYNCPG, query=query)


def _is_sqlite(url: URL) -> bool:
    return url.get_backend_name() == "sqlite"


def _sqlite_engine(file: Path, wait: float, connections: int) -> AsyncEngine:
    engine = create_async_engine(
        URL.create(
            "sqlite+aiosqlite",
            database=f"file:{quote(str(file))}",
            query={"mode": "rw", "uri": "true"},
        ),
        hide_parameters=True,  # keeps what users are called out of errors, thus out of logs
        # The driver shall begin no transaction by itself: it would begin one that only reads, and
        # none at all for a change of the schema.
        connect_args={"timeout": wait, "isolation_level": None},
        pool_size=connections,
        max_overflow=0,
        pool_timeout=wait,
    )
    event.listen(engine.sync_engine, "connect", _make_durable)
    return engine


def _make_durable(connection: Any, _: object) -> None:
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA synchronous=FULL")  # WAL's default would lose commits with the power
    cursor.execute("SELECT 1 FROM sqlite_schema")  # opens the log, which is made if need be
    cursor.close()


def _begin_to_write(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")
