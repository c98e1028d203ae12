"""The stack of compose.fleet.yaml is tested end to end on a Docker engine: `make test-compose`."""

import json
import subprocess
from collections.abc import Iterator
from secrets import token_hex

import pytest

from tests.compose.project import MECHANISMS, V1, Project, brought_up, is_ok
from tests.gateway.kit import wait_for

BACKENDS = ["backend_v1", "backend_v2", "users_service"]
REPLICAS = ["gateway_1", "gateway_2", "gateway_3"]
PROGRAMS = ["postgres", *BACKENDS, *REPLICAS, "envoy"]
BY_GATEWAY = "/person/accept"
ACCEPT = {"Accept": "application/vnd.comp.app-v1+json"}
PASSWORD = token_hex(16)


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    folder = tmp_path_factory.mktemp("compose") / "project"
    file = {"COMPOSE_FILE": "compose.fleet.yaml", "POSTGRES_PASSWORD": PASSWORD}
    with brought_up(folder, *PROGRAMS, **file) as project:
        yield project


def ask_gateway(stack: Project, *words: str, replica: str = "gateway_1") -> str:
    return stack.compose("exec", "--no-TTY", replica, "version-gateway", *words, check=False)


def presence(stack: Project) -> dict[str, str]:
    told = ask_gateway(stack, "fleet", "show", "--json")
    found = json.loads(told) if told.startswith("{") else {"replicas": []}  # the database is away
    return {each["replica"]: each["presence"] for each in found["replicas"]}


@pytest.mark.parametrize(("target", "headers", "body"), MECHANISMS)
def test_every_mechanism_selects_the_version(
    stack: Project, target: str, headers: dict[str, str], body: object
) -> None:
    answer = stack.ask("GET", target, headers)

    assert (answer.status, answer.body) == (200, body)


def test_all_replicas_are_present_and_use_the_same_rules(stack: Project) -> None:
    found = json.loads(ask_gateway(stack, "fleet", "show", "--json"))

    assert {each["replica"]: each["presence"] for each in found["replicas"]} == (
        dict.fromkeys(REPLICAS, "heard")
    )
    assert found["warnings"] == []


def test_only_envoy_is_published(stack: Project) -> None:
    published = {
        program: {
            port: {(binding["HostIp"], binding["HostPort"]) for binding in bindings}
            for port, bindings in inspect["NetworkSettings"]["Ports"].items()
            if bindings
        }
        for program, inspect in stack.at_start.items()
    }

    assert published.pop("envoy") == {"8080/tcp": {("127.0.0.1", str(stack.port))}}
    assert not any(published.values())


def test_programs_reach_only_what_they_need(stack: Project) -> None:
    networks = {
        program: {
            name.rpartition("_")[2]: network["NetworkID"]
            for name, network in found["NetworkSettings"]["Networks"].items()
        }
        for program, found in stack.at_start.items()
    }

    assert {program: set(found) for program, found in networks.items()} == {
        "postgres": {"store"},
        "backend_v1": {"back"},
        "backend_v2": {"back"},
        "users_service": {"back", "store"},
        **{replica: {"back", "store"} for replica in REPLICAS},
        "envoy": {"front", "back"},
    }
    for network in networks["gateway_1"].values():
        command = ["docker", "network", "inspect", "--format", "{{.Internal}}", network]
        assert subprocess.run(command, capture_output=True, check=True).stdout == b"true\n"


@pytest.mark.parametrize("program", PROGRAMS)
def test_containers_have_only_the_privileges_that_they_need(stack: Project, program: str) -> None:
    limits = stack.at_start[program]["HostConfig"]
    assert limits["CapDrop"] == ["ALL"]
    assert limits["ReadonlyRootfs"]
    assert limits["Memory"] == 1024**3
    assert limits["PidsLimit"] == 512
    assert limits["SecurityOpt"] == ["no-new-privileges:true"]
    if program != "postgres":  # its entry point starts as root
        assert limits["CapAdd"] is None
        assert stack.compose("exec", "--no-TTY", program, "id", "-u").strip() == "10001"


def test_no_image_contains_the_password(stack: Project) -> None:
    for image in {found["Image"] for found in stack.at_start.values()}:
        for command in (["inspect"], ["history", "--no-trunc"]):
            done = subprocess.run(
                ["docker", "image", *command, image], capture_output=True, check=True, text=True
            )
            assert PASSWORD not in done.stdout
    assert PASSWORD not in stack.compose("logs", "--no-color")


def test_users_are_stored_across_new_containers(stack: Project) -> None:
    json_type = {"Content-Type": "application/json"}
    alice = '{"name": "Alice", "birthDate": "1990-12-31"}'

    created = stack.ask("POST", "/users", json_type, alice)

    assert (created.status, created.body["name"]) == (201, "Alice")
    path = f"/users/{created.body['id']}"
    assert created.headers["location"] == f"http://127.0.0.1:{stack.port}{path}"
    stack.compose("rm", "--stop", "--force", "users_service", "postgres")
    stack.compose("up", "--detach", "--wait", "users_service")
    stack.until(path, is_ok(created.body))


def test_a_killed_replica_is_detected_and_returns(stack: Project) -> None:
    stack.compose("kill", "--signal", "KILL", "gateway_2")

    for _ in range(50):  # no request goes to the killed gateway
        assert stack.ask("GET", BY_GATEWAY, ACCEPT).body == V1
    wait_for(lambda: presence(stack).get("gateway_2") == "lost")
    told = ask_gateway(stack, "usage", "--retire", "1", "--within", "1s")
    assert "fleet forget gateway_2" in told

    stack.compose("start", "gateway_2")
    wait_for(lambda: presence(stack) == dict.fromkeys(REPLICAS, "heard"))


def test_requests_succeed_without_the_database(stack: Project) -> None:
    stack.compose("stop", "postgres")

    for _ in range(50):
        assert stack.ask("GET", BY_GATEWAY, ACCEPT).body == V1
    assert "the database" in ask_gateway(stack, "usage", "--retire", "1", "--within", "1s")

    stack.compose("start", "postgres")
    wait_for(lambda: presence(stack) == dict.fromkeys(REPLICAS, "heard"))


def test_all_programs_end_with_status_0(stack: Project) -> None:
    stack.compose("stop")

    assert {program: stack.inspect(program)["State"]["ExitCode"] for program in PROGRAMS} == (
        dict.fromkeys(PROGRAMS, 0)
    )
