"""Count the requests of clients that a service rejects."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    for name, kind in (("rejected", sa.BigInteger()), ("rejected_at", sa.Float(53))):
        op.add_column("usage", sa.Column(name, kind, nullable=False, server_default="0"))
