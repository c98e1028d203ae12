"""Have views read few rows: when versions were called last, their latest days, counts of one.

Replicas of the release before can go on. They do not write when versions were called: a judge of
this release or a later one does, and makes up for what they left out when it begins.
"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Create the table and the indexes."""
    op.create_table(
        "called",
        *(sa.Column(name, sa.Text, primary_key=True) for name in ("api", "version")),
        *(sa.Column(name, sa.Float(53), nullable=False) for name in ("last", "served")),
    )
    op.create_index("history_by_start", "history", ["by", "start"])
    order = {"labels": "text_pattern_ops"}
    op.create_index("counts_by_labels", "counts", ["labels"], postgresql_ops=order)
    if op.get_bind().dialect.name != "postgresql":
        return  # a gateway that keeps its state alone has the rows of usage in memory
    op.execute(
        "INSERT INTO called SELECT api, version, max(last), max(served) FROM usage GROUP BY 1, 2"
    )
