"""The program as a process: start, log, signals, settings, and database errors."""

import json
import os
import resource
import shutil
import signal
import socket
import sqlite3
import struct
import subprocess
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta
from email.message import Message
from pathlib import Path
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import psutil
import pytest

from tests.fork_server import Process, fork_server

Started = tuple[Process, int, Path]
Launch = Callable[..., Started]
Ask = Callable[..., tuple[int, Message, bytes]]
WaitFor = Callable[[Callable[[], Any]], Any]

BOB = json.dumps({"name": "Bob", "birthDate": "2000-01-31"})
HEAD = b"POST /users HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
SIZED = HEAD + b"Content-Length: %d\r\n\r\n"
ROOT = Path(__file__).parents[2]
# A database of earlier releases, which used Alembic. The last user was deleted.
MIGRATED = """
CREATE TABLE alembic_version (
    version_num VARCHAR(32) NOT NULL,
    CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO alembic_version VALUES ('0001');
CREATE TABLE users (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, birth_date DATE NOT NULL
);
INSERT INTO users VALUES (1, 'Ann', '1990-01-31'), (2, 'Bob', '1990-01-31');
DELETE FROM users WHERE id = 2;
"""


class Standing(NamedTuple):
    """A running program that several tests share. The tests do not change its state."""

    process: Process
    port: int
    log: Path
    folder: Path


# These time zones differ by 26 hours, so yesterday in the east is never past in the west.
EAST, WEST = "Pacific/Kiritimati", "Etc/GMT+12"
STRICT = {
    "USERS_TIMEZONE": EAST,
    "USERS_BODY_TIMEOUT": "0.2",
    "USERS_MAX_BODY": str(len(BOB) + 10),
    "USERS_MAX_DEPTH": "1",
}


@pytest.fixture(scope="module")
def standing(
    tmp_path_factory: pytest.TempPathFactory, launch_in: Callable[..., Started]
) -> Iterator[Standing]:
    folder = tmp_path_factory.mktemp("standing")
    with ExitStack() as stack:
        yield Standing(*launch_in(stack, folder, {"USERS_TIMEZONE": WEST}), folder)


@pytest.fixture(scope="module")
def strict(
    tmp_path_factory: pytest.TempPathFactory, launch_in: Callable[..., Started]
) -> Iterator[Standing]:
    folder = tmp_path_factory.mktemp("strict")
    with ExitStack() as stack:
        yield Standing(*launch_in(stack, folder, STRICT), folder)


def _run(folder: Path, **environment: str) -> tuple[int, str]:
    """Run the program until it ends, and check that it logs nothing.

    Returns:
        Its exit status and its standard error.
    """
    done = _finished(folder, environment)
    assert done.stdout == ""
    return done.returncode, done.stderr


def _finished(folder: Path, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [fork_server().python, "-m", "users_service"],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT), "USERS_PORT": "0", **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def _entries(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text().splitlines()]


def _events(log: Path) -> list[str]:
    return [entry["event"] for entry in _entries(log)]


# Start.


@pytest.mark.parametrize(
    ("environment", "status", "said"),
    [
        ({"USERS_PORT": "abc"}, 2, "USERS_PORT='abc': must be a whole number from 0 to 65535"),
        (
            {"USERS_DATABASE_URL": "sqlite+aiosqlite:////no/such/users.db"},
            1,
            (
                "cannot use the database of USERS_DATABASE_URL: [Errno 2] No such file or"
                " directory: '/no/such/users.db'"
            ),
        ),
    ],
)
def test_an_invalid_setting_gives_one_line_and_an_exit_status(
    environment: dict[str, str], status: int, said: str, tmp_path: Path
) -> None:
    assert _run(tmp_path, **environment) == (status, f"users_service: {said}\n")


