"""Scalars: when two numbers are the same."""

import pytest

from gateway.conversion.scalars import is_same_number

HUGE = "1e99999999999999999999"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("1", "1", True),
        ("1", "1.0", True),
        ("100", "1e2", True),
        ("0", "-0.0", True),
        ("1", "2", False),
        ("1", HUGE, False),
        (HUGE, HUGE, True),
    ],
)
def test_however_they_are_written(one: str, other: str, same: bool) -> None:
    assert is_same_number(one, other) is same
    assert is_same_number(other, one) is same
