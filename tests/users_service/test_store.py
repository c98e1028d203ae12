"""Users in a database, and what happens when the database is in trouble."""

import asyncio
import shutil
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from datetime import date
from pathlib import Path
from urllib.parse import quote

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, create_engine
from sqlalchemy.dialects import registry

from users_service.engine import database_url, engines
from users_service.migrations import upgrade
from users_service.model import NewUser, User
from users_service.store import MAX_ID, StorageError, Store, metadata

BOB = NewUser.model_validate(
    {"name": "Bob", "birthDate": "2000-01-31"}, context={"today": date(2024, 1, 1)}
)
WAIT = 0.2


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "a folder with ? and %20" / "users.db"


@pytest.fixture
async def store(file: Path) -> AsyncIterator[Store]:
    store = await _open(_make(file))
    yield store
    await store.close()


async def _open(file: Path, patience: float = WAIT) -> Store:
    return await Store.open(database_url(f"sqlite+aiosqlite:///{quote(str(file))}"), patience)


def _make(file: Path) -> Path:
    file.parent.mkdir()
    return file


def _exists(file: Path) -> bool:
    return file.exists()


def _replace(file: Path, new: str) -> None:
    for suffix in ("-wal", "-shm"):
        Path(f"{file}{suffix}").unlink()
    Path(new).replace(file)


def _remove_log(file: Path) -> None:
    Path(f"{file}-wal").unlink()


def _write(file: Path, *statements: str) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


async def test_a_user_is_kept_and_found_again(store: Store, file: Path) -> None:
    user = await store.add(BOB)
    assert user == User(id=1, name="Bob", birth_date=date(2000, 1, 31))
    assert await store.get(1) == user
    await store.close()
    reopened = await _open(file)
    assert await reopened.get(1) == user
    await reopened.close()


async def test_there_is_no_user_of_an_unknown_id(store: Store) -> None:
    for unknown in (1, MAX_ID, MAX_ID + 1):
        assert await store.get(unknown) is None


async def test_an_id_is_never_given_twice(store: Store, file: Path) -> None:
    assert [(await store.add(BOB)).id for _ in range(3)] == [1, 2, 3]
    _write(file, "DELETE FROM users")
    assert (await store.add(BOB)).id == 4


async def test_many_writers_at_once_do_not_meet_a_lock(file: Path) -> None:
    store = await _open(_make(file), patience=20)
    users = await asyncio.gather(*(store.add(BOB) for _ in range(64)))
    await store.close()
    assert sorted(user.id for user in users) == list(range(1, 65))


async def test_a_commit_is_on_the_disk_before_it_is_acknowledged(store: Store, file: Path) -> None:
    async with store._database.reading() as connection:
        for pragma, expected in {"journal_mode": "wal", "synchronous": 2}.items():
            result = await connection.exec_driver_sql(f"PRAGMA {pragma}")
            assert result.scalar_one() == expected


async def test_a_locked_database_is_an_error_for_writers_only(store: Store, file: Path) -> None:
    user = await store.add(BOB)
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StorageError, match="database is locked"):
            await store.add(BOB)
        with pytest.raises(StorageError, match="locked"):
            await store.check()
        assert await store.get(1) == user
    await store.check()
    assert (await store.add(BOB)).id == 2


async def test_a_writer_waits_its_turn_and_no_longer(store: Store, file: Path) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        results = await asyncio.gather(*(store.add(BOB) for _ in range(4)), return_exceptions=True)
    assert [type(result) for result in results] == [StorageError] * 4
    assert await store.get(1) is None


async def test_a_file_that_has_gone_is_an_error_until_it_is_back(store: Store, file: Path) -> None:
    user = await store.add(BOB)
    shutil.move(file, f"{file}2")
    with pytest.raises(StorageError):
        await store.add(BOB)
    with pytest.raises(StorageError):
        await store.get(1)
    with pytest.raises(StorageError):
        await store.check()
    assert not _exists(file)
    shutil.move(f"{file}2", file)
    assert await store.get(1) == user
    assert (await store.add(BOB)).id == 2


async def test_a_file_that_was_replaced_is_the_one_that_counts(store: Store, file: Path) -> None:
    await store.add(BOB)
    with closing(sqlite3.connect(file)) as source, closing(sqlite3.connect(f"{file}2")) as copy:
        source.backup(copy)
    await store.add(BOB)
    _replace(file, f"{file}2")
    assert await store.get(2) is None
    assert (await store.add(BOB)).id == 2


