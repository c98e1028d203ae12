"""Connections to the state in PostgreSQL, and the translation of their errors.

The gateway uses its own schema, so other programs can share the database. Frequent statements stay
prepared, unless a connection pooler in front of the database prevents this. Errors of the server,
the driver and the system become StateErrors with a remedy.
"""

import asyncio
import os
import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.parse import parse_qs, urlsplit

# asyncpg: the PostgreSQL driver for asyncio.
import asyncpg
import sqlalchemy as sa
from sqlalchemy.dialects.postgresql.asyncpg import dialect
from sqlalchemy.exc import DBAPIError, InvalidatePoolError, SQLAlchemyError
from sqlalchemy.sql.compiler import SQLCompiler

# SQLAlchemy's asyncio package also uses these greenlets, but it imports the ORM, which takes 6 MB.
from sqlalchemy.util import greenlet_spawn

from gateway.store.state import StateError, StateUnreachableError, StateUnsureError
from gateway.store.tables import OLDEST, REVISION, create_tables, upgrade_tables

# Transient SQLSTATEs: the server is starting or stopping, is a read-only standby, or has no free
# connections or disk space.
_PASSING = ("08", "53", "57", "58", "25006", "25P03", "40", "55P03")
# PgBouncer uses the SQLSTATE of a protocol violation for all errors, including transient errors.
_POOLER = "08P01"
_REFUSED = "28P01"
_POOLER_SAYS = {
    "password authentication failed": _REFUSED,
    "SASL authentication failed": _REFUSED,
    "empty password": _REFUSED,
    "no such user": _REFUSED,
    "no such database": "3D000",
    'database "': "3D000",
}
NO_RIGHTS = "42501"
"""The SQLSTATE of a missing privilege."""
REASONS = {
    _REFUSED: "the user or the password is refused; correct them in 'state'",
    "28000": "the user is refused; correct it in 'state', or allow it in pg_hba.conf",
    "3D000": "there is no such database; create it, or name another in 'state'",
    NO_RIGHTS: (
        "the user has no right to keep state there; grant it CREATE on the database, or USAGE on"
        " the schema gateway and its sequences, and SELECT, INSERT, UPDATE and DELETE on its tables"
    ),
}
# The values of sslmode: https://www.postgresql.org/docs/current/libpq-ssl.html
_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
# URL parameters that contain a password, and URL parameters that contain a file name.
_PASSWORDS = ("password", "passfile")
_FILES = ("sslrootcert", "sslcert", "sslkey", "sslcrl", "passfile")


def translated(name: str, url: str, error: Exception) -> StateError:
    """Return the StateError for an error of a library.

    Args:
        name: the database, without user and password.
        url: the URL of the database. Error messages quote only its file names.
    """
    original = (error.orig if isinstance(error, DBAPIError) else None) or error
    said = str(original).strip().partition("\n")[0] or "no answer in time"
    state = str(getattr(original, "sqlstate", None) or "")
    if state == _POOLER:
        state = next(
            (code for begin, code in _POOLER_SAYS.items() if said.startswith(begin)), state
        )
    if state == _REFUSED and not _has_password(url):
        return StateError(
            f"{name}: the server requires a password, and 'state' has none; add it:"
            " postgresql://USER:PASSWORD@HOST:PORT/DATABASE"
        )
    reason = REASONS.get(state)
    if reason is not None:
        return StateError(f"{name}: {reason}")
    if "SSL upgrade" in said:
        return StateError(f"{name}: {_no_tls(url)}")
    if isinstance(original, ssl.SSLError):
        return StateError(f"{name}: TLS with the server failed: {said}; {_tls_advice(original)}")
    if isinstance(original, OSError):
        return _unreachable(name, url, original)
    # The driver raises ValueError for a wrong parameter. Its message may quote the URL.
    if "root certificate file" in said:
        return StateError(
            f"{name}: the authority of the server's certificate is unknown; add"
            " sslrootcert=FILE to the URL, next to sslmode"
        )
    if "sslmode" in said:
        return StateError(f"{name}: no such sslmode; write one of {', '.join(_MODES)}")
    if "configuration parameter" in said or "startup parameter" in said:
        return StateError(f"{name}: {said} in the URL; correct or remove it")
    if isinstance(original, ValueError) or isinstance(original.__cause__, ValueError):
        return StateError(
            f"{name}: not a usable URL; write postgresql://USER:PASSWORD@HOST:PORT/DATABASE"
        )
    if state.startswith(_PASSING) or not state:
        return StateUnreachableError(f"{name}: the database is not available now: {said}")
    return StateError(f"{name}: the state cannot be kept there: {said}")


