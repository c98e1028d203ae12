"""The steps by which the database got its shape, one file each in `versions`, run by Alembic.

A new step is a new file there that names its predecessor; one that was released stays as it is,
and none is ever taken back.
"""

from pathlib import Path

from alembic import command  # the migrations of SQLAlchemy
from alembic.config import Config
from sqlalchemy import Connection


def upgrade(connection: Connection) -> None:
    """Take the steps that the database still lacks, in the transaction of this connection."""
    config = Config()
    # A configuration value in which % begins a placeholder.
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
