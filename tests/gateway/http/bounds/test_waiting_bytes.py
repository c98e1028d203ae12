"""Bytes that wait, and who gives way when they are too many."""

from functools import partial

from gateway.http.bounds import ByteBudget


def test_who_has_waited_for_the_longest_gives_way() -> None:
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
    waiting.release(second)  # as it ends
    waiting.hold(first, 4)
    assert gone == ["b", "c"]


def test_one_alone_may_be_larger() -> None:
    gone: list[str] = []
    ByteBudget(most=10).hold(partial(gone.append, "a"), 11)
    assert not gone
