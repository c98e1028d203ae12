"""Keeps users in a database: the one place that knows SQL.

An error of the database or its driver leaves here as a StorageError only.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

from alembic.util import CommandError
from sqlalchemy import (
    URL,
    BigInteger,
    Column,
    Date,
    Integer,
    MetaData,
    Table,
    Text,
    insert,
    select,
    text,
)
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from .database import Database
from .migrations import upgrade
from .model import NewUser, User

MAX_ID = 2**63 - 1

metadata = MetaData()
users = Table(
    "users",
    metadata,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("name", Text, nullable=False),
    Column("birth_date", Date, nullable=False),
)


class StorageError(Exception):
    """The database cannot do now what was asked of it; the text is one line and has no secrets."""


class Store:
    """The users of one database. Open it with `Store.open`; close it at the end."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @classmethod
    async def open(cls, url: URL, wait: float) -> Self:
        """Connect, and bring the database to the shape that this program knows.

        `wait` is how many seconds to wait for a connection, and again for a lock.

        Raises:
            StorageError: the database cannot be reached, made or brought to that shape.
        """
        with _errors_translated():
            store = cls(Database(url, wait))
            try:
                async with store._database.writing() as connection:
                    await connection.run_sync(upgrade)
            except BaseException:
                await store.close()
                raise
        return store

    async def add(self, new: NewUser) -> User:
        """Keep a new user; when this returns, it survives the end of the process.

        Raises:
            StorageError: nothing was stored.
        """
        with _errors_translated():
            async with self._database.writing() as connection:
                statement = insert(users).values(name=new.name, birth_date=new.birth_date)
                result = await connection.execute(statement.returning(users.c.id))
                user_id = result.scalar_one()
        return User(id=user_id, name=new.name, birth_date=new.birth_date)

    async def get(self, user_id: int) -> User | None:
        """Return the user of that id, or None if there is none.

        Raises:
            StorageError: the database cannot tell.
        """
        if user_id > MAX_ID:
            return None
        with _errors_translated():
            async with self._database.reading() as connection:
                row = (
                    await connection.execute(select(users).where(users.c.id == user_id))
                ).one_or_none()
        return User(id=row.id, name=row.name, birth_date=row.birth_date) if row else None

    async def check(self) -> None:
        """Do all that keeping a user takes, a write to the disk included, and change nothing.

        Raises:
            StorageError: no user could be kept now.
        """
        with _errors_translated():
            async with self._database.writing() as connection:
                await connection.execute(
                    text("UPDATE alembic_version SET version_num = version_num")
                )

    async def close(self) -> None:
        """Close every connection."""
        await self._database.close()


@contextmanager
def _errors_translated() -> Iterator[None]:
    try:
        yield
    except (SQLAlchemyError, CommandError, OSError) as error:
        reason = error.orig if isinstance(error, DBAPIError) else error
        raise StorageError(str(reason).partition("\n")[0] or type(reason).__name__) from error
