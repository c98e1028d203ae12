"""The users service on PostgreSQL, configured by USERS_DATABASE_URL only."""

import json
import signal
import subprocess
import sys
from contextlib import ExitStack
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from tests.fleet.cluster import Execute
from tests.gateway.kit import DEADLINE, ROOT, Program, start_program

BOB = {"name": "Bób 😀", "birthDate": "1999-12-31"}


def ask(program: Program, method: str, path: str, document: object = None) -> tuple[int, Any]:
    connection = HTTPConnection("127.0.0.1", program.port, timeout=DEADLINE)
    try:
        body = None if document is None else json.dumps(document)
        connection.request(method, path, body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def test_users_are_stored_across_restarts_of_the_service(database: str, tmp_path: Path) -> None:
    with ExitStack() as stack:
        first = start_program(stack, tmp_path, "users_service", USERS_DATABASE_URL=database)
        status, user = ask(first, "POST", "/users", BOB)
        assert (status, user) == (201, {"id": 1, **BOB})
        assert ask(first, "GET", "/readyz") == (200, {"status": "ready"})
        first.process.send_signal(signal.SIGKILL)
        again = start_program(stack, tmp_path / "2", "users_service", USERS_DATABASE_URL=database)
        assert ask(again, "GET", "/users/1") == (200, user)
        assert ask(again, "GET", f"/users/{2**63 - 1}")[0] == 404
        assert ask(again, "POST", "/users", BOB | {"name": "Bob\0"}) == (
            400,
            {"name": "Name must not contain the character U+0000."},
        )


def test_users_are_written_durably_even_if_synchronous_commit_is_off(
    database: str, execute: Execute, tmp_path: Path
) -> None:
    name = database.rpartition("/")[2]
    execute(f"ALTER DATABASE {name} SET synchronous_commit = off")
    with ExitStack() as stack:
        program = start_program(stack, tmp_path, "users_service", USERS_DATABASE_URL=database)
        execute("ALTER TABLE users ADD seen text DEFAULT current_setting('synchronous_commit')")
        assert ask(program, "POST", "/users", BOB)[0] == 201
        assert ask(program, "GET", "/readyz") == (200, {"status": "ready"})
        assert execute("SELECT seen FROM users") == ["on"]


def test_services_that_start_together_create_one_table(database: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "users_service"]
    variables = {"PYTHONPATH": str(ROOT), "USERS_PORT": "0", "USERS_DATABASE_URL": database}
    together = [
        subprocess.Popen(command, cwd=tmp_path, env=variables, stdout=subprocess.PIPE)
        for _ in range(4)
    ]
    try:
        for program in together:
            assert program.stdout is not None
            assert b'"listening"' in program.stdout.readline()
    finally:
        for program in together:
            program.terminate()
            program.communicate(timeout=DEADLINE)
    assert [program.returncode for program in together] == [0] * 4


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("s3cret", "wrong", 'password authentication failed for user "postgres"'),
        ("/test", "/absent", "does not exist"),
        ("127.0.0.1:", "127.0.0.1:1", "cannot use the database of USERS_DATABASE_URL: "),
        ("", "?sslmode=require", "rejected SSL upgrade"),
    ],
)
def test_an_unusable_database_is_reported_in_one_line_without_secrets(
    database: str, tmp_path: Path, old: str, new: str, reason: str
) -> None:
    url = database.replace(old, new) if old else database + new
    done = subprocess.run(
        [sys.executable, "-m", "users_service"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "USERS_PORT": "0", "USERS_DATABASE_URL": url},
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    assert reason in done.stderr
    assert "pass" not in done.stderr.replace("password authentication", "")
