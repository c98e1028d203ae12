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
    assert clock.set(9_000.0, 100.0) == 9_001.0 - 5_002.0
    assert clock.now() == 9_001.0
    monkeypatch.setattr("time.time", lambda: 0.0)
    passed[0] += 10
    assert clock.now() == 9_011.0


def test_a_clock_of_the_machine_that_is_wrong_is_reported_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[dict[str, object]] = []
    monkeypatch.setattr(
        "gateway.telemetry.log.event", lambda name, level, **fields: told.append({name: fields})
    )
    monkeypatch.setattr("time.monotonic", lambda: 100.0)
    monkeypatch.setattr("time.time", lambda: 5_000.0)
    clock = FleetClock()
    for date in (5_004.0, 8_600.0, 8_600.0):
        clock.set(date, 100.0)
    assert told == [{"clock_skewed": {"seconds": 3_600.0}}]
