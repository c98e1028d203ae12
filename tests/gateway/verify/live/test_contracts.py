"""Loading and caching of the documents against which live messages are validated."""

import asyncio
from pathlib import Path

import pytest

from gateway.proxy.replay import TrialRequest
from gateway.verify.live.contracts import Contracts
from gateway.versions.version import Version
from tests.gateway.verify.loans import document, written


def request(folder: Path) -> TrialRequest:
    _, snapshot = written(folder, document(), document(lendings="get"))
    endpoint = snapshot.apis[0].endpoints[0]
    return TrialRequest("v2.json", endpoint, Version(2, "2"), "PUT", "/lendings", [], None)


async def test_a_document_is_loaded_once_until_a_reload(tmp_path: Path) -> None:
    contracts, trial = Contracts(tmp_path), request(tmp_path)
    found = await contracts.validate(trial)
    assert found is not None
    assert [each.field for each in found] == ["operation"]
    (tmp_path / "v2.json").unlink()
    assert await contracts.validate(trial) == found
    contracts.forget()
    assert await contracts.validate(trial) is None


async def test_an_unusable_document_is_logged_once_and_loaded_again_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, events: list[str]
) -> None:
    contracts, trial = Contracts(tmp_path), request(tmp_path)
    whole = (tmp_path / "v2.json").read_text()
    (tmp_path / "v2.json").write_text(whole[:9])
    for _ in range(3):
        assert await contracts.validate(trial) is None
    assert events == ["check_failed"]
    (tmp_path / "v2.json").write_text(whole)
    assert await contracts.validate(trial) is None
    later = asyncio.get_running_loop().time() + 61
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: later)
    assert await contracts.validate(trial) is not None
