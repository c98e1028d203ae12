"""The commands in docs/fleet.md: a fleet loses a replica and its database, and retires v1."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.fleet.cluster import Cluster
from tests.gateway.kit import ROOT, held_port
from tests.transcript import Reader, end_all

WALK = (ROOT / "docs" / "fleet.md").read_text()
PORTS = (8001, 8002, 8081, 8082, 8091, 8092)


@pytest.fixture
def reader(own_cluster: Cluster, tmp_path: Path) -> Iterator[Reader]:
    (tmp_path / "gateway.yaml").write_text((ROOT / "gateway.yaml").read_text())
    with ExitStack() as stack:
        ports = {shown: held_port(stack) for shown in PORTS}
        shown = ("127.0.0.1:{}", "GATEWAY_PORT={}", "GATEWAY_ADMIN_PORT={}")
        addresses = {
            text.format(port): text.format(actual)
            for port, actual in ports.items()
            for text in shown
        }
        addresses["127.0.0.1:5432"] = f"127.0.0.1:{own_cluster.port}"
        for verb in ("stop", "start"):
            addresses[f"sudo systemctl {verb} postgresql"] = own_cluster.shell(verb)
        variables = {
            "BACKEND_V1_PORT": str(ports[8001]),
            "BACKEND_V2_PORT": str(ports[8002]),
            "PERSON_V1": addresses["127.0.0.1:8001"],
            "PERSON_V2": addresses["127.0.0.1:8002"],
            "GATEWAY_STATE": own_cluster.create("vgw"),
        }
        stack.callback(end_all, tmp_path)
        yield Reader(tmp_path, variables, addresses)


def test_the_commands_of_the_fleet_page_print_the_shown_output(reader: Reader) -> None:
    reader.follow(WALK)
