"""The table of the history, and how it is read and added to, on any engine."""

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Float,
    Index,
    LargeBinary,
    Row,
    Select,
    Table,
    Text,
    case,
    delete,
    literal,
    select,
    tuple_,
)

from gateway.store.schema.state_tables import metadata, replace_rows
from gateway.usage.history import History, HistoryQuery
from gateway.usage.interval import IntervalRow, Resolution

history = Table(
    "history",
    metadata,
    Column("api", Text, primary_key=True),
    Column("version", Text, primary_key=True),
    Column("by", Text, primary_key=True),  # minute or day
    Column("start", BigInteger, primary_key=True),  # seconds since 1970
    Column("requests", BigInteger, nullable=False),
    Column("errors", BigInteger, nullable=False),
    Column("refused", BigInteger, nullable=False),
    Column("seconds", Float(53), nullable=False),
    Column("buckets", LargeBinary, nullable=False),  # the number of requests by duration
    Column("callers", LargeBinary, nullable=False),  # the hashes that Distinct keeps
    # The latest days of all versions are few of the rows.
    Index("history_by_start", "by", "start"),
)
ALL_BUT_CALLERS = [each for each in history.columns if each is not history.c.callers]
# As text, as it runs every two seconds; see `replace_rows`.
_KNOWN = (
    "SELECT api, version, by, start, requests, errors, refused, seconds, buckets, callers"
    " FROM history WHERE api = ? AND version = ? AND by = ? AND start = ?"
)


def select_history(query: HistoryQuery, now: float) -> Select[Any]:
    """Return the statement for the rows of the intervals that are asked for at a time."""
    known = history.c.start >= query.callers_since(now)
    callers = case((known, history.c.callers), else_=literal(b"", LargeBinary))
    since = history.c.start >= query.since(now)
    found = select(*ALL_BUT_CALLERS, callers).where(history.c.by == query.by.value, since)
    if query.api is not None:
        found = found.where(history.c.api == query.api)
    if query.version is not None:
        found = found.where(history.c.version == query.version)
    return found


def read_history(connection: Connection, query: HistoryQuery, now: float) -> History:
    """Return the intervals that are asked for at a time; raises SQLAlchemyError."""
    found = connection.execute(select_history(query, now))
    return History((_row(row) for row in found), bounded=False)


def write_history(connection: Connection, rows: Sequence[IntervalRow]) -> None:
    """Add what intervals have more to a SQLite file, cut each series; raises SQLAlchemyError."""
    found = (connection.exec_driver_sql(_KNOWN, row[:4]).one_or_none() for row in rows)
    known = [_row(row) for row in found if row is not None]
    merged = History(known, bounded=False)
    merged.add(rows)
    replace_rows(connection, history, merged.rows())
    cut_history(connection, {row[:3] for row in rows} if len(known) < len(rows) else ())


def cut_history(connection: Connection, series: Iterable[tuple[str, str, str]]) -> None:
    """Keep the latest intervals of these series; raises SQLAlchemyError."""
    for key in series:
        same = tuple_(history.c.api, history.c.version, history.c.by) == key
        first = (
            select(history.c.start)
            .where(same)
            .order_by(history.c.start.desc())
            .offset(Resolution(key[2]).most - 1)
            .limit(1)
            .scalar_subquery()
        )
        connection.execute(delete(history).where(same, history.c.start < first))


def _row(row: Row[Any]) -> IntervalRow:
    return IntervalRow._make(row)
