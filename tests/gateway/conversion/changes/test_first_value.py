"""Wrap of a parameter: the older version may have several values, the newer version only one."""

import pytest

from gateway.conversion.changes.wrap import wrap_parameter
from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.parameter_change import in_direction, rewrite_query

FIRST = wrap_parameter("a")


@pytest.mark.parametrize(
    ("older", "newer"),
    [("x&a=1&b&a=2&a", "x&a=1&b"), ("a=%41", "a=%41"), ("b=1&b=2", "b=1&b=2"), (None, None)],
)
def test_an_upgrade_keeps_only_the_first_of_several_values(
    older: str | None, newer: str | None
) -> None:
    assert rewrite_query(older, in_direction([FIRST], upwards=True)) == newer
    assert rewrite_query(older, in_direction([FIRST], upwards=False)) == older


def test_several_values_are_refused_if_configured() -> None:
    strict = wrap_parameter("a", strict=True)
    assert rewrite_query("a=1", in_direction([strict], upwards=True)) == "a=1"
    with pytest.raises(ConversionError, match="the query parameter 'a': occurs twice"):
        rewrite_query("a=1&a=1", in_direction([strict], upwards=True))
