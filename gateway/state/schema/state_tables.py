"""The tables of the state, and how state is read from and written to them, on any engine.

The functions take a connection with a transaction begun, so that a synchronous and an asynchronous
engine can run them alike.
"""

from collections.abc import Iterable, Sequence

import msgspec

# SQLAlchemy: one description of tables and statements for every SQL engine.
from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Float,
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

from gateway.state.state_changes import AuditRow, CountKey, StateChanges, UsageKey

REVISION = "0003"
"""The newest revision of the schema; see `gateway.state.schema`."""

metadata = MetaData()
usage = Table(
    "usage",
    metadata,
    Column("api", Text, primary_key=True),
    Column("version", Text, primary_key=True),
    Column("endpoint", Text, primary_key=True),
    Column("client", Text, primary_key=True),  # empty for requests that name no client
    Column("others", Boolean, primary_key=True),  # the sum of all clients that have no row
    Column("count", BigInteger, nullable=False),
    Column("refused", BigInteger, nullable=False),
    Column("failed", BigInteger, nullable=False),
    Column("slack", BigInteger, nullable=False),  # the true count is at most this much higher
    Column("first", Float(53), nullable=False),  # seconds since 1970
    Column("last", Float(53), nullable=False),
    Column("served", Float(53), nullable=False),  # the last request let through; 0 for none
)
floors = Table(
    "floors",
    metadata,
    Column("api", Text, primary_key=True),
    Column("version", Text, primary_key=True),
    Column("floor", BigInteger, nullable=False),
)
counts = Table(
    "counts",
    metadata,
    Column("kind", Text, primary_key=True),
    Column("labels", Text, primary_key=True),  # a JSON array
    Column("count", BigInteger, nullable=False),
    Column("first", Float(53), nullable=False),
    Column("last", Float(53), nullable=False),
)
documents = Table(
    "documents",
    metadata,
    Column("name", Text, primary_key=True),
    Column("document", Text, nullable=False),  # JSON
)

audit = Table(
    "audit",
    metadata,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("at", Float(53), nullable=False),  # seconds since 1970
    Column("who", Text, nullable=False),
    Column("origin", Text, nullable=False),
    Column("what", Text, nullable=False),
    Column("api", Text, nullable=False),
    Column("version", Text, nullable=False),
    Column("why", Text, nullable=False),
    Column("before", Text, nullable=False),
    Column("after", Text, nullable=False),
)
# What several gateways need to share the state; a gateway that keeps it alone leaves them empty.
replicas = Table(
    "replicas",
    metadata,
    Column("start", Text, primary_key=True),  # one row a start of a replica
    Column("replica", Text, nullable=False),
    Column("version", Text, nullable=False),
    Column("rules", Text, nullable=False),
    Column("admin", Text, nullable=False),
    Column("started", Float(53), nullable=False),
    Column("heard", Float(53), nullable=False),
    Column("sequence", BigInteger, nullable=False),
    Column("merged", BigInteger, nullable=False),
    Column("applied", BigInteger, nullable=False),
    Column("gone", Float(53)),  # when it left or was forgotten
)
batches = Table(
    "batches",
    metadata,
    Column("start", Text, primary_key=True),
    Column("sequence", BigInteger, primary_key=True),
    Column("content", LargeBinary, nullable=False),
)
leases = Table(
    "leases",
    metadata,
    Column("name", Text, primary_key=True),
    Column("start", Text, nullable=False),
    Column("token", BigInteger, nullable=False),
    Column("renewed", Float(53), nullable=False),
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
    """Return all of the state; raises SQLAlchemyError, or DecodeError for invalid JSON."""
    return StateChanges(
        usage=[
            (api, version, endpoint, None if others else client, *numbers)
            for api, version, endpoint, client, others, *numbers in connection.execute(
                select(usage)
            )
        ],
        floors={
            (api, version): floor for api, version, floor in connection.execute(select(floors))
        },
        counts=[
            (kind, msgspec.json.decode(labels, type=tuple[str, ...]), *numbers)
            for kind, labels, *numbers in connection.execute(select(counts))
        ],
        documents={
            name: msgspec.json.decode(document)
            for name, document in connection.execute(select(documents))
        },
        audit=[tuple(row) for row in connection.execute(LATEST_AUDIT)][::-1],
    )


def write_state(connection: Connection, changes: StateChanges) -> None:
    """Replace the rows that changed and delete those that are gone; raises SQLAlchemyError."""
    _replace(
        connection,
        usage,
        [(*_usage_key(row[:4]), *row[4:]) for row in changes.usage],
        map(_usage_key, changes.gone),
    )
    _replace(connection, floors, [(*key, floor) for key, floor in changes.floors.items()])
    _replace(
        connection,
        counts,
        [(kind, _json(labels), *numbers) for kind, labels, *numbers in changes.counts],
        map(_count_key, changes.uncounted),
    )
    _replace(
        connection,
        documents,
        [(name, _json(document)) for name, document in changes.documents.items()],
    )
    write_audit(connection, changes.audit)


def write_audit(connection: Connection, rows: Sequence[AuditRow]) -> None:
    """Add entries to the audit log; raises SQLAlchemyError."""
    names = [column.name for column in audit.columns if column is not audit.c.id]
    if rows:
        connection.execute(insert(audit), [dict(zip(names, row, strict=True)) for row in rows])


def _replace(
    connection: Connection,
    table: Table,
    rows: Sequence[tuple[object, ...]],
    gone: Iterable[tuple[object, ...]] = (),
) -> None:
    # Deleted and inserted, because each engine has another statement for both in one.
    keys = list(table.primary_key)
    former = [row[: len(keys)] for row in rows] + list(gone)
    if former:
        same = and_(*(key == bindparam(f"key_{key.name}") for key in keys))
        connection.execute(
            delete(table).where(same),
            [
                {f"key_{key.name}": value for key, value in zip(keys, row, strict=True)}
                for row in former
            ],
        )
    if rows:
        names = table.columns.keys()
        connection.execute(insert(table), [dict(zip(names, row, strict=True)) for row in rows])


def _usage_key(key: UsageKey) -> tuple[object, ...]:
    *place, client = key
    return (*place, client or "", client is None)


def _count_key(key: CountKey) -> tuple[object, ...]:
    kind, labels = key
    return kind, _json(labels)


def _json(document: object) -> str:
    return msgspec.json.encode(document).decode()
