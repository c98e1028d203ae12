"""Service failures: the failing targets, replicas, times and errors in an action item."""

from gateway.findings.action_items import ServiceFailure, service_failures
from gateway.observe.failing_targets import FailingService, TargetError
from gateway.store.state import FleetView, ReplicaView

NOON = 1_000 * 86_400.0 + 43_200  # 1972-09-27
ALONE = FleetView([], [])


def failing(
    *targets: str, of: int, since: float = NOON, error: str = "refused", name: str = "s"
) -> FailingService:
    listed = [TargetError(target, since, error) for target in targets[:3]]
    return FailingService(name, of, len(targets), since, listed)


def replica(name: str, *services: FailingService, presence: str = "heard") -> ReplicaView:
    times = NOON, NOON, 0.0
    return ReplicaView(name, presence, False, "1", "hash", "", *times, 0, failing=services)


def found(here: FailingService | None, *others: ReplicaView) -> list[ServiceFailure]:
    fleet = FleetView([replica("a"), *others], []) if others else ALONE
    return [*service_failures("a", [here] if here else [], fleet)]


def test_a_failing_service_of_one_gateway_is_described() -> None:
    (one,) = found(failing("h:1", of=1))
    assert (one.subject, one.whole, one.since) == ("s", True, NOON)
    assert one.text == (
        "1 of 1 target fails: h:1 since 27 Sep 1972, 12:00 UTC (refused). Its"
        " requests fail. Check whether they are running, and whether the gateway can"
        " reach them."
    )


def test_replicas_with_equal_failures_share_one_entry() -> None:
    first = failing("h:2", "h:1", of=3, since=NOON - 60, error="")
    others = [replica(name, first) for name in "bcde"]
    (one,) = found(failing("h:1", "h:2", of=3), *others)
    assert (one.subject, one.whole) == ("s in a, b, c and 2 more", False)
    assert one.text.startswith(
        "2 of 3 targets fail: h:2 since 27 Sep 1972, 11:59 UTC (health checks fail), h:1"
    )
    assert "The other targets get its requests" in one.text


def test_different_failures_are_listed_separately() -> None:
    others = [
        replica("b", failing("h:1", of=2), failing("h:9", of=1, name="t")),
        replica("c", failing("h:1", "h:2", of=2)),
    ]
    assert [(one.subject, one.whole) for one in found(failing("h:2", of=2), *others)] == [
        ("s in a", False),
        ("s in b", False),
        ("t in b", True),
        ("s in c", True),
    ]


def test_failures_of_lost_replicas_are_ignored() -> None:
    """Stored failures of this replica are also ignored, since they may be outdated."""
    mine = replica("a", failing("h:1", of=2))
    assert found(None, mine, replica("b", failing("h:1", of=2), presence="lost")) == []


def test_only_the_first_three_failing_targets_are_listed() -> None:
    (one,) = found(failing(*(f"h:{port}" for port in range(1, 6)), of=6))
    assert "(refused), and 2 more. The other targets" in one.text
    assert "h:4" not in one.text
