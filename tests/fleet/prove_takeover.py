"""A database of commit 570391cb opens in this release, with every row equal."""

import asyncio
import subprocess
from contextlib import ExitStack
from pathlib import Path

from tests.fleet.cluster import Execute
from tests.gateway.kit import start_program
from tests.gateway.talk import soon
from tests.store.taken_over import FIXTURES, USAGE, differing, rules

TABLES = ("floors", "counts", "audit", "history", "called")
# Other documents change with each start and each second.
LASTING = "name IN ('overrides', 'since', 'serves') OR name LIKE 'samples%'"


def rows(execute: Execute) -> dict[str, list[str]]:
    found = {table: execute(f"SELECT * FROM gateway.{table} ORDER BY 1, 2, 3") for table in TABLES}  # noqa: S608
    found["usage"] = execute(f"SELECT {USAGE} FROM gateway.usage")  # noqa: S608
    found["documents"] = execute(f"SELECT * FROM gateway.documents WHERE {LASTING} ORDER BY 1")  # noqa: S608
    return {name: sorted(lines) for name, lines in found.items()}


async def test_an_older_database_opens_with_every_row_equal(
    database: str, execute: Execute, tmp_path: Path
) -> None:
    load = ["psql", "-Xq", "-v", "ON_ERROR_STOP=1", "-f", str(FIXTURES / "state.sql"), database]
    await asyncio.to_thread(subprocess.run, load, check=True, capture_output=True)
    before = rows(execute)
    (tmp_path / "gateway.yaml").write_text(rules(database))
    with ExitStack() as stack:
        program = start_program(stack, tmp_path, "gateway")
        await soon(lambda: program.log("judge"))
        assert list(differing(program, "postgres")) == []
        program.process.terminate()
        program.process.wait()
    assert rows(execute) == before
