"""The logger of the admin port: a plain line for bad bytes, a traceback for a fault of our own."""

from typing import Any

import pytest
from aiohttp.http_exceptions import BadStatusLine
from aiohttp.web_protocol import RequestPayloadError

from gateway.admin.access.admin_logger import AdminLogger
from gateway.observe import log

Lines = list[tuple[str, str, dict[str, Any]]]


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> Lines:
    """Return the events that are logged: name, level and fields."""
    found: Lines = []

    def event(name: str, level: str = "info", **fields: object) -> None:
        found.append((name, level, fields))

    monkeypatch.setattr(log, "event", event)
    return found


def test_what_was_sent_is_not_logged(lines: Lines, caplog: pytest.LogCaptureFixture) -> None:
    AdminLogger().exception("from %s", "192.0.2.7", exc_info=BadStatusLine("GET /?token=secret"))
    AdminLogger().exception("Unhandled", exc_info=RequestPayloadError("secret"))
    assert lines == [
        ("admin_request_bad", "info", {"peer": "192.0.2.7", "reason": "BadStatusLine"}),
        ("admin_request_bad", "info", {"reason": "RequestPayloadError"}),
    ]
    assert not caplog.records


def test_a_client_that_leaves_is_not_logged(lines: Lines, caplog: pytest.LogCaptureFixture) -> None:
    AdminLogger().exception("Error handling request", exc_info=ConnectionResetError())
    assert not lines
    assert not caplog.records


def test_a_fault_has_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    fault = KeyError("ours")
    AdminLogger().exception("from %s", "192.0.2.7", exc_info=fault)
    (record,) = caplog.records
    assert record.getMessage() == "from 192.0.2.7"
    assert record.exc_info is not None
    assert record.exc_info[1] is fault
