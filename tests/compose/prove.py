"""The stack of compose.yaml is tested end to end on a Docker engine: `make test-compose`.

The file is not named test_*, so other test runs need no engine. The tests start a copy of the
project with its own name and port, and remove all of it afterwards.
"""

import json
import re
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from threading import Event, Thread

import pytest

from gateway import __version__
from tests.compose.project import MECHANISMS, V1, V2, Project, brought_up, is_ok
from tests.gateway.authority import Authority
from tests.gateway.kit import start_program, wait_for

BACKENDS = ["backend_v1", "backend_v2", "users_service"]
PROGRAMS = [*BACKENDS, "gateway"]


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    with brought_up(tmp_path_factory.mktemp("compose") / "project", *PROGRAMS) as project:
        yield project


@pytest.mark.parametrize(("target", "headers", "body"), MECHANISMS)
def test_every_mechanism_selects_the_version(
    stack: Project, target: str, headers: dict[str, str], body: object
) -> None:
    answer = stack.ask("GET", target, headers)

    assert (answer.status, answer.body) == (200, body)


def test_the_gateway_starts_after_the_backends_are_healthy(stack: Project) -> None:
    def first(program: str, state: str) -> int:
        step = re.compile(rf"\bContainer \S+-{program}-1 +{state}\b")
        return next(number for number, line in enumerate(stack.steps) if step.search(line))

    started = first("gateway", "Starting")
    assert [backend for backend in BACKENDS if first(backend, "Healthy") > started] == []


def test_only_the_gateway_is_published(stack: Project) -> None:
    published = {
        program: {
            port: {(binding["HostIp"], binding["HostPort"]) for binding in bindings}
            for port, bindings in inspect["NetworkSettings"]["Ports"].items()
            if bindings
        }
        for program, inspect in stack.at_start.items()
    }

    gateway = published.pop("gateway")
    assert gateway == {"8080/tcp": {("127.0.0.1", str(stack.port))}}
    assert not any(published.values())


@pytest.mark.parametrize("program", PROGRAMS)
def test_containers_have_only_the_privileges_that_they_need(stack: Project, program: str) -> None:
    inspect = stack.at_start[program]
    assert inspect["HostConfig"]["CapDrop"] == ["ALL"]
    assert inspect["HostConfig"]["Memory"] == 1024**3
    assert inspect["HostConfig"]["PidsLimit"] == 512
    assert inspect["HostConfig"]["SecurityOpt"] == ["no-new-privileges:true"]
    one_image = {stack.at_start[backend]["Image"] for backend in BACKENDS}
    assert len(one_image - {stack.at_start["gateway"]["Image"]}) == 1

    assert stack.compose("exec", program, "id", "-u").strip() == "10001"
    for path in ["/new", "/app/new", "/opt/venv/new", "/etc/version-gateway/new"]:
        refusal = stack.compose("exec", program, "touch", path, check=False)
        assert "Read-only file system" in refusal or "No such file or directory" in refusal


def test_the_image_runs_the_installed_compiled_gateway(stack: Project) -> None:
    version = stack.compose("exec", "gateway", "version-gateway", "--version")
    assert version.strip() == f"version-gateway {__version__} (compiled)"
    refusal = stack.compose("exec", "gateway", "python", "-c", "import backend_v1", check=False)
    assert "No module named 'backend_v1'" in refusal


def test_the_image_has_labels_and_runs_the_gateway_without_root_rights(stack: Project) -> None:
    command = ["docker", "image", "inspect", stack.at_start["gateway"]["Image"]]
    config = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)[0][
        "Config"
    ]
    assert config["Labels"]["org.opencontainers.image.version"] == __version__
    assert config["Labels"]["org.opencontainers.image.title"] == "version-gateway"
    assert config["Entrypoint"] == ["version-gateway"]
    assert config["User"] == "10001:10001"
    assert set(config["ExposedPorts"]) == {"8080/tcp", "8090/tcp"}


@dataclass(frozen=True)
class Container:
    name: str

    def run(self, *words: str) -> str:
        return subprocess.run(["docker", *words], capture_output=True, text=True, check=True).stdout

    @property
    def health(self) -> str:
        return self.run("inspect", "--format", "{{.State.Health.Status}}", self.name).strip()

    @property
    def counts(self) -> list[int]:
        """The requests per client and version; workers report theirs once a second."""
        usage = self.run("exec", self.name, "version-gateway", "usage", "--json")
        return [row["count"] for row in json.loads(usage)["usage"]]

    def answer(self, path: str) -> object:
        port = int(self.run("port", self.name, "8080/tcp").rpartition(":")[2])
        return wait_for(lambda: body_of(port, path))


