"""docs/retire-v1.md, done as it stands: version 1 of the person is retired, by real processes."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import psutil
import pytest

from tests.gateway.kit import ROOT, wait_for
from tests.transcript import Reader

WALK = (ROOT / "docs" / "retire-v1.md").read_text()
PORTS = {
    "127.0.0.1:8001": "BACKEND_V1_PORT",
    "127.0.0.1:8002": "BACKEND_V2_PORT",
    "127.0.0.1:8080": "GATEWAY_PORT",
    "127.0.0.1:8090": "GATEWAY_ADMIN_PORT",
}


def free_port(stack: ExitStack) -> int:
    """Return a port that stays free for a program: bound here, but not listened on."""
    held = stack.enter_context(socket.socket())
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", 0))
    port: int = held.getsockname()[1]
    return port


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    """Hand out somebody who reads in a folder like a clone's; end what they have started."""
    (tmp_path / "gateway.yaml").write_text((ROOT / "gateway.yaml").read_text())
    with ExitStack() as stack:
        ports = {variable: str(free_port(stack)) for variable in PORTS.values()}
        addresses = {shown: f"127.0.0.1:{ports[variable]}" for shown, variable in PORTS.items()}
        targets = {
            "PERSON_V1": addresses["127.0.0.1:8001"],
            "PERSON_V2": addresses["127.0.0.1:8002"],
        }
        try:
            yield Reader(tmp_path, {**ports, **targets}, addresses)
        finally:
            for started in tmp_path.glob("*.pid"):
                with suppress(psutil.NoSuchProcess):
                    process = psutil.Process(int(started.read_text()))
                    if process.cwd() == str(tmp_path):  # it is still the one that wrote the file
                        process.kill()


def test_the_walk(reader: Reader) -> None:
    """Each command prints what is shown, and at the end version 1 needs nobody any more."""
    reader.follow(WALK)
    host, port = reader.addresses["127.0.0.1:8001"].split(":")

    def nobody_listens() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex((host, int(port))) != 0

    wait_for(nobody_listens)
    assert "person_v1" not in (reader.folder / "gateway.yaml").read_text()
