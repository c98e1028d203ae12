"""TransactionLedger: a Ledger in one transaction of the database of a fleet.

One such transaction is under way at a time: it begins with a lock, and reads what the one before it
has written. What it changes is written with its commit, or not at all.
"""

from collections.abc import Callable, Mapping

import msgspec
from sqlalchemy import (
    ColumnElement,
    Select,
    Text,
    bindparam,
    func,
    literal_column,
    select,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, insert

from gateway.base.overrides import VersionKey
from gateway.store.fleet.database.fixed_statement import FixedStatement
from gateway.store.fleet.database.postgres_connection import PostgresConnection
from gateway.store.fleet.postgres import (
    LOCK_CHANGE,
    PostgresDatabase,
    Transaction,
    notify_statement,
)
from gateway.store.ledger import DraftLedger, Order
from gateway.store.schema.state_tables import documents, write_audit
from gateway.usage.state_changes import StateChanges
from gateway.usage.totals import Totals

REVISION_NAME = "revision"
"""The document with the number of the last change of the overrides."""
SHARED = ("overrides", "cutovers", "evidence", "shadow_resets", "deputy", REVISION_NAME)
"""The documents that every replica reads with each beat."""


def select_shared() -> Select[tuple[str, str]]:
    """Return the query for these documents."""
    names: list[ColumnElement[str]] = [literal_column(f"'{name}'") for name in SHARED]
    return select(documents.c.name, documents.c.document).where(documents.c.name.in_(names))


_READ_SHARED = FixedStatement(select_shared(), kept=True)
_NAMES = bindparam("names", type_=ARRAY(Text))
_NAMED = documents.c.name == func.any(_NAMES)
_READ = FixedStatement(select(documents).where(_NAMED), kept=True)
_ADD = insert(documents)
_WRITE = FixedStatement(
    _ADD.on_conflict_do_update(index_elements=["name"], set_={"document": _ADD.excluded.document})
)
_LOCK = FixedStatement(text(f"SELECT pg_advisory_xact_lock({LOCK_CHANGE})"), kept=True)


class TransactionLedger(DraftLedger):
    """The documents of a transaction that holds the lock; `open` makes one."""

    def __init__(
        self, transaction: Transaction, found: Mapping[str, object], totals: Totals | None
    ) -> None:
        super().__init__(found, transaction.now, totals)
        self._connection = transaction.connection

    @classmethod
    async def open(
        cls, transaction: Transaction, totals: Totals | None = None
    ) -> "TransactionLedger":
        """Wait for the lock, and read the documents; raises SQLAlchemyError."""
        connection = transaction.connection
        await connection.fetch(_LOCK)
        return cls(transaction, await read_shared(connection), totals)

    async def write(self) -> None:
        """Write what was changed, in the transaction; raises SQLAlchemyError."""
        connection = self._connection
        if "overrides" in self.changed:
            await self.keep(REVISION_NAME, revision_of(self.documents) + 1)
            await connection.execute(text(notify_statement()))
        for name in sorted(self.changed):
            await write_document(connection, name, self.documents[name])
        if self.entries:
            await connection.run_sync(write_audit, self.entries)


class FleetDocuments:
    """The SharedDocuments of a database."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database

    async def read(self, name: str) -> tuple[object, float]:
        """Return a document, None if there is none, and the time; raises StateError."""
        async with self._database.transaction() as (connection, now):
            return (await read_documents(connection, name)).get(name), now

    async def change(self, name: str, change: Callable[[object], object]) -> None:
        """Replace a document by what a function makes of it; raises StateError."""
        async with self._database.transaction() as (connection, _):
            await connection.fetch(_LOCK)
            found = (await read_documents(connection, name)).get(name)
            await write_document(connection, name, change(found))


class HeardLedger:
    """A Ledger of the documents that were heard last, to read from alone."""

    def __init__(self, found: Mapping[str, object]) -> None:
        self.totals = Totals(StateChanges())
        self.documents = found

    async def keep(self, name: str, document: object) -> None:
        """Refuse: this is what the database had."""
        raise AssertionError("what was heard cannot be changed")

    def record(self, order: Order, what: str, key: VersionKey, before: str, after: str) -> None:
        """Refuse: this is what the database had."""
        raise AssertionError("what was heard cannot be changed")

    def announce(self, event: str, **fields: object) -> None:
        """Refuse: this is what the database had."""
        raise AssertionError("what was heard cannot be changed")


def revision_of(found: Mapping[str, object]) -> int:
    """Return the number of the last change of the overrides."""
    revision = found.get(REVISION_NAME)
    return revision if isinstance(revision, int) else 0


async def read_shared(
    connection: PostgresConnection, statement: FixedStatement = _READ_SHARED, **values: object
) -> dict[str, object]:
    """Return the documents that every replica reads, or those of a statement with its values.

    Raises:
        SQLAlchemyError: they were not read.
    """
    found = await connection.fetch(statement, **values)
    return {name: msgspec.json.decode(document) for name, document in found}


async def read_documents(connection: PostgresConnection, *names: str) -> dict[str, object]:
    """Return documents by name; raises SQLAlchemyError, or DecodeError for invalid JSON.

    Args:
        connection: of the transaction.
        names: of the documents.
    """
    found = await connection.fetch(_READ, names=names)
    return {name: msgspec.json.decode(document) for name, document in found}


async def count_anew(connection: PostgresConnection, now: float) -> None:
    """Note that of what was counted before now, not all is there; raises SQLAlchemyError."""
    await write_document(connection, "since", now)


async def write_document(connection: PostgresConnection, name: str, document: object) -> None:
    """Insert or replace a document; raises SQLAlchemyError."""
    await connection.fetch(_WRITE, name=name, document=msgspec.json.encode(document).decode())
