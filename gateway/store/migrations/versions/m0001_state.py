"""Create the tables of usage, of counts, and of documents."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "usage",
        *_texts("api", "version", "endpoint", "client"),
        sa.Column("others", sa.Boolean, primary_key=True),
        *_numbers(sa.BigInteger(), "count", "refused", "failed", "slack"),
        *_numbers(sa.Float(53), "first", "last", "served"),
    )
    op.create_table("floors", *_texts("api", "version"), *_numbers(sa.BigInteger(), "floor"))
    op.create_table(
        "counts",
        *_texts("kind", "labels"),
        *_numbers(sa.BigInteger(), "count"),
        *_numbers(sa.Float(53), "first", "last"),
    )
    op.create_table("documents", *_texts("name"), sa.Column("document", sa.Text, nullable=False))


def _texts(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text, primary_key=True) for name in names]


def _numbers(kind: sa.types.TypeEngine[Any], *names: str) -> list[sa.Column[Any]]:
    return [sa.Column(name, kind, nullable=False) for name in names]
