"""The target watch: what it reports and logs about failing targets, with fake clocks."""

import asyncio
from typing import Any

import pytest

from gateway.http.upstream.pool import Pool, TargetAddress, TargetState
from gateway.http.upstream.service import Ejection, Health, Service, Target
from gateway.observe import failing_targets, log
from gateway.observe.failing_targets import FailingTarget, TargetWatch

A, B = Target("127.0.0.1", 1), Target("127.0.0.1", 2)
SERVICE = Service("s", (A, B), ejection=Ejection(failures=1, seconds=10), health=Health("/"))
CLOCK = 1_000_000.0


class Watched:
    """A watched service, with the reports and log events about its targets."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.pool = Pool(lambda *_: None, [])
        self.reported: list[list[FailingTarget]] = []
        self.events: list[tuple[str, str, Any]] = []
        self.watch = TargetWatch(self.pool, self.reported.append)

        def event(name: str, level: str = "info", **fields: object) -> None:
            self.events.append((name, level, fields))

        monkeypatch.setattr(log, "event", event)

    def address(self, target: Target) -> TargetAddress:
        return next(each for each in self.pool.addresses(SERVICE) if each.target == target)

    def ended(self, target: Target, now: float, *, failed: bool) -> None:
        address = self.address(target)
        address.began()
        members = self.pool._service_pool(SERVICE)
        members.ended(address, now, failed, f"{target.authority}: refused")
        self.look(now)

    def look(self, now: float, *services: Service) -> None:
        self.watch.look(services or [SERVICE], now, CLOCK + now)


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Watched:
    return Watched(monkeypatch)


def about(target: Target, **more: str) -> dict[str, str]:
    return {"service": "s", "target": target.authority, **more}


def failing(target: Target, state: TargetState, since: float, error: str) -> FailingTarget:
    return FailingTarget("s", target.authority, target.authority, 2, state, since, error)


def test_only_changes_are_reported(watched: Watched) -> None:
    watched.look(0)
    watched.ended(A, 1, failed=False)
    assert (watched.reported, watched.events) == ([], [])
    watched.ended(A, 2, failed=True)
    for now in (3, 4):
        watched.look(now)
    watched.ended(A, 12, failed=True)  # a failed trial request; the failure still began earlier
    assert watched.reported == [[failing(A, "ejected", CLOCK + 2, "refused")]]
    watched.ended(A, 32, failed=False)
    assert watched.reported[1:] == [[]]
    assert watched.events == [
        ("target_ejected", "warning", about(A, reason="refused")),
        ("target_recovered", "info", about(A)),
    ]


def test_a_failing_target_is_logged_as_ejected_when_another_becomes_available(
    watched: Watched,
) -> None:
    """The last available target is not ejected until another target is available."""
    watched.ended(A, 0, failed=True)
    watched.ended(B, 0, failed=True)
    watched.ended(A, 10, failed=False)
    watched.ended(B, 11, failed=True)
    assert [name for name, _, _ in watched.events] == [
        *("target_ejected", "target_failing", "target_recovered", "target_ejected")
    ]
    assert watched.events[1] == ("target_failing", "warning", about(B, reason="refused"))
    last = [failing(B, "ejected", CLOCK, "refused")]
    assert watched.reported[-1] == last


def test_failures_of_health_checks_are_reported_but_not_logged_again(watched: Watched) -> None:
    health = watched.address(A)
    health.down, health.down_cause = True, "status 404"
    watched.look(0)
    watched.address(A).down = False
    watched.look(5)
    assert watched.reported == [[failing(A, "down", CLOCK, "health check: status 404")], []]
    assert watched.events == []


def test_a_removed_target_no_longer_fails(watched: Watched) -> None:
    watched.ended(A, 0, failed=True)
    watched.look(1, Service("s", (B,)))
    assert watched.reported[-1] == []
    assert watched.events[-1] == ("target_recovered", "info", about(A))


async def test_targets_are_checked_once_a_second(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failing_targets, "_INTERVAL", 0.0)
    services = [SERVICE]
    running = asyncio.create_task(watched.watch.run(lambda: services))
    for number, down in enumerate((True, False), start=1):
        watched.address(A).down = down
        async with asyncio.timeout(20):
            while len(watched.reported) < number:  # noqa: ASYNC110  # there is no event to wait for
                await asyncio.sleep(0)
    running.cancel()
    assert [len(each) for each in watched.reported] == [1, 0]
