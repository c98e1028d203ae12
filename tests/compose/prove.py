"""The stack of compose.yaml, proven end to end on a Docker engine: `make test-compose`.

Not named test_*, so that only who asks for it needs an engine. It brings up a copy of the project,
under a name and on a port of its own, and takes all of it down again.
"""

import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
BACKENDS = ["backend_v1", "backend_v2", "users_service"]
PROGRAMS = [*BACKENDS, "gateway"]
V1 = {"name": "Bob Charlie"}
V2 = {"name": {"firstName": "Bob", "lastName": "Charlie"}}


@dataclass(frozen=True, slots=True)
class Answer:
    """What the gateway answered."""

    status: int
    headers: dict[str, str]
    body: Any


@dataclass(frozen=True)
class Project:
    """A Compose project that is up."""

    folder: Path
    port: int
    at_start: dict[str, Any] = field(default_factory=dict)
    """`docker inspect` of each container, from right after the start."""

    def compose(self, *arguments: str, check: bool = True) -> str:
        """Run `docker compose`; return what it wrote."""
        done = subprocess.run(
            ["docker", "compose", "--ansi", "never", *arguments],
            cwd=self.folder,
            env=os.environ
            | {
                "COMPOSE_PROJECT_NAME": f"version-gateway-proof-{self.port}",
                "GATEWAY_PORT": str(self.port),
            },
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0 or not check, done.stdout + done.stderr
        return done.stdout + done.stderr

    def inspect(self, program: str) -> Any:
        """Return what `docker inspect` knows of a program's container."""
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
        """Send one request to the published port."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request(method, target, body, headers or {})
            response = connection.getresponse()
            return Answer(response.status, dict(response.headers), json.load(response))
        finally:
            connection.close()

    def until(self, target: str, true: Callable[[Answer], bool], within: float = 20) -> None:
        """Wait until something is true of the answer to a GET."""
        deadline = time.monotonic() + within
        answer: object = None
        while not (isinstance(answer, Answer) and true(answer)):
            assert time.monotonic() < deadline, answer
            try:
                answer = self.ask("GET", target)
            except (OSError, HTTPException) as error:
                answer = error
            time.sleep(0.1)


def is_ok(body: object) -> Callable[[Answer], bool]:
    """Return what is true of a 200 with this body."""
    return lambda answer: (answer.status, answer.body) == (200, body)


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """Bring the project up, healthy; take it down afterwards."""
    folder = tmp_path_factory.mktemp("compose") / "project"
    unneeded = shutil.ignore_patterns(".*_cache", ".git", ".venv", "__pycache__", "*.db*")
    shutil.copytree(ROOT, folder, ignore=unneeded)
    folder.chmod(0o755)  # the gateway's user, not ours, reads gateway.yaml
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    project = Project(folder, port)
    try:
        project.compose("up", "--build", "--detach", "--wait")
        project.at_start.update({program: project.inspect(program) for program in PROGRAMS})
        yield project
    finally:
        project.compose("down", "--volumes", "--rmi", "all", "--timeout", "5")


@pytest.mark.parametrize(
    ("target", "headers", "body"),
    [
        ("/v1/person", {}, V1),
        ("/v2/person", {}, V2),
        ("/person/param?version=1", {}, V1),
        ("/person/param?version=2", {}, V2),
        ("/person/header", {"X-API-VERSION": "1"}, V1),
        ("/person/header", {"X-API-VERSION": "2"}, V2),
        ("/person/accept", {"Accept": "application/vnd.comp.app-v1+json"}, V1),
        ("/person/accept", {"Accept": "application/vnd.comp.app-v2+json"}, V2),
    ],
)
def test_every_mechanism_selects(
    stack: Project, target: str, headers: dict[str, str], body: object
) -> None:
    answer = stack.ask("GET", target, headers)

    assert (answer.status, answer.body) == (200, body)


def test_the_gateway_waited_for_healthy_backends(stack: Project) -> None:
    started = datetime.fromisoformat(stack.at_start["gateway"]["State"]["StartedAt"])
    for backend in BACKENDS:
        checks = stack.at_start[backend]["State"]["Health"]["Log"]
        healthy = [check["End"] for check in checks if check["ExitCode"] == 0]
        assert datetime.fromisoformat(healthy[0]) < started


def test_only_the_gateway_is_published(stack: Project) -> None:
    published = {
        program: {
            port: {binding["HostPort"] for binding in bindings}
            for port, bindings in inspect["NetworkSettings"]["Ports"].items()
            if bindings
        }
        for program, inspect in stack.at_start.items()
    }

    gateway = published.pop("gateway")
    assert gateway == {"8080/tcp": {str(stack.port)}}
    assert not any(published.values())


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_container_can_do_no_more_than_it_must(stack: Project, program: str) -> None:
    inspect = stack.at_start[program]
    assert inspect["HostConfig"]["CapDrop"] == ["ALL"]
    assert inspect["HostConfig"]["SecurityOpt"] == ["no-new-privileges:true"]
    assert inspect["Image"] == stack.at_start["gateway"]["Image"], "one image for all"

    assert stack.compose("exec", program, "id", "-u").strip() == "10001"
    for path in ["/new", "/app/new", "/opt/venv/new", "/config/new"]:
        refusal = stack.compose("exec", program, "touch", path, check=False)
        assert "Read-only file system" in refusal or "No such file or directory" in refusal


def test_the_gateway_is_the_installed_one(stack: Project) -> None:
    assert stack.compose("exec", "gateway", "version-gateway", "--version").split()[0] == (
        "version-gateway"
    )
    assert stack.compose("exec", "gateway", "ls").split() == sorted({*BACKENDS, "stack"})


def test_the_backends_reach_nothing_outside(stack: Project) -> None:
    networks = {
        program: set(found["NetworkSettings"]["Networks"])
        for program, found in stack.at_start.items()
    }
    back = set.intersection(*networks.values())

    assert all(networks[backend] == back for backend in BACKENDS)
    (name,) = back
    command = ["docker", "network", "inspect", "--format", "{{.Internal}}", name]
    assert subprocess.run(command, capture_output=True, check=True).stdout == b"true\n"


def test_a_user_outlives_the_containers(stack: Project) -> None:
    json_type = {"Content-Type": "application/json"}
    alice = '{"name": "Alice", "birthDate": "1990-12-31"}'

    created = stack.ask("POST", "/users", json_type, alice)

    assert created.status == 201
    assert created.body == {"id": created.body["id"], **json.loads(alice)}
    path = f"/users/{created.body['id']}"
    assert created.headers["Location"] == f"http://127.0.0.1:{stack.port}{path}"
    stack.until(path, is_ok(created.body))

    stack.compose("restart", "users_service")
    stack.until(path, is_ok(created.body))

    stack.compose("kill", "--signal", "KILL", "users_service")
    stack.compose("up", "--detach", "--wait", "users_service")
    stack.until(path, is_ok(created.body))

    stack.compose("rm", "--stop", "--force", "users_service")
    stack.compose("up", "--detach", "--wait", "users_service")
    stack.until(path, is_ok(created.body))

    refused = stack.ask("POST", "/users", json_type, '{"name": "Al", "birthDate": "2999-01-01"}')
    assert (refused.status, refused.body) == (
        400,
        {
            "name": "Name must be more than 2 characters.",
            "birthDate": "Birth date should be in past.",
        },
    )


def test_an_edit_of_gateway_yaml_retires_backend_v1_without_a_restart(stack: Project) -> None:
    config = stack.folder / "gateway.yaml"
    shipped = config.read_text()
    served, converted = '"1": { service: person_v1 }', '"1": { via: "2" }'
    assert shipped.count(served) == 1
    stack.compose("stop", "backend_v1")
    assert stack.ask("GET", "/v1/person").status in {502, 503}

    # As `sed -i` and most editors save: a new file takes the old one's name.
    saved = config.with_suffix(".new")
    saved.write_text(shipped.replace(served, converted))
    saved.replace(config)

    stack.until("/v1/person", is_ok(V1))
    assert stack.ask("GET", "/v2/person").body == V2

    config.write_text(shipped)  # as other editors save: into the same file
    stack.until("/v1/person", lambda answer: answer.status in {502, 503})
    stack.compose("start", "backend_v1")
    stack.until("/v1/person", is_ok(V1))
    now = stack.inspect("gateway")
    assert now["State"]["StartedAt"] == stack.at_start["gateway"]["State"]["StartedAt"]


def test_all_end_cleanly(stack: Project) -> None:
    stack.compose("stop")

    assert {program: stack.inspect(program)["State"]["ExitCode"] for program in PROGRAMS} == (
        dict.fromkeys(PROGRAMS, 0)
    )
