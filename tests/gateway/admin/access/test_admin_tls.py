"""The certificate of the admin port follows its files, and a mistake in them changes nothing."""

import asyncio
from pathlib import Path

import pytest

from gateway.admin.access import admin_tls
from gateway.admin.access.admin_tls import AdminTls
from gateway.observe import log
from tests.gateway.admin.access.certificates import write_certificate


async def test_the_files_are_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admin_tls, "_INTERVAL", 0.01)
    logged: asyncio.Queue[str] = asyncio.Queue()
    monkeypatch.setattr(log, "event", lambda name, *_, **__: logged.put_nowait(name))
    tls = AdminTls(write_certificate(tmp_path))
    first = tls.context
    following = asyncio.create_task(tls.run())
    async with asyncio.timeout(20):
        (tmp_path / "tls.key").unlink()
        assert await logged.get() == "admin_tls_rejected"
        assert tls.context is first
        write_certificate(tmp_path)
        while await logged.get() != "admin_tls_loaded":
            pass  # one of the two files was seen before the other
        assert tls.context is not first
        (tmp_path / "tls.key").chmod(0o400)  # perhaps it could not be read until now
        assert await logged.get() == "admin_tls_loaded"
    following.cancel()


def test_files_that_cannot_be_used(tmp_path: Path) -> None:
    files = write_certificate(tmp_path, password=b"secret")
    with pytest.raises(ValueError, match="not encrypted"):
        AdminTls(files)
