"""Shared code of the gateway's tests: real programs, and upstreams that follow scripts."""

import asyncio
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

import psutil

from gateway.findings.refused_rules import rules_hash
from tests.fork_server import Process, fork_server

ROOT = Path(__file__).parents[2]
# The maximum seconds to wait, on a machine where twenty processes share a core.
DEADLINE = 180.0
# The maximum memory of an idle gateway, in bytes; Python 3.13 itself takes 4 MB more than 3.11.
IDLE = 74e6 if sys.version_info < (3, 13) else 78e6
# One worker, and shadows that other tests on the machine do not pause.
DEFAULTS = {"GATEWAY_WORKERS": "1", "GATEWAY_SHADOW_LOAD": "1"}


@dataclass
class Program:
    """A running program: its address, and its log from a position on."""

    process: Process
    output: Path
    config: Path | None = None
    port: int = 0
    admin: int = 0
    since: int = 0
    workers: int = 1

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def admin_url(self) -> str:
        return f"http://127.0.0.1:{self.admin}"

    def log(self, event: str | None = None) -> list[dict[str, Any]]:
        """Return all complete log lines so far, or those of one event; each must be JSON."""
        return self._logged_since(self.since, event)

    def _logged_since(self, begin: int, event: str | None) -> list[dict[str, Any]]:
        with self.output.open("rb") as stream:
            stream.seek(begin)
            lines = stream.read().splitlines(keepends=True)
        named = b"" if event is None else b'"%b"' % event.encode()  # parsing JSON takes time
        entries = [json.loads(line) for line in lines if line.endswith(b"\n") and named in line]
        return [entry for entry in entries if event in (None, entry["event"])]

    def raw(self, request: bytes) -> bytes:
        with socket.create_connection(("127.0.0.1", self.port), DEADLINE) as connection:
            connection.sendall(request)
            received = b""
            while data := connection.recv(65536):
                received += data
            return received

    def rewrite(self, text: str) -> None:
        """Replace the configuration by an atomic rename; wait until it is loaded or refused."""
        begin = self.output.stat().st_size
        self.replace_rules(text)
        wait_for(
            lambda: (
                self._loads(text, begin) >= self.workers
                or self._logged_since(begin, "config_rejected")
            )
        )

    def reload(self, text: str, *, workers: int | None = None) -> None:
        """Replace the configuration, send SIGHUP, and wait until all workers have loaded it."""
        begin, wanted = self.output.stat().st_size, workers or self.workers
        self.replace_rules(text)
        self.process.send_signal(signal.SIGHUP)
        wait_for(lambda: self.process.poll() or self._loads(text, begin) >= wanted)
        assert self.process.poll() is None, "the gateway died"

    def replace_rules(self, text: str) -> None:
        assert self.config is not None
        fresh = self.config.with_suffix(".new")
        fresh.write_text(text)
        fresh.rename(self.config)

    def _loads(self, text: str, begin: int) -> int:
        loaded = self._logged_since(begin, "config_loaded")
        return sum(entry["rules"] == rules_hash(text.encode()) for entry in loaded)


def wait_for(condition: Callable[[], Any], seconds: float = DEADLINE) -> Any:
    """Wait until a condition returns a true value, and return the value; fail at the deadline.

    Checks take at most a fifth of the time, since some read the metrics or run a command.
    """
    end = time.monotonic() + seconds
    while True:
        began = time.monotonic()
        if found := condition():
            return found
        now = time.monotonic()
        assert now < end, f"not within {seconds} seconds"
        time.sleep(min(max(0.01, 4 * (now - began)), 0.2))


def assert_sound(program: Program) -> None:
    assert replace(program, since=0).log("log") == []
    assert program.process.poll() is None


def children(program: Program, text: str = "") -> list[psutil.Process]:
    """Return the child processes of a program whose command line contains a text.

    The fork server names its stand-in for a child after the process ID of the real child.
    """
    found = []
    for each in psutil.Process(program.process.pid).children():
        with suppress(psutil.NoSuchProcess):
            if text in " ".join(each.cmdline()):
                name = each.name()
                found.append(psutil.Process(int(name)) if name.isdigit() else each)
    return found


def open_files(pid: int) -> list[str]:
    """Return the target of each descriptor of a process, such as `socket:[12]`."""
    found = []
    for each in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # the descriptor was closed in the meantime
            found.append(str(each.readlink()))
    return found


def held_port(stack: ExitStack) -> int:
    """Return a port reserved for a program: it is bound here, but nothing listens on it."""
    held = stack.enter_context(socket.socket())
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", 0))
    port: int = held.getsockname()[1]
    return port


