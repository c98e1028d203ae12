"""PostgresConnection: a connection in a transaction."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

# asyncpg: the driver of PostgreSQL for asyncio.
import asyncpg
from sqlalchemy import Connection, CursorResult, Executable

# The greenlets by which SQLAlchemy's own asyncio package runs an engine. That package imports the
# ORM as well, which is 6 MB that the gateway has no use for.
from sqlalchemy.util import greenlet_spawn

from gateway.store.fleet.database.fixed_statement import FixedStatement

T = TypeVar("T")
# Rows that take about a millisecond.
_PART = 500


class PostgresConnection:
    """A connection in a transaction; each method raises SQLAlchemyError.

    Those that take a FixedStatement ask the driver alone, at a third of the cost, and raise its
    errors: asyncpg.PostgresError and OSError.

    Args:
        connection: which leaves transactions to this class.
        keeps: whether the server keeps what is prepared until the connection ends.
    """

    def __init__(self, connection: Connection, *, keeps: bool) -> None:
        self._connection = connection
        self._driver: Any = connection.connection.driver_connection
        self._prepared: dict[str, Any] | None = connection.info if keeps else None

    async def execute(
        self, statement: Executable, parameters: Any = None
    ) -> CursorResult[*tuple[Any, ...]]:
        """Execute a statement; return its result, whose rows are all there."""
        return await greenlet_spawn(self._connection.execute, statement, parameters)

    async def run(self, script: str) -> None:
        """Execute statements that have no parameters and return nothing, at once."""
        await self._run(self._driver.execute(script))

    async def roll_back(self) -> None:
        """End the transaction with nothing done."""
        if not self._connection.invalidated:
            await self.run("ROLLBACK")

    async def fetch(self, statement: FixedStatement, **values: object) -> list[Sequence[Any]]:
        """Execute a statement; return its rows."""
        arguments = statement.arguments(values)
        prepared = await self._prepare(statement)
        if prepared is not None:
            return await self._run(prepared.fetch(*arguments))
        return await self._run(self._driver.fetch(statement.text, *arguments))

    async def execute_each(
        self, statement: FixedStatement, rows: Iterable[Mapping[str, object]]
    ) -> None:
        """Execute a statement with the parameters of each row."""
        given = [statement.arguments(row) for row in rows]
        if not given:
            return
        prepared = await self._prepare(statement)
        if prepared is not None:
            await self._run(prepared.executemany(given))
        else:
            await self._run(self._driver.executemany(statement.text, given))

    async def parts(
        self, statement: FixedStatement, at_once: int | None, **values: object
    ) -> AsyncIterator[list[Sequence[Any]]]:
        """Yield the rows of a query in parts, between which others have their turn.

        Args:
            statement: the query.
            at_once: the rows that are fetched at a time; None for all, where they are bounded.
            values: its parameters.
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
                return  # without asking once more

    async def run_sync(self, function: Callable[..., T], *arguments: Any) -> T:
        """Return what a function of a connection returns."""
        return await greenlet_spawn(function, self._connection, *arguments)

    async def _prepare(self, statement: FixedStatement) -> Any:
        """Return a statement that this connection keeps prepared; None if it is not to."""
        if self._prepared is None or not statement.name:
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
            # As SQLAlchemy does with its own: nobody gets a connection again that broke off, or on
            # which an answer was no longer waited for.
            closed = self._driver.is_closed()
            if closed or not isinstance(error, asyncpg.PostgresError):
                self._connection.invalidate()
            # The latter where the server has said that it ends, and has not closed it yet.
            ended = closed and isinstance(error, asyncpg.InterfaceError)
            if ended or isinstance(error, asyncpg.InternalClientError):
                raise ConnectionError("the connection broke off") from None
            raise