def _has_password(url: str) -> bool:
    parts = urlsplit(url)
    return bool(parts.password) or not parse_qs(parts.query).keys().isdisjoint(_PASSWORDS)


def _no_tls(url: str) -> str:
    if "sslmode" in parse_qs(urlsplit(url).query) or "PGSSLMODE" in os.environ:
        return "the server refuses TLS; set it up there, or leave sslmode out of the URL in 'state'"
    return "the server there is not PostgreSQL; correct the address in 'state'"


def _tls_advice(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError) and "certificate is not valid for" in str(
        error
    ):
        return "use the host name of the certificate in the URL"
    return "name the authority of its certificate with sslrootcert=FILE in the URL"


def _unreachable(name: str, url: str, error: OSError) -> StateError:
    if not isinstance(error, ConnectionError | TimeoutError):
        for parameter, (file, *_) in parse_qs(urlsplit(url).query).items():
            if parameter in _FILES and not Path(file).is_file():
                return StateError(
                    f"{name}: {parameter}={file} is not a file; correct it in 'state'"
                )
    return StateUnreachableError(
        f"{name}: the database cannot be reached: {_lower(error)}; is the server"
        " running, and is its address right?"
    )


def _lower(error: OSError) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if "connection_lost" in str(error) or not str(error):  # raised by asyncpg and asyncio
        return "the connection broke off"
    # asyncio adds the failed call to the message, and joins the errors for several addresses.
    number = re.search(r"\[Errno ([0-9]+)\]", str(error))
    said = os.strerror(int(number[1])) if number else error.strerror or str(error)
    return said[:1].lower() + said[1:]


T = TypeVar("T")
_DIALECT = dialect()  # type: ignore[no-untyped-call]  # an untyped class
SCHEMA = "gateway"
# Advisory locks are numbers, shared by all programs that use the database. These numbers consist of
# "vgw" in ASCII and an index.
_LOCK_MIGRATION = 0x76677701
LOCK_LEADER = 0x76677702
LOCK_CHANGE = 0x76677703
_CHANNEL, _ADMITTED = "gateway_overrides", "gateway_admitted"
NOTIFY = f"SELECT pg_notify('{_CHANNEL}', '')"
"""The statement that notifies other replicas of changed overrides. It takes effect at the commit.
"""
# Time-outs in seconds: for connecting, for a statement, and for an idle transaction, which the
# database ends after this time.
_CONNECT = 3.0
_STATEMENT = 3.0
_IDLE = 2.0
# The idle time-out does not apply between the preparation of a statement and its execution. A
# gateway that is suspended at that moment would hold its locks until it resumes.
_END_SILENT = sa.text(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE usename = current_user AND datname = current_database() AND state = 'active'"
    " AND wait_event = 'ClientRead' AND state_change < clock_timestamp() - :silent * interval '1 s'"
    " AND pid IN (SELECT l.pid FROM pg_locks l LEFT JOIN pg_class c ON c.oid = l.relation"
    " WHERE c.relnamespace = CAST(:of AS regnamespace) AND l.mode <> 'AccessShareLock'"
    " OR l.locktype = 'advisory' AND l.objid IN (:judge, :change))"
)
_LISTEN = 10.0
_BEGIN = (
    f"BEGIN{{mode}}; SET LOCAL search_path TO {SCHEMA};"
    f" SET LOCAL statement_timeout = '{_STATEMENT:g}s';"
    " SET LOCAL idle_in_transaction_session_timeout = '{idle:g}s'"
)
_WRITER = _BEGIN.format(mode="", idle=_IDLE)
# A reader holds no lock, so pauses between its statements are allowed.
_READER = _BEGIN.format(mode=" ISOLATION LEVEL REPEATABLE READ, READ ONLY", idle=30)
# Errors that mean that a prepared statement is missing or has changed.
_FORGOTTEN = (
    asyncpg.InvalidSQLStatementNameError,
    asyncpg.DuplicatePreparedStatementError,
    asyncpg.InvalidCachedStatementError,
)
_DRIVER = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError)
_MAY_ADD_TO_AUDIT = sa.text(
    f"SELECT has_sequence_privilege(pg_get_serial_sequence('{SCHEMA}.audit', 'id'), 'USAGE')"
)
# The number of rows that are processed in about a millisecond.
_PART = 500


