"""The state file: its rows, lost counts, and files that cannot be used."""

import asyncio
import os
import re
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing, suppress
from functools import partial
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import create_engine, event
from sqlalchemy.dialects import postgresql
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.schema import CreateTable

from gateway.observe import log
from gateway.rollout.decisions import AuditEntry
from gateway.store import migrations, sqlite
from gateway.store.local import LocalState
from gateway.store.sqlite import SqliteFile
from gateway.store.state import Membership, StateError, StateLostError
from gateway.store.tables import REVISION, metadata, upgrade_tables
from gateway.usage.delta import CounterDelta, Delta, UsageDelta
from gateway.usage.history import History, HistoryQuery, Resolution, whole_history
from gateway.usage.totals import StateRows, Totals
from tests.gateway.rules.rules import RULES, loaded

MEMBER = Membership("a", lambda: loaded(RULES), lambda: "hash")
# A file with the last schema that was used before Alembic.
FORMER = Path(__file__).with_name("schema3.sql")
USAGES = [UsageDelta("a", "1", "/p", client, 2, 1, 0, 1) for client in ("", "acme", "0")]
REPORT = Delta(5.0, USAGES, [], [CounterDelta("differences", ("a", "1", "name"), 3)], [], [])


def refused(path: Path, *, read_only: bool = False) -> str:
    with pytest.raises(StateError) as caught:
        SqliteFile(path, read_only=read_only)
    said, _, text = str(caught.value).partition(": ")
    assert said == str(path)
    return text


async def put(path: Path, state: StateRows) -> None:
    async with opened(path) as store:
        await store.write(state)


async def stored(path: Path, *, read_only: bool = False) -> StateRows:
    async with opened(path, read_only=read_only) as store:
        return await store.read()


@asynccontextmanager
async def opened(path: Path, *, read_only: bool = False) -> AsyncIterator[SqliteFile]:
    store = SqliteFile(path, read_only=read_only)
    try:
        yield store
    finally:
        await store.close()


