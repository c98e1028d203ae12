"""The steady clock is independent of the system clock."""

import time

import pytest

from gateway.base.steady_clock import steady_seconds


def test_setting_the_system_clock_does_not_set_the_steady_clock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = steady_seconds()
    monkeypatch.setattr(time, "time", lambda: 0.0)
    assert before <= steady_seconds() < before + 3600


def test_without_boottime_the_clock_is_monotonic(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(time, "CLOCK_BOOTTIME", raising=False)
    monkeypatch.setattr(time, "monotonic", lambda: 7.0)
    assert steady_seconds() == 7.0