class StatementsForgottenError(StateUnreachableError):
    """A prepared statement is missing. The next attempt succeeds, without prepared statements."""


class Statement:
    """A statement that is compiled once and that connections can keep prepared.

    Attributes:
        name: the name of the prepared statement, a hash of its SQL. So equal names mean equal
            statements.
    """

    __slots__ = ("_fixed", "_names", "name", "text")

    def __init__(self, statement: sa.ClauseElement) -> None:
        compiled = statement.compile(dialect=_DIALECT)
        assert isinstance(compiled, SQLCompiler)  # only DDL has another compiler
        self.text = str(compiled)
        digest = blake2b(self.text.encode(), digest_size=16).hexdigest()
        self.name = f"gateway_{digest}"
        self._names: tuple[str, ...] = tuple(compiled.positiontup or ())
        binds = compiled.binds.items()
        self._fixed = {name: bind.value for name, bind in binds if not bind.required}

    def arguments(self, values: Mapping[str, object]) -> list[object]:
        """Return the arguments in the order of the placeholders; raises KeyError."""
        fixed = self._fixed
        return [values[name] if name in values else fixed[name] for name in self._names]


NOTIFY_ADMITTED = Statement(
    sa.select(sa.func.pg_notify(_ADMITTED, sa.bindparam("message", type_=sa.Text)))
)
_NOW = Statement(sa.text("SELECT CAST(extract(epoch FROM clock_timestamp()) AS double precision)"))


