"""The revisions of the schema, run by Alembic.

A released revision is never changed; a new one is a new file in `versions` that names its
predecessor. Gateways of one release and of the next share a database while a fleet is updated, so a
revision only adds (expand), and removes what is superfluous one release later (contract). It sets
the document `serves` to the oldest revision whose gateways can use the schema.
"""

from pathlib import Path

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
