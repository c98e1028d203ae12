"""The byte budget: which holder is closed if too many bytes are buffered."""

from functools import partial

from gateway.http.bounds import ByteBudget


def test_the_holder_that_has_waited_longest_is_closed() -> None:
    gone: list[str] = []
    first, second, third, fourth = (partial(gone.append, name) for name in "abcd")
    waiting = ByteBudget(most=10)
    for each in (first, second):
        waiting.hold(each, 5)
    assert not gone
    waiting.release(first)
    waiting.hold(third, 5)
    assert not gone
    waiting.hold(fourth, 6)
    assert gone == ["b", "c"]
    waiting.release(second)  # its connection ends
    waiting.hold(first, 4)
    assert gone == ["b", "c"]


def test_a_single_holder_may_exceed_the_budget() -> None:
    gone: list[str] = []
    ByteBudget(most=10).hold(partial(gone.append, "a"), 11)
    assert not gone
