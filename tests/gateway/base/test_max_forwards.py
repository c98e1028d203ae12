"""Max-Forwards: how often it lets a request be forwarded."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.base.headers import HeaderFields, counted_down, ends_here
from tests.gateway.world import head


def lines(*values: str) -> HeaderFields:
    bounds = [(b"max-FORWARDS", value.encode("latin-1")) for value in values]
    return [(b"X-A", b"1"), *bounds, (b"X-B", b"2")]


@pytest.mark.parametrize("values", [("0",), ("000",)])
def test_the_last_forward(values: tuple[str, ...]) -> None:
    assert ends_here(head("/", *(("max-forwards", value) for value in values)).fields)


ODD = [(), ("",), ("-1",), ("+0",), ("0.0",), ("0, 0",), ("0", "0"), ("x",), ("\xb2",), ("0_0",)]


@pytest.mark.parametrize("values", ODD)
def test_what_is_no_number_passes(values: tuple[str, ...]) -> None:
    assert not ends_here(head("/", *(("Max-Forwards", value) for value in values)).fields)
    assert counted_down(lines(*values)) == lines(*values)


@given(st.integers(1, 10**30), st.integers(0, 9))
def test_counting_down(number: int, zeros: int) -> None:
    text = "0" * zeros + str(number)
    assert not ends_here(head("/", ("Max-Forwards", text)).fields)
    assert counted_down(lines(text)) == lines(str(min(number - 1, 10**9)))


def test_a_number_of_many_digits_is_not_read() -> None:
    assert counted_down(lines("9" * 100_000)) == lines(str(10**9))


def test_nothing_is_below_zero() -> None:
    assert counted_down(lines("0")) == lines("0")
