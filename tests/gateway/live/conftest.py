"""One gateway for most live tests: its rules hold every kind of endpoint that they ask."""

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.gateway.kit import Program, Stack, start_program
from tests.gateway.live.raw import Service, answer


@dataclass(frozen=True)
class House:
    """A gateway by the rules of house.yaml, and the service behind it that answers as told."""

    gateway: Program
    service: Service


@pytest.fixture(scope="session")
def shared_house(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """Start the gateway and the service once."""
    with ExitStack() as resources:
        service = resources.enter_context(Service())
        resources.callback(service.shutdown)
        threading.Thread(target=service.serve_forever, args=(0.01,), daemon=True).start()
        # A port that is bound and not listened on refuses connections, and nobody else gets it.
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


@pytest.fixture
def house(shared_house: House) -> House:
    """Return the shared gateway; its service forgets, and answers an empty object."""
    shared_house.service.asked.clear()
    shared_house.service.answer = answer(b"{}")
    return shared_house
