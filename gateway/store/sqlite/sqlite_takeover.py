"""Takeover: state files from before Alembic, whose PRAGMA user_version is 1, 2 or 3."""

from collections.abc import Iterable

from sqlalchemy import Connection

# What each schema lacks: the first has no time of the last request let through, the second names
# the overrides otherwise.
_STEPS = {
    1: (
        "ALTER TABLE usage ADD COLUMN served REAL NOT NULL DEFAULT 0",
        "UPDATE usage SET served = last WHERE count > refused",
    ),
    2: ("UPDATE OR REPLACE documents SET name = 'overrides' WHERE name = 'orders'",),
}
# Where the columns of the former tables go; a client of NULL stood for all others.
_COLUMNS = {
    "usage": "api, version, endpoint, ifnull(client, ''), client IS NULL,"
    " count, refused, failed, slack, first, last, served",
    "floors": "*",
    "counts": "*",
    "documents": "*",
}


def set_aside(connection: Connection, schema: int) -> Iterable[str]:
    """Complete and rename the tables of a schema from 1 to 3; return their names."""
    for missing in range(schema, max(_STEPS) + 1):
        for statement in _STEPS[missing]:
            connection.exec_driver_sql(statement)
    for table in _COLUMNS:
        connection.exec_driver_sql(f"ALTER TABLE {table} RENAME TO former_{table}")
    return _COLUMNS


def restore_rows(connection: Connection, tables: Iterable[str]) -> None:
    """Move the rows of the tables set aside into those of today."""
    for table in tables:
        connection.exec_driver_sql(
            f"INSERT INTO {table} SELECT {_COLUMNS[table]} FROM former_{table}"  # noqa: S608  # names from above
        )
        connection.exec_driver_sql(f"DROP TABLE former_{table}")
