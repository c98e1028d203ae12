"""Add to the replicas why their rules on disk are not in force."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Add the column; replicas of the release before can go on, and leave it empty."""
    op.add_column("replicas", sa.Column("refused", sa.Text, nullable=False, server_default=""))
