"""Every command in the README, typed as it stands, answers what the README shows."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.gateway.kit import ROOT, Program, start_program, wait_for

README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```console\n(.*?)```", README, re.DOTALL)
COMMANDS = [
    (command, shown)
    for block in BLOCKS
    for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE)
]


@pytest.fixture
def clone(tmp_path: Path) -> Iterator[tuple[Program, dict[str, str]]]:
    """Start the four programs in a folder like a clone's; say which address stands for which."""
    programs = {"PERSON_V1": "backend_v1", "PERSON_V2": "backend_v2", "USERS": "users_service"}
    (tmp_path / "gateway.yaml").write_text((ROOT / "gateway.yaml").read_text())
    with ExitStack() as stack:
        targets = {
            variable: f"127.0.0.1:{start_program(stack, tmp_path, program).port}"
            for variable, program in programs.items()
        }
        yield start_program(stack, tmp_path, "gateway", **targets), targets


def test_there_are_commands() -> None:
    """The pattern above still finds what the README shows."""
    assert len(COMMANDS) >= README.count("\n$ ") >= 10


def test_commands(clone: tuple[Program, dict[str, str]]) -> None:
    """The commands are one story, so they are run in their order."""
    gateway, targets = clone
    here = gateway.output.parent
    shown_as = {f"127.0.0.1:{gateway.port}": "127.0.0.1:8080"}
    shown_as |= {actual: f"127.0.0.1:{8000 + n}" for n, actual in enumerate(targets.values(), 1)}
    for command, shown in COMMANDS:
        typed = command.replace(".venv/bin/python", sys.executable)
        for actual, address in shown_as.items():
            typed = typed.replace(address, actual)
        done = subprocess.run(
            ["bash", "-c", typed],
            cwd=here,
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT),
                "GATEWAY_ADMIN_PORT": str(gateway.admin),
                **targets,
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        printed = done.stdout + done.stderr
        for actual, address in shown_as.items():
            printed = printed.replace(actual, address)
        assert printed.replace("\r", "").strip() == shown.strip(), command
        if "sed -i" in command:
            wait_for(lambda: gateway.log("config_loaded"))
