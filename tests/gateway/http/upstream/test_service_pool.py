"""The addresses that a service pool selects, with a fake clock."""

from collections import Counter

import pytest

from gateway.http.bounds import ConcurrencyLimiter
from gateway.http.upstream.pool import ServicePool, TargetAddress, TargetState
from gateway.http.upstream.service import Ejection, Service, Target
from gateway.http.upstream.target_connections import TargetConnections
from gateway.http.upstream.upstream import UpstreamRequest


class Addresses:
    """A service with an address for each target; targets are `a`, `b`, ... or have a weight."""

    def __init__(self, **weights: int) -> None:
        targets = tuple(Target(name, 1, weight=weight) for name, weight in weights.items())
        ejection = Ejection(failures=2, seconds=10, longest=30)
        service = Service("s", targets, ejection=ejection)
        limiter = ConcurrencyLimiter(1, 1, 1)
        self.pool = ServicePool(service, limiter, limiter)
        self.pool.addresses = tuple(
            TargetAddress(
                target,
                target.host,
                TargetConnections(service, target, target.host, lambda: None, lambda _: None, []),
            )
            for target in targets
        )
        self.pool.weighted = len({*weights.values()}) > 1

    def __getitem__(self, name: str) -> TargetAddress:
        return next(each for each in self.pool.addresses if each.host == name)

    def choose(self, now: float = 0, *tried: str) -> str | None:
        address = self.pool.choose(now, [self[name] for name in tried])
        return None if address is None else address.host

    def begin(self, name: str) -> None:
        self[name].began()

    def end(self, name: str, now: float = 0, *, failed: bool | None = False) -> None:
        self.pool.ended(self[name], now, failed, "refused")

    def fail(self, name: str, now: float = 0, times: int = 1) -> None:
        for _ in range(times):
            self.begin(name)
            self.end(name, now, failed=True)

    def succeed(self, name: str, now: float = 0) -> None:
        self.begin(name)
        self.end(name, now)

    def state(self, name: str, now: float = 0) -> TargetState | None:
        return self[name].state(self.pool.service.ejection, now)


def test_idle_addresses_take_turns() -> None:
    three = Addresses(a=1, b=1, c=1)
    assert {three.choose() for _ in range(3)} == {"a", "b", "c"}


def test_the_least_busy_address_is_chosen() -> None:
    three = Addresses(a=1, b=1, c=1)
    three.begin("a")
    three.begin("c")
    assert [three.choose() for _ in range(3)] == ["b", "b", "b"]


@pytest.mark.parametrize("state", ["busy", "down"])
def test_the_turns_of_a_busy_or_failing_address_are_shared_by_all_others(state: str) -> None:
    """They do not all go to the address that follows it."""
    five = Addresses(a=1, b=1, c=1, d=1, e=1)
    if state == "busy":
        five.begin("b")
    else:
        five["b"].down = True
    chosen = Counter(five.choose() for _ in range(400))
    assert chosen == dict.fromkeys("acde", 100)


@pytest.mark.parametrize("weights", [{"a": 1, "b": 1}, {"a": 1, "b": 3}])
def test_an_address_that_was_tried_is_not_chosen_again(weights: dict[str, int]) -> None:
    two = Addresses(**weights)
    assert two.choose(0, "a") == "b"
    assert two.choose(0, "a", "b") is None


def test_a_request_to_a_removed_address_is_retried_at_the_remaining_one() -> None:
    """The service is scaled down while the gateway connects to a removed container."""
    two = Addresses(a=1, b=1)
    removed, remaining = two.pool.addresses
    two.pool.addresses = (remaining,)
    post = UpstreamRequest("POST", "/", [])
    assert two.pool.retry(0, post, (removed,), "connect") is remaining
    assert two.pool.retry(0, post, (removed, remaining), "connect") is None


@pytest.mark.parametrize("in_flight", [0, 4])
def test_weighted_addresses_get_their_shares_of_the_requests(in_flight: int) -> None:
    """This holds for any number of requests in flight if all addresses are equally fast."""
    three = Addresses(a=1, b=3, c=6)
    counts: Counter[str] = Counter()
    running: list[str] = []
    for _ in range(1000):
        name = three.choose()
        assert name is not None
        counts[name] += 1
        three.begin(name)
        running.append(name)
        if len(running) > in_flight:
            three.end(running.pop(0))
    assert {name: pytest.approx(share, rel=0.05) for name, share in counts.items()} == {
        "a": 100,
        "b": 300,
        "c": 600,
    }


def test_a_slow_weighted_address_gets_fewer_requests() -> None:
    two = Addresses(a=1, b=2)
    for _ in range(20):
        two.begin("b")
    assert Counter(two.choose() for _ in range(30))["a"] > 20


