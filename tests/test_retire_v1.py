"""Version 1 is retired in real processes, as in docs/retire-v1.md and docs/retire-v1-end.md."""

import socket
from pathlib import Path

import pytest

from tests.gateway.kit import ROOT, wait_for
from tests.transcript import beginner

pytestmark = pytest.mark.slow

WALK = "".join((ROOT / "docs" / page).read_text() for page in ("retire-v1.md", "retire-v1-end.md"))


def test_the_commands_of_the_pages_retire_version_1(tmp_path: Path) -> None:
    """Commands print the shown output; at the end, the backend of version 1 is not needed."""
    with beginner(tmp_path) as reader:
        reader.follow(WALK)
        host, port = reader.addresses["127.0.0.1:8001"].split(":")

        def nobody_listens() -> bool:
            with socket.socket() as probe:
                return probe.connect_ex((host, int(port))) != 0

        wait_for(nobody_listens)
        assert "person_v1" not in (tmp_path / "gateway.yaml").read_text()
