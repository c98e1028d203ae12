"""An SQLite file of commit 570391cb opens in this release, with every row equal."""

import shutil
import sqlite3
from contextlib import ExitStack, closing
from pathlib import Path

from tests.gateway.kit import start_program
from tests.store.taken_over import FIXTURES, USAGE, differing, rules

TABLES = {
    "usage": USAGE,
    "floors": "*",
    "counts": "*",
    "audit": "*",
    "history": "*",
    "documents": "name, document",
}
# The document that counts writes changes.
WRITTEN = {"writes"}


def rows(path: Path) -> dict[str, list[tuple[object, ...]]]:
    with closing(sqlite3.connect(path)) as connection:
        return {
            table: sorted(
                (row for row in connection.execute(f"SELECT {columns} FROM {table}")),  # noqa: S608
                key=str,
            )
            for table, columns in TABLES.items()
        }


def test_an_older_file_opens_with_every_row_equal(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    shutil.copy(FIXTURES / "state.sqlite", path)
    before = rows(path)
    (tmp_path / "gateway.yaml").write_text(rules("state.db"))
    with ExitStack() as stack:
        program = start_program(stack, tmp_path, "gateway")
        assert list(differing(program, "sqlite")) == []
        program.process.terminate()
        program.process.wait()
    after = rows(path)
    for found in (before, after):
        found["documents"] = [row for row in found["documents"] if row[0] not in WRITTEN]
    # The dates of cutovers go by the clock of each start.
    assert after == before
