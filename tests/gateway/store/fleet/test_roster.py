"""Which replicas count as there, and what their absence leaves uncertain."""

import pytest

from gateway.store.fleet.roster import (
    ReplicaPresence,
    ReplicaRow,
    deputy,
    fleet_view,
    heard_by,
    is_over,
    lost,
    presence,
    silences,
    warnings,
)
from gateway.store.state_access import Doubt, UnknownReplicaError

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
    """Return a replica that was heard so many seconds ago."""
    start = f"{replica}-{started:g}"
    admin = f"http://{replica}"
    return ReplicaRow(
        start, replica, version, rules, admin, started, NOW - heard, 9, 8, applied, gone
    )


@pytest.mark.parametrize(
    ("ago", "expected"),
    [
        (1, ReplicaPresence.HEARD),
        (5, ReplicaPresence.HEARD),
        (6, ReplicaPresence.LOST),
        # The clock of the database was set back by an hour since.
        (-3600, ReplicaPresence.LOST),
    ],
)
def test_presence(ago: float, expected: ReplicaPresence) -> None:
    assert presence(row("a", ago), NOW) is expected


def test_the_deputy_is_who_is_heard_for_longest_beside_the_judge() -> None:
    judge, lost_one = row("judge", started=1.0), row("lost", 60, started=2.0)
    later, first = row("a"), row("b", started=800.0)
    assert deputy([judge, lost_one, later, first], judge.start, NOW) == first.start
    assert deputy([judge, lost_one], judge.start, NOW) == ""
    assert deputy([], judge.start, NOW) == ""


def test_only_what_is_lost_leaves_a_doubt() -> None:
    rows = [
        row("here"),
        row("lost", 60),
        row("left", 60, gone=NOW - 60),
        row("again", 60, gone=NOW - 50),
        row("again", 2, started=950.0),
    ]
    assert silences(rows, NOW) == (Doubt("lost", NOW - 60),)
    assert heard_by(rows, NOW) == NOW - 2
    assert heard_by(rows[1:3], NOW) == NOW
    view = fleet_view(rows, NOW, "here-900", 3, 0.0)
    assert [(each.replica, each.presence, each.judges) for each in view.replicas] == [
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
        ([row("a"), row("b", rules="r2")], ["the rules differ: r1 (a), r2 (b)"]),
        (
            [row("a"), row("a", started=901)],
            ["2 replicas are called a; give each its own GATEWAY_REPLICA"],
        ),
        ([row("a"), row("b", version="2.0")], ["the versions of the gateway differ: 1.0, 2.0"]),
        ([row("a", applied=2)], ["a has not applied the last change of the overrides"]),
    ],
)
def test_warnings(rows: list[ReplicaRow], expected: list[str]) -> None:
    assert warnings(rows, NOW, 3, 0.0) == expected


def test_a_change_takes_a_moment_before_its_lack_is_warned_of() -> None:
    rows = [row("a", 1, applied=2)]
    assert warnings(rows, NOW, 3, NOW - 3.1) == [
        "a has not applied the last change of the overrides"
    ]
    assert warnings(rows, NOW, 3, NOW - 2.9) == []


@pytest.mark.parametrize(("ago", "over"), [(0, False), (60, False), (3601, True)])
def test_a_lost_replica_is_forgotten_after_its_time(ago: float, *, over: bool) -> None:
    assert is_over(row("a", ago), NOW, 3600) is over
    assert is_over(row("a", ago), NOW, 3600, NOW - 3601) is over
    assert not is_over(row("a", ago), NOW, 3600, NOW - 3599)


def test_another_of_its_name_does_not_make_up_for_one_that_is_lost() -> None:
    """It may be cut off, and serve; only its own next start knows that it is over."""
    rows = [row("a", 60), row("a", started=950.0)]
    assert silences(rows, NOW) == (Doubt("a", NOW - 60),)
    assert not is_over(rows[0], NOW, 3600)
    assert lost("a", rows, NOW) == [rows[0]]


def test_only_what_is_lost_can_be_forgotten() -> None:
    rows = [row("a"), row("b", 60)]
    assert lost("b", rows, NOW) == [rows[1]]
    with pytest.raises(UnknownReplicaError, match="a is heard; stop it"):
        lost("a", rows, NOW)
    with pytest.raises(UnknownReplicaError, match="no replica is called 'c'; lost: b"):
        lost("c", rows, NOW)