class PostgresConnection:
    """A connection within a transaction. Each method may raise SQLAlchemyError.

    Methods that take a Statement call the driver directly, which takes a third of the time. These
    methods also raise the errors of the driver: asyncpg.PostgresError and OSError.
    """

    def __init__(self, connection: sa.Connection, *, keeps: bool) -> None:
        self._connection = connection
        self._driver: Any = connection.connection.driver_connection
        self._prepared: dict[str, Any] | None = connection.info if keeps else None

    async def execute(
        self, statement: sa.Executable, parameters: Any = None
    ) -> sa.CursorResult[*tuple[Any, ...]]:
        return await greenlet_spawn(self._connection.execute, statement, parameters)

    async def run(self, script: str) -> None:
        """Execute statements without parameters and results, in one round trip."""
        await self._run(self._driver.execute(script))

    async def roll_back(self) -> None:
        if not self._connection.invalidated:
            await self.run("ROLLBACK")

    async def fetch(self, statement: Statement, **values: object) -> list[Sequence[Any]]:
        arguments = statement.arguments(values)
        prepared = await self._prepare(statement)
        if prepared is not None:
            return await self._run(prepared.fetch(*arguments))
        return await self._run(self._driver.fetch(statement.text, *arguments))

    async def execute_each(
        self, statement: Statement, rows: Iterable[Mapping[str, object]]
    ) -> None:
        given = [statement.arguments(row) for row in rows]
        if not given:
            return
        prepared = await self._prepare(statement)
        if prepared is not None:
            await self._run(prepared.executemany(given))
        else:
            await self._run(self._driver.executemany(statement.text, given))

    async def parts(
        self, statement: Statement, at_once: int | None, **values: object
    ) -> AsyncIterator[list[Sequence[Any]]]:
        """Yield the rows of a query in parts, between which other tasks run.

        If `at_once` is None, the only part contains all rows.
        """
        prepared, arguments = await self._prepare(statement), statement.arguments(values)
        if prepared is None:
            prepared = await self._run(self._driver.prepare(statement.text, name=""))
        cursor = await self._run(prepared.cursor(*arguments)) if at_once else None
        while True:
            fetching = cursor.fetch(at_once) if cursor else prepared.fetch(*arguments)
            rows = await self._run(fetching)
            for place in range(0, len(rows), _PART):
                yield rows[place : place + _PART]
                await asyncio.sleep(0)
            if not at_once or len(rows) < at_once:
                return  # without another round trip

    async def run_sync(self, function: Callable[..., T], *arguments: Any) -> T:
        return await greenlet_spawn(function, self._connection, *arguments)

    async def _prepare(self, statement: Statement) -> Any:
        if self._prepared is None:
            return None
        found = self._prepared.get(statement.name)
        if found is None:
            preparing = self._driver.prepare(statement.text, name=statement.name)
            found = self._prepared[statement.name] = await self._run(preparing)
        return found

    async def _run(self, work: Awaitable[T]) -> T:
        try:
            return await work
        except BaseException as error:
            # A connection that is closed or has an outstanding response is never used again, as in
            # SQLAlchemy.
            closed = self._driver.is_closed()
            if closed or not isinstance(error, asyncpg.PostgresError):
                self._connection.invalidate()
            # InternalClientError: the server has announced its shutdown but has not closed the
            # connection yet.
            ended = closed and isinstance(error, asyncpg.InterfaceError)
            if ended or isinstance(error, asyncpg.InternalClientError):
                raise ConnectionError("the connection broke off") from None
            raise


class Transaction(NamedTuple):
    """A transaction, and its start by the clock of the database, in seconds since 1970."""

    connection: PostgresConnection
    now: float