async def test_clients_and_counts_are_read_as_written(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    totals = Totals()
    totals.absorb(REPORT)
    await put(path, totals.changes())
    totals.absorb(REPORT)
    await put(path, totals.changes())
    again = Totals(await stored(path))
    assert again.clients["a", "1"].rows == totals.clients["a", "1"].rows
    assert again.counts == totals.counts
    assert not totals.changes()


def test_counts_that_could_not_be_written_are_returned_again() -> None:
    totals = Totals()
    totals.absorb(REPORT)
    changes = totals.changes()
    totals.revert(changes)
    again = totals.changes()
    assert sorted(again.usage) == sorted(changes.usage)
    assert again.counts == changes.counts


async def test_deleted_usage_rows_are_removed_from_the_file(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    row = ("a", "1", "/p", None, 1, 0, 0, 0, 1.0, 1.0, 1.0, 0, 0.0)
    await put(
        path, StateRows(usage=[row, ("a", "1", "/p", "x", 1, 0, 0, 0, 1.0, 1.0, 1.0, 0, 0.0)])
    )
    await put(
        path,
        StateRows(
            usage=[(*row[:4], 2, 0, 0, 0, 1.0, 1.0, 1.0, 0, 0.0)],
            deleted_usage=[("a", "1", "/p", "x")],
        ),
    )
    assert [line[3:5] for line in (await stored(path)).usage] == [(None, 2)]


async def test_counts_of_a_reset_shadow_are_removed_from_the_file(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    totals = Totals()
    totals.absorb(REPORT)
    await put(path, totals.changes())
    totals.reset_shadow(("a", "2"))
    assert not totals.changes()
    totals.reset_shadow(("a", "1"))
    changes = totals.changes()
    totals.revert(changes)
    assert (
        changes.deleted_counts
        == totals.changes().deleted_counts
        == [("differences", ("a", "1", "name"))]
    )
    await put(path, changes)
    assert (await stored(path)).counts == []
    assert len((await stored(path)).usage) == 3


async def test_documents_are_read_as_written(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    await put(path, StateRows(documents={"overrides": {"paused": [["a", "1"]]}}))
    assert (await stored(path, read_only=True)).documents == {"overrides": {"paused": [["a", "1"]]}}


async def test_the_file_of_a_running_gateway_can_be_read_but_not_written(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    async with opened(path) as store:
        await store.write(StateRows(documents={"since": 1}))
        assert refused(path) == (
            "another running gateway uses the state; name another file in 'state'"
        )
        assert (await stored(path, read_only=True)).documents == {"since": 1}


@pytest.mark.parametrize(
    ("read_only", "remedy"),
    [(False, "move it away, or name another file in 'state'"), (True, "is the path right?")],
)
def test_a_file_that_is_not_the_state_of_a_gateway_is_refused(
    tmp_path: Path, remedy: str, *, read_only: bool
) -> None:
    text = f"not the state of a gateway; {remedy}"
    path = tmp_path / "text"
    path.write_text("nothing that SQLite knows, " * 100)
    assert refused(path, read_only=read_only) == text
    other = tmp_path / "users.db"
    with closing(sqlite3.connect(other)) as database:
        database.execute("CREATE TABLE users (id)")
    assert refused(other, read_only=read_only) == text


@pytest.mark.parametrize(
    ("revision", "reason"),
    [
        (
            "0999",
            (
                "written by a newer gateway (schema 0999; this one supports"
                f" {REVISION}); run that release, or name another file in 'state'"
            ),
        ),
        (
            "0005",
            (
                "written by an unreleased gateway (schema 0005); move it away, or name another file"
                " in 'state'"
            ),
        ),
    ],
)
async def test_a_file_of_a_newer_or_unreleased_gateway_is_refused(
    tmp_path: Path, revision: str, reason: str
) -> None:
    path = tmp_path / "state.db"
    await put(path, StateRows())
    with closing(sqlite3.connect(path)) as database:
        database.execute("UPDATE alembic_version SET version_num = ?", (revision,))
        database.commit()
    assert refused(path) == reason


@pytest.mark.parametrize("schema", [1, 2, 3])
async def test_a_file_of_an_earlier_release_is_upgraded(tmp_path: Path, schema: int) -> None:
    path = tmp_path / "state.db"
    with closing(sqlite3.connect(path)) as database:
        database.executescript(FORMER.read_text())
        if schema < 3:
            database.executescript("UPDATE documents SET name = 'orders' WHERE name = 'overrides'")
        if schema < 2:
            database.executescript("ALTER TABLE usage DROP COLUMN served")
        database.executescript(f"PRAGMA user_version = {schema}")
    assert refused(path, read_only=True) == (
        "written by an older gateway; start this one with it first"
    )
    for read_only in (False, True):
        state = await stored(path, read_only=read_only)
        assert sorted(state.usage, key=str) == [
            ("a", "1", "/p", "", 3, 0, 0, 0, 1.5, 5.0, 5.0, 0, 0.0),
            ("a", "1", "/p", "x", 2, 1, 0, 7, 1.0, 5.0, 5.0, 0, 0.0),
            ("a", "1", "/p", "y", 2, 2, 1, 0, 1.0, 5.0, 0.0, 0, 0.0),
            ("a", "1", "/p", None, 9, 1, 0, 0, 1.0, 5.0, 5.0, 0, 0.0),
        ]
        assert state.floors == {("a", "1"): 7}
        assert state.counts == [("differences", ("a", "1", "name"), 3, 1.0, 5.0)]
        assert state.documents == {"since": 1.0, "overrides": {"paused": [["a", "1"]]}}
    with closing(sqlite3.connect(path)) as database:
        names = {name for (name,) in database.execute("SELECT name FROM sqlite_schema")}
    assert not {name for name in names if name.startswith("former_")}


def test_the_schema_revision_is_the_newest_migration() -> None:
    folder = Path(migrations.__file__).parent / "versions"
    assert max(path.stem[1:5] for path in folder.glob("m*.py")) == REVISION


async def test_a_new_file_has_the_tables_of_the_metadata(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    await put(path, StateRows())
    engine = create_engine(f"sqlite:///{path}")
    with engine.connect() as connection:
        upgrade_tables(connection)  # nothing needs to be upgraded
        assert not compare_metadata(MigrationContext.configure(connection), metadata)
    engine.dispose()


def test_the_tables_for_postgresql_use_no_sqlite_types() -> None:
    """Column types must exist in both databases."""
    for table in metadata.sorted_tables:
        assert "sqlite" not in str(CreateTable(table).compile(dialect=postgresql.dialect())).lower()  # type: ignore[no-untyped-call]  # SQLAlchemy has no types there


async def test_only_the_owner_can_access_the_file(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    path.touch(0o644)
    async with opened(path):
        pass
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("lose", "what"), [(Path.unlink, "removed"), (lambda path: path.write_bytes(b""), "emptied")]
)
async def test_a_removed_or_emptied_file_is_created_again(
    tmp_path: Path, lose: Callable[[Path], object], what: str
) -> None:
    path = tmp_path / "state.db"
    async with opened(path) as store:
        await store.write(StateRows(documents={"since": 1}))
        lose(path)
        with pytest.raises(StateLostError, match=f"the state file was {what}"):
            await store.write(StateRows(documents={"since": 2}))
        await store.write(StateRows(documents={"since": 3}))
    assert (await stored(path)).documents == {"since": 3}


async def test_the_file_is_created_again_when_its_folder_reappears(tmp_path: Path) -> None:
    """For example, a volume may be unmounted and mounted again."""
    folder, away = tmp_path / "state", tmp_path / "away"
    folder.mkdir()
    path = folder / "state.db"
    async with opened(path) as store:
        await store.write(StateRows(documents={"since": 1}))
        folder.rename(away)
        for _ in range(2):
            with pytest.raises(StateError, match="no such file or directory"):
                await store.write(StateRows(documents={"since": 2}))
        away.rename(folder)
        with pytest.raises(StateLostError, match="the state file was removed"):
            await store.write(StateRows(documents={"since": 3}))
        await store.write(StateRows(documents={"since": 4}))
    assert (await stored(path)).documents == {"since": 4}


async def test_a_file_that_replaces_the_state_file_is_not_written(tmp_path: Path) -> None:
    path, other = tmp_path / "state.db", tmp_path / "other.db"
    await put(other, StateRows(documents={"kept": 9}))
    async with opened(path) as store:
        other.replace(path)
        with pytest.raises(
            StateError, match="replaced while the gateway ran; restore the previous"
        ):
            await store.write(StateRows(documents={"kept": 2}))
    assert (await stored(path)).documents["kept"] == 9


@pytest.mark.parametrize("gone", [("-wal", "-shm"), ("-wal",), ("-shm",)])
async def test_no_row_is_lost_if_the_write_ahead_log_is_removed(
    tmp_path: Path, gone: tuple[str, ...]
) -> None:
    """SQLite would continue to write to the removed log, which no other process can read."""
    path, copy = tmp_path / "state.db", tmp_path / "copy"
    async with opened(path) as store:
        await store.write(StateRows(documents={"a": 1}))
        for end in gone:
            path.with_name(f"{path.name}{end}").unlink()
        with pytest.raises(StateLostError, match="-wal and -shm files"):
            await store.write(StateRows(documents={"b": 2}))
        await store.write(StateRows(documents={"b": 2}))
        await store.write(StateRows(documents={"c": 3}))
        await asyncio.to_thread(copytree, tmp_path, copy)  # as if the gateway had been killed
    assert (await stored(copy / "state.db")).documents == {"a": 1, "b": 2, "c": 3}


async def use(store: SqliteFile) -> None:
    await store.read()
    for by in Resolution:
        await store.history(HistoryQuery(by), REPORT.at)


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE usage SET client = CAST(x'c5c5' AS TEXT) WHERE client = 'acme'",
        "UPDATE documents SET document = CAST(x'c5' AS TEXT)",
        "UPDATE history SET callers = CAST(x'c5' AS TEXT)",
        "UPDATE history SET buckets = 7",
    ],
)
async def test_a_damaged_row_is_reported_in_one_line(tmp_path: Path, damage: str) -> None:
    """A bit of the row has changed on the disk."""
    path = tmp_path / "state.db"
    totals = Totals()
    totals.absorb(REPORT)
    changes = totals.changes()
    changes.documents["a"] = 1
    await put(path, changes)
    with closing(sqlite3.connect(path)) as database:
        database.execute(damage)
        database.commit()
    async with opened(path) as store:
        with pytest.raises(StateError, match=r"^.*state\.db: .*$"):
            await use(store)
        if "history" in damage:
            totals.absorb(REPORT)
            with pytest.raises(StateError, match=r"^.*state\.db: the state cannot be written: "):
                await store.write(totals.changes())


@pytest.mark.parametrize(
    ("damage", "table"),
    [
        ("UPDATE usage SET count = 'many'", "usage"),
        ("UPDATE usage SET last = x'00'", "usage"),
        ("UPDATE usage SET client = x'ff' WHERE client = 'acme'", "usage"),
        ("UPDATE counts SET count = 1.5", "counts"),
        ("UPDATE counts SET labels = x'5b5d'", "counts"),
        ("UPDATE floors SET floor = 'low'", "floors"),
        ("UPDATE documents SET document = x'31'", "documents"),
        ("INSERT INTO audit VALUES (1, 'now', '', '', '', '', '', '', '', '')", "audit"),
    ],
)
async def test_a_value_of_a_wrong_type_is_refused_in_one_line(
    tmp_path: Path, damage: str, table: str
) -> None:
    path = tmp_path / "state.db"
    totals = Totals()
    totals.absorb(REPORT)
    changes = totals.changes()
    changes.documents["drafts"] = 1
    await put(path, changes)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(damage)
    async with opened(path) as store:
        with pytest.raises(StateError) as caught:
            await store.read()
    said = str(caught.value)
    assert said.startswith(f"{path}: a value has a wrong type in the table '{table}': ")
    assert said.endswith(
        "; put a backup in its place, or move it away, or name another file in 'state'"
    )
    assert "\n" not in said


async def test_a_locked_file_is_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "state.db"
    await put(path, StateRows(documents={"drafts": 1}))
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", partial(connect, timeout=0.01))
    with closing(connect(path)) as other:
        for lock in ("BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"):
            other.execute(lock)
            assert refused(path) == (
                "another program has locked the state; end it, or name another file in 'state'"
            )
            other.rollback()
    # An open reader prevents SQLite from removing the log beside the file.
    with closing(connect(path)) as other:
        other.execute("PRAGMA journal_mode = DELETE")
        other.execute("BEGIN")
        other.execute("SELECT * FROM documents").fetchall()
        assert refused(path).startswith("another program has locked the state")


def test_a_missing_folder_is_refused(tmp_path: Path) -> None:
    assert refused(tmp_path / "none" / "state.db") == (
        "the state cannot be kept there: no such file or directory; name a file in a folder that"
        " can be written in 'state'"
    )


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (Path.exists, "No such file or directory"),
        (Path.mkdir, "Is a directory"),
        (os.mkfifo, "not a regular file"),
    ],
)
def test_a_reader_refuses_a_path_that_is_not_a_regular_file(
    tmp_path: Path, make: Callable[[Path], object], reason: str
) -> None:
    """SQLite reports only an I/O error for a folder, and blocks on a FIFO."""
    path = tmp_path / "state.db"
    make(path)
    assert refused(path, read_only=True) == (
        f"the state cannot be read: {reason}; is the path right?"
    )


def test_a_copy_with_an_unusable_write_ahead_log_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    asyncio.run(put(path, StateRows(documents={"a": 1})))
    Path(f"{path}-wal").mkdir()
    assert refused(path, read_only=True) == (
        "the state cannot be read: unable to open database file; copy it with its -wal and -shm"
        " files, if any, to an empty writable folder on a disk that is not full"
    )


def test_a_folder_is_refused_as_the_state_file(tmp_path: Path) -> None:
    assert refused(tmp_path).startswith("the state cannot be kept there: is a directory")


async def test_stored_history_is_summed_and_limited_like_history_in_memory(tmp_path: Path) -> None:
    """Each version keeps its latest 1,440 minutes."""
    path = tmp_path / "state.db"
    memory, totals = History(), Totals()
    for minute in (*range(1500), 1499):
        usage = UsageDelta("a", "1", "/p", f"client{minute % 3}", 2, 1, 0, 1)
        for absorb in (memory.absorb, totals.absorb):
            absorb(Delta(60.0 * minute, [usage], [], [], [], []))
        if minute % 700 == 0:
            await put(path, totals.changes())
    await put(path, totals.changes())
    assert totals.history.rows() == []
    for by, most in ((Resolution.MINUTE, 1440), (Resolution.DAY, 2)):
        async with opened(path, read_only=True) as store:
            found = await store.history(HistoryQuery(by), 0.0)
        kept = sorted(found.rows())
        assert len(kept) == most
        assert kept == sorted(row for row in memory.rows() if row.by == by)


async def test_callers_are_read_only_for_the_days_that_the_query_requests(tmp_path: Path) -> None:
    path, totals = tmp_path / "state.db", Totals()
    for day in range(5):
        usage = UsageDelta("a", "1", "/p", "acme", 2, 1, 0, 1)
        totals.absorb(Delta(86_400.0 * day, [usage], [], [], [], []))
    await put(path, totals.changes())
    query = HistoryQuery(Resolution.DAY, span=4 * 86_400, callers=2 * 86_400)
    async with opened(path, read_only=True) as store:
        found = (await store.history(query, 5 * 86_400.0)).view(query, 5 * 86_400.0)
    days = found.series["a", "1"].values()
    assert [each.requests for each in days] == [2, 2, 2, 2]
    assert [each.callers.count for each in days] == [0, 0, 1, 1]


async def test_each_sql_statement_uses_an_index(tmp_path: Path) -> None:
    path, totals = tmp_path / "state.db", Totals()
    run: dict[str, Any] = {}

    def note(*told: Any) -> None:
        _, _, statement, given, _, many = told
        run[statement] = given[0] if many else given

    async with opened(path) as store:
        event.listen(store._engine, "before_cursor_execute", note)
        for _ in range(2):
            totals.absorb(REPORT)
            await store.write(totals.changes())
        totals.reset_shadow(("a", "1"))
        changes = totals.changes()
        changes.deleted_usage.append(("a", "1", "/p", "acme"))
        await store.write(changes)
        written = len(run)
        month = HistoryQuery(Resolution.DAY, span=30 * 86_400, callers=7 * 86_400)
        for query in (month, *whole_history(("a", "1")), HistoryQuery(Resolution.DAY, "a")):
            await store.history(query, 100.0)
    plans = {}
    with closing(sqlite3.connect(path)) as connection:
        for statement, given in run.items():
            if statement.startswith(("SELECT", "DELETE", "INSERT")):
                steps = connection.execute(f"EXPLAIN QUERY PLAN {statement}", given)
                plans[statement] = [step for *_, step in steps if "SUBQUERY" not in step]
    some = [step for steps in plans.values() for step in steps]
    assert [
        step for step in some if not re.match(r"SEARCH \w+ USING (COVERING )?INDEX", step)
    ] == []
    read = [steps for statement, steps in plans.items() if statement in [*run][written:]]
    all_of_them = ["SEARCH history USING INDEX history_by_start (by=? AND start>?)"]
    (month_steps, (one,), api_steps) = read
    assert month_steps == api_steps == all_of_them
    assert one.endswith("(api=? AND version=? AND by=? AND start>?)")
    assert {step.split()[1] for step in some} == {"history", "usage", "counts"}


def test_history_that_could_not_be_written_is_returned_again() -> None:
    totals = Totals()
    totals.absorb(REPORT)
    changes = totals.changes()
    assert len(changes.history) == 2
    totals.absorb(REPORT)
    totals.revert(changes)
    (minute, *_) = totals.changes().history
    assert minute.requests == 2 * changes.history[0].requests


async def test_the_audit_log_is_read_as_written(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    entries = [
        AuditEntry(float(at), "ann", "", "cutover", "a", "1", "", "", f"{at}%") for at in range(3)
    ]
    await put(path, StateRows(audit=entries[:2]))
    await put(path, StateRows(audit=entries[2:]))
    assert (await stored(path)).audit == entries


BEGAN = 100.0
ACME = Delta(5.0, [UsageDelta("a", "1", "/p", "acme", 1, 0, 0, 1)], [], [], [], [])


@pytest.fixture
def reasons(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found: list[str] = []
    monkeypatch.setattr(log, "event", lambda *_, reason="", **__: found.append(reason))
    return found


class KilledError(BaseException):
    """Represents a process that is killed during a system call."""


@asynccontextmanager
async def counting(path: Path) -> AsyncIterator[LocalState]:
    """Open a state file as a gateway does, and close it without a last write."""
    store = SqliteFile(path)
    try:
        yield LocalState(MEMBER, store, await store.read())
    finally:
        await store.close()


async def count(path: Path, times: int = 1) -> float:
    async with counting(path) as state:
        for _ in range(times):
            state.totals.absorb(ACME)
            await state._write()
        return state.totals.since


async def began_long_ago(path: Path) -> Path:
    async with counting(path) as state:
        state.totals.since = BEGAN
        await state._write()
    return path


async def test_an_old_copy_of_the_file_restarts_counting_once(
    tmp_path: Path, reasons: list[str]
) -> None:
    path = await began_long_ago(tmp_path / "state.db")
    copy = path.read_bytes()
    assert await count(path) == BEGAN
    assert reasons == []
    path.write_bytes(copy)
    anew = await count(path)
    assert anew > BEGAN
    assert reasons == [
        f"{path}: the state file lacks written counts, as after a restore of an old copy"
    ]
    assert await count(path) == anew
    assert len(reasons) == 1


async def test_a_reader_of_an_old_copy_restarts_counting_without_a_log_event(
    tmp_path: Path, reasons: list[str]
) -> None:
    path = await began_long_ago(tmp_path / "state.db")
    copy = path.read_bytes()
    await count(path)
    path.write_bytes(copy)
    store = SqliteFile(path, read_only=True)
    since = (await store.read()).documents["since"]
    await store.close()
    assert isinstance(since, float)
    assert since > BEGAN
    assert reasons == []


async def test_the_mark_file_is_updated_only_at_intervals(
    tmp_path: Path, reasons: list[str]
) -> None:
    """The mark of a killed gateway lacks its last writes. This does not restart counting."""
    path = await began_long_ago(tmp_path / "state.db")
    mark = tmp_path / "state.db.mark"
    before = mark.read_bytes()
    async with counting(path) as state:
        for number in range(sqlite._NOTE_AFTER + 1):
            assert (mark.read_bytes() == before) == (number <= sqlite._NOTE_AFTER)
            state.totals.absorb(ACME)
            await state._write()
        noted = mark.read_bytes()
        assert noted != before
    mark.write_bytes(noted)
    assert await count(path) == BEGAN
    assert mark.stat().st_mode & 0o777 == 0o600
    assert reasons == []


async def test_counting_restarts_if_the_gateway_ended_with_unwritten_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reasons: list[str]
) -> None:
    path = await began_long_ago(tmp_path / "state.db")

    def full(*_: object) -> None:
        raise SQLAlchemyError("full")

    for later in (True, False):
        async with counting(path) as state:
            state.totals.absorb(ACME)
            with monkeypatch.context() as patch:
                patch.setattr(sqlite, "write_rows", full)
                await state._write()
            if later:
                await state._write()
    reasons.clear()
    anew = await count(path)
    assert anew > BEGAN
    assert reasons == [f"{path}: the gateway ended while the state could not be written"]
    assert await count(path) == anew


async def test_counting_continues_without_a_readable_mark_file(
    tmp_path: Path, reasons: list[str]
) -> None:
    """The mark file is missing, for example, after the state file was moved to another machine."""
    path = await began_long_ago(tmp_path / "state.db")
    mark = tmp_path / "state.db.mark"
    for content in (None, b"", b"{", b"[]"):
        mark.unlink()
        if content is not None:
            mark.write_bytes(content)
        assert await count(path) == BEGAN
    assert reasons == []


async def test_the_mark_file_is_overwritten_in_place_on_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reasons: list[str]
) -> None:
    """No part of a longer earlier mark may remain."""
    path = await began_long_ago(tmp_path / "state.db")
    mark = sqlite.WrittenMark(path)
    sync, kills = os.fsync, False

    def full(file: int) -> None:
        if Path(f"/proc/self/fd/{file}").readlink().suffix != ".mark":  # a new file
            raise OSError(28, "No space left on device")
        if kills:
            raise KilledError
        sync(file)

    with monkeypatch.context() as patch, suppress(KilledError):
        patch.setattr(os, "fsync", full)
        mark.note(100_000, unwritten=False)
        kills = True
        mark.note(1, unwritten=True)
    assert not (tmp_path / f"state.db.mark.{os.getpid()}").exists()
    assert await count(path) > BEGAN
    assert reasons == [f"{path}: the gateway ended while the state could not be written"]


async def test_the_old_mark_file_remains_if_the_process_is_killed_while_writing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reasons: list[str]
) -> None:
    """The new mark is written to another file, which is then renamed."""
    path = await began_long_ago(tmp_path / "state.db")
    file = tmp_path / "state.db.mark"
    former = file.read_bytes()
    for where, call in ((os, "fsync"), (Path, "replace")):

        def end(*_: object) -> None:
            raise KilledError

        with monkeypatch.context() as patch:
            patch.setattr(where, call, end)
            with pytest.raises(KilledError):
                sqlite.WrittenMark(path).note(1, unwritten=True)
        assert file.read_bytes() == former
    assert reasons == []


async def test_a_mark_file_that_cannot_be_written_is_reported_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reported = list[tuple[str, object]]()
    monkeypatch.setattr(
        log, "event", lambda name, *_, reason="", **__: reported.append((name, reason))
    )

    def refuse(*_: object) -> None:
        raise OSError(5, "Input/output error")

    store = SqliteFile(tmp_path / "state.db")
    monkeypatch.setattr(os, "fsync", refuse)
    for _ in range(2):
        await store.write(StateRows(documents={"since": 1.0}))
    await store.close()
    assert reported == [("mark_not_kept", f"{tmp_path / 'state.db.mark'}: input/output error")]
