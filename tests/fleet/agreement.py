"""Checks that each replica applies the overrides in the database within two seconds."""

import asyncio
import threading
from contextlib import suppress
from itertools import cycle
from typing import Any

import aiohttp
import asyncpg
import msgspec

from tests.fleet.fleet import Fleet

PROMISED = 2.0
# Each check counts as this many seconds, however long it takes. On a busy machine, the checks are
# delayed as much as the replicas.
_TICK = 0.1
# A replica that does not respond within this many seconds is suspended or cut off.
_PATIENCE = 1.0
# The operator changes something once per this many checks. By then, all replicas must have applied
# the previous change. Otherwise, a replica that is behind could match the database again.
_ACT = 31
WATCHED = """\
  watched:
    upstream_path: /watched
    endpoints: [ { path: "/watched/v{version}", version: { in: path } } ]
    versions: { "1": { service: old, brownout: { percent: 100 } } }
"""
"""The API whose brownouts the operator pauses and resumes."""
_STORED = "SELECT document FROM gateway.documents WHERE name = 'overrides'"


class Agreement:
    """Checks the database and each replica in turn, and records replicas that are behind.

    Time counts only while both the database (through the relay) and the replica respond. For a
    replica that was cut off or suspended, it starts from zero.

    Args:
        fleet: a fleet with the API `watched`.

    Attributes:
        wrong: replicas that applied old overrides for longer than two seconds.
        changes: how often the overrides in the database changed.
        longest: the longest time that a replica was behind, in seconds.
    """

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._to_forget = threading.Event()
        self._behind: dict[str, int] = {}
        self._connection: asyncpg.Connection | None = None
        self._thread = threading.Thread(target=lambda: asyncio.run(self._watch()))
        self.wrong: list[str] = []
        self.changes = 0
        self.longest = 0.0

    def __enter__(self) -> "Agreement":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._to_forget.set()
        self._thread.join()

    async def _watch(self) -> None:
        loop, former = asyncio.get_running_loop(), None
        timeout = aiohttp.ClientTimeout(total=_PATIENCE)
        async with aiohttp.ClientSession(timeout=timeout) as session:
            for look, name in enumerate(cycle(self._fleet.replicas)):
                if self._to_forget.is_set():
                    break
                next_one = loop.time() + _TICK
                names = [*self._fleet.replicas]
                stored, *found = await asyncio.gather(
                    self._stored(), *(self._in_force(session, each) for each in names)
                )
                if stored is not None:
                    self.changes += former not in (None, stored)
                    former = stored
                for each, goes_by in zip(names, found, strict=True):
                    self._note(each, stored, goes_by)
                if look % _ACT == 0:
                    paused = stored is not None and bool(stored["paused"])
                    await self._act(session, name, paused=paused)
                await asyncio.sleep(next_one - loop.time())
        if self._connection is not None:
            self._connection.terminate()

    def _note(self, name: str, stored: Any, goes_by: Any) -> None:
        is_behind = None not in (stored, goes_by) and stored != goes_by
        self._behind[name] = self._behind.get(name, 0) + 1 if is_behind else 0
        late = self._behind[name] * _TICK
        self.longest = max(self.longest, late)
        if late > PROMISED:
            self.wrong.append(f"{name} goes by {goes_by}, and the database has {stored}")

    async def _stored(self) -> Any:
        try:
            async with asyncio.timeout(_PATIENCE):
                if self._connection is None:
                    self._connection = await asyncpg.connect(self._fleet.url)
                return msgspec.json.decode(await self._connection.fetchval(_STORED))
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
            if self._connection is not None:
                self._connection.terminate()
            self._connection = None
            return None

    async def _in_force(self, session: aiohttp.ClientSession, name: str) -> Any:
        program = self._fleet.replicas[name]
        try:
            async with session.get(f"{program.url}/watched/v1") as answer:
                is_paused = answer.status == 200
            async with session.get(f"{program.admin_url}/overrides") as answer:
                said = await answer.json()
        except (aiohttp.ClientError, TimeoutError):
            return None
        return said | {"paused": [["watched", "1"]] if is_paused else []}

    async def _act(self, session: aiohttp.ClientSession, name: str, *, paused: bool) -> None:
        url = f"{self._fleet.replicas[name].admin_url}/brownouts/watched/1?why=trial"
        with suppress(aiohttp.ClientError, TimeoutError):
            async with session.request("DELETE" if paused else "PUT", url):
                pass
