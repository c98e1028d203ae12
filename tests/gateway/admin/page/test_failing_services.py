"""Failing services: which targets fail, of how many, since when and why."""

from gateway.admin.page.failing_services import failing_services
from gateway.core.service import Service, Target
from gateway.telemetry.target_watch import FailingTarget

NOON = 1_000 * 86_400.0 + 43_200  # 1972-09-27


def service(name: str, *ports: int) -> dict[str, Service]:
    return {name: Service(name, tuple(Target("h", port) for port in ports))}


def failing(port: int, since: float = NOON, error: str = "refused") -> FailingTarget:
    return FailingTarget("s", f"h:{port}", "ejected", since, error)


def test_the_only_target() -> None:
    (found,) = failing_services([failing(1)], service("s", 1))
    assert (found.service, found.whole, found.since) == ("s", True, NOON)
    assert found.text == (
        "1 of 1 target fails: h:1 since 27 Sep 1972, 12:00 UTC (refused). Its requests fail. Look"
        " whether it runs, and whether the gateway reaches it."
    )


def test_one_of_several_in_several_workers() -> None:
    """The first that has noticed it knows since when."""
    targets = [failing(1, NOON + 120, "reset"), failing(1), failing(1, NOON + 60)]
    (found,) = failing_services(targets, service("s", 1, 2, 3))
    assert (found.whole, found.since) == (False, NOON)
    assert found.text.startswith(
        "1 of 3 targets fails: h:1 since 27 Sep 1972, 12:00 UTC (refused). The others take its"
    )


def test_all_fail_once_the_last_does() -> None:
    down = FailingTarget("s", "h:2", "down", NOON - 60, "")
    (found,) = failing_services([failing(1), down], service("s", 1, 2))
    assert (found.whole, found.since) == (True, NOON)
    assert found.text.startswith(
        "2 of 2 targets fail: h:2 since 27 Sep 1972, 11:59 UTC (health checks find it down), h:1"
    )


def test_of_many_some_are_listed() -> None:
    ports = range(1, 7)
    (found,) = failing_services([failing(each) for each in ports[:5]], service("s", *ports))
    assert "(refused), and 2 more. The others" in found.text
    assert "h:4" not in found.text


def test_what_the_rules_have_no_more_is_left_out() -> None:
    targets = [failing(1), FailingTarget("gone", "h:1", "failing", NOON, "refused")]
    assert [*failing_services(targets, service("s", 2, 3))] == []
    assert [*failing_services([], service("s", 2, 3))] == []
