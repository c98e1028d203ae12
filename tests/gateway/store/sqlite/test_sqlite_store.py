"""The state file: what is put in comes out, and what cannot be used is refused in one line."""

import asyncio
import os
import re
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from functools import partial
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import create_engine, event
from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import CreateTable

from gateway.store import schema
from gateway.store.schema.state_tables import REVISION, metadata
from gateway.store.sqlite.sqlite_store import SqliteStore
from gateway.usage.delta import CounterDelta, Delta, UsageDelta
from gateway.usage.history import History, HistoryQuery, whole_history
from gateway.usage.interval import Resolution
from gateway.usage.state_changes import StateChanges, StateError, StateLostError
from gateway.usage.totals import Totals

# A file of the last schema before Alembic.
FORMER = Path(__file__).with_name("schema3.sql")
USAGES = [UsageDelta("a", "1", "/p", client, 2, 1, 0, 1) for client in ("", "acme", "0")]
REPORT = Delta(5.0, USAGES, [], [CounterDelta("differences", ("a", "1", "name"), 3)], [], [])


def refused(path: Path, *, read_only: bool = False) -> str:
    """Return the message about a file that cannot be used, without its name."""
    with pytest.raises(StateError) as caught:
        SqliteStore(path, read_only=read_only)
    said, _, text = str(caught.value).partition(": ")
    assert said == str(path)
    return text


async def put(path: Path, state: StateChanges) -> None:
    async with opened(path) as store:
        await store.write(state)


async def kept(path: Path, *, read_only: bool = False) -> StateChanges:
    async with opened(path, read_only=read_only) as store:
        return await store.read()


@asynccontextmanager
async def opened(path: Path, *, read_only: bool = False) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(path, read_only=read_only)
    try:
        yield store
    finally:
        await store.close()


async def test_a_ledger_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    totals = Totals(StateChanges())
    totals.absorb(REPORT)
    await put(path, totals.changes())
    totals.absorb(REPORT)
    await put(path, totals.changes())
    again = Totals(await kept(path))
    assert again.clients["a", "1"].rows == totals.clients["a", "1"].rows
    assert again.counts == totals.counts
    assert not totals.changes()


def test_what_was_not_written_is_returned_again() -> None:
    totals = Totals(StateChanges())
    totals.absorb(REPORT)
    changes = totals.changes()
    totals.revert(changes)
    again = totals.changes()
    assert sorted(again.usage) == sorted(changes.usage)
    assert again.counts == changes.counts


