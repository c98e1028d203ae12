"""PostgresDatabase: the connections of a gateway to its state in PostgreSQL.

All that is the gateway's stands in a schema of its own, so that other programs may share the
database. Connections keep the statements prepared that run every second, and none where that turns
out to fail: behind a pooler that gives each transaction another connection. What such a pooler
swallows as well are notifications, in place of which the replicas poll.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import NamedTuple
from urllib.parse import urlsplit

# asyncpg: the driver of PostgreSQL for asyncio.
import asyncpg
from sqlalchemy import (
    AdaptedConnection,
    Text,
    column,
    create_engine,
    event,
    select,
    table,
    text,
)
from sqlalchemy.exc import InvalidatePoolError, SQLAlchemyError
from sqlalchemy.util import greenlet_spawn

from gateway.store.fleet.database.database_errors import NO_RIGHTS, REASONS, translated
from gateway.store.fleet.database.fixed_statement import FixedStatement
from gateway.store.fleet.database.postgres_connection import PostgresConnection
from gateway.store.schema.new_database import create_tables
from gateway.store.schema.state_tables import REVISION
from gateway.usage.state_changes import StateError, StateUnreachableError, StateUnsureError

SCHEMA = "gateway"
# Advisory locks are numbers that all programs of a database share: "vgw", and which lock.
_LOCK_MIGRATION = 0x76677701
LOCK_JUDGE = 0x76677702
LOCK_CHANGE = 0x76677703
_CHANNEL = "gateway_overrides"
# In seconds: to connect, for a statement, and for a transaction that does nothing, after which the
# database ends it and releases its locks.
_CONNECT = 3.0
_STATEMENT = 3.0
_IDLE = 2.0
# The server gives up on a client between two statements alone. One that was suspended or cut off
# between the preparation of a statement and its execution would hold its locks until it comes back.
_END_SILENT = text(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE usename = current_user AND datname = current_database() AND state = 'active'"
    " AND wait_event = 'ClientRead' AND state_change < clock_timestamp() - :silent * interval '1 s'"
    " AND pid IN (SELECT l.pid FROM pg_locks l LEFT JOIN pg_class c ON c.oid = l.relation"
    " WHERE c.relnamespace = CAST(:of AS regnamespace) AND l.mode <> 'AccessShareLock'"
    " OR l.locktype = 'advisory' AND l.objid IN (:judge, :change))"
)
# How often a connection that only listens is asked whether it is still there.
_LISTEN = 10.0

_BEGIN = (
    f"BEGIN{{mode}}; SET LOCAL search_path TO {SCHEMA};"
    f" SET LOCAL statement_timeout = '{_STATEMENT:g}s';"
    " SET LOCAL idle_in_transaction_session_timeout = '{idle:g}s'"
)
_WRITER = _BEGIN.format(mode="", idle=_IDLE)
# One that only reads holds nobody up, and may be of a gateway that has much else to do.
_READER = _BEGIN.format(mode=" ISOLATION LEVEL REPEATABLE READ, READ ONLY", idle=30)
_NOW = FixedStatement(
    text("SELECT CAST(extract(epoch FROM clock_timestamp()) AS double precision)"), kept=True
)
# What the server says of a prepared statement that is not as it was left.
_FORGOTTEN = (
    asyncpg.InvalidSQLStatementNameError,
    asyncpg.DuplicatePreparedStatementError,
    asyncpg.InvalidCachedStatementError,
)
# What the driver raises of a server, of a connection, and of one that cannot go on.
_DRIVER = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError)
_MAY_NOTE = text(
    f"SELECT has_sequence_privilege(pg_get_serial_sequence('{SCHEMA}.audit', 'id'), 'USAGE')"
)


class StatementsForgottenError(StateUnreachableError):
    """What was kept prepared is not there; it is not kept from then on, and the next time works."""


class Transaction(NamedTuple):
    """A transaction that has begun, and the time of the database, in seconds since 1970."""

    connection: PostgresConnection
    now: float


class PostgresDatabase:
    """The database of a URL; nothing connects until it is used.

    Args:
        url: of the database.
        keeps: whether connections keep statements prepared, which is for who asks every second.

    Attributes:
        name: where it is, without user and password.
    """

    def __init__(self, url: str, *, keeps: bool = True) -> None:
        self._url = url
        self.name = _name(url)
        self._engine = create_engine(
            "postgresql+asyncpg://",
            connect_args={
                "dsn": url,
                "timeout": _CONNECT,
                "command_timeout": _STATEMENT + 1,
                "statement_cache_size": 0,
                "prepared_statement_cache_size": 0,
                "prepared_statement_name_func": str,  # no name: ""
            },
            pool_size=2,  # the beat, and the judge beside it
            max_overflow=3,  # one who changes something, and two who read
            pool_timeout=_CONNECT,
            hide_parameters=True,
            isolation_level="AUTOCOMMIT",  # whoever uses a connection begins and ends transactions
        )
        event.listen(self._engine, "checkout", _refuse_closed)
        self._keeps = keeps

    async def prepare(self) -> None:
        """Bring the schema to the newest revision, once for all replicas that start together.

        Raises:
            StateUnreachableError: the database cannot be reached now.
            StateError: it cannot be used.
        """
        async with self.transaction() as (connection, _):
            revision = await self._revision(connection)
            if revision >= REVISION:
                await self._check_newer(connection, revision)
                # Acts and rollbacks are noted: better refused now than when they are made.
                if not (await connection.execute(_MAY_NOTE)).scalar_one():
                    raise StateError(f"{self.name}: {REASONS[NO_RIGHTS]}")
                return
        # Changes of the schema may wait for other replicas, and take longer than a statement may.
        async with self.transaction(60.0) as (connection, _):
            await connection.execute(text("SET LOCAL statement_timeout = '60s'"))
            await connection.execute(text("SET LOCAL idle_in_transaction_session_timeout = '60s'"))
            await connection.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK_MIGRATION})"))
            revision = await self._revision(connection)
            if revision >= REVISION:  # another replica was first
                return
            if not revision:
                await connection.execute(text(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}"))
                await connection.run_sync(create_tables)
                return
            # Imported for a database of an earlier release: Alembic is 10 MB.
            from gateway.store.schema.revisions import upgrade

            await connection.run_sync(upgrade)

    async def check(self) -> None:
        """Raise StateError if no state is there, or one that cannot be read; change nothing."""
        async with self.transaction() as (connection, _):
            revision = await self._revision(connection)
            if not revision:
                raise StateError(f"{self.name}: not the state of a gateway; name another database")
            await self._check_newer(connection, revision)

    @asynccontextmanager
    async def transaction(
        self, seconds: float = _STATEMENT * 2, *, snapshot: bool = False
    ) -> AsyncIterator[Transaction]:
        """Begin a transaction; commit it if all goes well within a time.

        Args:
            seconds: the time.
            snapshot: whether all statements only read, and see the database at one moment.

        Raises:
            StateUnsureError: the database was lost with the commit; what was done may be there.
            StatementsForgottenError: a pooler forgets statements; nothing was done.
            StateUnreachableError: the database cannot be reached; nothing was done.
            StateError: nothing was done.
        """
        begun = done = False
        try:
            async with asyncio.timeout(seconds), self._connected() as connection:
                begun = True
                try:
                    await connection.run(_READER if snapshot else _WRITER)
                    ((now,),) = await connection.fetch(_NOW)
                    yield Transaction(connection, now)
                except BaseException:
                    await connection.roll_back()
                    raise
                done = True
                await connection.run("COMMIT")
        except _FORGOTTEN:
            self._keeps = False
            raise StatementsForgottenError(
                f"{self.name}: a pooler between here and the database forgets statements;"
                " they are prepared each time from now on"
            ) from None
        except (SQLAlchemyError, asyncpg.PostgresError, OSError) as error:
            found = translated(self.name, self._url, error)
            if done and isinstance(found, StateUnreachableError):
                raise StateUnsureError(str(found)) from None
            raise found from None
        except (asyncpg.InterfaceError, ValueError) as error:
            if begun:
                raise
            raise translated(self.name, self._url, error) from None

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[PostgresConnection]:
        connection = await greenlet_spawn(self._engine.connect)
        try:
            yield PostgresConnection(connection, keeps=self._keeps)
        finally:
            # To its end, even where this task is cancelled: or the pool would have one less.
            await asyncio.shield(asyncio.ensure_future(greenlet_spawn(connection.close)))

    async def end_silent(self) -> None:
        """End transactions of gateways that are silent amid a statement; raises StateError."""
        locks = {"judge": LOCK_JUDGE, "change": LOCK_CHANGE}
        async with self.transaction() as (connection, _):
            await connection.execute(_END_SILENT, {"silent": _IDLE, "of": SCHEMA, **locks})

    async def listen(self, heard: Callable[[], None]) -> None:
        """Call a function with each notification of an override; return when none can come.

        Raises:
            StateError: the database cannot be reached or used.
        """
        try:
            connection = await asyncpg.connect(
                self._url, timeout=_CONNECT, command_timeout=_STATEMENT, statement_cache_size=0
            )
        except (*_DRIVER, ValueError) as error:
            raise translated(self.name, self._url, error) from None
        try:
            ended = asyncio.Event()
            connection.add_termination_listener(lambda _: ended.set())
            await connection.add_listener(_CHANNEL, lambda *_: heard())
            while not ended.is_set():
                with suppress(TimeoutError):
                    async with asyncio.timeout(_LISTEN):
                        await ended.wait()
                        return
                await connection.fetchval("SELECT 1")
        except _DRIVER as error:
            raise translated(self.name, self._url, error) from None
        finally:
            connection.terminate()

    async def close(self) -> None:
        """Close all connections."""
        with suppress(SQLAlchemyError, OSError):
            await greenlet_spawn(self._engine.dispose)

    async def _revision(self, connection: PostgresConnection) -> str:
        # By a query: to_regclass may answer of before another replica made the table.
        query = "SELECT 1 FROM pg_tables WHERE schemaname = :of AND tablename = 'alembic_version'"
        there = await connection.execute(text(query), {"of": SCHEMA})
        if there.one_or_none() is None:
            return ""
        # By its full name: without USAGE on the schema, a table is not found by the other.
        version = select(column("version_num", Text)).select_from(
            table("alembic_version", schema=SCHEMA)
        )
        found = await connection.execute(version)
        return str(found.scalar_one_or_none() or "")

    async def _check_newer(self, connection: PostgresConnection, revision: str) -> None:
        if revision == REVISION:
            return
        # A newer gateway says from which revision on gateways can use its schema.
        document = await connection.execute(
            text("SELECT document FROM documents WHERE name = 'serves'")
        )
        serves = (document.scalar_one_or_none() or revision).strip('"')
        if serves > REVISION:
            raise StateError(
                f"{self.name}: written by a newer gateway (schema {revision}; this one knows"
                f" {REVISION}); run that one, or name another database in 'state'"
            )


def _refuse_closed(connection: AdaptedConnection, *_: object) -> None:
    """Have the pool connect anew, rather than give out a connection that broke off while idle."""
    if connection.driver_connection.is_closed():
        raise InvalidatePoolError


def notify_statement() -> str:
    """Return the statement that has other replicas look at the overrides after the commit."""
    return f"SELECT pg_notify('{_CHANNEL}', '')"


def _name(url: str) -> str:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "localhost", parts.port
    except ValueError:
        return "postgresql://"
    return f"postgresql://{host}{f':{port}' if port else ''}{parts.path}"