def test_a_weighted_address_that_comes_back_gets_no_more_than_its_share() -> None:
    two = Addresses(a=1, b=2)
    two["b"].down = True
    assert {two.choose() for _ in range(100)} == {"a"}
    two["b"].down = False
    assert Counter(two.choose() for _ in range(30))["b"] in (19, 20, 21)


def test_failures_in_a_row_eject_an_address() -> None:
    two = Addresses(a=1, b=1)
    two.fail("a")
    assert {two.choose(), two.choose()} == {"a", "b"}
    two.fail("a")
    assert {two.choose(9.9), two.choose(9.9)} == {"b"}


def test_a_success_resets_the_failures_in_a_row() -> None:
    two = Addresses(a=1, b=1)
    two.fail("a")
    two.succeed("a")
    two.fail("a")
    assert {two.choose(1), two.choose(1)} == {"a", "b"}


def test_a_request_without_information_about_health_does_not_reset_the_failures() -> None:
    two = Addresses(a=1, b=1)
    two.fail("a")
    two.begin("a")
    two.end("a", failed=None)
    two.fail("a")
    assert {two.choose(1), two.choose(1)} == {"b"}


def test_one_trial_request_follows_an_ejection() -> None:
    two = Addresses(a=1, b=1)
    two.fail("a", times=2)
    two.begin("b")
    assert two.choose(10) == "a"
    two.begin("a")
    assert {two.choose(10), two.choose(10)} == {"b"}
    two.end("a", 11)
    assert two.choose(11) == "a"


def test_a_failed_trial_doubles_the_ejection_up_to_the_longest() -> None:
    two = Addresses(a=1, b=1)
    two.fail("a", times=2)
    two.fail("a", 10)
    assert {two.choose(29.9), two.choose(29.9)} == {"b"}
    two.fail("a", 30)
    assert {two.choose(59.9), two.choose(59.9)} == {"b"}
    assert "a" in {two.choose(60), two.choose(60)}


def test_the_last_available_address_is_never_ejected() -> None:
    two = Addresses(a=1, b=1)
    two.fail("a", times=2)
    two.fail("b", times=9)
    assert two.choose(1) == "b"


def test_ejections_end_if_the_other_addresses_are_down() -> None:
    three = Addresses(a=1, b=1, c=1)
    three.fail("a", times=2)
    three["b"].down = three["c"].down = True
    assert three.choose(now=5) is None
    readmitted = three.pool.readmit(now=5)
    assert readmitted is three["a"]
    three["a"].down = True
    assert three.pool.readmit(now=5) is None


def test_an_address_that_health_checks_mark_as_down_is_not_chosen() -> None:
    two = Addresses(a=1, b=1)
    two["a"].down = True
    assert {two.choose(), two.choose()} == {"b"}
    two["b"].down = True
    assert two.choose() is None


def test_an_address_is_reported_as_ejected_until_it_responds() -> None:
    two = Addresses(a=1, b=1)
    assert two.state("a") is None
    two.fail("a")
    assert two.state("a") is None
    two.fail("a", times=2)
    assert two["a"].cause == "refused"
    assert [two.state("a", now) for now in (0, 9, 10, 11)] == ["ejected"] * 4
    two.begin("a")
    assert two.state("a", 11) == "ejected"
    two.end("a", 11)
    assert two.state("a", 11) is None


def test_the_last_available_address_is_reported_as_failing() -> None:
    one, two = Addresses(a=1), Addresses(a=1, b=1)
    one.fail("a", times=2)
    assert one.state("a") == "failing"
    one.succeed("a", 1)
    assert one.state("a", 1) is None
    two.fail("a", times=2)
    two.fail("b", times=2)
    assert (two.state("a"), two.state("b")) == ("ejected", "failing")
    two.succeed("a", 10)
    two.fail("b", 10)
    assert (two.state("a", 10), two.state("b", 10)) == (None, "ejected")


def test_an_address_without_requests_for_a_long_time_is_not_reported_as_failing() -> None:
    """An example is a worker that has had no client since the failure."""
    one, two = Addresses(a=1), Addresses(a=1, b=1)
    one.fail("a", 100, times=2)
    two.fail("a", 100, times=2)
    assert [one.state("a", now) for now in (400, 401)] == ["failing", None]
    assert [two.state("a", now) for now in (410, 411)] == ["ejected", None]


def test_an_address_marked_as_down_is_reported_as_down_even_if_it_is_ejected() -> None:
    one = Addresses(a=1)
    one["a"].down = True
    assert one.state("a") == "down"
    one.fail("a", times=2)
    assert one.state("a", 9999) == "down"
