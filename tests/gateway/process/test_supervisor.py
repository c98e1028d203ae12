"""The supervisor: what is not seen of real workers, whose tests are in tests/gateway/live."""

import asyncio
import os
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from gateway.core.overrides import NO_OVERRIDES
from gateway.process import supervisor as module
from gateway.process.supervisor import Supervisor
from gateway.process.tasks import Tasks
from gateway.telemetry import log


async def test_a_worker_that_hangs_before_it_serves_is_killed(
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
        supervised = Supervisor([listener], os.environ, tasks, deliver, b"", NO_OVERRIDES, None)
        async with asyncio.timeout(60):
            await supervised.start()
        assert supervised.ready == 0
        assert [name for name, _ in events[:2]] == ["worker_hangs", "worker_died"]
        await supervised.stop(0)
        tasks.stop()
