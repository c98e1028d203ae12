"""The first revision that a release has stored; `create_tables` makes it."""

revision = "0006"
down_revision = None


def upgrade() -> None:
    """Nothing: each database that Alembic upgrades has this revision or a later one."""
