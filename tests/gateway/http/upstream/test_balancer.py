"""The balancer's choices, with a clock that the test turns."""

from gateway.http.upstream.pool import Balancer
from gateway.http.upstream.service import Ejection, Service, Target

A, B, C = Target("a", 1), Target("b", 1), Target("c", 1)


def balancer(*targets: Target) -> Balancer:
    return Balancer(Service("s", targets, ejection=Ejection(failures=2, seconds=10, longest=30)))


def fail(balancer: Balancer, target: Target, now: float, times: int = 1) -> None:
    for number in range(times):
        balancer.began(target)
        balancer.ended(target, now, failed=True, cause=f"failure {number}")


def succeed(balancer: Balancer, target: Target, now: float) -> None:
    balancer.began(target)
    balancer.ended(target, now, failed=False)


def test_the_idle_take_turns() -> None:
    three = balancer(A, B, C)
    assert {three.choose(0) for _ in range(3)} == {A, B, C}


def test_the_least_busy_is_asked() -> None:
    three = balancer(A, B, C)
    three.began(A)
    three.began(C)
    assert [three.choose(0) for _ in range(3)] == [B, B, B]


def test_what_was_tried_is_not_tried_again() -> None:
    two = balancer(A, B)
    assert two.choose(0, tried={A}) == B
    assert two.choose(0, tried={A, B}) is None


def test_failures_in_a_row_eject() -> None:
    two = balancer(A, B)
    fail(two, A, 0)
    assert {two.choose(0), two.choose(0)} == {A, B}
    fail(two, A, 0)
    assert {two.choose(9.9), two.choose(9.9)} == {B}


def test_a_success_between_forgives() -> None:
    two = balancer(A, B)
    fail(two, A, 0)
    two.began(A)
    two.ended(A, 0, failed=False)
    fail(two, A, 0)
    assert {two.choose(1), two.choose(1)} == {A, B}


def test_what_says_nothing_changes_nothing() -> None:
    two = balancer(A, B)
    fail(two, A, 0)
    two.began(A)
    two.ended(A, 0, failed=None)
    fail(two, A, 0)
    assert {two.choose(1), two.choose(1)} == {B}


def test_half_open_lets_one_request_try() -> None:
    two = balancer(A, B)
    fail(two, A, 0, times=2)
    two.began(B)
    assert two.choose(10) == A
    two.began(A)
    assert {two.choose(10), two.choose(10)} == {B}
    two.ended(A, 11, failed=False)
    assert two.choose(11) == A


def test_a_failed_trial_doubles_the_while_up_to_the_longest() -> None:
    two = balancer(A, B)
    fail(two, A, 0, times=2)
    fail(two, A, 10)
    assert {two.choose(29.9), two.choose(29.9)} == {B}
    fail(two, A, 30)
    assert {two.choose(59.9), two.choose(59.9)} == {B}
    assert A in {two.choose(60), two.choose(60)}


def test_the_last_in_favour_is_never_ejected() -> None:
    two = balancer(A, B)
    fail(two, A, 0, times=2)
    fail(two, B, 0, times=9)
    assert two.choose(1) == B


def test_what_health_checks_find_down_is_not_asked() -> None:
    two = balancer(A, B)
    two.health_of(A).down = True
    assert {two.choose(0), two.choose(0)} == {B}
    two.health_of(B).down = True
    assert two.choose(0) is None


def test_what_is_no_target_any_more_is_forgotten_once_it_is_idle() -> None:
    """Else rules that change for long enough would fill the memory."""
    three = balancer(A, B, C)
    for target in (A, B, C):
        three.began(target)
    three.ended(B, 0, failed=False)
    three.forget((A,))
    assert set(three.healths) == {A, C}
    three.ended(C, 0, failed=False)
    three.forget((A,))
    assert set(three.healths) == {A}


def test_a_target_is_ejected_until_it_answers() -> None:
    """Also once the time is over, while it is on trial or waits for one."""
    two = balancer(A, B)
    assert two.state_of(A, 0) is None
    fail(two, A, 0)
    assert two.state_of(A, 0) is None
    fail(two, A, 0, times=2)
    assert two.healths[A].cause == "failure 1"
    assert [two.state_of(A, now) for now in (0, 9, 10, 11)] == ["ejected"] * 4
    two.began(A)
    assert two.state_of(A, 11) == "ejected"
    two.ended(A, 11, failed=False)
    assert two.state_of(A, 11) is None


def test_the_last_in_favour_fails_and_is_asked() -> None:
    one, two = balancer(A), balancer(A, B)
    fail(one, A, 0, times=2)
    assert one.state_of(A, 0) == "failing"
    succeed(one, A, 1)
    assert one.state_of(A, 1) is None
    fail(two, A, 0, times=2)
    fail(two, B, 0, times=2)
    assert (two.state_of(A, 0), two.state_of(B, 0)) == ("ejected", "failing")
    succeed(two, A, 10)
    fail(two, B, 10)
    assert (two.state_of(A, 10), two.state_of(B, 10)) == (None, "ejected")


def test_what_was_not_asked_for_long_is_not_known_to_fail() -> None:
    """As on a worker to which no client has come since."""
    one, two = balancer(A), balancer(A, B)
    fail(one, A, 100, times=2)
    fail(two, A, 100, times=2)
    assert [one.state_of(A, now) for now in (400, 401)] == ["failing", None]
    assert [two.state_of(A, now) for now in (410, 411)] == ["ejected", None]


def test_what_health_checks_find_down_is_down_whatever_else_it_is() -> None:
    one = balancer(A)
    one.health_of(A).down = True
    assert one.state_of(A, 0) == "down"
    fail(one, A, 0, times=2)
    assert one.state_of(A, 9999) == "down"
