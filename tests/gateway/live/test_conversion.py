"""Serving a version from another version's backend: real backends, and a switch at runtime."""

import os
import signal
from typing import Any

import pytest

from tests.gateway.kit import ROOT, Program, Stack, StartGateway, wait_for
from tests.gateway.live.conftest import House
from tests.gateway.live.raw import ask, get

V1 = {"name": "Bob Charlie"}
V2 = {"name": {"firstName": "Bob", "lastName": "Charlie"}}


class TestRealBackends:
    def test_version_1_is_served_from_backend_v2(self, house: House) -> None:
        assert get(house.gateway, "/real/down/v2").json == V2
        got = get(house.gateway, "/real/down/v1", "X-Request-Id: down")
        assert got.body == b'{"name":"Bob Charlie"}'
        assert got.one("Content-Length") == b"22"
        assert _logged(house.gateway, "down")["service"] == "person_v2"
        assert _logged(house.gateway, "down")["converted"] is True

    def test_version_2_is_served_from_backend_v1(self, house: House) -> None:
        assert get(house.gateway, "/real/up/v1").json == V1
        got = get(house.gateway, "/real/up/v2", "X-Request-Id: up")
        assert got.json == {**V2, "nickname": "none yet"}
        assert _logged(house.gateway, "up")["service"] == "person_v1"
        assert _logged(house.gateway, "up")["converted"] is True

    @pytest.mark.parametrize("path", ["/real/down/v1", "/real/up/v2"])
    def test_head_has_the_fields_of_get_without_a_length(self, house: House, path: str) -> None:
        got = ask(house.gateway, "HEAD", path)
        assert got.status == 200
        assert got.one("Content-Type").startswith(b"application/json")
        assert got.all("Content-Length") == []
        assert got.one("ETag") == get(house.gateway, path).one("ETag")

    def test_errors_of_the_backends_are_forwarded(self, house: House) -> None:
        got = ask(house.gateway, "DELETE", "/real/down/v1")
        assert got.status == 405
        assert got.json["code"] == "method_not_allowed"
        assert got.one("Allow") == b"GET, HEAD, OPTIONS"


def _logged(program: Program, request_id: str) -> dict[str, Any]:
    def entries() -> list[dict[str, Any]]:
        return [e for e in program.log("request") if e["request_id"] == request_id]

    found: list[dict[str, Any]] = wait_for(entries)
    (entry,) = found
    return entry


SHIPPED = (ROOT / "gateway.yaml").read_text()
# A separator that distinguishes converted names from native ones.
DOWN = {"name": "Bob-Charlie"}
UP = {"name": {"firstName": "Bob Charlie", "lastName": ""}}


def switched(old: str, new: str) -> str:
    """Return the shipped configuration with one line changed and the same length."""
    assert SHIPPED.count(old) == 1
    return SHIPPED.replace(old, new.ljust(len(old)))


FIRST_VIA_SECOND = switched('"1": { service: person_v1 }', '"1": { via: "2" }')
SECOND_VIA_FIRST = switched('"2": { service: person_v2 }', '"2": { via: "1" }')


@pytest.fixture(scope="module")
def switching(module_gateway: StartGateway, stack: Stack) -> Program:
    return module_gateway(SHIPPED, NAME_SEPARATOR="-", **stack.variables)


def becomes(program: Program, path: str, old: object, new: object) -> None:
    """Wait until the response for a path changes; each is either the old or the new one."""

    def is_new() -> bool:
        got = get(program, path)
        assert got.status == 200
        assert got.json in (old, new)
        return bool(got.json == new)

    wait_for(is_new)


def test_editing_one_line_switches_the_service(switching: Program) -> None:
    assert switching.config is not None
    assert get(switching, "/v1/person").json == V1
    switching.config.write_text(FIRST_VIA_SECOND)
    becomes(switching, "/v1/person", V1, DOWN)
    assert get(switching, "/v2/person").json == V2
    for target, line in (
        ("/person/param?version=1", "X: y"),
        ("/person/header", "X-API-VERSION: 1"),
        ("/person/accept", "Accept: application/vnd.comp.app-v1+json"),
    ):
        got = get(switching, target, line)
        assert got.json == DOWN
    assert got.one("Content-Type") == b"application/vnd.comp.app-v1+json"

    switching.config.write_text(SECOND_VIA_FIRST)
    becomes(switching, "/v2/person", V2, UP)
    assert get(switching, "/v1/person").json == V1

    switching.config.write_text(SHIPPED)
    becomes(switching, "/v2/person", UP, V2)


def test_a_signal_loads_a_change_that_keeps_the_modification_time(switching: Program) -> None:
    config = switching.config
    assert config is not None
    for text, old, new in ((FIRST_VIA_SECOND, V1, DOWN), (SHIPPED, DOWN, V1)):
        before = config.stat()
        with config.open("r+") as file:
            file.write(text)
        os.utime(config, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert config.stat().st_mtime_ns == before.st_mtime_ns
        switching.process.send_signal(signal.SIGHUP)
        becomes(switching, "/v1/person", old, new)
