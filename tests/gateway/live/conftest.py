"""Gateways that live tests share: one with every kind of endpoint, one in front of the tap."""

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.gateway.kit import Program, Stack, assert_sound, rules, start_program
from tests.gateway.live.raw import Service, answer, request, send
from tests.gateway.live.tap import LAST, Tap


@dataclass(frozen=True)
class House:
    gateway: Program
    service: Service

    @property
    def told(self) -> str:
        return f"127.0.0.1:{self.service.port}"


@pytest.fixture(scope="session")
def shared_house(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with ExitStack() as resources:
        service = resources.enter_context(Service())
        resources.callback(service.shutdown)
        threading.Thread(target=service.serve_forever, args=(0.01,), daemon=True).start()
        # A bound port without a listener refuses connections, and no other program can take it.
        gone = resources.enter_context(socket.socket())
        gone.bind(("127.0.0.1", 0))
        gateway = start_program(
            resources,
            tmp_path_factory.mktemp("house"),
            "gateway",
            GATEWAY_CONFIG=str(Path(__file__).with_name("house.yaml")),
            TOLD=f"127.0.0.1:{service.port}",
            GONE=f"127.0.0.1:{gone.getsockname()[1]}",
            **stack.variables,
        )
        yield House(gateway, service)
        assert_sound(gateway)


@pytest.fixture
def house(shared_house: House) -> House:
    """Return the shared gateway; its service is reset and responds with an empty object."""
    shared_house.service.asked.clear()
    shared_house.service.answer = answer(b"{}")
    return shared_house


@pytest.fixture(scope="session")
def tap() -> Iterator[Tap]:
    with Tap() as tap:
        threading.Thread(target=tap.serve_forever, args=(0.01,), daemon=True).start()
        yield tap
        tap.shutdown()


@pytest.fixture(scope="session")
def shared_tapped(tap: Tap, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    folder = tmp_path_factory.mktemp("tapped")
    (folder / "gateway.yaml").write_text(rules(tap.port, via=True))
    with ExitStack() as resources:
        program = start_program(resources, folder, "gateway")
        yield program
        assert_sound(program)


@pytest.fixture
def tapped(shared_tapped: Program, tap: Tap) -> Program:
    """Return the gateway in front of the reset tap, after closing the idle connections."""
    if tap.answer != LAST:
        tap.answer = LAST
        send(shared_tapped, request("GET", "/plain"))
    tap.buffers.clear()
    return shared_tapped