def test_a_named_pipe_is_refused_as_a_database(tmp_path: Path) -> None:
    """Opening a named pipe for writing would otherwise wait for a reader."""
    os.mkfifo(tmp_path / "pipe")
    status, said = _run(tmp_path, USERS_DATABASE_URL=f"sqlite+aiosqlite:///{tmp_path}/pipe")
    assert status == 1
    assert "No such device or address" in said


def test_a_taken_port_gives_one_line_and_an_exit_status(tmp_path: Path) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        status, said = _run(tmp_path, USERS_PORT=str(port))
    assert status == 1
    assert said.startswith(f"users_service: cannot listen on 127.0.0.1:{port}: ")
    assert said.count("\n") == 1


def test_an_invalid_host_ends_the_start_with_one_line_and_a_status(tmp_path: Path) -> None:
    status, said = _run(tmp_path, USERS_HOST="a..b")
    assert status == 1
    assert said.startswith("users_service: cannot listen on a..b:0: ")
    assert said.count("\n") == 1


def test_programs_that_start_at_once_share_one_new_database(launch: Launch, ask: Ask) -> None:
    with ThreadPoolExecutor() as starters:
        ports = [service[1] for service in starters.map(lambda _: launch(), range(3))]
    ids = [json.loads(ask("POST", "/users", BOB, port=port)[2])["id"] for port in ports]
    assert ids == [1, 2, 3]


def test_the_default_database_is_in_the_working_folder(standing: Standing, ask: Ask) -> None:
    ask("POST", "/users", BOB, port=standing.port)
    assert (standing.folder / "users.db").exists()


# Log.


def test_every_request_is_logged_as_one_line_of_json(
    launch: Launch, ask: Ask, wait_for: WaitFor
) -> None:
    process, port, log = launch()
    user = '{"name": "Bob", "birthDate": "s3cret"}'
    for method, path, given in (("POST", "/users?q=s3cret", "r1"), ("GET", "/nothing", "")):
        headers = {"Content-Type": "application/json", "X-Request-Id": given}
        ask(method, path, user, headers, port)
    for path in ("/healthz", "/readyz"):
        ask("GET", path, port=port)
    process.terminate()
    assert process.wait() == 0
    entries = _entries(log)
    assert [entry["event"] for entry in entries] == [
        *("listening", "request", "request", "stopping", "stopped")
    ]
    for entry in entries:
        assert datetime.fromisoformat(entry.pop("time")).tzinfo == UTC
        assert entry.pop("program") == "users_service"
        assert entry.pop("level") == "info"
    assert entries[0] == {"event": "listening", "url": f"http://127.0.0.1:{port}"}
    assert entries[1].pop("duration_ms") > 0
    assert entries[1] == {
        "event": "request",
        "request_id": "r1",
        "method": "POST",
        "path": "/users",
        "status": 400,
    }
    assert (entries[2]["path"], entries[2]["status"]) == ("/nothing", 404)
    assert len(entries[2]["request_id"]) == 32
    assert "s3cret" not in log.read_text()


def test_invalid_http_is_logged_without_a_traceback(standing: Standing, wait_for: WaitFor) -> None:
    with socket.create_connection(("127.0.0.1", standing.port), 20) as connection:
        connection.sendall(b"GARBAGE\r\n\r\n")
        assert connection.recv(20).startswith(b"HTTP/1.0 400 ")
    wait_for(lambda: "bad_http" in _events(standing.log))
    assert "traceback" not in _entries(standing.log)[-1]


def test_an_unexpected_error_gets_a_500_problem_and_a_logged_traceback(
    launch: Launch, ask: Ask
) -> None:
    _, port, log = launch()
    with closing(sqlite3.connect(log.parents[1] / "users.db")) as database:
        database.execute("INSERT INTO users VALUES (1, 's3cret', 'no date')")
        database.commit()
    status, headers, body = ask("GET", "/users/1", headers={"X-Request-Id": "r1"}, port=port)
    assert (status, headers["Content-Type"]) == (500, "application/problem+json")
    problem = json.loads(body)
    assert (problem["code"], problem["instance"]) == ("internal_error", "/users/1")
    assert b"no date" not in body
    assert ask("GET", "/healthz", port=port)[0] == 200
    (entry,) = (entry for entry in _entries(log) if entry["event"] == "failed")
    assert (entry["level"], entry["request_id"]) == ("error", "r1")
    assert entry["traceback"].startswith("Traceback (most recent call last):\n")
    assert "ValueError: " in entry["traceback"]


