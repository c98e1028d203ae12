"""The tables of the state, and the statements for both databases.

The functions take a connection with an open transaction, and raise SQLAlchemyError.
"""

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import msgspec

# SQLAlchemy: one definition of tables and statements for SQLite and PostgreSQL.
import sqlalchemy as sa
from sqlalchemy.types import TypeEngine

from gateway.rollout.decisions import MAX_AUDIT, AuditEntry
from gateway.usage.history import History, HistoryQuery, IntervalRow, Resolution
from gateway.usage.totals import StateRows, UsageKey, UsageRow

T = TypeVar("T")

REVISION = "0007"
"""The newest revision of the schema; see `gateway.store.migrations`."""
OLDEST = "0006"
"""The oldest revision that can be upgraded. No release has an earlier revision."""
# Gateways of this revision or a later one can use the newest schema.
_SERVES = "0002"


def _keys(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text, primary_key=True) for name in names]


def _columns(kind: TypeEngine[Any], *names: str) -> list[sa.Column[Any]]:
    return [sa.Column(name, kind, nullable=False) for name in names]


_COUNT, _TEXT = sa.BigInteger(), sa.Text()
_MOMENT = sa.Float(53)  # seconds since 1970
metadata = sa.MetaData()
usage = sa.Table(
    "usage",
    metadata,
    *_keys("api", "version", "endpoint", "client"),  # the client is empty without a client name
    sa.Column("others", sa.Boolean, primary_key=True),  # the sum of all clients without a row
    *_columns(_COUNT, "count", "refused", "failed"),
    *_columns(_COUNT, "slack"),  # the true count is higher by at most this number
    *_columns(_MOMENT, "first", "last"),
    *_columns(_MOMENT, "served"),  # the last use; 0 without one
    # Earlier releases do not write these columns.
    sa.Column("rejected", _COUNT, nullable=False, server_default="0"),
    sa.Column("rejected_at", _MOMENT, nullable=False, server_default="0"),
)
floors = sa.Table("floors", metadata, *_keys("api", "version"), *_columns(_COUNT, "floor"))
counts = sa.Table(
    "counts",
    metadata,
    *_keys("kind", "labels"),  # labels: a JSON array
    *_columns(_COUNT, "count"),
    *_columns(_MOMENT, "first", "last"),
    # The labels of a version's counts have a common prefix, so the index finds these counts.
    sa.Index("counts_by_labels", "labels", postgresql_ops={"labels": "text_pattern_ops"}),
)
documents = sa.Table("documents", metadata, *_keys("name"), *_columns(_TEXT, "document"))  # JSON
audit = sa.Table(
    "audit",
    metadata,
    sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True),
    *_columns(_MOMENT, "at"),
    *_columns(_TEXT, "who", "origin", "what", "api", "version", "why", "before", "after"),
)
history = sa.Table(
    "history",
    metadata,
    *_keys("api", "version", "by"),  # by: minute or day
    sa.Column("start", sa.BigInteger, primary_key=True),  # seconds since 1970
    *_columns(_COUNT, "requests", "errors", "refused"),
    *_columns(_MOMENT, "seconds"),
    *_columns(sa.LargeBinary(), "buckets"),  # the number of requests by duration
    *_columns(sa.LargeBinary(), "callers"),  # the content of a DistinctSketch
    # Finds the latest days of all versions.
    sa.Index("history_by_start", "by", "start"),
)
# The tables of a fleet, which are empty for a single gateway. `called` has the time of the last
# request for each version, so that thousands of usage rows need not be read.
called = sa.Table(
    "called", metadata, *_keys("api", "version"), *_columns(_MOMENT, "last", "served")
)
replicas = sa.Table(
    "replicas",
    metadata,
    *_keys("start"),  # one row for each start of a replica
    *_columns(_TEXT, "replica", "version", "rules", "admin"),
    *_columns(_MOMENT, "started", "heard"),
    *_columns(_COUNT, "sequence", "merged", "applied"),
    sa.Column("gone", _MOMENT),  # the time at which the replica left or was forgotten
    # Earlier releases do not write these columns.
    sa.Column("refused", sa.Text, nullable=False, server_default=""),
    sa.Column("failing", sa.Text, nullable=False, server_default=""),
)
batches = sa.Table(
    "batches",
    metadata,
    *_keys("start"),
    sa.Column("sequence", sa.BigInteger, primary_key=True),
    *_columns(sa.LargeBinary(), "content"),
)
leases = sa.Table(
    "leases",
    metadata,
    *_keys("name"),
    *_columns(_TEXT, "start"),
    *_columns(_COUNT, "token"),
    *_columns(_MOMENT, "renewed"),
)
# Equal to the table that Alembic creates.
_revisions = sa.Table(
    "alembic_version", sa.MetaData(), sa.Column("version_num", sa.String(32), primary_key=True)
)
_AUDIT = [column for column in audit.columns if column is not audit.c.id]
LATEST_AUDIT = sa.select(*_AUDIT).order_by(audit.c.id.desc()).limit(MAX_AUDIT)
ALL_BUT_CALLERS = [each for each in history.columns if each is not history.c.callers]
# A string for speed; see `replace_rows`.
_KNOWN_INTERVAL = (
    "SELECT api, version, by, start, requests, errors, refused, seconds, buckets, callers"
    " FROM history WHERE api = ? AND version = ? AND by = ? AND start = ?"
)


def create_tables(connection: sa.Connection) -> None:
    """Create the tables of a new database without Alembic, which takes 10 MB."""
    metadata.create_all(connection, checkfirst=False)
    _revisions.create(connection)
    connection.execute(sa.insert(_revisions), {"version_num": REVISION})
    if connection.dialect.name == "postgresql":  # shared by several gateways
        connection.execute(sa.insert(documents), {"name": "serves", "document": encoded(_SERVES)})


