"""The tables of the state, and how state is read from and written to them, on any engine.

The functions take a connection with a transaction begun, so that a synchronous and an asynchronous
engine can run them alike.
"""

from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

# SQLAlchemy: one description of tables and statements for every SQL engine.
from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Float,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    and_,
    bindparam,
    delete,
    insert,
    select,
)
from sqlalchemy.types import TypeEngine

from gateway.usage.state_changes import AuditRow, CountKey, StateChanges, UsageKey, UsageRow

T = TypeVar("T")

REVISION = "0006"
"""The newest revision of the schema; see `gateway.store.schema`."""


def _keys(*names: str) -> list[Column[str]]:
    return [Column(name, Text, primary_key=True) for name in names]


def _columns(kind: TypeEngine[Any], *names: str) -> list[Column[Any]]:
    return [Column(name, kind, nullable=False) for name in names]


_COUNT, _TEXT = BigInteger(), Text()
_MOMENT = Float(53)  # seconds since 1970
metadata = MetaData()
usage = Table(
    "usage",
    metadata,
    *_keys("api", "version", "endpoint", "client"),  # no client: requests that name none
    Column("others", Boolean, primary_key=True),  # the sum of all clients that have no row
    *_columns(_COUNT, "count", "refused", "failed"),
    *_columns(_COUNT, "slack"),  # the true count is at most this much higher
    *_columns(_MOMENT, "first", "last"),
    *_columns(_MOMENT, "served"),  # the last request let through; 0 for none
)
floors = Table("floors", metadata, *_keys("api", "version"), *_columns(_COUNT, "floor"))
counts = Table(
    "counts",
    metadata,
    *_keys("kind", "labels"),  # labels: a JSON array
    *_columns(_COUNT, "count"),
    *_columns(_MOMENT, "first", "last"),
    # Those of one version, whose labels begin alike.
    Index("counts_by_labels", "labels", postgresql_ops={"labels": "text_pattern_ops"}),
)
documents = Table("documents", metadata, *_keys("name"), *_columns(_TEXT, "document"))  # JSON
audit = Table(
    "audit",
    metadata,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    *_columns(_MOMENT, "at"),
    *_columns(_TEXT, "who", "origin", "what", "api", "version", "why", "before", "after"),
)
# What several gateways need to share the state; a gateway that keeps it alone leaves them empty.
# When a version was called last, so that nobody reads its thousands of rows of usage for that;
# releases before do not write it.
called = Table("called", metadata, *_keys("api", "version"), *_columns(_MOMENT, "last", "served"))
replicas = Table(
    "replicas",
    metadata,
    *_keys("start"),  # one row a start of a replica
    *_columns(_TEXT, "replica", "version", "rules", "admin"),
    *_columns(_MOMENT, "started", "heard"),
    *_columns(_COUNT, "sequence", "merged", "applied"),
    Column("gone", _MOMENT),  # when it left or was forgotten
    # Why its rules on disk are not in force; releases before do not write it.
    Column("refused", Text, nullable=False, server_default=""),
    # The services with targets that fail in it, as JSON; releases before do not write it.
    Column("failing", Text, nullable=False, server_default=""),
)
batches = Table(
    "batches",
    metadata,
    *_keys("start"),
    Column("sequence", BigInteger, primary_key=True),
    *_columns(LargeBinary(), "content"),
)
leases = Table(
    "leases",
    metadata,
    *_keys("name"),
    *_columns(_TEXT, "start"),
    *_columns(_COUNT, "token"),
    *_columns(_MOMENT, "renewed"),
)
MAX_AUDIT = 1000
"""So many of the latest entries of the audit log are read."""


LATEST_AUDIT = (
    select(*(column for column in audit.columns if column is not audit.c.id))
    .order_by(audit.c.id.desc())
    .limit(MAX_AUDIT)
)
"""The query for them, the latest first."""


