"""Replicas: their presence, the clock of the database, its availability, and the lease."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.store import state
from gateway.store.leader import LEASE_SECONDS, NO_LEASE, Lease
from gateway.store.replicas import (
    FleetClock,
    ReplicaRow,
    deputy,
    fleet_view,
    lost,
    state_view,
    warnings,
)
from gateway.store.state import (
    LAG_SECONDS,
    DataGap,
    StateBusyError,
    StateError,
    StateUnreachableError,
    StoreHealth,
    UnknownReplicaError,
)
from gateway.usage.totals import Totals

NOW = 1_000.0


def row(
    replica: str,
    heard: float = 0.0,
    *,
    started: float = 900.0,
    rules: str = "r1",
    version: str = "1.0",
    applied: int = 3,
    gone: float | None = None,
) -> ReplicaRow:
    """Return the row of a replica whose last heartbeat was `heard` seconds ago."""
    start = f"{replica}-{started:g}"
    admin = f"http://{replica}"
    return ReplicaRow(
        start, replica, version, rules, admin, started, NOW - heard, 9, 8, applied, gone
    )


@pytest.mark.parametrize(
    ("ago", "is_lost"),
    [
        (1, False),
        (5, False),
        (6, True),
        # The clock of the database was set back by an hour after the heartbeat.
        (-3600, True),
    ],
)
def test_a_replica_without_heartbeats_is_lost(ago: float, *, is_lost: bool) -> None:
    assert row("a", ago).is_lost(NOW) is is_lost


def test_the_deputy_is_the_oldest_replica_other_than_the_leader() -> None:
    leader, lost_one = row("judge", started=1.0), row("lost", 60, started=2.0)
    later, first = row("a"), row("b", started=800.0)
    assert deputy([leader, lost_one, later, first], leader.start, NOW) == first.start
    assert deputy([leader, lost_one], leader.start, NOW) == ""
    assert deputy([], leader.start, NOW) == ""


def test_only_a_lost_replica_causes_a_data_gap() -> None:
    rows = [
        row("here"),
        row("lost", 60),
        row("left", 60, gone=NOW - 60),
        row("again", 60, gone=NOW - 50),
        row("again", 2, started=950.0),
    ]
    sums = state_view(Totals(), rows, NOW)
    assert sums.gaps == (DataGap("lost", NOW - 60),)
    assert sums.counted == NOW - 2 - LAG_SECONDS
    assert state_view(Totals(), rows[1:3], NOW).counted == NOW - LAG_SECONDS
    view = fleet_view(rows, NOW, "here-900", 3, 0.0)
    assert [(each.replica, each.presence, each.leads) for each in view.replicas] == [
        ("again", "heard", False),
        ("here", "heard", True),
        ("lost", "lost", False),
    ]
    assert view.replicas[2].lag == 60
    assert view.replicas[2].behind == 1


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([row("a"), row("b")], []),
        ([row("a"), row("b", 60, rules="r2", version="2.0", applied=0)], []),
        ([row("a"), row("b", rules="r2")], ["the configurations differ: r1 (a), r2 (b)"]),
        (
            [row("a"), row("a", started=901)],
            ["2 replicas are called a; give each its own GATEWAY_REPLICA"],
        ),
        ([row("a"), row("b", version="2.0")], ["the versions of the gateway differ: 1.0, 2.0"]),
        ([row("a", applied=2)], ["a has not applied the last change of the overrides"]),
    ],
)
def test_warnings_name_the_differences_between_replicas(
    rows: list[ReplicaRow], expected: list[str]
) -> None:
    assert warnings(rows, NOW, 3, 0.0) == expected


def test_a_replica_may_take_two_seconds_to_apply_a_change_without_a_warning() -> None:
    rows = [row("a", 1, applied=2)]
    assert warnings(rows, NOW, 3, NOW - 3.1) == [
        "a has not applied the last change of the overrides"
    ]
    assert warnings(rows, NOW, 3, NOW - 2.9) == []


@pytest.mark.parametrize(("ago", "over"), [(0, False), (60, False), (3601, True)])
def test_a_lost_replica_expires_after_the_configured_time(ago: float, *, over: bool) -> None:
    assert row("a", ago).is_expired(NOW, 3600) is over
    assert row("a", ago).is_expired(NOW, 3600, NOW - 3601) is over
    assert not row("a", ago).is_expired(NOW, 3600, NOW - 3599)


def test_a_running_replica_does_not_replace_a_lost_one_of_the_same_name() -> None:
    """The lost replica may be disconnected but still serve requests.

    Only its own next start replaces it.
    """
    rows = [row("a", 60), row("a", started=950.0)]
    assert state_view(Totals(), rows, NOW).gaps == (DataGap("a", NOW - 60),)
    assert not rows[0].is_expired(NOW, 3600)
    assert lost("a", rows, NOW) == [rows[0]]


def test_only_a_lost_replica_can_be_forgotten() -> None:
    rows = [row("a"), row("b", 60)]
    assert lost("b", rows, NOW) == [rows[1]]
    with pytest.raises(UnknownReplicaError, match="a still sends heartbeats; stop it"):
        lost("a", rows, NOW)
    with pytest.raises(UnknownReplicaError, match="no replica is called 'c'; lost: b"):
        lost("c", rows, NOW)


def test_the_clock_continues_from_the_time_of_the_database(monkeypatch: pytest.MonkeyPatch) -> None:
    passed = [100.0]
    monkeypatch.setattr("gateway.store.replicas.steady_seconds", lambda: passed[0])
    monkeypatch.setattr("time.time", lambda: 5_000.0)
    clock = FleetClock()
    assert clock.now() == 5_000.0
    passed[0] = (
        102.0  # the response took two seconds, one of them after the database read its clock
    )
    assert clock.set(9_000.0, 100.0) == 9_001.0 - 5_002.0
    assert clock.now() == 9_001.0
    monkeypatch.setattr("time.time", lambda: 0.0)
    passed[0] += 10
    assert clock.now() == 9_011.0


def test_a_difference_between_machine_and_database_clock_is_reported_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[dict[str, object]] = []
    monkeypatch.setattr(
        "gateway.observe.log.event", lambda name, level, **fields: told.append({name: fields})
    )
    monkeypatch.setattr("gateway.store.replicas.steady_seconds", lambda: 100.0)
    monkeypatch.setattr("time.time", lambda: 5_000.0)
    clock = FleetClock()
    for date in (5_004.0, 8_600.0, 8_600.0):
        clock.set(date, 100.0)
    assert told == [{"clock_skewed": {"seconds": 3_600.0}}]


def test_followers_get_the_clock_difference_when_it_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Changes below half a second are ignored, since they may come from a delayed response."""
    told: list[float] = []
    passed, date = [100.0], [5_000.0]
    monkeypatch.setattr("gateway.store.replicas.steady_seconds", lambda: passed[0])
    monkeypatch.setattr("time.time", lambda: date[0])
    clock = FleetClock()
    clock.follow(told.append)
    for database in (5_000.4, 4_999.6, 5_060.0, 5_060.4):
        clock.set(database, 100.0)
        clock.pass_on()
    assert told == [0.0, 60.0]
    # The database cannot be reached, and the clock of this machine is corrected.
    date[0] += 60.4
    clock.pass_on()
    assert told == [0.0, 60.0, 0.0]
    # A later follower receives the current difference.
    clock.set(8_600.0, 100.0)
    later: list[float] = []
    clock.follow(later.append)
    assert later[-1] == clock.ahead == 8_600.0 - 5_060.4


