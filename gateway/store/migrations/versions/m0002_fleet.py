"""Create the audit log, and the tables that several gateways need to share the state."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "audit",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True),
        sa.Column("at", sa.Float(53), nullable=False),
        *_texts("who", "origin", "what", "api", "version", "why", "before", "after"),
    )
    op.create_table(
        "replicas",
        sa.Column("start", sa.Text, primary_key=True),
        *_texts("replica", "version", "rules", "admin"),
        *_numbers(sa.Float(53), "started", "heard"),
        *_numbers(sa.BigInteger(), "sequence", "merged", "applied"),
        sa.Column("gone", sa.Float(53)),
    )
    op.create_table(
        "batches",
        sa.Column("start", sa.Text, primary_key=True),
        sa.Column("sequence", sa.BigInteger, primary_key=True),
        sa.Column("content", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "leases",
        sa.Column("name", sa.Text, primary_key=True),
        *_texts("start"),
        *_numbers(sa.BigInteger(), "token"),
        *_numbers(sa.Float(53), "renewed"),
    )


def _texts(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text, nullable=False) for name in names]


def _numbers(kind: sa.types.TypeEngine[Any], *names: str) -> list[sa.Column[Any]]:
    return [sa.Column(name, kind, nullable=False) for name in names]