class PostgresDatabase:
    """A database, connected on first use. `name` is its URL without user and password."""

    def __init__(self, url: str, *, keeps: bool = True) -> None:
        self._url = url
        self.name = _name(url)
        self._engine = sa.create_engine(
            "postgresql+asyncpg://",
            connect_args={
                "dsn": url,
                "timeout": _CONNECT,
                "command_timeout": _STATEMENT + 1,
                "statement_cache_size": 0,
                "prepared_statement_cache_size": 0,
                "prepared_statement_name_func": str,  # no name: ""
            },
            pool_size=2,  # the heartbeat and the leader
            max_overflow=3,  # an operator's change, and two readers
            pool_timeout=_CONNECT,
            hide_parameters=True,
            isolation_level="AUTOCOMMIT",  # this module begins and ends transactions
        )
        sa.event.listen(self._engine, "checkout", _refuse_closed)
        self._keeps = keeps

    async def prepare(self) -> None:
        """Create or upgrade the schema. If several replicas start together, only one does so."""
        async with self.transaction() as (connection, _):
            revision = await self._revision(connection)
            if revision >= REVISION:
                await self._check_newer(connection, revision)
                # Report a missing privilege at the start, not at the first change or rollback.
                if not (await connection.execute(_MAY_ADD_TO_AUDIT)).scalar_one():
                    raise StateError(f"{self.name}: {REASONS[NO_RIGHTS]}")
                return
        # Schema changes may wait for other replicas, and take longer than other statements.
        async with self.transaction(60.0) as (connection, _):
            await connection.execute(sa.text("SET LOCAL statement_timeout = '60s'"))
            await connection.execute(
                sa.text("SET LOCAL idle_in_transaction_session_timeout = '60s'")
            )
            await connection.execute(sa.text(f"SELECT pg_advisory_xact_lock({_LOCK_MIGRATION})"))
            revision = await self._revision(connection)
            if revision >= REVISION:  # another replica was first
                return
            if not revision:
                await connection.execute(sa.text(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}"))
            await connection.run_sync(upgrade_tables if revision else create_tables)

    async def check(self) -> None:
        """Raise StateError if the database has no readable state. This method changes nothing."""
        async with self.transaction() as (connection, _):
            revision = await self._revision(connection)
            if not revision:
                raise StateError(f"{self.name}: not the state of a gateway; name another database")
            await self._check_newer(connection, revision)

    @asynccontextmanager
    async def transaction(
        self, seconds: float = _STATEMENT * 2, *, snapshot: bool = False
    ) -> AsyncIterator[Transaction]:
        """Open a transaction, which is committed unless an error is raised.

        Args:
            snapshot: whether the transaction only reads, from one snapshot of the database.

        Raises:
            StateUnsureError: the connection broke during the commit, which may have succeeded.
            StatementsForgottenError: a pooler lost prepared statements; nothing was changed.
            StateUnreachableError: the database cannot be reached; nothing was changed.
            StateError: the database cannot be used; nothing was changed.
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
                f"{self.name}: a connection pooler loses prepared statements;"
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
            # Shielded: a cancelled task would leak the connection.
            await asyncio.shield(asyncio.ensure_future(greenlet_spawn(connection.close)))

    async def end_silent(self) -> None:
        """End transactions of gateways that are suspended within a statement."""
        locks = {"judge": LOCK_LEADER, "change": LOCK_CHANGE}
        async with self.transaction() as (connection, _):
            await connection.execute(_END_SILENT, {"silent": _IDLE, "of": SCHEMA, **locks})

    async def listen(self, notified: Callable[[], None], admitted: Callable[[str], None]) -> None:
        """Call a function at each notification until the connection ends; raises StateError."""
        try:
            connection = await asyncpg.connect(
                self._url, timeout=_CONNECT, command_timeout=_STATEMENT, statement_cache_size=0
            )
        except (*_DRIVER, ValueError) as error:
            raise translated(self.name, self._url, error) from None
        try:
            ended = asyncio.Event()
            connection.add_termination_listener(lambda _: ended.set())
            await connection.add_listener(_CHANNEL, lambda *_: notified())
            await connection.add_listener(_ADMITTED, lambda *given: admitted(given[-1]))
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
        with suppress(SQLAlchemyError, OSError):
            await greenlet_spawn(self._engine.dispose)

    async def _revision(self, connection: PostgresConnection) -> str:
        # to_regclass may not find a table that another replica has just created.
        query = "SELECT 1 FROM pg_tables WHERE schemaname = :of AND tablename = 'alembic_version'"
        there = await connection.execute(sa.text(query), {"of": SCHEMA})
        if there.one_or_none() is None:
            return ""
        # With the schema name: the search path skips schemas for which the USAGE privilege is
        # missing.
        version = sa.select(sa.column("version_num", sa.Text)).select_from(
            sa.table("alembic_version", schema=SCHEMA)
        )
        found = str((await connection.execute(version)).scalar_one_or_none() or "")
        if "" < found < OLDEST:
            raise StateError(
                f"{self.name}: written by an unreleased gateway (schema {found}); name another"
                " database in 'state'"
            )
        return found

    async def _check_newer(self, connection: PostgresConnection, revision: str) -> None:
        if revision == REVISION:
            return
        # A newer gateway stores the oldest revision that is compatible with its schema.
        document = await connection.execute(
            sa.text("SELECT document FROM documents WHERE name = 'serves'")
        )
        serves = (document.scalar_one_or_none() or revision).strip('"')
        if serves > REVISION:
            raise StateError(
                f"{self.name}: written by a newer gateway (schema {revision}; this one supports"
                f" {REVISION}); run that release, or name another database in 'state'"
            )


def _refuse_closed(connection: sa.AdaptedConnection, *_: object) -> None:
    """Make the pool replace a connection that was closed while it was idle."""
    if connection.driver_connection.is_closed():
        raise InvalidatePoolError


def _name(url: str) -> str:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "localhost", parts.port
    except ValueError:
        return "postgresql://"
    return f"postgresql://{host}{f':{port}' if port else ''}{parts.path}"
