"""The state file: what is put in comes out, and what cannot be used is refused in one line."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from gateway.state.sqlite_store import SqliteStore
from gateway.state.state_changes import StateChanges, StateError
from gateway.state.totals import Totals
from gateway.telemetry.delta import CounterDelta, Delta, UsageDelta

USAGES = [UsageDelta("a", "1", "/p", client, 2, 1, 0, 1) for client in ("", "acme", "0")]
REPORT = Delta(5.0, USAGES, [], [CounterDelta("differences", ("a", "1", "name"), 3)], [], [])


def refused(path: Path, *, watching: bool = False) -> str:
    """Return what is said of a file that cannot be used, without its name."""
    with pytest.raises(StateError) as caught:
        SqliteStore(path, watching=watching)
    said, _, text = str(caught.value).partition(": ")
    assert said == str(path)
    return text


def put(path: Path, records: StateChanges) -> None:
    with closing(SqliteStore(path)) as store:
        store.write(records)


def kept(path: Path, *, watching: bool = False) -> StateChanges:
    with closing(SqliteStore(path, watching=watching)) as store:
        return store.read()


def test_a_ledger_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    totals = Totals(StateChanges())
    totals.absorb(REPORT)
    put(path, totals.changes())
    totals.absorb(REPORT)
    put(path, totals.changes())
    again = Totals(kept(path))
    assert again.books["a", "1"].rows == totals.books["a", "1"].rows
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


def test_rows_go(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    row = ("a", "1", "/p", None, 1, 0, 0, 0, 1.0, 1.0, 1.0)
    put(path, StateChanges(usage=[row, ("a", "1", "/p", "x", 1, 0, 0, 0, 1.0, 1.0, 1.0)]))
    put(
        path,
        StateChanges(usage=[(*row[:4], 2, 0, 0, 0, 1.0, 1.0, 1.0)], gone=[("a", "1", "/p", "x")]),
    )
    assert [line[3:5] for line in kept(path).usage] == [(None, 2)]


def test_counts_go(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    totals = Totals(StateChanges())
    totals.absorb(REPORT)
    put(path, totals.changes())
    totals.forget_shadow(("a", "2"))
    assert not totals.changes()
    totals.forget_shadow(("a", "1"))
    changes = totals.changes()
    totals.revert(changes)
    assert changes.uncounted == totals.changes().uncounted == [("differences", ("a", "1", "name"))]
    put(path, changes)
    assert kept(path).counts == []
    assert len(kept(path).usage) == 3


def test_documents(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    put(path, StateChanges(documents={"overrides": {"paused": [["a", "1"]]}}))
    assert kept(path, watching=True).documents == {"overrides": {"paused": [["a", "1"]]}}


def test_what_another_gateway_writes_can_only_be_watched(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with closing(SqliteStore(path)) as store:
        store.write(StateChanges(documents={"since": 1}))
        assert refused(path) == (
            "the state of another gateway that runs; name another file in 'state'"
        )
        assert kept(path, watching=True).documents == {"since": 1}


@pytest.mark.parametrize("watching", [False, True])
def test_no_state(tmp_path: Path, *, watching: bool) -> None:
    text = "not the state of a gateway; move it away, or name another file in 'state'"
    path = tmp_path / "text"
    path.write_text("nothing that SQLite knows, " * 100)
    assert refused(path, watching=watching) == text
    other = tmp_path / "users.db"
    with closing(sqlite3.connect(other)) as database:
        database.execute("CREATE TABLE users (id)")
    assert refused(other, watching=watching) == text


def test_of_the_future(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    put(path, StateChanges())
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA user_version = 7")
    assert refused(path) == (
        "written by a newer gateway (schema 7; this one knows 3); run that one, or name another"
        " file in 'state'"
    )


def test_of_the_past(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    row = ("a", "1", "/p")
    put(
        path,
        StateChanges(
            usage=[(*row, "x", 2, 1, 0, 0, 1.0, 5.0, 0.0), (*row, "y", 2, 2, 0, 0, 1.0, 5.0, 0.0)]
        ),
    )
    with closing(sqlite3.connect(path)) as database:
        database.executescript("ALTER TABLE usage DROP COLUMN served; PRAGMA user_version = 1;")
    assert refused(path, watching=True) == (
        "written by an older gateway; start this one with it first"
    )
    assert [(line[3], line[-1]) for line in kept(path).usage] == [("x", 5.0), ("y", 0.0)]
    assert len(kept(path, watching=True).usage) == 2


def test_of_when_overrides_were_called_orders(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    put(path, StateChanges(documents={"orders": {"paused": [["a", "1"]]}}))
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA user_version = 2")
    assert kept(path).documents == {"overrides": {"paused": [["a", "1"]]}}


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    assert refused(tmp_path / "none" / "state.db") == (
        "the state cannot be kept there: no such file or directory; name a file in a folder that"
        " can be written in 'state'"
    )
    assert refused(tmp_path / "state.db", watching=True) == (
        "the state cannot be read: unable to open database file; is the path right?"
    )


def test_a_path_that_cannot_be_written(tmp_path: Path) -> None:
    assert refused(tmp_path).startswith("the state cannot be kept there: is a directory")
