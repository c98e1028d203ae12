"""Version 1 is retired by real processes, as docs/retire-v1.md and docs/retire-v1-end.md show."""

import socket
from pathlib import Path

import pytest

from tests.gateway.kit import ROOT, wait_for
from tests.transcript import beginner

pytestmark = pytest.mark.slow

WALK = "".join((ROOT / "docs" / page).read_text() for page in ("retire-v1.md", "retire-v1-end.md"))


def test_the_walk(tmp_path: Path) -> None:
    """Each command prints what is shown, and at the end version 1 needs nobody any more."""
    with beginner(tmp_path) as reader:
        reader.follow(WALK)
        host, port = reader.addresses["127.0.0.1:8001"].split(":")

        def nobody_listens() -> bool:
            with socket.socket() as probe:
                return probe.connect_ex((host, int(port))) != 0

        wait_for(nobody_listens)
        assert "person_v1" not in (tmp_path / "gateway.yaml").read_text()
