"""Documents of a fleet: named JSON values that all replicas share.

A transaction that changes documents first takes a common lock and then reads the documents.
"""

from collections.abc import Mapping

import msgspec
import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, insert

from gateway.rollout.cutovers import CUTOVERS
from gateway.rollout.decisions import OVERRIDES, Draft
from gateway.store.postgres import LOCK_CHANGE, NOTIFY, PostgresConnection, Statement
from gateway.store.replicas import DEPUTY
from gateway.store.tables import documents, encoded, write_audit

REVISION_NAME = "revision"
EVIDENCE = "evidence"
RESETS = "shadow_resets"
"""The name of the document that records, for each shadow, how often its counts were deleted."""
SHARED = (OVERRIDES, CUTOVERS, EVIDENCE, RESETS, DEPUTY, REVISION_NAME)
"""The documents that each replica reads with every heartbeat."""


def select_shared() -> sa.Select[tuple[str, str]]:
    names: list[sa.ColumnElement[str]] = [sa.literal_column(f"'{name}'") for name in SHARED]
    return sa.select(documents.c.name, documents.c.document).where(documents.c.name.in_(names))


_READ_SHARED = Statement(select_shared())
_NAMES = sa.bindparam("names", type_=ARRAY(sa.Text))
_READ = Statement(sa.select(documents).where(documents.c.name == sa.func.any(_NAMES)))
_ADD = insert(documents)
_WRITE = Statement(
    _ADD.on_conflict_do_update(index_elements=["name"], set_={"document": _ADD.excluded.document})
)
_LOCK = Statement(sa.text(f"SELECT pg_advisory_xact_lock({LOCK_CHANGE})"))


def revision_of(found: Mapping[str, object]) -> int:
    revision = found.get(REVISION_NAME)
    return revision if isinstance(revision, int) else 0


async def lock(connection: PostgresConnection) -> None:
    """Wait for other changes of documents, and block new changes until the transaction ends."""
    await connection.fetch(_LOCK)


async def open_draft(connection: PostgresConnection, now: float) -> Draft:
    await lock(connection)
    return Draft(await read_shared(connection), now)


async def write_draft(connection: PostgresConnection, draft: Draft) -> None:
    """Write the changes of a draft, and notify the other replicas if overrides changed."""
    if OVERRIDES in draft.changed:
        draft.put(REVISION_NAME, revision_of(draft.documents) + 1)
        await connection.execute(sa.text(NOTIFY))
    for name in sorted(draft.changed):
        await write_document(connection, name, draft.documents[name])
    if draft.entries:
        await connection.run_sync(write_audit, draft.entries)


async def read_shared(
    connection: PostgresConnection, statement: Statement = _READ_SHARED, **values: object
) -> dict[str, object]:
    """Return the documents that a statement with parameters selects, by default the shared ones."""
    found = await connection.fetch(statement, **values)
    return {name: msgspec.json.decode(document) for name, document in found}


async def read_documents(connection: PostgresConnection, *names: str) -> dict[str, object]:
    return await read_shared(connection, _READ, names=names)


async def write_document(connection: PostgresConnection, name: str, document: object) -> None:
    await connection.fetch(_WRITE, name=name, document=encoded(document))


async def restart_counting(connection: PostgresConnection, now: float) -> None:
    await write_document(connection, "since", now)