# Shutdown.


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_after_a_signal_the_program_finishes_requests_in_flight(
    signum: int, launch: Launch, ask: Ask, wait_for: WaitFor, tmp_path: Path
) -> None:
    process, port, log = launch()
    body = BOB.encode()
    with (
        socket.create_connection(("127.0.0.1", port), 20) as idle,
        socket.create_connection(("127.0.0.1", port), 20) as busy,
    ):
        busy.sendall(SIZED % len(body) + body[:5])
        assert ask("GET", "/healthz", port=port)[0] == 200  # the program has read the head by then
        process.send_signal(signum)
        wait_for(lambda: "stopping" in _events(log))
        wait_for(lambda: _refuses(port))
        busy.sendall(body[5:])
        answer = b"".join(iter(lambda: busy.recv(4096), b""))
        assert idle.recv(1) == b""
    assert answer.startswith(b"HTTP/1.1 201 ")
    assert b"\r\nConnection: close\r\n" in answer
    assert process.wait(60) == 0
    assert _events(log)[-1] == "stopped"
    with closing(sqlite3.connect(tmp_path / "service" / "users.db")) as database:
        assert database.execute("SELECT name FROM users").fetchall() == [("Bob",)]


def _refuses(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 20).close()
    except ConnectionRefusedError:
        return True
    return False


def test_a_request_that_exceeds_the_grace_period_is_given_up(
    launch: Launch, ask: Ask, wait_for: WaitFor
) -> None:
    process, port, log = launch(USERS_GRACE="0.2")
    with socket.create_connection(("127.0.0.1", port), 20) as stuck:
        stuck.sendall(SIZED % 10 + b"{")
        assert ask("GET", "/healthz", port=port)[0] == 200
        process.terminate()
        assert process.wait(60) == 0
    assert "grace_ended" in _events(log)


# Incomplete bodies.


@pytest.mark.parametrize(
    ("head", "part"),
    [(SIZED % 10, b"{"), (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"no chunk\r\n")],
)
def test_a_body_that_does_not_arrive_gets_a_408_problem(
    head: bytes, part: bytes, strict: Standing, ask: Ask
) -> None:
    with socket.create_connection(("127.0.0.1", strict.port), 20) as slow:
        slow.sendall(head)
        assert ask("GET", "/healthz", port=strict.port)[0] == 200
        slow.sendall(part)
        answer = slow.recv(4096)
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b'"code":"body_timeout"' in answer
    assert "failed" not in _events(strict.log)


def test_a_client_that_disconnects_during_its_body_is_not_logged_as_an_error(
    standing: Standing, ask: Ask, wait_for: WaitFor
) -> None:
    known = len(_events(standing.log))
    with socket.create_connection(("127.0.0.1", standing.port), 20) as leaving:
        leaving.sendall(SIZED % 10 + b"{")
        assert ask("GET", "/healthz", port=standing.port)[0] == 200
    wait_for(lambda: "request" in _events(standing.log)[known:])
    entry = _entries(standing.log)[-1]
    assert (entry["level"], entry["status"]) == ("info", 400)


def _connections(process: Process) -> list[Any]:
    every = psutil.Process(process.pid).net_connections("tcp")
    return [one for one in every if one.status == psutil.CONN_ESTABLISHED]


