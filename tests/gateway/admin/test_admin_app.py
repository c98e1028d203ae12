"""The admin application: /readyz, /metrics, and large responses."""

import asyncio
import time
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from gateway.admin import reports
from gateway.admin.page import version_view
from gateway.findings.operator import Operator
from gateway.process.running import Tasks
from gateway.store.local import LocalState
from gateway.store.state import StateError
from gateway.usage.delta import UsageDelta
from tests.gateway.operating import admin_of


async def ask(operator: Operator, path: str) -> tuple[int, Any]:
    app = admin_of(operator)
    async with TestClient(TestServer(app)) as client, client.get(path) as answer:
        return answer.status, await (answer.json() if path == "/readyz" else answer.text())


async def test_failed_tasks_are_listed_on_readyz(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await ask(operator, "/readyz") == (200, {"status": "ready"})
    tasks = Tasks(operator.totals.absorb)

    async def run() -> None:
        raise OSError("no more")

    task = tasks.start("sampling", run)
    await ask(operator, "/healthz")
    task.stop()
    assert await ask(operator, "/readyz") == (200, {"status": "ready", "failing": ["sampling"]})
    assert 'gateway_task_failures_total{task="sampling"}' in (await ask(operator, "/metrics"))[1]
    date, now = time.time(), time.monotonic()
    for ahead in (7200, -7200):  # the clock is set
        monkeypatch.setattr("time.time", lambda ahead=ahead: date + ahead)
        assert (await ask(operator, "/readyz"))[1] == {"status": "ready", "failing": ["sampling"]}
    monkeypatch.setattr("time.monotonic", lambda: now + 61)
    assert await ask(operator, "/readyz") == (200, {"status": "ready"})


async def test_a_metric_shows_that_the_state_cannot_be_written(operator: Operator) -> None:
    assert "gateway_state_unwritten 0" in (await ask(operator, "/metrics"))[1]
    assert isinstance(operator.state, LocalState)
    operator.state._health.missed(StateError("full"))
    assert "gateway_state_unwritten 1" in (await ask(operator, "/metrics"))[1]


async def test_a_head_request_for_metrics_has_no_body(operator: Operator) -> None:
    app = admin_of(operator)
    async with TestClient(TestServer(app)) as client:
        async with client.head("/metrics") as answer:
            assert answer.status == 200
            assert answer.content_type == "text/plain"
        async with client.get("/metrics") as answer:  # the connection is still usable
            assert "gateway_workers 1" in await answer.text()


@pytest.mark.parametrize("path", ["/usage", "/page/callers/person/1"])
async def test_other_tasks_run_while_a_large_response_is_sent(
    operator: Operator, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A gateway with one process serves clients on the same event loop."""
    monkeypatch.setattr(reports, "MOST_LINES", 10)
    monkeypatch.setattr(version_view, "MOST_LINES", 10)
    now = time.time()
    clients = operator.totals.clients_of("person", "1")
    for number in range(2000):
        clients.add(UsageDelta("person", "1", "/p", f"client-{number}", 1, 0, 0, 1), now)
    turns = 0

    async def take_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    await ask(operator, path)  # imports the needed modules, in a thread
    taking = asyncio.create_task(take_turns())
    status, text = await ask(operator, path)
    taking.cancel()
    assert status == 200
    assert text.count("client-") == 2000
    assert turns > 200
