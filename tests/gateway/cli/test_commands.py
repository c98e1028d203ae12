"""The commands as real processes: what they print, where, and with which exit status."""

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.gateway.kit import DEADLINE, ROOT

HERE = Path(__file__).parent
TRANSCRIPT = (HERE / "commands.txt").read_text()
COMMANDS = [block.partition("\n") for block in TRANSCRIPT.strip().split("\n\n")[1:]]


def typed(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command as a shell in that folder does."""
    ours = ("GATEWAY_", "PERSON_", "USERS", "NAME_SEPARATOR", "PYTHON")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env={**kept, "PATH": path, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("commands")
    for name in ("explain.yaml", "broken.yaml"):
        shutil.copy(HERE / name, folder)
    return folder


@pytest.mark.parametrize(
    ("command", "printed"),
    [pytest.param(command.removeprefix("$ "), text, id=command) for command, _, text in COMMANDS],
)
def test_command(command: str, printed: str, folder: Path) -> None:
    done = typed(command, folder)
    status = f"[{done.returncode}]\n" if done.returncode else ""
    assert f"{done.stdout}{done.stderr}{status}" == (f"{printed}\n" if printed else "")
    # What is asked for goes to the standard output, what is wrong to the other.
    assert not done.stdout if done.returncode else not done.stderr


@pytest.mark.parametrize("variable", ["GATEWAY_PORT", "GATEWAY_ADMIN_PORT"])
def test_a_port_that_is_taken(variable: str, folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        ports = {"GATEWAY_PORT": 0, "GATEWAY_ADMIN_PORT": 0, variable: port}
        settings = " ".join(f"{name}={value}" for name, value in ports.items())
        done = typed(f"GATEWAY_CONFIG=explain.yaml {settings} python -m gateway", folder)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"cannot listen on 127.0.0.1:{port}: address already in use\n"


def test_a_host_that_is_not_ours(folder: Path) -> None:
    settings = (
        "GATEWAY_CONFIG=explain.yaml GATEWAY_PORT=0 GATEWAY_ADMIN_PORT=0 GATEWAY_HOST=192.0.2.1"
    )
    done = typed(f"{settings} python -m gateway", folder)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "cannot listen on 192.0.2.1:0: cannot assign requested address\n"


@pytest.mark.parametrize("arguments", ["--port 80", "launch", "check", "explain rules.yaml"])
def test_asked_wrongly(arguments: str) -> None:
    """The words are argparse's, and differ with the version of Python."""
    done = typed(f"python -m gateway {arguments}", ROOT)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("usage: python -m gateway ")
    assert "error: " in done.stderr.splitlines()[-1]


def test_help_names_every_command_and_variable() -> None:
    done = typed("python -m gateway --help", ROOT)
    assert (done.returncode, done.stderr) == (0, "")
    commands = ["serve", "check", "explain", "verify", "schema"]
    commands += ["usage", "brownout", "cutover", "shadow"]
    names = ["HOST", "PORT", "ADMIN_HOST", "ADMIN_PORT", "CONFIG", "GRACE"]
    for word in [*commands, *(f"GATEWAY_{name}" for name in names)]:
        assert word in done.stdout
