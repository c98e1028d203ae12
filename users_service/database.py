"""The database's connections, which are all opened anew once a file of it was removed or replaced.

SQLite goes on writing to a file that is gone, for nobody. The connections of a process share the
index of the log, so that all have to be closed before one finds other files.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sqlalchemy import URL
from sqlalchemy.ext.asyncio import AsyncConnection

from .engine import Files, engines, files_of
from .log import logger


class Database:
    """Connections to read and to write with.

    `wait` is how many seconds to wait for a connection, and again for a lock.

    Raises:
        OSError: a file of SQLite cannot be made.
    """

    def __init__(self, url: URL, wait: float) -> None:
        self._url = url
        self._wait = wait
        self._reader, self._writer = engines(url, wait)
        self._files: Files = ()
        self._looking = asyncio.Lock()
        self._in_use = 0
        self._unused = asyncio.Event()
        self._unused.set()

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[AsyncConnection]:
        """Lend a connection to read with."""
        async with self._used(), self._reader.connect() as connection:
            yield connection

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[AsyncConnection]:
        """Lend the connection to write with, in a transaction that is committed at the end."""
        async with self._used(), self._writer.begin() as connection:
            yield connection

    async def close(self) -> None:
        """Close every connection."""
        await self._reader.dispose()
        await self._writer.dispose()

    @asynccontextmanager
    async def _used(self) -> AsyncIterator[None]:
        async with asyncio.timeout(self._wait):
            await self._looking.acquire()
        try:
            found = files_of(self._url)
            if found != self._files or None in found:
                await self._open_anew(found)
            self._in_use += 1
            self._unused.clear()
        finally:
            self._looking.release()
        try:
            yield
        finally:
            self._in_use -= 1
            if not self._in_use:
                self._unused.set()

    async def _open_anew(self, found: Files) -> None:
        await self._unused.wait()
        if self._files:
            logger.warning("database_files_changed")
        if found[:1] == self._files[:1]:
            await self._write_back()
        await self.close()
        async with self._writer.connect():
            self._files = files_of(self._url)

    async def _write_back(self) -> None:
        """Move what was committed to the file, by the connection that has the former log open."""
        async with self._writer.connect() as connection:
            await connection.exec_driver_sql("ROLLBACK")  # it has begun to write, which forbids it
            result = await connection.exec_driver_sql("PRAGMA wal_checkpoint(FULL)")
            if result.one()[0]:
                raise OSError("a program that reads a removed file keeps it from being saved")
