"""Every command in the README and in the reference answers what they show."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.gateway.kit import ROOT, start_program
from tests.transcript import Reader, steps

README = (ROOT / "README.md").read_text()


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    """Start the four programs in a folder like a clone's, for somebody who reads there."""
    programs = {"PERSON_V1": "backend_v1", "PERSON_V2": "backend_v2", "USERS": "users_service"}
    (tmp_path / "gateway.yaml").write_text((ROOT / "gateway.yaml").read_text())
    with ExitStack() as stack:
        targets = {
            variable: f"127.0.0.1:{start_program(stack, tmp_path, program).port}"
            for variable, program in programs.items()
        }
        gateway = start_program(stack, tmp_path, "gateway", **targets)
        shown = [f"127.0.0.1:{port}" for port in (8001, 8002, 8003)]
        addresses = dict(zip(shown, targets.values(), strict=True))
        addresses["127.0.0.1:8080"] = f"127.0.0.1:{gateway.port}"
        yield Reader(tmp_path, {"GATEWAY_ADMIN_PORT": str(gateway.admin), **targets}, addresses)


def test_there_are_commands() -> None:
    """What the README shows is still found."""
    assert len(list(steps(README))) >= README.count("\n$ ") >= 10


def test_commands(reader: Reader) -> None:
    """The commands are one story, so they are run in their order."""
    reader.follow(README)
