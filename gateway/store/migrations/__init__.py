"""The revisions of the schema, run by Alembic.

Released revisions are never changed; a new revision is a new file in `versions` that names its
predecessor. During an update of a fleet, two releases share a database. So a revision only adds
columns or tables (expand), and a revision of the next release removes unused ones (contract). Each
revision sets the document `serves` to the oldest revision whose gateways can use the schema.
"""

from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection


def upgrade(connection: Connection) -> None:
    """Upgrade a database to the newest revision, in the transaction of the connection."""
    config = Config()
    # In Alembic's configuration, % begins a placeholder.
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