@pytest.mark.parametrize(("by", "was_set"), [(0, False), (59, False), (3600, True), (-61, True)])
def test_setting_the_clock_of_the_database_is_detected(
    monkeypatch: pytest.MonkeyPatch, by: float, *, was_set: bool
) -> None:
    """The database's clock is compared with a steady clock, not with the date of this machine."""
    passed = [100.0]
    monkeypatch.setattr("gateway.store.replicas.steady_seconds", lambda: passed[0])
    monkeypatch.setattr("time.time", lambda: 0.0)
    clock = FleetClock()
    clock.set(9_000.0, passed[0])
    assert not clock.was_set
    passed[0] += 40_000
    clock.set(49_000.0 + by, passed[0])
    assert clock.was_set is was_set


async def test_an_unreachable_database_is_stale_since_the_last_heartbeat(events: list[str]) -> None:
    health = StoreHealth("postgresql://db/one", lambda: 50.0)
    async with health.reading():
        pass
    assert health.missed(StateError("refused")) == 50.0
    assert health.stale_reason == "refused"
    health.reached(60.0)
    assert health.stale_reason == ""
    # The next heartbeat writes the counts of the outage.
    found = [(health.stale_since, health.behind)]
    async with health.reading():
        pass
    health.reached(61.0)
    found.append((health.stale_since, health.behind))
    assert found == [(None, True), (None, False)]
    assert health.missed(StateUnreachableError("gone")) == 61.0
    assert health.missed(StateError("other")) == 61.0
    assert (health.behind, health.stale_reason) == (True, "other")
    with pytest.raises(StateError, match="other"):
        async with health.reading():
            pass
    assert events == ["state_unwritten", "state_written", "state_unwritten"]