async def test_a_log_that_cannot_be_saved_is_an_error_until_it_can(
    store: Store, file: Path
) -> None:
    """Another program that reads an old state of it, say: nothing is acknowledged meanwhile."""
    await store.add(BOB)
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN")
        other.execute("SELECT * FROM users").fetchall()
        await store.add(BOB)
        _remove_log(file)
        calls = (store.add(BOB), store.get(1), store.check())
        results = await asyncio.gather(*calls, return_exceptions=True)
        assert [type(result) for result in results] == [StorageError] * 3
        assert str(results[0]) == "a program that reads a removed file keeps it from being saved"
    assert (await store.add(BOB)).id == 3


async def test_the_files_beside_are_those_of_what_a_link_leads_to(
    file: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    _make(file).symlink_to(tmp_path / "linked.db")
    store = await _open(file)
    await store.add(BOB)
    assert not caplog.messages
    (tmp_path / "linked.db-wal").unlink()
    assert await store.get(1)
    assert caplog.messages == ["database_files_changed"]
    await store.close()


async def test_files_are_removed_while_many_ask(file: Path) -> None:
    store = await _open(_make(file), patience=20)
    users: list[User] = []

    async def ask() -> None:
        for _ in range(32):
            users.append(user := await store.add(BOB))
            if user.id % 16 == 0:
                _remove_log(file)
            assert await store.get(user.id) == user

    await asyncio.gather(*(ask() for _ in range(8)))
    assert sorted(user.id for user in users) == list(range(1, 257))
    await store.check()
    shutil.copytree(file.parent, killed := file.parent.with_name("killed"))
    await store.close()
    with closing(sqlite3.connect(killed / file.name)) as left:
        assert left.execute("SELECT count(*) FROM users").fetchall() == [(256,)]


async def test_users_are_for_their_owner_only(store: Store, file: Path) -> None:
    await store.add(BOB)
    assert [_mode(file, end) for end in ("", "-wal", "-shm")] == [0o600] * 3


def _mode(file: Path, end: str) -> int:
    return Path(f"{file}{end}").stat().st_mode & 0o777


async def test_a_check_changes_nothing(store: Store, file: Path) -> None:
    await store.add(BOB)
    with closing(sqlite3.connect(file)) as before:
        dump = list(before.iterdump())
        await store.check()
        assert list(before.iterdump()) == dump


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda _: None, "No such file or directory"),
        (lambda file: file.mkdir(parents=True), "Is a directory"),
        (lambda file: _make(file).write_text("x" * 5000), "file is not a database"),
        (
            lambda file: _write(_make(file), "CREATE TABLE users (other)"),
            "table users already exists",
        ),
        (
            lambda file: _write(
                _make(file),
                "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)",
                "INSERT INTO alembic_version VALUES ('from the future')",
            ),
            "Can't locate revision identified by 'from the future'",
        ),
    ],
)
async def test_an_unusable_database_is_one_line_of_an_error(
    spoil: Callable[[Path], object], reason: str, file: Path
) -> None:
    spoil(file)
    with pytest.raises(StorageError, match=reason) as caught:
        await _open(file)
    assert "\n" not in str(caught.value)


def test_the_migrations_make_the_tables_that_the_store_knows() -> None:
    engine = create_engine("sqlite://")
    with engine.begin() as connection:
        upgrade(connection)
        upgrade(connection)  # taking steps twice is no harm
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
    engine.dispose()


def _upgrade_and_break_off(connection: Connection) -> None:
    upgrade(connection)
    raise ZeroDivisionError


async def test_a_migration_that_breaks_off_leaves_nothing(tmp_path: Path) -> None:
    file = tmp_path / "users.db"
    reader, writer = engines(database_url(f"sqlite+aiosqlite:///{file}"), WAIT)
    with pytest.raises(ZeroDivisionError):
        async with writer.begin() as connection:
            await connection.run_sync(_upgrade_and_break_off)
    await reader.dispose()
    await writer.dispose()
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("SELECT * FROM sqlite_schema").fetchall() == []


async def test_another_kind_of_database_needs_its_url_only(tmp_path: Path) -> None:
    registry.register(
        "pretend.aiosqlite", "sqlalchemy.dialects.sqlite.aiosqlite", "SQLiteDialect_aiosqlite"
    )
    store = await Store.open(database_url(f"pretend+aiosqlite:///{tmp_path / 'users.db'}"), WAIT)
    user = await store.add(BOB)
    assert await store.get(user.id) == user
    await store.check()
    await store.close()
