"""Storage of users in SQLite or PostgreSQL, with SQLAlchemy Core."""

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import date
from pathlib import Path
from typing import Any
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, DisconnectionError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

# `synchronous_commit` may be off for the database or the role. A commit would then not survive a
# crash of the server.
OFF = "current_setting('synchronous_commit') = 'off'"
DURABLE = f"SELECT set_config('synchronous_commit', 'on', true) WHERE {OFF}"
LOCK = "SELECT pg_advisory_xact_lock(1970496882)"  # an arbitrary number, used only for this lock
ID = sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True)
NAME = sa.Column("name", sa.Text, nullable=False)
BIRTH_DATE = sa.Column("birth_date", sa.Date, nullable=False)
# Without AUTOINCREMENT, SQLite reuses the id of the last user after its deletion.
USERS = sa.Table("users", sa.MetaData(), ID, NAME, BIRTH_DATE, sqlite_autoincrement=True)
JSON_NAMES = (ID, NAME, BIRTH_DATE.label("birthDate"))


class StorageError(Exception):
    """The database failed. The message is one line without secrets."""


class Store:
    """`timeout` is the maximum seconds to wait for a connection, and again for a lock."""

    def __init__(self, url: sa.URL, timeout: float) -> None:
        if url.get_backend_name() == "sqlite":
            # Only the owner may read the file. With O_NONBLOCK, opening a named pipe fails at once.
            file = Path(url.database or "").absolute()
            os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o600))
            # SQLite allows one writer at a time, so writers wait for a single connection.
            self._reader = _sqlite_engine(file, timeout, 4)
            self._writer = _sqlite_engine(file, timeout, 1)
        else:
            limits = {"timeout": timeout, "command_timeout": timeout}
            pool: dict[str, Any] = {"pool_pre_ping": True, "pool_timeout": timeout}
            engine = create_async_engine(url, hide_parameters=True, connect_args=limits, **pool)
            self._reader, self._writer = engine, engine.execution_options()
        sa.event.listen(self._writer.sync_engine, "begin", _begin_write)

    async def create_table(self) -> None:
        async with _transaction(self._writer) as connection:
            if connection.dialect.name == "postgresql":  # several instances may start at once
                await connection.exec_driver_sql(LOCK)
            await connection.run_sync(USERS.metadata.create_all)
            await connection.execute(sa.select(USERS).limit(1))  # fails for other columns

    async def add(self, values: Mapping[str, object]) -> sa.RowMapping:
        """Add a user; return it after the commit, which survives `kill -9`."""
        statement = sa.insert(USERS).values(values).returning(*JSON_NAMES)
        async with _transaction(self._writer) as connection:
            return (await connection.execute(statement)).mappings().one()

    async def get(self, user_id: int) -> sa.RowMapping | None:
        statement = sa.select(*JSON_NAMES).where(USERS.c.id == user_id)
        async with _transaction(self._reader) as connection:
            return (await connection.execute(statement)).mappings().one_or_none()

    async def check(self) -> None:
        """Insert a row and roll back, to detect errors such as a full disk without a sync."""
        async with _transaction(self._writer.execution_options(synced=False)) as connection:
            await connection.execute(sa.insert(USERS).values(id=0, name="", birth_date=date.min))
            await connection.rollback()

    async def close(self) -> None:
        await self._reader.dispose()
        await self._writer.dispose()


@asynccontextmanager
async def _transaction(engine: AsyncEngine) -> AsyncIterator[AsyncConnection]:
    try:
        async with engine.begin() as connection:
            yield connection
    except (SQLAlchemyError, OSError) as error:
        reason = error.orig if isinstance(error, DBAPIError) else error
        raise StorageError(str(reason).partition("\n")[0] or type(reason).__name__) from error


def _begin_write(connection: sa.Connection) -> None:
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(DURABLE)
    else:
        # EXTRA also syncs the removal of the journal. If the removal is lost, a crash undoes the
        # commit.
        level = "EXTRA" if connection.get_execution_options().get("synced", True) else "OFF"
        connection.exec_driver_sql(f"PRAGMA synchronous={level}")
        connection.exec_driver_sql("BEGIN IMMEDIATE")


def _sqlite_engine(file: Path, timeout: float, connections: int) -> AsyncEngine:
    # With mode=rw, a missing file is an error; SQLite would otherwise create an empty database.
    url = f"sqlite+aiosqlite:///file:{quote(str(file))}?mode=rw&uri=true"
    arguments = {"timeout": timeout, "isolation_level": None}  # no implicit transactions
    pool: dict[str, Any] = {"pool_size": connections, "max_overflow": 0, "pool_timeout": timeout}
    engine = create_async_engine(url, hide_parameters=True, connect_args=arguments, **pool)

    @sa.event.listens_for(engine.sync_engine, "connect")
    def prepare(connection: Any, record: Any) -> None:
        record.info["file"] = file.stat()
        # All users must be in the database file. A write-ahead log (WAL) next to it would lose
        # users if it were removed, and would corrupt a file that replaces the database.
        connection.cursor().execute("PRAGMA journal_mode=DELETE")

    @sa.event.listens_for(engine.sync_engine, "checkout")
    def compare(_connection: Any, record: Any, _fairy: Any) -> None:
        # SQLite would continue to write to a file that was removed or replaced.
        if not os.path.samestat(record.info["file"], file.stat()):
            raise DisconnectionError("the file was replaced")  # SQLAlchemy then reconnects

    return engine
