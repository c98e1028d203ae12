"""The first released revision; `create_tables` creates its tables."""

revision = "0006"
down_revision = None


def upgrade() -> None:
    """Do nothing: every database that Alembic upgrades has at least this revision."""
