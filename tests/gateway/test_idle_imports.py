"""An idle gateway does not import libraries that its configuration does not need.

Each module takes memory, and time at each start. The tests use separate processes.
"""

import os
import socket
import subprocess
import sys

from gateway.process.listening import CHANNEL, LISTENERS
from tests.gateway.kit import ROOT

PROGRAM = """
import os
import sys
from pathlib import Path

import gateway.app
from gateway.rules.load import load_file

load_file(Path("gateway.yaml"), os.environ)
print(*sys.modules, sep="\\n")
"""
WORKER = """
import sys

from gateway.__main__ import main

assert main() == 0
print(*sys.modules, sep="\\n")
"""
NOT_NEEDED = (
    *("cryptography", "jinja2", "opentelemetry", "prometheus_client", "sqlalchemy"),
    *("gateway.findings.notifier", "gateway.admin.page.page_app", "gateway.cli"),
    *("gateway.process.supervisor", "gateway.process.worker", "gateway.store.fleet"),
    *("gateway.store.sqlite", "gateway.verify.openapi"),
)


def test_a_configuration_imports_no_library_that_it_does_not_need() -> None:
    program = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=ROOT,
        env=os.environ,
        check=True,
        capture_output=True,
        text=True,
    )
    imported = set(program.stdout.split())
    assert sorted(imported & set(NOT_NEEDED)) == []


def test_a_worker_imports_no_modules_that_only_the_supervisor_needs() -> None:
    """Without a supervisor, the worker ends at once, but only after all its imports."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ours, theirs = socket.socketpair()
        ours.close()
        with theirs:
            numbers = {LISTENERS: f"={listener.fileno()}", CHANNEL: str(theirs.fileno())}
            worker = subprocess.run(
                [sys.executable, "-c", WORKER],
                cwd=ROOT,
                env=os.environ | numbers,
                pass_fds=(listener.fileno(), theirs.fileno()),
                check=True,
                capture_output=True,
                text=True,
            )
    imported = set(worker.stdout.split())
    assert "gateway.proxy.pipeline" in imported
    supervising = {
        "gateway.admin",
        "gateway.app",
        "gateway.process.supervisor",
        "gateway.store.local",
    }
    assert sorted(imported & supervising) == []
