"""Failing services: the number of failing targets, the start of the failure, and its reason."""

from gateway.http.upstream.service import Service, Target
from gateway.observe.failing_targets import (
    FailingService,
    FailingTarget,
    TargetError,
    failing_services,
)

NOON = 1_000 * 86_400.0 + 43_200  # 1972-09-27


def service(name: str, *ports: int) -> dict[str, Service]:
    return {name: Service(name, tuple(Target("h", port) for port in ports))}


def failing(port: int, since: float = NOON, error: str = "refused") -> FailingTarget:
    return FailingTarget("s", f"h:{port}", f"h:{port}", 1, "ejected", since, error)


def test_a_service_whose_only_target_fails_is_failing_completely() -> None:
    (found,) = failing_services([failing(1)], service("s", 1))
    assert found == FailingService("s", 1, 1, NOON, [TargetError("h:1", NOON, "refused")])
    assert found.whole


def test_a_target_that_fails_in_several_workers_counts_once() -> None:
    """The earliest report determines the start of the failure."""
    targets = [failing(1, NOON + 120, "reset"), failing(1), failing(1, NOON + 60)]
    (found,) = failing_services(targets, service("s", 1, 2, 3))
    assert found == FailingService("s", 3, 1, NOON, [TargetError("h:1", NOON, "refused")])
    assert not found.whole


def test_a_failure_starts_when_the_latest_target_began_to_fail() -> None:
    down = FailingTarget("s", "h:2", "h:2", 1, "down", NOON - 60, "")
    (found,) = failing_services([failing(1), down], service("s", 1, 2))
    assert (found.whole, found.since) == (True, NOON)
    assert [each.target for each in found.listed] == ["h:2", "h:1"]


def test_at_most_three_failing_targets_are_listed() -> None:
    """Long errors are truncated, since each replica sends its list once a second."""
    ports = range(1, 7)
    targets = [failing(each, NOON + each, "x" * 300) for each in ports[:5]]
    (found,) = failing_services(targets, service("s", *ports))
    assert (found.targets, found.failing, found.since) == (6, 5, NOON + 5)
    assert [each.target for each in found.listed] == ["h:1", "h:2", "h:3"]
    assert {each.error for each in found.listed} == {"x" * 200}


def test_times_are_converted_to_the_fleets_clock() -> None:
    (found,) = failing_services([failing(1)], service("s", 1), ahead=-30.0)
    assert (found.since, found.listed[0].since) == (NOON - 30, NOON - 30)


def test_removed_targets_are_not_listed() -> None:
    targets = [failing(1), FailingTarget("gone", "h:1", "h:1", 1, "failing", NOON, "refused")]
    assert [*failing_services(targets, service("s", 2, 3))] == []
    assert [*failing_services([], service("s", 2, 3))] == []
