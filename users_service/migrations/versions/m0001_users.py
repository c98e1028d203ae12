"""Create the table of users."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create it, with ids that count from 1 and never come back."""
    op.create_table(
        "users",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("birth_date", sa.Date, nullable=False),
        sqlite_autoincrement=True,  # or the id of a removed user would come back
    )
