"""Fixtures that start the users service as a process and send requests to it."""

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from email.message import Message
from http.client import HTTPConnection
from pathlib import Path
from socket import create_connection
from tempfile import mkdtemp
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.fork_server import Process, fork_server

Launch = Callable[..., tuple[Process, int, Path]]
Answer = tuple[int, Message, bytes]

ROOT = Path(__file__).parents[2]
DEADLINE = 60.0


def _wait_for(condition: Callable[[], Any]) -> Any:
    end = time.monotonic() + DEADLINE
    while not (found := condition()):
        assert time.monotonic() < end, f"not within {DEADLINE} seconds"
        time.sleep(0.005)
    return found


def _read_log(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text().splitlines(keepends=True) if "\n" in line]


def _start(stack: ExitStack, folder: Path, extra: Mapping[str, str]) -> tuple[Process, int, Path]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("USERS_")}
    folder.mkdir(exist_ok=True)
    log = Path(mkdtemp(dir=folder)) / "log"
    with log.open("wb") as output:
        variables = {**kept, "PYTHONPATH": str(ROOT), "USERS_PORT": "0", **extra}
        process = fork_server().start("users_service", folder, variables, output)
    stack.callback(process.wait)
    stack.callback(process.kill)
    listening = _wait_for(lambda: process.poll() is not None or _read_log(log))
    assert listening is not True, f"exit status {process.returncode}"
    return process, int(listening[0]["url"].rpartition(":")[2]), log


@pytest.fixture
def wait_for() -> Callable[[Callable[[], Any]], Any]:
    return _wait_for


@pytest.fixture(scope="session")
def launch_in() -> Callable[..., tuple[Process, int, Path]]:
    return _start


@pytest.fixture
def launch(tmp_path: Path) -> Iterator[Launch]:
    """Return a function that starts a program with environment variables, all in one folder.

    All programs are ended after the test.
    """
    with ExitStack() as stack:
        yield lambda **extra: _start(stack, tmp_path / "service", extra)


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, Path]]:
    folder = tmp_path_factory.mktemp("users")
    with ExitStack() as stack:
        yield _start(stack, folder, {})[1], folder


@pytest.fixture
def ask(service: tuple[int, Path]) -> Callable[..., Answer]:
    def _ask(
        method: str,
        path: str,
        body: bytes | str | None = None,
        headers: Mapping[str, str] | None = None,
        port: int = service[0],
    ) -> Answer:
        if headers is None:
            headers = {"Content-Type": "application/json"}
        with closing(HTTPConnection("127.0.0.1", port, timeout=DEADLINE)) as connection:
            data = body.encode() if isinstance(body, str) else body
            connection.request(method, path, data, dict(headers))
            response = connection.getresponse()
            return response.status, response.headers, response.read()

    return _ask


@pytest.fixture
def exchange(service: tuple[int, Path]) -> Callable[[bytes], bytes]:
    def _exchange(request: bytes) -> bytes:
        with create_connection(("127.0.0.1", service[0]), DEADLINE) as connection:
            connection.sendall(request)
            return b"".join(iter(lambda: connection.recv(65536), b""))

    return _exchange


@pytest.fixture
def described(ask: Callable[..., Answer]) -> Callable[..., Any]:
    document = json.loads(ask("GET", "/openapi.json")[2])

    def _described(path: str, method: str, answer: Answer) -> Any:
        status, headers, body = answer
        responses = document["paths"][path][method]["responses"]
        content = responses.get(str(status), responses["default"])["content"]
        schema = content[headers["Content-Type"]]["schema"] | {"components": document["components"]}
        value = json.loads(body)
        Draft202012Validator(schema, format_checker=Draft202012Validator.FORMAT_CHECKER).validate(
            value
        )
        return value

    return _described
