"""Revisions: brings a database to the newest schema. Imported for one that needs it: 10 MB."""

from pathlib import Path

# Alembic: the migrations of SQLAlchemy.
from alembic import command
from alembic.config import Config
from sqlalchemy import Connection


def upgrade(connection: Connection) -> None:
    """Bring a database to the newest revision, in the transaction of the connection."""
    config = Config()
    # In a value of the configuration, % begins a placeholder.
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
