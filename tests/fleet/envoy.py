"""Envoy, run with the configuration that the gateway exports."""

import shutil
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from tests.fleet.exported import exported
from tests.gateway.kit import wait_for


def envoy_program() -> str:
    """Return the path of Envoy."""
    found = shutil.which("envoy") or shutil.which("envoy", path=str(Path(sys.executable).parent))
    assert found, "no Envoy here; install requirements/bench.txt"
    return found


def export(folder: Path, *words: str) -> None:
    """Write envoy.yaml for the gateway.yaml of a folder."""
    (folder / "envoy.yaml").write_text(exported(folder, "envoy", "gateway.yaml", *words))


def start_envoy(stack: ExitStack, folder: Path, port: int) -> subprocess.Popen[bytes]:
    """Start Envoy by the envoy.yaml of a folder; return it once it listens."""
    command = [envoy_program(), "--config-path", "envoy.yaml", "--disable-hot-restart"]
    command += ["--concurrency", "1", "--log-level", "error", "--file-flush-interval-msec", "50"]
    with (folder / "envoy.log").open("wb") as output:
        process = subprocess.Popen(command, cwd=folder, stdout=output, stderr=subprocess.STDOUT)
    stack.callback(process.wait)
    stack.callback(process.kill)

    def ready() -> bool:
        assert process.poll() is None, (folder / "envoy.log").read_text()
        with socket.socket() as connection:
            return connection.connect_ex(("127.0.0.1", port)) == 0

    wait_for(ready)
    return process
