"""The admin port: which tasks failed is on /readyz, and keeps nothing from being ready."""

import time
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from gateway.admin.admin_app import admin_app
from gateway.admin.admin_guard import AdminGuard
from gateway.admin.operator import Operator
from gateway.process.reloader import Reloader
from gateway.process.tasks import Tasks
from gateway.state.active_overrides import ActiveOverrides
from gateway.state.cutover_controller import CutoverController
from gateway.state.state_writer import StateWriter
from tests.gateway.kit import rules


@pytest.fixture
def operator(tmp_path: Path) -> Operator:
    path = tmp_path / "gateway.yaml"
    path.write_text(rules(1))
    reloader, writer = Reloader(path, {}), StateWriter(None)
    overrides = ActiveOverrides(writer)
    cutovers = CutoverController(writer, overrides, lambda: reloader.latest)
    return Operator(writer, overrides, cutovers, reloader, lambda: 1, lambda: None)


async def ask(operator: Operator, path: str) -> tuple[int, Any]:
    app = admin_app(operator, AdminGuard())
    async with TestClient(TestServer(app)) as client, client.get(path) as answer:
        return answer.status, await (answer.json() if path == "/readyz" else answer.text())


async def test_tasks_that_failed(operator: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    assert await ask(operator, "/readyz") == (200, {"status": "ready"})
    tasks = Tasks(operator.totals.absorb)

    async def run() -> None:
        raise OSError("no more")

    task = tasks.start("sampling", run)
    await ask(operator, "/healthz")
    task.stop()
    assert await ask(operator, "/readyz") == (200, {"status": "ready", "failing": ["sampling"]})
    assert 'gateway_task_failures_total{task="sampling"}' in (await ask(operator, "/metrics"))[1]
    now = time.time()
    monkeypatch.setattr("time.time", lambda: now + 61)
    assert await ask(operator, "/readyz") == (200, {"status": "ready"})


async def test_a_state_that_cannot_be_written(operator: Operator) -> None:
    assert "gateway_state_unwritten 0.0" in (await ask(operator, "/metrics"))[1]
    operator.writer.failing = True
    assert "gateway_state_unwritten 1.0" in (await ask(operator, "/metrics"))[1]