def free_port() -> int:
    """Return a free port, for programs that cannot use a reserved one."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
        return port


def start_program(stack: ExitStack, folder: Path, program: str, **variables: str) -> Program:
    """Start `python -m program` in a folder on a free port; return it once it listens.

    It is forked from a process that has already imported it, unless a variable or a
    `sitecustomize.py` must take effect before the imports.
    """
    early = any(
        name.startswith(("MALLOC_", "LD_", "PYTHON")) and name != "PYTHONPATH" for name in variables
    )
    folders = variables.get("PYTHONPATH", "").split(os.pathsep)
    early = early or any(Path(folder, "sitecustomize.py").exists() for folder in folders)
    start = _execute if early else fork_server().start
    return _start(stack, folder, program, variables, start)


def execute_program(stack: ExitStack, folder: Path, program: str, **variables: str) -> Program:
    """Start a program as `start_program` does, but as a new process that shares no memory."""
    return _start(stack, folder, program, variables, _execute)


def run_command(program: Program, words: str, **variables: str) -> tuple[int, str]:
    given = {"PYTHONPATH": str(ROOT), "GATEWAY_ADMIN_PORT": str(program.admin), **variables}
    with TemporaryFile() as output:
        run = fork_server().start("gateway", Path.cwd(), given, output, shlex.split(words))
        status = run.wait(DEADLINE)
        output.seek(0)
        return status, output.read().decode()


def _execute(
    program: str, folder: Path, environment: Mapping[str, str], output: IO[bytes]
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", program],
        cwd=folder,
        env=environment,
        stdout=output,
        stderr=subprocess.STDOUT,
        process_group=0,  # Ctrl-C reaches only the parent
    )


def _start(
    stack: ExitStack,
    folder: Path,
    program: str,
    variables: Mapping[str, str],
    start: Callable[[str, Path, Mapping[str, str], IO[bytes]], Process],
) -> Program:
    folder.mkdir(exist_ok=True, parents=True)
    prefixes = ("GATEWAY_", "BACKEND_", "PERSON_", "USERS", "NAME_SEPARATOR")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(prefixes)}
    ports = {"gateway": ("GATEWAY_PORT", "GATEWAY_ADMIN_PORT"), "users_service": ("USERS_PORT",)}
    free = dict.fromkeys(ports.get(program, (f"{program.upper()}_PORT",)), "0")
    output = folder / f"{program}.log"
    environment = {**kept, "PYTHONPATH": str(ROOT), **DEFAULTS, **free, **variables}
    with output.open("wb") as stream:
        process = start(program, folder, environment, stream)
    stack.callback(process.wait)
    stack.callback(process.kill)
    started = Program(process, output)
    wait_for(lambda: process.poll() is not None or output.read_bytes().endswith(b"\n"))
    assert process.poll() is None, output.read_text()
    entry = wait_for(lambda: started.log("listening"))[0]
    started.port = int(entry["url"].rpartition(":")[2])
    started.admin = int(entry.get("admin", ":0").rpartition(":")[2])
    started.workers = entry.get("workers", 1)
    return started


@dataclass(frozen=True)
class Stack:
    """The four programs with the shipped gateway.yaml.

    They are shared, so tests must not change them.
    """

    gateway: Program
    backend_v1: Program
    backend_v2: Program
    users: Program

    @property
    def variables(self) -> dict[str, str]:
        return {
            "PERSON_V1": f"127.0.0.1:{self.backend_v1.port}",
            "PERSON_V2": f"127.0.0.1:{self.backend_v2.port}",
            "USERS": f"127.0.0.1:{self.users.port}",
        }


@dataclass
class Scripted:
    requests: list[bytes] = field(default_factory=list)
    connections: int = 0
    port: int = 0

    async def take(self, reader: asyncio.StreamReader) -> bytes:
        head = await reader.readuntil(b"\r\n\r\n")
        body = bytearray()
        for header in head.split(b"\r\n")[1:]:
            name, _, value = header.partition(b":")
            if name.lower() == b"content-length":
                body += await reader.readexactly(int(value))
            elif name.lower() == b"transfer-encoding":
                while not body.endswith(b"\r\n0\r\n\r\n") and body != b"0\r\n\r\n":
                    line = await reader.readline()
                    if not line:
                        raise asyncio.IncompleteReadError(bytes(body), None)
                    body += line
        self.requests.append(head + body)
        return self.requests[-1]


Script = Callable[[Scripted, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
StartUpstream = Callable[..., Awaitable[Scripted]]
StartGateway = Callable[..., Program]


async def on_one_port(start: StartUpstream, scripts: dict[str, bytes]) -> dict[str, Scripted]:
    """Start a scripted upstream on each host, all on one port that is free on all of them."""
    first, *others = scripts
    for _ in range(20):
        found = {first: await start(scripts[first], host=first)}
        port = found[first].port
        with suppress(OSError):  # another process uses the port on another host
            for host in others:
                found[host] = await start(scripts[host], host=host, port=port)
            return found
    raise AssertionError("no port is free on all hosts")


def rules(port: int, *, extra: str = "", changes: str = "", via: bool = False) -> str:
    """Return a configuration for one scripted upstream.

    `/plain` and `/v{version}/person` (and the endpoints of the other mechanisms) lead to `port`.
    With `via`, version 1 is served by version 2 through `changes` (by default, a join of the name).
    """
    changes = changes or "- join: { fields: [name.firstName, name.lastName], into: name }"
    vendor = 'media_type: "application/vnd.t-v{version}+json", response_type: vendor'
    first = '{ via: "2" }' if via else "{ service: s }"
    return f"""
services:
  s: {{ targets: ["http://127.0.0.1:{port}"]{extra} }}
apis:
  plain:
    service: s
    endpoints: [ {{ path: /plain }}, {{ path: "/tail/{{rest*}}" }} ]
  person:
    upstream_path: /person
    endpoints:
      - {{ path: "/v{{version}}/person", version: {{ in: path }} }}
      - {{ path: /param, version: {{ in: query, name: version }} }}
      - {{ path: /header, version: {{ in: header, name: X-API-VERSION }} }}
      - {{ path: /accept, version: {{ in: accept, {vendor} }} }}
    versions:
      "1": {first}
      "2": {{ service: s }}
    conversions:
      - between: ["1", "2"]
        changes:
          {changes}
"""
