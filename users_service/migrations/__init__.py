"""The steps by which the database got its shape, one file each in `versions`, run by Alembic.

A new step is a new file there that names its predecessor; one that was released stays as it is,
and none is ever taken back.
"""

from pathlib import Path

from alembic import command  # the migrations of SQLAlchemy
from alembic.config import Config
from sqlalchemy import Connection

_LOCK = 0x75736572  # "user"; any number does that no other program locks in this database


def upgrade(connection: Connection) -> None:
    """Take the steps that the database still lacks, in the transaction of this connection."""
    if connection.dialect.name == "postgresql":
        # Of several services that start together, one takes the steps and the others wait.
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")
    config = Config()
    # A configuration value in which % begins a placeholder.
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
