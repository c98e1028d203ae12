"""What an idle gateway imports: nothing for rules that it does not have.

Each module takes memory, and time at each start; this needs a process of its own.
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
NEEDED = (
    "gateway.conversion.changes.join_section",
    "gateway.conversion.changes.join",
    "gateway.versions.mechanisms.accept_reader",
)
NOT_NEEDED = (
    "jinja2",
    "opentelemetry",
    "prometheus_client",
    "sqlalchemy",
    "gateway.admin.access.admin_tls",
    "gateway.findings.webhook_client",
    "gateway.admin.page.page_app",
    "gateway.cli",
    "gateway.conversion.changes.map_section",
    "gateway.access.admin_section",
    "gateway.routing.cors_section",
    "gateway.access.client_section",
    "gateway.findings.notify_section",
    "gateway.lifecycle.brownout_section",
    "gateway.rollout.cutover_section",
    "gateway.lifecycle.lifecycle_section",
    "gateway.rules.violation",
    "gateway.routing.cors",
    "gateway.routing.error_template",
    "gateway.conversion.changes.map",
    "gateway.conversion.message.form_types",
    "gateway.conversion.message.places",
    "gateway.conversion.changes.kept",
    "gateway.lifecycle.brownout",
    "gateway.lifecycle.lifecycle",
    "gateway.process.supervisor",
    "gateway.process.worker",
    "gateway.store.fleet",
    "gateway.store.sqlite",
    "gateway.verify.openapi",
)


def test_rules_import_what_they_need_alone() -> None:
    program = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=ROOT,
        env=os.environ,
        check=True,
        capture_output=True,
        text=True,
    )
    imported = set(program.stdout.split())
    assert imported >= set(NEEDED)
    assert sorted(imported & set(NOT_NEEDED)) == []


def test_a_worker_imports_nothing_of_what_its_supervisor_does() -> None:
    """It leaves at once, as there is no supervisor; by then it has imported all that it needs."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ours, theirs = socket.socketpair()
        ours.close()
        with theirs:
            numbers = {LISTENERS: listener.fileno(), CHANNEL: theirs.fileno()}
            worker = subprocess.run(
                [sys.executable, "-c", WORKER],
                cwd=ROOT,
                env=os.environ | {name: str(number) for name, number in numbers.items()},
                pass_fds=tuple(numbers.values()),
                check=True,
                capture_output=True,
                text=True,
            )
    imported = set(worker.stdout.split())
    assert "gateway.proxy.handler" in imported
    supervising = {
        "gateway.admin",
        "gateway.app",
        "gateway.process.supervisor",
        "gateway.store.open_state",
    }
    assert sorted(imported & supervising) == []
