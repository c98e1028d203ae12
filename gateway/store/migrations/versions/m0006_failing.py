"""Add to the replicas the services with targets that fail in them."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Add the column; replicas of the release before can go on, and leave it empty."""
    op.add_column("replicas", sa.Column("failing", sa.Text, nullable=False, server_default=""))