async def test_rows_go(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    row = ("a", "1", "/p", None, 1, 0, 0, 0, 1.0, 1.0, 1.0)
    await put(path, StateChanges(usage=[row, ("a", "1", "/p", "x", 1, 0, 0, 0, 1.0, 1.0, 1.0)]))
    await put(
        path,
        StateChanges(usage=[(*row[:4], 2, 0, 0, 0, 1.0, 1.0, 1.0)], gone=[("a", "1", "/p", "x")]),
    )
    assert [line[3:5] for line in (await kept(path)).usage] == [(None, 2)]


async def test_counts_go(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    totals = Totals(StateChanges())
    totals.absorb(REPORT)
    await put(path, totals.changes())
    totals.reset_shadow(("a", "2"))
    assert not totals.changes()
    totals.reset_shadow(("a", "1"))
    changes = totals.changes()
    totals.revert(changes)
    assert changes.uncounted == totals.changes().uncounted == [("differences", ("a", "1", "name"))]
    await put(path, changes)
    assert (await kept(path)).counts == []
    assert len((await kept(path)).usage) == 3


async def test_documents(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    await put(path, StateChanges(documents={"overrides": {"paused": [["a", "1"]]}}))
    assert (await kept(path, read_only=True)).documents == {"overrides": {"paused": [["a", "1"]]}}


async def test_what_another_gateway_writes_can_only_be_watched(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    async with opened(path) as store:
        await store.write(StateChanges(documents={"since": 1}))
        assert refused(path) == (
            "the state of another gateway that runs; name another file in 'state'"
        )
        assert (await kept(path, read_only=True)).documents == {"since": 1}


@pytest.mark.parametrize(
    ("read_only", "remedy"),
    [(False, "move it away, or name another file in 'state'"), (True, "is the path right?")],
)
def test_no_state(tmp_path: Path, remedy: str, *, read_only: bool) -> None:
    text = f"not the state of a gateway; {remedy}"
    path = tmp_path / "text"
    path.write_text("nothing that SQLite knows, " * 100)
    assert refused(path, read_only=read_only) == text
    other = tmp_path / "users.db"
    with closing(sqlite3.connect(other)) as database:
        database.execute("CREATE TABLE users (id)")
    assert refused(other, read_only=read_only) == text


async def test_of_the_future(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    await put(path, StateChanges())
    with closing(sqlite3.connect(path)) as database:
        database.execute("UPDATE alembic_version SET version_num = '0007'")
        database.commit()
    assert refused(path) == (
        f"written by a newer gateway (schema 0007; this one knows {REVISION}); run that one, or"
        " name another file in 'state'"
    )


@pytest.mark.parametrize("schema", [1, 2, 3])
async def test_of_the_past(tmp_path: Path, schema: int) -> None:
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
        state = await kept(path, read_only=read_only)
        assert sorted(state.usage, key=str) == [
            ("a", "1", "/p", "", 3, 0, 0, 0, 1.5, 5.0, 5.0),
            ("a", "1", "/p", "x", 2, 1, 0, 7, 1.0, 5.0, 5.0),
            ("a", "1", "/p", "y", 2, 2, 1, 0, 1.0, 5.0, 0.0),
            ("a", "1", "/p", None, 9, 1, 0, 0, 1.0, 5.0, 5.0),
        ]
        assert state.floors == {("a", "1"): 7}
        assert state.counts == [("differences", ("a", "1", "name"), 3, 1.0, 5.0)]
        assert state.documents == {"since": 1.0, "overrides": {"paused": [["a", "1"]]}}
    with closing(sqlite3.connect(path)) as database:
        names = {name for (name,) in database.execute("SELECT name FROM sqlite_schema")}
    assert not {name for name in names if name.startswith("former_")}


def test_the_newest_revision_is_the_one_that_is_looked_for() -> None:
    folder = Path(schema.__file__).parent / "versions"
    assert max(path.stem[1:5] for path in folder.glob("m*.py")) == REVISION


async def test_the_revisions_make_the_tables(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    await put(path, StateChanges())
    engine = create_engine(f"sqlite:///{path}")
    with engine.connect() as connection:
        assert not compare_metadata(MigrationContext.configure(connection), metadata)
    engine.dispose()


def test_the_schema_is_the_same_on_postgresql() -> None:
    """Its statements have nothing of one engine, so another is added beside them."""
    for table in metadata.sorted_tables:
        assert "sqlite" not in str(CreateTable(table).compile(dialect=postgresql.dialect())).lower()  # type: ignore[no-untyped-call]  # SQLAlchemy has no types there


async def test_names_of_clients_are_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    path.touch(0o644)
    async with opened(path):
        pass
    assert path.stat().st_mode & 0o777 == 0o600


async def test_a_file_that_was_removed_is_made_again(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    async with opened(path) as store:
        await store.write(StateChanges(documents={"since": 1}))
        path.unlink()
        with pytest.raises(StateLostError, match="the state file was removed"):
            await store.write(StateChanges(documents={"since": 2}))
        await store.write(StateChanges(documents={"since": 3}))
    assert (await kept(path)).documents == {"since": 3}


async def test_a_file_that_was_emptied_is_made_again(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    async with opened(path) as store:
        await store.write(StateChanges(documents={"since": 1}))
        path.write_bytes(b"")
        with pytest.raises(StateLostError, match="the state file was emptied"):
            await store.write(StateChanges(documents={"since": 2}))
        await store.write(StateChanges(documents={"since": 3}))
    assert (await kept(path)).documents == {"since": 3}


async def test_a_folder_that_goes_and_comes_back(tmp_path: Path) -> None:
    """Such as a volume that is mounted again."""
    folder, away = tmp_path / "state", tmp_path / "away"
    folder.mkdir()
    path = folder / "state.db"
    async with opened(path) as store:
        await store.write(StateChanges(documents={"since": 1}))
        folder.rename(away)
        for _ in range(2):
            with pytest.raises(StateError, match="no such file or directory"):
                await store.write(StateChanges(documents={"since": 2}))
        away.rename(folder)
        with pytest.raises(StateLostError, match="the state file was removed"):
            await store.write(StateChanges(documents={"since": 3}))
        await store.write(StateChanges(documents={"since": 4}))
    assert (await kept(path)).documents == {"since": 4}


async def test_a_file_that_was_replaced_is_left_alone(tmp_path: Path) -> None:
    path, other = tmp_path / "state.db", tmp_path / "other.db"
    await put(other, StateChanges(documents={"kept": 9}))
    async with opened(path) as store:
        other.replace(path)
        with pytest.raises(StateError, match="replaced while the gateway ran; put the former"):
            await store.write(StateChanges(documents={"kept": 2}))
    assert (await kept(path)).documents["kept"] == 9


@pytest.mark.parametrize("gone", [("-wal", "-shm"), ("-wal",), ("-shm",)])
async def test_the_files_beside_it_that_are_removed_are_noticed(
    tmp_path: Path, gone: tuple[str, ...]
) -> None:
    """SQLite goes on writing to a log that is gone, which nobody else reads, nor the next start."""
    path, copy = tmp_path / "state.db", tmp_path / "copy"
    async with opened(path) as store:
        await store.write(StateChanges(documents={"a": 1}))
        for end in gone:
            path.with_name(f"{path.name}{end}").unlink()
        with pytest.raises(StateLostError, match="files beside it"):
            await store.write(StateChanges(documents={"b": 2}))
        await store.write(StateChanges(documents={"b": 2}))
        await store.write(StateChanges(documents={"c": 3}))
        await asyncio.to_thread(copytree, tmp_path, copy)  # as a kill leaves it
    assert (await kept(copy / "state.db")).documents == {"a": 1, "b": 2, "c": 3}


async def use(store: SqliteStore) -> None:
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
    """A disk has changed a bit of it."""
    path = tmp_path / "state.db"
    totals = Totals(StateChanges())
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
    totals = Totals(StateChanges())
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
    await put(path, StateChanges(documents={"drafts": 1}))
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", partial(connect, timeout=0.01))
    with closing(connect(path)) as other:
        for lock in ("BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"):
            other.execute(lock)
            assert refused(path) == (
                "another program has the state locked; end it, or name another file in 'state'"
            )
            other.rollback()
    # One that reads keeps the file from having a log beside it.
    with closing(connect(path)) as other:
        other.execute("PRAGMA journal_mode = DELETE")
        other.execute("BEGIN")
        other.execute("SELECT * FROM documents").fetchall()
        assert refused(path).startswith("another program has the state locked")


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
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
def test_what_cannot_be_read(tmp_path: Path, make: Callable[[Path], object], reason: str) -> None:
    """Of a folder, SQLite says that the disk has an I/O error, and it waits at a FIFO for ever."""
    path = tmp_path / "state.db"
    make(path)
    assert refused(path, read_only=True) == (
        f"the state cannot be read: {reason}; is the path right?"
    )


def test_a_copy_beside_a_log_that_cannot_be_used(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    asyncio.run(put(path, StateChanges(documents={"a": 1})))
    Path(f"{path}-wal").mkdir()
    assert refused(path, read_only=True) == (
        "the state cannot be read: unable to open database file; copy it with the -wal and -shm"
        " that are beside it, or alone where there are none, to an empty folder that can be"
        " written, on a disk that is not full"
    )


def test_a_path_that_cannot_be_written(tmp_path: Path) -> None:
    assert refused(tmp_path).startswith("the state cannot be kept there: is a directory")


async def test_the_history_is_added_up_and_cut(tmp_path: Path) -> None:
    """As in memory: of each version, the latest 1,440 minutes are kept."""
    path = tmp_path / "state.db"
    memory, totals = History(), Totals(StateChanges())
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


async def test_callers_are_read_as_far_back_as_they_are_asked_for(tmp_path: Path) -> None:
    path, totals = tmp_path / "state.db", Totals(StateChanges())
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


async def test_statements_find_what_they_ask_for_by_an_index(tmp_path: Path) -> None:
    """All that run again and again: those of views and those of each write."""
    path, totals = tmp_path / "state.db", Totals(StateChanges())
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
        changes.gone.append(("a", "1", "/p", "acme"))
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


def test_history_that_was_not_written_is_returned_again() -> None:
    totals = Totals(StateChanges())
    totals.absorb(REPORT)
    changes = totals.changes()
    assert len(changes.history) == 2
    totals.absorb(REPORT)
    totals.revert(changes)
    (minute, *_) = totals.changes().history
    assert minute.requests == 2 * changes.history[0].requests


async def test_the_audit_log_outlives_the_gateway(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    rows = [(float(at), "ann", "", "cutover", "a", "1", "", "", f"{at}%") for at in range(3)]
    await put(path, StateChanges(audit=rows[:2]))
    await put(path, StateChanges(audit=rows[2:]))
    assert (await kept(path)).audit == rows
