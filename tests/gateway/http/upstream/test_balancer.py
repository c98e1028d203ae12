"""The choice of a target, with a clock that the test sets."""

from gateway.http.upstream.pool import (
    ServicePool,
    TargetState,
    begin,
    choose,
    end,
    forget,
    health_of,
    service_pool,
    state_of,
)
from gateway.http.upstream.service import Ejection, Service, Target

A, B, C = Target("a", 1), Target("b", 1), Target("c", 1)


def pool(*targets: Target) -> ServicePool:
    ejection = Ejection(failures=2, seconds=10, longest=30)
    return service_pool(Service("s", targets, ejection=ejection), {})


def state(pool: ServicePool, target: Target, now: float) -> TargetState | None:
    return state_of(pool.service, pool.healths.get(target), now)


def fail(pool: ServicePool, target: Target, now: float, times: int = 1) -> None:
    for number in range(times):
        begin(pool, target)
        end(pool, target, now, failed=True, cause=f"failure {number}")


def succeed(pool: ServicePool, target: Target, now: float) -> None:
    begin(pool, target)
    end(pool, target, now, failed=False)


def test_the_idle_take_turns() -> None:
    three = pool(A, B, C)
    assert {choose(three, 0) for _ in range(3)} == {A, B, C}


def test_the_least_busy_is_asked() -> None:
    three = pool(A, B, C)
    begin(three, A)
    begin(three, C)
    assert [choose(three, 0) for _ in range(3)] == [B, B, B]


def test_what_was_tried_is_not_tried_again() -> None:
    two = pool(A, B)
    assert choose(two, 0, tried={A}) == B
    assert choose(two, 0, tried={A, B}) is None


def test_failures_in_a_row_eject() -> None:
    two = pool(A, B)
    fail(two, A, 0)
    assert {choose(two, 0), choose(two, 0)} == {A, B}
    fail(two, A, 0)
    assert {choose(two, 9.9), choose(two, 9.9)} == {B}


def test_a_success_between_forgives() -> None:
    two = pool(A, B)
    fail(two, A, 0)
    begin(two, A)
    end(two, A, 0, failed=False)
    fail(two, A, 0)
    assert {choose(two, 1), choose(two, 1)} == {A, B}


def test_what_says_nothing_changes_nothing() -> None:
    two = pool(A, B)
    fail(two, A, 0)
    begin(two, A)
    end(two, A, 0, failed=None)
    fail(two, A, 0)
    assert {choose(two, 1), choose(two, 1)} == {B}


def test_half_open_lets_one_request_try() -> None:
    two = pool(A, B)
    fail(two, A, 0, times=2)
    begin(two, B)
    assert choose(two, 10) == A
    begin(two, A)
    assert {choose(two, 10), choose(two, 10)} == {B}
    end(two, A, 11, failed=False)
    assert choose(two, 11) == A


def test_a_failed_trial_doubles_the_while_up_to_the_longest() -> None:
    two = pool(A, B)
    fail(two, A, 0, times=2)
    fail(two, A, 10)
    assert {choose(two, 29.9), choose(two, 29.9)} == {B}
    fail(two, A, 30)
    assert {choose(two, 59.9), choose(two, 59.9)} == {B}
    assert A in {choose(two, 60), choose(two, 60)}


def test_the_last_in_favour_is_never_ejected() -> None:
    two = pool(A, B)
    fail(two, A, 0, times=2)
    fail(two, B, 0, times=9)
    assert choose(two, 1) == B


def test_what_health_checks_find_down_is_not_asked() -> None:
    two = pool(A, B)
    health_of(two, A).down = True
    assert {choose(two, 0), choose(two, 0)} == {B}
    health_of(two, B).down = True
    assert choose(two, 0) is None


def test_what_is_no_target_any_more_is_forgotten_once_it_is_idle() -> None:
    """Else rules that change for long enough would fill the memory."""
    three = pool(A, B, C)
    for target in (A, B, C):
        begin(three, target)
    end(three, B, 0, failed=False)
    forget(three, (A,))
    assert set(three.healths) == {A, C}
    end(three, C, 0, failed=False)
    forget(three, (A,))
    assert set(three.healths) == {A}


def test_a_target_is_ejected_until_it_answers() -> None:
    """Also once the time is over, while it is on trial or waits for one."""
    two = pool(A, B)
    assert state(two, A, 0) is None
    fail(two, A, 0)
    assert state(two, A, 0) is None
    fail(two, A, 0, times=2)
    assert two.healths[A].cause == "failure 1"
    assert [state(two, A, now) for now in (0, 9, 10, 11)] == ["ejected"] * 4
    begin(two, A)
    assert state(two, A, 11) == "ejected"
    end(two, A, 11, failed=False)
    assert state(two, A, 11) is None


def test_the_last_in_favour_fails_and_is_asked() -> None:
    one, two = pool(A), pool(A, B)
    fail(one, A, 0, times=2)
    assert state(one, A, 0) == "failing"
    succeed(one, A, 1)
    assert state(one, A, 1) is None
    fail(two, A, 0, times=2)
    fail(two, B, 0, times=2)
    assert (
        state(two, A, 0),
        state(two, B, 0),
    ) == ("ejected", "failing")
    succeed(two, A, 10)
    fail(two, B, 10)
    assert (
        state(two, A, 10),
        state(two, B, 10),
    ) == (None, "ejected")


def test_what_was_not_asked_for_long_is_not_known_to_fail() -> None:
    """As on a worker to which no client has come since."""
    one, two = pool(A), pool(A, B)
    fail(one, A, 100, times=2)
    fail(two, A, 100, times=2)
    assert [state(one, A, now) for now in (400, 401)] == [
        "failing",
        None,
    ]
    assert [state(two, A, now) for now in (410, 411)] == [
        "ejected",
        None,
    ]


def test_what_health_checks_find_down_is_down_whatever_else_it_is() -> None:
    one = pool(A)
    health_of(one, A).down = True
    assert state(one, A, 0) == "down"
    fail(one, A, 0, times=2)
    assert state(one, A, 9999) == "down"