def read_state(connection: Connection) -> StateChanges:
    """Return all of the state.

    Raises:
        SQLAlchemyError: of the database.
        ValidationError: a value has a wrong type, as SQLite does not check types.
        DecodeError: a document is no JSON.
    """
    used = [
        (api, version, endpoint, None if others else client, *numbers)
        for api, version, endpoint, client, others, *numbers in connection.execute(select(usage))
    ]
    floored = [tuple(row) for row in connection.execute(select(floors))]
    counted = [tuple(row) for row in connection.execute(select(counts))]
    kept = [tuple(row) for row in connection.execute(select(documents))]
    audited = [tuple(row) for row in connection.execute(LATEST_AUDIT)][::-1]
    return StateChanges(
        usage=_typed(usage, used, list[UsageRow]),
        floors={
            (api, version): floor
            for api, version, floor in _typed(floors, floored, list[tuple[str, str, int]])
        },
        counts=[
            (kind, msgspec.json.decode(labels, type=tuple[str, ...]), count, first, last)
            for kind, labels, count, first, last in _typed(
                counts, counted, list[tuple[str, str, int, float, float]]
            )
        ],
        documents={
            name: msgspec.json.decode(document)
            for name, document in _typed(documents, kept, list[tuple[str, str]])
        },
        audit=_typed(audit, audited, list[AuditRow]),
    )


def _typed(table: Table, rows: object, kind: type[T]) -> T:
    """Return rows of a table as a type; raises ValidationError, which names the table."""
    try:
        return msgspec.convert(rows, type=kind)
    except msgspec.ValidationError as error:
        raise msgspec.ValidationError(f"in the table '{table.name}': {error}") from None


def write_state(connection: Connection, changes: StateChanges) -> None:
    """Replace the rows that changed and delete those that are gone; raises SQLAlchemyError."""
    _remove(connection, usage, [*map(_usage_key, changes.gone)])
    rows = [(*_usage_key(row[:4]), *row[4:]) for row in changes.usage]
    replace_rows(connection, usage, rows)
    replace_rows(connection, floors, [(*key, floor) for key, floor in changes.floors.items()])
    _remove(connection, counts, [*map(_count_key, changes.uncounted)])
    counted = [(kind, _json(labels), *numbers) for kind, labels, *numbers in changes.counts]
    replace_rows(connection, counts, counted)
    kept = [(name, _json(document)) for name, document in changes.documents.items()]
    replace_rows(connection, documents, kept)
    write_audit(connection, changes.audit)


def write_audit(connection: Connection, rows: Sequence[AuditRow]) -> None:
    """Add entries to the audit log; raises SQLAlchemyError."""
    names = [column.name for column in audit.columns if column is not audit.c.id]
    if rows:
        connection.execute(insert(audit), [dict(zip(names, row, strict=True)) for row in rows])


def replace_rows(connection: Connection, table: Table, rows: Sequence[tuple[object, ...]]) -> None:
    """Put rows in a table, in place of those with the same keys; raises SQLAlchemyError."""
    if not rows:
        return
    if connection.dialect.name == "sqlite":
        # As text, since it is run every two seconds, and to make it takes longer than to run it.
        names = ", ".join(f'"{name}"' for name in table.columns.keys())  # noqa: SIM118  # of a collection
        values = ", ".join("?" for _ in table.columns)
        statement = f"INSERT OR REPLACE INTO {table.name} ({names}) VALUES ({values})"  # noqa: S608  # ours
        connection.exec_driver_sql(statement, [*rows])
        return
    _remove(connection, table, rows)
    columns = table.columns.keys()
    connection.execute(insert(table), [dict(zip(columns, row, strict=True)) for row in rows])


def _remove(connection: Connection, table: Table, gone: Sequence[tuple[object, ...]]) -> None:
    """Delete the rows that begin with the keys of these."""
    if not gone:
        return
    keys = list(table.primary_key)
    same = and_(*(key == bindparam(f"key_{key.name}") for key in keys))
    former = [
        {f"key_{key.name}": value for key, value in zip(keys, row, strict=False)} for row in gone
    ]
    connection.execute(delete(table).where(same), former)


def _usage_key(key: UsageKey) -> tuple[object, ...]:
    *place, client = key
    return (*place, client or "", client is None)


def _count_key(key: CountKey) -> tuple[object, ...]:
    kind, labels = key
    return kind, _json(labels)


def _json(document: object) -> str:
    return msgspec.json.encode(document).decode()