def test_a_client_that_disconnects_before_the_response_is_not_logged_as_an_error(
    standing: Standing, wait_for: WaitFor
) -> None:
    wait_for(lambda: not _connections(standing.process))
    known = len(_events(standing.log))
    lock = sqlite3.connect(standing.folder / "users.db", isolation_level=None)
    with closing(lock), socket.create_connection(("127.0.0.1", standing.port), 20) as leaving:
        lock.execute("BEGIN IMMEDIATE")
        leaving.sendall(SIZED % len(BOB) + BOB.encode())
        # Closing resets the connection, so that the program detects the end at once.
        leaving.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        leaving.close()
        wait_for(lambda: not _connections(standing.process))
        lock.execute("ROLLBACK")
    wait_for(lambda: "request" in _events(standing.log)[known:])
    entry = _entries(standing.log)[-1]
    assert (entry["level"], entry["status"]) == ("info", 201)


@pytest.mark.parametrize(
    ("body", "status"),
    [(BOB, 201), (BOB + " " * 10, 201), (BOB + " " * 11, 413), (BOB.replace("{", '{"x":[],'), 400)],
)
def test_the_limits_of_bodies_are_configurable(
    body: str, status: int, strict: Standing, ask: Ask
) -> None:
    assert ask("POST", "/users", body, port=strict.port)[0] == status


# Time zone.


def test_a_birth_date_must_be_before_today_in_the_configured_time_zone(
    standing: Standing, strict: Standing, ask: Ask
) -> None:
    yesterday = (datetime.now(ZoneInfo(EAST)) - timedelta(days=1)).date().isoformat()
    body = json.dumps({"name": "Bob", "birthDate": yesterday})
    statuses = [ask("POST", "/users", body, port=each.port)[0] for each in (strict, standing)]
    assert statuses == [201, 400]


# Database errors.


def test_while_the_database_is_locked_writers_wait_and_readers_continue(
    launch: Launch, ask: Ask
) -> None:
    _, port, log = launch(USERS_DATABASE_TIMEOUT="20")
    assert _create(ask, port) == 1
    lock = sqlite3.connect(log.parents[1] / "users.db", isolation_level=None)
    with closing(lock), ThreadPoolExecutor(32) as writers:
        lock.execute("BEGIN IMMEDIATE")
        waiting = [writers.submit(_create, ask, port) for _ in range(32)]
        assert ask("GET", "/users/1", port=port)[0] == 200
        assert ask("GET", "/users/2", port=port)[0] == 404
        lock.execute("ROLLBACK")
        assert sorted(each.result() for each in waiting) == [*range(2, 34)]


def test_a_writer_that_waits_too_long_gets_a_503_problem(launch: Launch, ask: Ask) -> None:
    _, port, log = launch(USERS_DATABASE_TIMEOUT="0.2")
    lock = sqlite3.connect(log.parents[1] / "users.db", isolation_level=None)
    with closing(lock), ThreadPoolExecutor(4) as writers:
        lock.execute("BEGIN IMMEDIATE")
        for each in [writers.submit(_check_unavailable, ask, port) for _ in range(4)]:
            each.result()
        lock.execute("ROLLBACK")
    assert _create(ask, port) == 1


def test_only_the_owner_may_read_a_new_database(launch: Launch) -> None:
    mask = os.umask(0)
    try:
        log = launch()[2]
    finally:
        os.umask(mask)
    assert (log.parents[1] / "users.db").stat().st_mode & 0o777 == 0o600


def test_a_readiness_probe_does_not_change_the_database(launch: Launch, ask: Ask) -> None:
    _, port, log = launch()
    file = log.parents[1] / "users.db"
    assert _create(ask, port) == 1
    before = file.read_bytes(), file.stat().st_mtime_ns
    assert [ask("GET", "/readyz", port=port)[0] for _ in range(3)] == [200] * 3
    assert (file.read_bytes(), file.stat().st_mtime_ns) == before
    assert _create(ask, port) == 2


