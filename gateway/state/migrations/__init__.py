"""The revisions of the state's schema, one file each in `versions`, run by Alembic.

A new revision is a new file that names its predecessor; a released revision is never changed.
"""

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
