"""Failing services: which targets fail, of how many, since when and why."""

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


def test_a_service_whose_only_target_fails_is_failing_as_a_whole() -> None:
    (found,) = failing_services([failing(1)], service("s", 1))
    assert found == FailingService("s", 1, 1, NOON, [TargetError("h:1", NOON, "refused")])
    assert found.whole


def test_a_target_that_fails_in_several_workers_counts_once() -> None:
    """The first that has noticed it knows since when."""
    targets = [failing(1, NOON + 120, "reset"), failing(1), failing(1, NOON + 60)]
    (found,) = failing_services(targets, service("s", 1, 2, 3))
    assert found == FailingService("s", 3, 1, NOON, [TargetError("h:1", NOON, "refused")])
    assert not found.whole


def test_a_service_fails_since_its_last_target_failed() -> None:
    down = FailingTarget("s", "h:2", "h:2", 1, "down", NOON - 60, "")
    (found,) = failing_services([failing(1), down], service("s", 1, 2))
    assert (found.whole, found.since) == (True, NOON)
    assert [each.target for each in found.listed] == ["h:2", "h:1"]


def test_three_of_many_failing_targets_are_listed() -> None:
    """Of a long error its beginning, as each replica hands it in once a second."""
    ports = range(1, 7)
    targets = [failing(each, NOON + each, "x" * 300) for each in ports[:5]]
    (found,) = failing_services(targets, service("s", *ports))
    assert (found.targets, found.failing, found.since) == (6, 5, NOON + 5)
    assert [each.target for each in found.listed] == ["h:1", "h:2", "h:3"]
    assert {each.error for each in found.listed} == {"x" * 200}


def test_times_are_those_of_the_fleet() -> None:
    (found,) = failing_services([failing(1)], service("s", 1), ahead=-30.0)
    assert (found.since, found.listed[0].since) == (NOON - 30, NOON - 30)


def test_targets_that_are_not_configured_any_more_are_left_out() -> None:
    targets = [failing(1), FailingTarget("gone", "h:1", "h:1", 1, "failing", NOON, "refused")]
    assert [*failing_services(targets, service("s", 2, 3))] == []
    assert [*failing_services([], service("s", 2, 3))] == []