def body_of(port: int, path: str) -> object:
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET", path)
        return json.load(connection.getresponse())
    except (OSError, HTTPException):  # it is starting
        return None
    finally:
        connection.close()


@contextmanager
def files_of_the_docs(stack: Project, folder: Path, added: str = "") -> Iterator[dict[str, str]]:
    """Write the configuration of docs/deploy.md, with a backend_v2 of this machine."""
    page = (stack.folder / "docs" / "deploy.md").read_text()
    files = dict(re.findall(r"^```\w+ file=(\S+)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL))
    with ExitStack() as resources:
        every = "0.0.0.0"  # noqa: S104  # containers connect by the address of the bridge
        backend = start_program(resources, folder, "backend_v2", BACKEND_V2_HOST=every)
        config = folder / "config" / "gateway.yaml"
        config.parent.mkdir(exist_ok=True)
        rules = files["config/gateway.yaml"].replace(":8002", f":{backend.port}")
        config.write_text(rules + added)
        for path in (folder, config.parent):
            path.chmod(0o755)  # the user of the image reads them
        yield files


@contextmanager
def container_of_the_docs(stack: Project, folder: Path, added: str = "") -> Iterator[Container]:
    """Run the commands of docs/deploy.md with other ports."""
    name, image = f"version-gateway-docs-{stack.port}", stack.at_start["gateway"]["Image"]
    with ExitStack() as resources:
        files = resources.enter_context(files_of_the_docs(stack, folder, added))
        script = files["run.sh"].replace("--name gateway", f"--name {name}")
        script = script.replace("exec gateway", f"exec {name}").replace("gateway-data:", f"{name}:")
        script = script.replace(" version-gateway check", f" {image} check")
        script = script.replace("/data version-gateway", f"/data {image}")
        script = script.replace("8080:8080", "127.0.0.1::8080").replace(":8090:8090", "::8090")
        for words in (["volume", "rm"], ["rm", "--force"]):
            remove = ["docker", *words, name]
            resources.callback(subprocess.run, remove, capture_output=True, check=False)
        command = ["bash", "-e", "-c", script]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "/etc/version-gateway/gateway.yaml: 1 service, 1 endpoint\n" in done.stdout
        yield Container(name)


def test_the_commands_of_the_docs_start_a_gateway_with_a_read_only_file_system(
    stack: Project, tmp_path: Path
) -> None:
    with container_of_the_docs(stack, tmp_path) as container:
        assert container.answer("/v1/person") == V1
        assert container.answer("/v2/person") == V2
        wait_for(lambda: container.health == "healthy")
        wait_for(lambda: container.counts == [1, 1])
        container.run("stop", container.name)
        assert container.run("inspect", "--format", "{{.State.ExitCode}}", container.name) == "0\n"


def test_the_compose_file_of_the_docs_starts_a_gateway(stack: Project, tmp_path: Path) -> None:
    name, image = f"version-gateway-compose-{stack.port}", stack.at_start["gateway"]["Image"]
    with ExitStack() as resources:
        files = resources.enter_context(files_of_the_docs(stack, tmp_path))
        text = files["compose.yaml"].replace("image: version-gateway", f"image: {image}")
        text = text.replace("8080:8080", "127.0.0.1::8080").replace(":8090:8090", "::8090")
        (tmp_path / "compose.yaml").write_text(text)
        (tmp_path / ".env").write_text("GATEWAY_ADMIN_TOKEN=0123456789abcdef\n")
        compose = [
            "docker",
            "compose",
            "--project-name",
            name,
            "--project-directory",
            str(tmp_path),
        ]
        down = [*compose, "down", "--volumes"]
        resources.callback(subprocess.run, down, capture_output=True, check=False)
        up = [*compose, "up", "--detach", "--wait"]
        done = subprocess.run(up, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        container = Container(f"{name}-gateway-1")
        assert container.answer("/v1/person") == V1
        wait_for(lambda: container.counts == [1])


def test_the_health_check_of_the_image_works_with_tls_at_the_admin_port(
    stack: Project, tmp_path: Path
) -> None:
    Authority(tmp_path / "config").write("server", "gateway.test")
    tls = "  tls: { certificate: server.pem, key: server.key }\n"
    with container_of_the_docs(stack, tmp_path, tls) as container:
        wait_for(lambda: container.health == "healthy")


def test_the_image_has_no_compiler(stack: Project) -> None:
    refusal = stack.compose("exec", "gateway", "gcc", "--version", check=False)
    assert "executable file not found" in refusal


def build(stack: Project, compiled: str) -> subprocess.CompletedProcess[str]:
    arguments = ["--build-arg", "PIP_INDEX_URL", "--build-arg", f"COMPILED={compiled}"]
    command = ["docker", "build", "--quiet", *arguments, str(stack.folder)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_an_image_can_be_built_without_a_compiler(stack: Project) -> None:
    built = build(stack, "no")
    assert built.returncode == 0, built.stderr
    image = built.stdout.strip()
    try:
        run = ["docker", "run", "--rm", image, "--version"]
        version = subprocess.run(run, capture_output=True, text=True, check=True).stdout
    finally:
        subprocess.run(["docker", "rmi", image], capture_output=True, check=True)
    assert version == f"version-gateway {__version__}\n"


def test_an_invalid_value_of_compiled_fails_and_names_the_valid_values(stack: Project) -> None:
    built = build(stack, "off")
    assert built.returncode != 0
    assert "COMPILED is 'off': yes or no." in built.stdout + built.stderr


def test_the_backends_cannot_reach_outside_addresses(stack: Project) -> None:
    networks = {
        program: set(found["NetworkSettings"]["Networks"])
        for program, found in stack.at_start.items()
    }
    back = set.intersection(*networks.values())

    assert all(networks[backend] == back for backend in BACKENDS)
    (name,) = back
    command = ["docker", "network", "inspect", "--format", "{{.Internal}}", name]
    assert subprocess.run(command, capture_output=True, check=True).stdout == b"true\n"


def test_users_are_stored_across_new_containers(stack: Project) -> None:
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
    # 504: the address of a removed container stays in use until the next lookup.
    assert stack.ask("GET", "/v1/person").status in {502, 503, 504}

    # `sed -i` and most editors save this way: a new file replaces the old one.
    saved = config.with_suffix(".new")
    saved.write_text(shipped.replace(served, converted))
    saved.replace(config)

    stack.until("/v1/person", is_ok(V1))
    assert stack.ask("GET", "/v2/person").body == V2

    config.write_text(shipped)  # other editors save into the same file
    stack.until("/v1/person", lambda answer: answer.status in {502, 503, 504})
    stack.compose("start", "backend_v1")
    stack.until("/v1/person", is_ok(V1))
    now = stack.inspect("gateway")
    assert now["State"]["StartedAt"] == stack.at_start["gateway"]["State"]["StartedAt"]


def served(stack: Project, program: str) -> dict[str, int]:
    found = {}
    for container in stack.compose("ps", "--quiet", program).split():
        log = subprocess.run(["docker", "logs", container], capture_output=True, check=True).stdout
        found[container] = log.count(b'"event": "request"') - log.count(b'"path": "/readyz"')
    return found


@contextmanager
def load(stack: Project, target: str) -> Iterator[list[int | str]]:
    statuses: list[int | str] = []
    done = Event()

    def send() -> None:
        while not done.is_set():
            try:
                statuses.append(stack.ask("GET", target).status)
            except (OSError, HTTPException, ValueError) as error:
                statuses.append(repr(error))

    senders = [Thread(target=send) for _ in range(4)]
    for sender in senders:
        sender.start()
    try:
        yield statuses
    finally:
        done.set()
        for sender in senders:
            sender.join()


def test_containers_of_a_scaled_service_share_its_requests(stack: Project) -> None:
    """An added container gets requests after the next look-up; a removed one costs no request."""
    up = ["up", "--detach", "--wait", "--no-recreate"]
    with load(stack, "/v2/person") as statuses:
        stack.compose(*up, "--scale", "backend_v2=3")

        def is_shared() -> bool:
            before = served(stack, "backend_v2")
            wait_for(lambda: sum(served(stack, "backend_v2").values()) > sum(before.values()) + 600)
            after = served(stack, "backend_v2")
            counts = [after[container] - before[container] for container in before]
            return len(counts) == 3 and min(counts) >= 0.8 * sum(counts) / 3

        wait_for(is_shared)  # each worker looks up the addresses at its own time

        stack.compose(*up, "--scale", "backend_v2=1")
        # The removed addresses stay in use until the next look-up, and connecting to them may
        # take the whole `timeouts.connect`.
        time.sleep(16)
    log = stack.compose("logs", "--no-color", "--no-log-prefix", "gateway")
    causes = re.findall(r'"status":50\d.*"cause":"([^"]*)"', log)
    assert [*Counter(statuses)] == [200], Counter(causes)


def test_all_programs_end_with_status_0(stack: Project) -> None:
    stack.compose("stop")

    assert {program: stack.inspect(program)["State"]["ExitCode"] for program in PROGRAMS} == (
        dict.fromkeys(PROGRAMS, 0)
    )
