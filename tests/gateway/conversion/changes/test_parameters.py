"""Changes of several parameters: joined parameters, and amounts with their currency."""

import pytest

from gateway.conversion.changes.join import join_parameters
from gateway.conversion.changes.money import money_parameter
from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.parameter_change import QUERY, ParameterChange, parse_query, write_query

RANGE = join_parameters(("from", "to"), "dates", "..", closed=True)
SORT = join_parameters(("sort", "order"), "by", ":")
MONEY, GUESSED = money_parameter("min", "currency"), money_parameter("min", "currency", 2)


@pytest.mark.parametrize(
    ("change", "newer", "older"),
    [
        (RANGE, "from=1&to=2", "dates=1..2"),
        (RANGE, "from=1", "dates=1.."),
        (RANGE, "to=2", "dates=..2"),
        (SORT, "sort=a", "by=a"),
        (SORT, "sort=a&order=b%3Ac", "by=a%3Ab%3Ac"),
        (SORT, "order=b", "by=%3Ab"),
        (MONEY, "min=-1250&currency=EUR", "min=-12.50&currency=EUR"),
        (MONEY, "min=1250&currency=jpy", "min=1250&currency=jpy"),
        (MONEY, "min=5&currency=KWD", "min=0.005&currency=KWD"),
        (MONEY, "currency=x", "currency=x"),
        (GUESSED, "min=100&currency=x", "min=1.00&currency=x"),
    ],
)
def test_joined_parameters_and_amounts_are_converted_in_both_directions(
    change: ParameterChange, newer: str, older: str
) -> None:
    assert write_query(change.down(parse_query(newer), QUERY)) == older
    assert write_query(change.up(parse_query(older), QUERY)) == newer


@pytest.mark.parametrize(
    ("change", "newer", "reason"),
    [
        (SORT, "sort=a%3Ab", "contains ':', which separates the parts"),
        (MONEY, "min=1", "the currency is absent, or not an alphabetic code"),
        (MONEY, "min=1&currency=x", "the currency is absent, or not an alphabetic code"),
        (MONEY, "min=1.5&currency=JPY", "expected a whole number"),
    ],
)
def test_invalid_joined_parameters_and_amounts_are_refused(
    change: ParameterChange, newer: str, reason: str
) -> None:
    with pytest.raises(ConversionError, match=reason):
        change.down(parse_query(newer), QUERY)