async def test_a_reader_that_waits_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    health = StoreHealth("postgresql://db/one", lambda: 50.0)
    over, within = asyncio.Event(), asyncio.Semaphore(0)

    async def read() -> None:
        async with health.reading():
            within.release()
            await over.wait()

    readers = [asyncio.create_task(read()) for _ in range(2)]
    for _ in readers:
        await within.acquire()
    third = asyncio.create_task(read())
    await asyncio.sleep(0)  # the third reader is waiting
    with monkeypatch.context() as patch:
        patch.setattr(state, "_PATIENCE", 0.01)
        with pytest.raises(
            StateBusyError,
            match=r"one: 2 other reads have taken 0\.01 s; try"
            r" again",
        ):
            await read()
    over.set()
    await asyncio.gather(*readers, third)
    async with asyncio.TaskGroup() as both:  # all readers have finished
        both.create_task(read())
        both.create_task(read())


@pytest.mark.parametrize(
    ("lease", "asks", "expected"),
    [
        pytest.param(NO_LEASE, "a", Lease("a", 1, NOW), id="the first"),
        pytest.param(Lease("a", 1, NOW - 1), "a", Lease("a", 1, NOW), id="renewed"),
        pytest.param(Lease("a", 1, NOW - 1), "b", None, id="of another"),
        pytest.param(Lease("a", 1, NOW - LEASE_SECONDS), "b", None, id="of another, to the end"),
        pytest.param(Lease("a", 1, NOW - 3), "b", Lease("b", 2, NOW), id="of one that is gone"),
        pytest.param(
            Lease("a", 1, NOW - 3), "a", Lease("a", 2, NOW), id="of one that was suspended"
        ),
        pytest.param(Lease("a", 7, 0.0), "b", Lease("b", 8, NOW), id="given up"),
        pytest.param(Lease("a", 7, NOW + 9), "b", Lease("b", 8, NOW), id="the clock was set back"),
    ],
)
def test_a_replica_is_the_leader_until_its_lease_expires(
    lease: Lease, asks: str, expected: Lease | None
) -> None:
    assert lease.acquired(asks, NOW) == expected
    assert (expected is None) <= (not lease.is_free(NOW))


@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 5)), max_size=40))
def test_each_lease_token_belongs_to_one_leader_and_tokens_never_decrease(
    asked: list[tuple[str, float]],
) -> None:
    """A leader that was suspended gets either a new token or no lease."""
    lease, now, leads = NO_LEASE, NOW, dict[int, str]()
    for start, pause in asked:
        now += pause
        found = lease.acquired(start, now)
        if found is None:
            assert now - lease.renewed <= LEASE_SECONDS
            continue
        assert found.token >= lease.token
        assert leads.setdefault(found.token, start) == start
        lease = found
