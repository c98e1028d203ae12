"""The steady clock: it goes on by itself, whatever the clock of the machine is set to."""

import time

import pytest

from gateway.base.steady_clock import steady_seconds


def test_it_is_not_set_with_the_clock_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    before = steady_seconds()
    monkeypatch.setattr(time, "time", lambda: 0.0)
    assert before <= steady_seconds() < before + 3600


def test_a_system_that_cannot_tell_of_its_sleep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(time, "CLOCK_BOOTTIME", raising=False)
    monkeypatch.setattr(time, "monotonic", lambda: 7.0)
    assert steady_seconds() == 7.0
