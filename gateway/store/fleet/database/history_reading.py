"""Reading of the history: of all versions, or all of one at once."""

from math import ceil

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    LargeBinary,
    Table,
    Text,
    bindparam,
    case,
    literal,
    or_,
    select,
    union_all,
)

from gateway.base.overrides import VersionKey
from gateway.store.fleet.database.fixed_statement import FixedStatement
from gateway.store.fleet.database.postgres_connection import PostgresConnection
from gateway.store.schema.history_table import ALL_BUT_CALLERS, history
from gateway.usage.history import History, HistoryQuery, HistoryView
from gateway.usage.interval import Resolution

# So many rows are fetched at a time, some MB.
_ROWS = 5000


async def read_history(
    connection: PostgresConnection, query: HistoryQuery, now: float
) -> HistoryView:
    """Return the intervals that are asked for at a time; raises SQLAlchemyError."""
    found = History(bounded=False)
    asked = {"by": query.by.value, "api": query.api, "label": query.version}
    times = {"since": ceil(query.since(now)), "callers": ceil(query.callers_since(now))}
    async for part in connection.parts(_HISTORY, _ROWS, **times, **asked):
        found.add(part)
    return found.view(query, now)


async def add_history(
    connection: PostgresConnection, found: History, key: VersionKey, days: float, minutes: float
) -> None:
    """Add the history of a version; raises SQLAlchemyError.

    Args:
        connection: in a transaction.
        found: is added to.
        key: the version.
        days: from when on its days are read, in seconds since 1970.
        minutes: from when on its minutes are, which lack their callers.
    """
    of = {"api": key[0], "label": key[1], "days": ceil(days), "minutes": ceil(minutes)}
    async for part in connection.parts(_OF_VERSION, None, **of):
        found.add(part)


def of_version(table: Table) -> tuple[ColumnElement[bool], ...]:
    """Return the condition that a row is of an API and a version, each if it is not null."""
    api, label = bindparam("api", type_=Text), bindparam("label", type_=Text)
    columns = table.columns
    return or_(api.is_(None), columns.api == api), or_(label.is_(None), columns.version == label)


def _since(name: str) -> ColumnElement[bool]:
    # Of the type of the column: for another one, no index is used.
    return history.c.start >= bindparam(name, type_=BigInteger)


_NO_CALLERS = literal(b"", LargeBinary)
_HISTORY = FixedStatement(
    select(*ALL_BUT_CALLERS, case((_since("callers"), history.c.callers), else_=_NO_CALLERS)).where(
        history.c.by == bindparam("by"), _since("since"), *of_version(history)
    )
)
# Nobody asks who called in a minute, and that is the half of what there is.
_OF_VERSION = FixedStatement(
    union_all(
        *(
            select(*ALL_BUT_CALLERS, callers).where(
                history.c.by == by.value, _since(name), *of_version(history)
            )
            for by, name, callers in (
                (Resolution.DAY, "days", history.c.callers),
                (Resolution.MINUTE, "minutes", _NO_CALLERS),
            )
        )
    ),
    kept=True,
)
