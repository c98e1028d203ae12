"""The clock of a fleet goes on from the database's time, whatever this machine's date is."""

import pytest

from gateway.store.fleet.fleet_clock import FleetClock

PASSED = "gateway.store.fleet.fleet_clock.passed"


def test_it_goes_by_the_database(monkeypatch: pytest.MonkeyPatch) -> None:
    passed = [100.0]
    monkeypatch.setattr(PASSED, lambda: passed[0])
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
        "gateway.observe.log.event", lambda name, level, **fields: told.append({name: fields})
    )
    monkeypatch.setattr(PASSED, lambda: 100.0)
    monkeypatch.setattr("time.time", lambda: 5_000.0)
    clock = FleetClock()
    for date in (5_004.0, 8_600.0, 8_600.0):
        clock.set(date, 100.0)
    assert told == [{"clock_skewed": {"seconds": 3_600.0}}]


def test_requests_go_by_it_where_the_machine_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """By less than half a second they go by the machine, or each wait for an answer would show."""
    told: list[float] = []
    passed, date = [100.0], [5_000.0]
    monkeypatch.setattr(PASSED, lambda: passed[0])
    monkeypatch.setattr("time.time", lambda: date[0])
    clock = FleetClock()
    clock.follow(told.append)
    for database in (5_000.4, 4_999.6, 5_060.0, 5_060.4):
        clock.set(database, 100.0)
        clock.tell()
    assert told == [0.0, 60.0]
    # The database is away, and somebody sets the clock of this machine right.
    date[0] += 60.4
    clock.tell()
    assert told == [0.0, 60.0, 0.0]
    # Who follows later begins with what is so.
    clock.set(8_600.0, 100.0)
    later: list[float] = []
    clock.follow(later.append)
    assert later[-1] == clock.ahead == 8_600.0 - 5_060.4


@pytest.mark.parametrize(("by", "was_set"), [(0, False), (59, False), (3600, True), (-61, True)])
def test_a_clock_of_the_database_that_is_set_is_noticed(
    monkeypatch: pytest.MonkeyPatch, by: float, *, was_set: bool
) -> None:
    """By what passes here, which is right however wrong the clock of this machine is."""
    passed = [100.0]
    monkeypatch.setattr(PASSED, lambda: passed[0])
    monkeypatch.setattr("time.time", lambda: 0.0)
    clock = FleetClock()
    clock.set(9_000.0, passed[0])
    assert not clock.was_set
    passed[0] += 40_000
    clock.set(49_000.0 + by, passed[0])
    assert clock.was_set is was_set
