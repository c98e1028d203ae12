"""The supervisor: behavior that the tests of real workers in tests/gateway/live do not show."""

import asyncio
import os
import socket
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import ClientSession

from gateway import app
from gateway.access.token_buckets import shared_memory
from gateway.base.overrides import NO_OVERRIDES
from gateway.observe import log
from gateway.process import supervisor as module
from gateway.process.listening import Listening
from gateway.process.reloader import Loaded, Reloader
from gateway.process.running import Tasks
from gateway.process.settings import Settings
from gateway.process.supervisor import Supervisor
from gateway.verify.live.document_process import DocumentProcess
from tests.gateway.documents import ignore
from tests.gateway.kit import DEADLINE, free_port


async def test_a_worker_that_hangs_while_it_loads_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hanging = tmp_path / "hanging"
    hanging.write_text("#!/bin/sh\nexec sleep 1000\n")
    hanging.chmod(0o755)
    events: list[tuple[str, dict[str, Any]]] = []

    def event(name: str, level: str = "info", **fields: object) -> None:
        events.append((name, fields))

    monkeypatch.setattr(sys, "executable", str(hanging))
    monkeypatch.setattr(module, "_START_LOOK_SECONDS", 0.1)
    monkeypatch.setattr(log, "event", event)
    with socket.socket() as listener:
        tasks = Tasks(lambda _: None)
        deliver = list[object]().append
        supervised = Supervisor(
            [[Listening("", listener)]],
            os.environ,
            tasks,
            deliver,
            deliver,
            DocumentProcess(tmp_path, ignore),
            Loaded(b"", {}),
            NO_OVERRIDES,
            None,
            shared_memory(),
        )
        async with asyncio.timeout(60):
            await supervised.start()
        assert supervised.ready == 0
        assert [name for name, _ in events[:2]] == ["worker_hangs", "worker_died"]
        await supervised.stop(0)
        tasks.stop()


async def test_a_worker_that_keeps_dying_young_is_restarted_after_growing_waits(
    monkeypatch: pytest.MonkeyPatch, events: list[str]
) -> None:
    """docs/architecture.md describes this. A worker that ran for longer is replaced at once."""
    ages = [0.0] * 8 + [module._YOUNG + 1] + [0.0] * 2
    now, waits = 0.0, list[float]()
    in_time = asyncio.timeout

    async def run(*_: object) -> int:
        nonlocal now
        now += ages[len(waits)]
        return 1

    def timeout(seconds: float) -> asyncio.Timeout:
        waits.append(seconds)
        if len(waits) == len(ages):
            supervised._stopping.set()
        return in_time(0)

    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now))
    monkeypatch.setattr(asyncio, "timeout", timeout)
    monkeypatch.setattr(Supervisor, "_run", run)
    tasks, deliver = Tasks(lambda _: None), list[object]().append
    rules = Loaded(b"", {})
    documents = DocumentProcess(Path(), ignore)
    supervised = Supervisor(
        [], os.environ, tasks, deliver, deliver, documents, rules, NO_OVERRIDES, None, 0
    )
    await supervised._fill(0, asyncio.Event())
    assert waits == [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10, 10, 0.1, 0.2, 0.4]
    assert set(events) == {"worker_died"}


DROPPING = """\
services: { s: { targets: ["http://127.0.0.1:9"] } }
apis:
  shop:
    endpoints: [ { path: "/v{version}/item", version: { in: path } } ]
    versions: { "1": { via: "2", schema: v1.json }, "2": { service: s } }
    conversions: [ { between: ["1", "2"], additional: drop, changes: [] } ]
"""


async def test_the_first_worker_does_not_make_the_gateway_ready_before_its_documents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requests would get 503 document_unavailable."""
    (tmp_path / "v1.json").write_text('{"openapi": "3.1.0", "paths": {}}')
    (tmp_path / "gateway.yaml").write_text(DROPPING)
    stop, first = asyncio.Event(), asyncio.Event()

    async def start(supervised: Supervisor) -> None:
        supervised._ready.add(1)
        first.set()
        await stop.wait()  # for the other workers

    monkeypatch.setattr(app, "stop_on_signals", lambda *_: stop)
    monkeypatch.setattr(app, "on_hangup", lambda _: None)
    monkeypatch.setattr(Supervisor, "start", start)
    port = free_port()
    settings = Settings(config=tmp_path / "gateway.yaml", port=0, admin_port=port)
    main = asyncio.create_task(app.supervise(settings, Reloader(settings.config, {}), 2))
    try:
        async with asyncio.timeout(DEADLINE), ClientSession() as client:
            await first.wait()
            async with client.get(f"http://127.0.0.1:{port}/readyz") as answer:
                found = await answer.json()
    finally:
        stop.set()
        async with asyncio.timeout(DEADLINE):
            await main
    assert found == {"status": "not ready", "reason": "OpenAPI documents are not loaded yet"}