def test_a_full_disk_gives_503_problems_until_there_is_room(
    launch: Launch, ask: Ask, tmp_path: Path
) -> None:
    process, port, log = launch(USERS_DATABASE_TIMEOUT="0.2")
    assert ask("POST", "/users", BOB, port=port)[0] == 201
    # A limit on the file size simulates a full disk: SQLite cannot write its journal.
    _, hard = resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (4096, -1))
    _check_unavailable(ask, port)
    assert ask("GET", "/users/1", port=port)[0] == 200
    assert ask("GET", "/healthz", port=port)[0] == 200
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (hard, hard))
    _check_available(ask, port)
    assert "storage_unavailable" in _events(log)


def test_a_missing_database_gives_503_problems_until_it_is_back(
    launch: Launch, ask: Ask, tmp_path: Path
) -> None:
    port = launch()[1]
    assert ask("POST", "/users", BOB, port=port)[0] == 201
    file = tmp_path / "service" / "users.db"
    file.rename(tmp_path / "away")
    _check_unavailable(ask, port)
    assert ask("GET", "/users/1", port=port)[0] == 503
    (tmp_path / "away").rename(file)
    _check_available(ask, port)


def test_a_replaced_database_is_used_and_loses_no_acknowledged_user(
    launch: Launch, ask: Ask, tmp_path: Path
) -> None:
    port = launch()[1]
    file = tmp_path / "service" / "users.db"
    _create(ask, port)
    with closing(sqlite3.connect(file)) as source, closing(sqlite3.connect(f"{file}2")) as copy:
        source.backup(copy)
    assert {each.name for each in file.parent.iterdir() if each.is_file()} == {
        *("users.db", "users.db2")
    }
    Path(f"{file}2").replace(file)
    ids = [_create(ask, port) for _ in range(3)]
    assert _stored(file.parent, tmp_path / "killed") == [1, *ids] == [1, 2, 3, 4]


def test_a_database_of_an_earlier_release_is_used_without_reusing_ids(
    launch: Launch, ask: Ask, tmp_path: Path
) -> None:
    (tmp_path / "service").mkdir()
    with closing(sqlite3.connect(tmp_path / "service" / "users.db")) as database:
        database.executescript(MIGRATED)
    port = launch()[1]
    assert ask("GET", "/readyz", port=port)[0] == 200
    assert json.loads(ask("GET", "/users/1", port=port)[2])["name"] == "Ann"
    assert _create(ask, port) == 3


def test_a_table_with_other_columns_is_refused_at_the_start(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "users.db")) as database:
        database.execute("CREATE TABLE users (other)")
    status, said = _run(tmp_path)
    assert (status, said.count("\n")) == (1, 1)
    assert "no such column: users.id" in said


def _create(ask: Ask, port: int) -> int:
    status, _, body = ask("POST", "/users", BOB, port=port)
    assert status == 201
    return int(json.loads(body)["id"])


def _stored(folder: Path, copy: Path) -> list[int]:
    """Return the ids of users in a copy of the service's folder, as after a `kill -9`."""
    shutil.copytree(folder, copy)
    with closing(sqlite3.connect(copy / "users.db")) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return [user_id for (user_id,) in database.execute("SELECT id FROM users ORDER BY id")]


def _check_unavailable(ask: Ask, port: int) -> None:
    status, headers, body = ask("POST", "/users", BOB, port=port)
    assert (status, headers["Retry-After"]) == (503, "1")
    assert headers["Content-Type"] == "application/problem+json"
    assert json.loads(body)["code"] == "storage_unavailable"
    status, headers, body = ask("GET", "/readyz", port=port)
    assert (status, headers["Content-Type"]) == (503, "application/json")
    assert json.loads(body) == {"status": "not ready", "reason": "storage_unavailable"}


def _check_available(ask: Ask, port: int) -> None:
    assert ask("GET", "/readyz", port=port)[0] == 200
    status, _, body = ask("POST", "/users", BOB, port=port)
    assert (status, json.loads(body)["id"]) == (201, 2)
