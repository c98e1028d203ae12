"""The long-lived tasks of a replica: each is started again when it fails, and is counted."""

import asyncio
from pathlib import Path

import pytest

from tests.gateway.kit import rules
from tests.gateway.process.test_tasks import LONG_LIVED, killed_and_back, stop

__all__ = ["stop"]  # a fixture


async def test_each_failed_task_of_a_replica_restarts(
    database: str, tmp_path: Path, stop: asyncio.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # its own disk
    path = tmp_path / "gateway.yaml"
    content = f"state: {database}\n" + rules(1)
    await asyncio.to_thread(path.write_text, content)
    expected = {**LONG_LIVED["supervisor"], "overrides": 1}
    await killed_and_back("supervisor", content, path, stop, monkeypatch, expected)
