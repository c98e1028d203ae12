"""Every command in the README, typed as it stands, answers what the README shows."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.gateway.kit import ROOT, start_program, wait_for

README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```console\n(.*?)```", README, re.DOTALL)
COMMANDS = [
    (command, shown)
    for block in BLOCKS
    for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE)
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, dict[str, str]]]:
    """Start the four programs in a folder like a clone's; say which ports stand for the shown."""
    folder = tmp_path_factory.mktemp("readme")
    (folder / "gateway.yaml").write_text((ROOT / "gateway.yaml").read_text())
    with ExitStack() as stack:
        backends = {
            variable: start_program(stack, folder, program)
            for variable, program in (
                ("PERSON_V1", "backend_v1"),
                ("PERSON_V2", "backend_v2"),
                ("USERS", "users_service"),
            )
        }
        variables = {name: f"127.0.0.1:{one.port}" for name, one in backends.items()}
        gateway = start_program(stack, folder, "gateway", **variables)
        yield folder, gateway, variables
        if any("sed -i" in command for command, _ in COMMANDS):
            wait_for(lambda: gateway.log("config_loaded"))


def test_there_are_commands() -> None:
    """The pattern above still finds what the README shows."""
    assert len(COMMANDS) >= README.count("\n$ ") >= 10


@pytest.mark.xdist_group("readme")
def test_commands(folder: tuple[Path, dict[str, str]]) -> None:
    """The commands are one story, so they are run in their order."""
    here, actual = folder
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **actual}
    for command, shown in COMMANDS:
        typed = command.replace(".venv/bin/python", sys.executable)
        for address, instead in actual.items():
            typed = typed.replace(address, instead)
        done = subprocess.run(
            ["bash", "-c", typed],
            cwd=here,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=20,
        )
        printed = done.stdout + done.stderr
        for address, instead in actual.items():
            printed = printed.replace(instead, address)
        assert printed.replace("\r", "").strip() == shown.strip(), command
