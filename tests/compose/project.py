"""Project: a copy of this project in containers, with its own name and port."""

import json
import os
import shutil
import socket
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
V1 = {"name": "Bob Charlie"}
V2 = {"name": {"firstName": "Bob", "lastName": "Charlie"}}
MECHANISMS = [
    ("/v1/person", {}, V1),
    ("/v2/person", {}, V2),
    ("/person/param?version=1", {}, V1),
    ("/person/param?version=2", {}, V2),
    ("/person/header", {"X-API-VERSION": "1"}, V1),
    ("/person/header", {"X-API-VERSION": "2"}, V2),
    ("/person/accept", {"Accept": "application/vnd.comp.app-v1+json"}, V1),
    ("/person/accept", {"Accept": "application/vnd.comp.app-v2+json"}, V2),
]
"""A request for each version by each mechanism: target, fields, and the response body."""


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: Any


@dataclass(frozen=True)
class Project:
    folder: Path
    port: int
    variables: Mapping[str, str] = field(default_factory=dict)
    """Variables of the environment, besides those that separate it from other projects."""
    at_start: dict[str, Any] = field(default_factory=dict)
    """The output of `docker inspect` for each container, right after the start."""
    steps: list[str] = field(default_factory=list)
    """The output lines of Compose during the start."""
    asked: Counter[str] = field(default_factory=Counter)
    """The number of requests to each target."""

    def compose(self, *arguments: str, check: bool = True) -> str:
        done = subprocess.run(
            ["docker", "compose", "--ansi", "never", *arguments],
            cwd=self.folder,
            env=os.environ
            | dict(self.variables)
            | {
                "COMPOSE_PROJECT_NAME": f"version-gateway-proof-{self.port}",
                "GATEWAY_PORT": str(self.port),
            },
            capture_output=True,
            text=True,
            timeout=900,  # the image is compiled
            check=False,
        )
        assert done.returncode == 0 or not check, done.stdout + done.stderr
        return done.stdout + done.stderr

    def inspect(self, program: str) -> Any:
        container = self.compose("ps", "--all", "--quiet", program).strip()
        command = ["docker", "inspect", container]
        return json.loads(subprocess.run(command, capture_output=True, check=True).stdout)[0]

    def ask(
        self,
        method: str,
        target: str,
        headers: dict[str, str] | None = None,
        body: str | None = None,
    ) -> Answer:
        self.asked[target] += 1
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, target, body, headers or {})
            response = connection.getresponse()
            return Answer(response.status, dict(response.headers), json.load(response))
        finally:
            connection.close()

    def until(self, target: str, true: Callable[[Answer], bool]) -> None:
        deadline = time.monotonic() + 60
        answer: object = None
        while not (isinstance(answer, Answer) and true(answer)):
            assert time.monotonic() < deadline, answer
            try:
                answer = self.ask("GET", target)
            except (OSError, HTTPException) as error:
                answer = error
            time.sleep(0.1)


def is_ok(body: object) -> Callable[[Answer], bool]:
    return lambda answer: (answer.status, answer.body) == (200, body)


@contextmanager
def brought_up(folder: Path, *programs: str, **variables: str) -> Iterator[Project]:
    unneeded = shutil.ignore_patterns(".*_cache", ".git", ".venv", "__pycache__", "*.db*")
    shutil.copytree(ROOT, folder, ignore=unneeded)
    folder.chmod(0o755)  # the gateway's user in the container reads gateway.yaml
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    project = Project(folder, port, variables)
    try:
        project.steps.extend(project.compose("up", "--build", "--detach", "--wait").splitlines())
        project.at_start.update({program: project.inspect(program) for program in programs})
        yield project
    finally:
        # Images that existed before are not removed.
        project.compose("down", "--volumes", "--rmi", "local", "--timeout", "5")
