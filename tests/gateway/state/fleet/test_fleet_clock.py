"""The clock of a fleet goes on from the database's time, whatever this machine's date is."""

import pytest

from gateway.state.fleet.fleet_clock import FleetClock


def test_it_goes_by_the_database(monkeypatch: pytest.MonkeyPatch) -> None:
    passed = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: passed[0])
    monkeypatch.setattr("time.time", lambda: 5_000.0)
    clock = FleetClock()
    assert clock.now() == 5_000.0
    passed[0] = 102.0  # the answer took two seconds, of which one lay behind the database's time
    clock.set(9_000.0, 100.0)
    assert clock.now() == 9_001.0
    monkeypatch.setattr("time.time", lambda: 0.0)
    passed[0] += 10
    assert clock.now() == 9_011.0