def upgrade_tables(connection: sa.Connection) -> None:
    # Imported here since Alembic takes 10 MB, and few starts need it.
    from gateway.store.migrations import upgrade

    upgrade(connection)


def read_rows(connection: sa.Connection) -> StateRows:
    """Return all rows except the history.

    Raises:
        ValidationError: a value has the wrong type; SQLite does not check types.
        DecodeError: a document is not JSON.
    """

    def rows(table: sa.Table, query: sa.Select[Any], kind: type[T]) -> T:
        found = [tuple(row) for row in connection.execute(query)]
        try:
            return msgspec.convert(found, type=kind)
        except msgspec.ValidationError as error:
            raise msgspec.ValidationError(f"in the table '{table.name}': {error}") from None

    # The row for all other clients gets None as its client.
    named = sa.case((usage.c.others, None), else_=usage.c.client)
    used = sa.select(*usage.columns[:3], named, *usage.columns[5:])
    stored = rows(documents, sa.select(documents), list[tuple[str, str]])
    counted = rows(counts, sa.select(counts), list[tuple[str, str, int, float, float]])
    return StateRows(
        usage=rows(usage, used, list[UsageRow]),
        floors={
            row[:2]: row[2] for row in rows(floors, sa.select(floors), list[tuple[str, str, int]])
        },
        counts=[
            (kind, msgspec.json.decode(labels, type=tuple[str, ...]), count, first, last)
            for kind, labels, count, first, last in counted
        ],
        documents={name: msgspec.json.decode(document) for name, document in stored},
        audit=rows(audit, LATEST_AUDIT, list[AuditEntry])[::-1],
    )


def write_rows(connection: sa.Connection, changes: StateRows) -> None:
    _remove(connection, usage, [_usage_key(key) for key in changes.deleted_usage])
    replace_rows(connection, usage, [(*_usage_key(row[:4]), *row[4:]) for row in changes.usage])
    replace_rows(connection, floors, [(*key, floor) for key, floor in changes.floors.items()])
    _remove(
        connection, counts, [(kind, encoded(labels)) for kind, labels in changes.deleted_counts]
    )
    counted = [(kind, encoded(labels), *times) for kind, labels, *times in changes.counts]
    replace_rows(connection, counts, counted)
    named = [(name, encoded(document)) for name, document in changes.documents.items()]
    replace_rows(connection, documents, named)
    write_audit(connection, changes.audit)


def write_audit(connection: sa.Connection, rows: Sequence[AuditEntry]) -> None:
    if rows:
        connection.execute(sa.insert(audit), [entry._asdict() for entry in rows])


def read_history(connection: sa.Connection, query: HistoryQuery, now: float) -> History:
    known = history.c.start >= query.callers_since(now)
    callers = sa.case((known, history.c.callers), else_=sa.literal(b"", sa.LargeBinary))
    found = sa.select(*ALL_BUT_CALLERS, callers).where(
        history.c.by == query.by.value, history.c.start >= query.since(now)
    )
    if query.api is not None:
        found = found.where(history.c.api == query.api)
    if query.version is not None:
        found = found.where(history.c.version == query.version)
    return History(map(tuple, connection.execute(found)), bounded=False)


def write_history(connection: sa.Connection, rows: Sequence[IntervalRow]) -> None:
    """Add counts to the intervals in an SQLite file, and delete intervals beyond the maximum."""
    found = (connection.exec_driver_sql(_KNOWN_INTERVAL, row[:4]).one_or_none() for row in rows)
    known = [tuple(row) for row in found if row is not None]
    merged = History(known, bounded=False)
    merged.add(rows)
    replace_rows(connection, history, merged.rows())
    cut_history(connection, {row[:3] for row in rows} if len(known) < len(rows) else ())


def cut_history(connection: sa.Connection, series: Iterable[tuple[str, str, str]]) -> None:
    for key in series:
        same = sa.tuple_(history.c.api, history.c.version, history.c.by) == key
        first = (
            sa.select(history.c.start)
            .where(same)
            .order_by(history.c.start.desc())
            .offset(Resolution(key[2]).max_intervals - 1)
            .limit(1)
            .scalar_subquery()
        )
        connection.execute(sa.delete(history).where(same, history.c.start < first))


def replace_rows(
    connection: sa.Connection, table: sa.Table, rows: Sequence[tuple[object, ...]]
) -> None:
    if not rows:
        return
    if connection.dialect.name == "sqlite":
        # A string instead of a compiled statement: this runs every two seconds, and compiling takes
        # longer than running the statement.
        names = ", ".join(f'"{column.name}"' for column in table.columns)
        values = ", ".join("?" for _ in table.columns)
        statement = f"INSERT OR REPLACE INTO {table.name} ({names}) VALUES ({values})"  # noqa: S608  # constants
        connection.exec_driver_sql(statement, [*rows])
        return
    _remove(connection, table, rows)
    columns = table.columns.keys()
    connection.execute(sa.insert(table), [dict(zip(columns, row, strict=True)) for row in rows])


def encoded(document: object) -> str:
    return msgspec.json.encode(document).decode()


def _remove(connection: sa.Connection, table: sa.Table, gone: Sequence[tuple[object, ...]]) -> None:
    if not gone:
        return
    keys = list(table.primary_key)
    same = sa.and_(*(key == sa.bindparam(f"key_{key.name}") for key in keys))
    former = [
        {f"key_{key.name}": value for key, value in zip(keys, row, strict=False)} for row in gone
    ]
    connection.execute(sa.delete(table).where(same), former)


def _usage_key(key: UsageKey) -> tuple[object, ...]:
    *place, client = key
    return (*place, client or "", client is None)
