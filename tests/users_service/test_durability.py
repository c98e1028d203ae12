"""Acknowledged users survive `kill -9`, and users are never stored partially."""

import json
import random
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from http.client import HTTPConnection, HTTPException
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.fork_server import Process

pytestmark = pytest.mark.slow

Launch = Callable[..., tuple[Process, int, Path]]
WaitFor = Callable[[Callable[[], Any]], Any]

ROUNDS = 12
CLIENTS = 8


class Load:
    def __init__(self) -> None:
        self._numbers = count()
        self.sent: set[tuple[str, str]] = set()
        self.acknowledged: dict[int, tuple[str, str]] = {}

    def has_acknowledged(self, enough: int) -> bool:
        return len(self.acknowledged) >= enough

    def _users(self) -> Iterator[tuple[str, str]]:
        for number in self._numbers:
            name = f"\U0001f600 {number:x}".ljust(random.randint(12, 20), "é")
            yield name, f"{1000 + number % 1000}-{number % 12 + 1:02}-{number % 28 + 1:02}"

    def run(self, port: int) -> None:
        with closing(HTTPConnection("127.0.0.1", port, timeout=20)) as connection:
            for name, day in self._users():
                self.sent.add((name, day))
                body = json.dumps({"name": name, "birthDate": day})
                try:
                    connection.request("POST", "/users", body, {"Content-Type": "application/json"})
                    response = connection.getresponse()
                    status, answer = response.status, response.read()
                except (OSError, HTTPException):
                    return
                assert status == 201
                self.acknowledged[json.loads(answer)["id"]] = name, day


def _read(port: int, ids: set[int]) -> dict[int, tuple[str, str]]:
    found = {}
    with closing(HTTPConnection("127.0.0.1", port, timeout=20)) as connection:
        for user_id in ids:
            connection.request("GET", f"/users/{user_id}")
            user = json.loads(connection.getresponse().read())
            found[user["id"]] = user["name"], user["birthDate"]
    return found


def test_acknowledged_users_survive_kill_9_and_no_user_is_stored_partially(
    launch: Launch, wait_for: WaitFor, tmp_path: Path
) -> None:
    load = Load()
    process, port, _ = launch()
    with ThreadPoolExecutor(CLIENTS) as clients:
        for _ in range(ROUNDS):
            before = set(load.acknowledged)
            enough = len(before) + random.randint(1, 80)
            running = [clients.submit(load.run, port) for _ in range(CLIENTS)]
            wait_for(partial(load.has_acknowledged, enough))
            process.kill()
            for client in running:
                client.result()
            process, port, _ = launch()
            new = set(load.acknowledged) - before
            assert _read(port, new) == {user_id: load.acknowledged[user_id] for user_id in new}
    process.kill()
    process.wait()
    with closing(sqlite3.connect(tmp_path / "service" / "users.db")) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        rows = database.execute("SELECT id, name, birth_date FROM users").fetchall()
    stored = {user_id: (name, day) for user_id, name, day in rows}
    assert load.acknowledged.items() <= stored.items()
    assert set(stored.values()) <= load.sent
    # A stored user may lack its response if the kill interrupted the request: at most one user for
    # each client and round.
    assert len(stored) - len(load.acknowledged) <= ROUNDS * CLIENTS
