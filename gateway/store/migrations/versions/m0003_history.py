"""Create the table of the history."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "history",
        *(sa.Column(name, sa.Text, primary_key=True) for name in ("api", "version", "by")),
        sa.Column("start", sa.BigInteger, primary_key=True),
        *(
            sa.Column(name, sa.BigInteger, nullable=False)
            for name in ("requests", "errors", "refused")
        ),
        sa.Column("seconds", sa.Float(53), nullable=False),
        *(sa.Column(name, sa.LargeBinary, nullable=False) for name in ("buckets", "callers")),
    )
    if op.get_bind().dialect.name != "postgresql":
        return
    # Replicas of the release before can go on: they do not use this table.
    documents = sa.table("documents", sa.column("name"), sa.column("document"))
    op.execute(documents.delete().where(documents.c.name == "serves"))
    op.execute(documents.insert().values(name="serves", document='"0002"'))
