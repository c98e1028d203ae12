"""stack/run.py starts and ends the four programs together.

Most tests replace the programs with stand-ins, because starting all four takes seconds of CPU time.
"""

import argparse
import http.client
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
import pytest

ROOT = Path(__file__).parents[2]
PROGRAMS = ["backend_v1", "backend_v2", "users_service", "gateway"]
LISTENERS = ["BACKEND_V1", "BACKEND_V2", "USERS", "GATEWAY", "GATEWAY_ADMIN"]


def until(true: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.02)


@dataclass(frozen=True, slots=True)
class Stack:
    """A running stack/run.py. It leads a process group, like a job in a terminal."""

    runner: subprocess.Popen[bytes]
    folder: Path

    @property
    def output(self) -> str:
        return (self.folder / "stdout").read_text()

    @property
    def complaints(self) -> str:
        return (self.folder / "stderr").read_text()

    @property
    def curl_lines(self) -> list[str]:
        return [line for line in self.output.splitlines() if line.startswith("  curl ")]

    @property
    def gateway(self) -> str:
        return urlsplit(self.curl_lines[0].split()[-1]).netloc

    def logged(self, event: str) -> list[str]:
        lines = [json.loads(line) for line in self.output.splitlines() if line.startswith("{")]
        return [line["program"] for line in lines if line["event"] == event]

    def wait_until_ready(self) -> None:
        until(lambda: "Ctrl-C ends all four" in self.output or self.runner.poll() is not None)
        assert self.runner.poll() is None, self.complaints

    def programs(self) -> dict[str, psutil.Process]:
        found = {}
        for child in psutil.Process(self.runner.pid).children():
            with suppress(psutil.NoSuchProcess):
                words = child.cmdline()
                if words:  # empty while a process is starting or ending
                    found[words[-1]] = child
        return found

    def status(self) -> int:
        return self.runner.wait(20)


