"""The tables of a new database, as all revisions together make them, without Alembic."""

from sqlalchemy import Column, Connection, MetaData, String, Table, insert

# The tables of this module are added to the others when it is imported.
from gateway.store.schema.history_table import history
from gateway.store.schema.state_tables import REVISION, documents

# As the newest revision has it.
_SERVES = "0002"
# As Alembic makes it.
_revisions = Table(
    "alembic_version", MetaData(), Column("version_num", String(32), primary_key=True)
)


def create_tables(connection: Connection) -> None:
    """Create all tables of a database that several gateways share; raises SQLAlchemyError."""
    history.metadata.create_all(connection, checkfirst=False)
    _revisions.create(connection)
    connection.execute(insert(_revisions), {"version_num": REVISION})
    connection.execute(insert(documents), {"name": "serves", "document": f'"{_SERVES}"'})