Start = Callable[..., Stack]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Return a function that starts the stack on free ports, with further environment variables.

    With `stand_in`, the runner starts stand-ins instead of the programs.
    """
    stacks = []

    def start(*, stand_in: bool = False, **environment: str) -> Stack:
        prefixes = (*LISTENERS, "PERSON")
        kept = {name: text for name, text in os.environ.items() if not name.startswith(prefixes)}
        ports = {f"{prefix}_PORT": "0" for prefix in LISTENERS}
        users = {"USERS_DATABASE_URL": f"sqlite+aiosqlite:///{tmp_path}/users.db"}
        with (tmp_path / "stdout").open("wb") as out, (tmp_path / "stderr").open("wb") as err:
            runner = subprocess.Popen(
                [sys.executable, _with_stand_ins(tmp_path) if stand_in else ROOT / "stack/run.py"],
                env=kept | ports | users | environment,
                stdout=out,
                stderr=err,
                process_group=0,
            )
        stacks.append(Stack(runner, tmp_path))
        return stacks[-1]

    yield start
    for stack in stacks:
        stack.runner.terminate()
        stack.runner.wait(60)  # in seconds; after 30 s, the runner kills a program that hangs


def _with_stand_ins(folder: Path) -> Path:
    program = shlex.quote(str(Path(__file__).with_name("stand_in.py")))
    lines = [f"{name}: python -IS {program} {name}\n" for name in PROGRAMS]
    (folder / "Procfile").write_text("".join(lines))
    (folder / "stack").mkdir()
    return Path(shutil.copy(ROOT / "stack/run.py", folder / "stack"))


def curl(line: str) -> tuple[int, Any]:
    parser = argparse.ArgumentParser()
    parser.add_argument("-i", action="store_true")
    parser.add_argument("-H", action="append", default=[])
    parser.add_argument("-d")
    parser.add_argument("url")
    said = parser.parse_args(shlex.split(line)[1:])
    url = urlsplit(said.url)
    connection = http.client.HTTPConnection(url.netloc, timeout=60)
    headers = dict(header.split(": ", 1) for header in said.H)
    connection.request("POST" if said.d else "GET", url.path, said.d, headers)
    response = connection.getresponse()
    body = json.load(response)
    connection.close()
    return response.status, body


@pytest.mark.parametrize(
    "ask",
    [
        pytest.param(lambda pid: os.kill(pid, signal.SIGINT), id="SIGINT"),
        pytest.param(lambda pid: os.kill(pid, signal.SIGTERM), id="SIGTERM"),
        pytest.param(lambda pid: os.kill(pid, signal.SIGHUP), id="SIGHUP"),
    ],
)
def test_a_signal_to_the_runner_ends_all_four_programs(
    start: Start, ask: Callable[[int], None]
) -> None:
    stack = start(stand_in=True)
    stack.wait_until_ready()
    programs = stack.programs()
    assert list(programs) == PROGRAMS

    ask(stack.runner.pid)

    assert stack.status() == 0
    assert stack.complaints == ""
    assert stack.logged("stopped") == PROGRAMS[::-1]
    assert not any(program.is_running() for program in programs.values())


def test_ctrl_c_during_the_start_ends_all_four_programs(start: Start) -> None:
    stack = start()
    until(stack.programs)

    os.killpg(stack.runner.pid, signal.SIGINT)

    assert stack.status() in {0, 1}, "1 if a program did not handle signals yet"
    assert "curl" not in stack.output


@pytest.mark.parametrize(
    ("program", "how", "told"),
    [
        ("backend_v1", signal.SIGKILL, "killed by SIGKILL"),
        ("users_service", signal.SIGTERM, "exit status 0"),
        ("gateway", signal.SIGTERM, "exit status 0"),
    ],
)
def test_when_one_program_ends_the_others_are_ended(
    start: Start, program: str, how: signal.Signals, told: str
) -> None:
    stack = start(stand_in=True)
    stack.wait_until_ready()
    programs = stack.programs()

    programs[program].send_signal(how)

    assert stack.status() == 1
    assert stack.complaints == f"stack: {program} ended unexpectedly ({told}); ending the others\n"
    assert not any(program.is_running() for program in programs.values())


def test_when_one_program_cannot_start_the_others_are_ended(start: Start) -> None:
    stack = start(stand_in=True, USERS_GRACE="soon")

    assert stack.status() == 1
    assert "stack: users_service ended unexpectedly (exit status 2)" in stack.complaints
    assert "curl" not in stack.output


def test_the_stack_serves_requests_and_finishes_them_after_ctrl_c(start: Start) -> None:
    stack = start()
    stack.wait_until_ready()
    programs = stack.programs()
    path, header, users = stack.curl_lines
    assert curl(path) == (200, {"name": "Bob Charlie"})
    assert curl(header) == (200, {"name": {"firstName": "Bob", "lastName": "Charlie"}})
    assert curl(users) == (201, {"id": 1, "name": "Alice", "birthDate": "1990-12-31"})

    body = b'{"name": "Alice", "birthDate": "1990-12-31"}'
    head = f"POST /users HTTP/1.1\r\nHost: {stack.gateway}\r\nContent-Type: application/json\r\n"
    host, port = stack.gateway.split(":")
    with socket.create_connection((host, int(port)), timeout=60) as client:
        client.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body[:10])
        # The gateway accepted this connection later, so it has read the first part of the request.
        assert curl(path)[0] == 200

        os.killpg(stack.runner.pid, signal.SIGINT)
        until(lambda: "gateway" in stack.logged("stopping"))
        client.sendall(body[10:])

        assert client.recv(12) == b"HTTP/1.1 201"
    assert stack.status() == 0
    assert stack.complaints == ""
    assert stack.logged("stopped") == PROGRAMS[::-1]
    assert not any(program.is_running() for program in programs.values())


def test_a_second_ctrl_c_kills_programs_that_have_not_ended(start: Start) -> None:
    stack = start(stand_in=True)
    stack.wait_until_ready()
    programs = stack.programs()
    programs["users_service"].suspend()

    os.killpg(stack.runner.pid, signal.SIGINT)
    until(lambda: "gateway" in stack.logged("stopped"))  # users_service ends next
    os.killpg(stack.runner.pid, signal.SIGINT)

    assert stack.status() == 1
    assert "stack: users_service did not end and is killed\n" in stack.complaints
    assert not any(program.is_running() for program in programs.values())


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child of its parent's end")
def test_programs_end_when_the_runner_is_killed(start: Start) -> None:
    stack = start(stand_in=True)
    stack.wait_until_ready()
    programs = stack.programs()

    stack.runner.kill()

    until(lambda: sorted(stack.logged("stopped")) == sorted(PROGRAMS))
    until(lambda: not any(program.is_running() for program in programs.values()))


def test_taken_ports_are_reported_and_no_program_is_started(start: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        stack = start(BACKEND_V2_PORT=port, GATEWAY_ADMIN_PORT=port)
        status = stack.status()

    assert (status, stack.output) == (2, "")
    assert stack.complaints == "".join(
        f"stack: {program} cannot listen on 127.0.0.1:{port} (Address already in use);"
        f" free it, or choose another port with {variable}\n"
        for program, variable in [
            ("backend_v2", "BACKEND_V2_PORT"),
            ("gateway", "GATEWAY_ADMIN_PORT"),
        ]
    )


@pytest.mark.parametrize("port", ["abc", "65536", "-1", "٨٠", " 80"])
def test_an_invalid_port_is_refused(start: Start, port: str) -> None:
    stack = start(USERS_PORT=port)

    assert (stack.status(), stack.output) == (2, "")
    right = "a whole number from 0 (any free port) to 65535"
    assert stack.complaints == f"stack: USERS_PORT={port!r}: must be {right}\n"
