"""Round: numbers are rounded in their decimal notation."""

from decimal import ROUND_HALF_UP, Context, Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.conversion.change import Change
from gateway.conversion.changes.round import round_down
from tests.gateway.conversion.documents import Json, down, fails, spelt, up
from tests.gateway.world import LAW

CENTS = round_down((), ("f",), 2)
WHOLE = round_down((), ("f",), 0)
EXACT = Context(1000, ROUND_HALF_UP)


@pytest.mark.parametrize(
    ("change", "newer", "older"),
    [
        (CENTS, "12.344", "12.34"),
        (CENTS, "12.345", "12.35"),
        (CENTS, "-12.345", "-12.35"),
        (CENTS, "1.005", "1.01"),  # the nearest binary fraction is smaller
        (CENTS, "2.675", "2.68"),
        (CENTS, "99.995", "100.00"),
        (CENTS, "12.300", "12.30"),
        (CENTS, "-0.004", "0.00"),
        (CENTS, "12345e-3", "12.35"),
        (CENTS, "1.2345E1", "12.35"),
        (CENTS, "9e-3", "0.01"),
        (CENTS, "9e-4", "0.00"),
        (CENTS, "5e-999999999999999999", "0.00"),
        (CENTS, f"{'9' * 5000}.999", f"1{'0' * 5000}.00"),
        (WHOLE, "12.5", "13"),
        (WHOLE, "-0.5", "-1"),
        (WHOLE, "0.49", "0"),
    ],
)
def test_numbers_are_rounded_half_away_from_zero(change: Change, newer: str, older: str) -> None:
    assert spelt(change, newer, upwards=False) == older
    assert spelt(change, f'"{newer}"', upwards=False) == f'"{older}"'


@pytest.mark.parametrize("number", ["12.34", "12.3", "12", "-0.0", "1.25e1", "1E400", "null"])
def test_a_number_without_excess_digits_keeps_its_spelling(number: str) -> None:
    for upwards in (False, True):
        assert spelt(CENTS, number, upwards=upwards) == number


@pytest.mark.parametrize("value", ["12.345", '"12.345"', '"twelve"', "[1]"])
def test_an_upgrade_does_not_round(value: str) -> None:
    assert spelt(CENTS, value, upwards=True) == value


@pytest.mark.parametrize("document", [{}, {"m": None}, {"m": {}}])
def test_round_leaves_an_absent_value_absent(document: Json) -> None:
    change = round_down((), ("m", "f"), 2)
    assert up(change, document) == down(change, document) == document


@pytest.mark.parametrize(
    "value", ['""', '"1."', '"007.123"', '" 1.234"', '"1e-9999999999999999999"']
)
def test_a_non_numeric_string_is_refused_by_round(value: str) -> None:
    with fails("/f", "expected a number such as 12.345, found something else"):
        spelt(CENTS, value, upwards=False)


def test_a_value_that_is_neither_a_number_nor_a_string_is_refused_by_round() -> None:
    with fails("/f", "expected a number, found a boolean"):
        spelt(CENTS, "true", upwards=False)


numbers = st.from_regex(
    r"-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,2})?", fullmatch=True
)


@LAW
@given(numbers, st.integers(0, 18))
def test_rounding_is_exact(number: str, digits: int) -> None:
    rounded = spelt(round_down((), ("f",), digits), number, upwards=False)
    exponent = Decimal(number).as_tuple().exponent
    assert isinstance(exponent, int)
    if exponent >= -digits:
        assert rounded == number
    else:
        assert Decimal(rounded).as_tuple().exponent == -digits
        unit = Decimal(1).scaleb(-digits)
        assert Decimal(rounded) == Decimal(number).quantize(unit, context=EXACT)
        assert rounded[0] != "-" or Decimal(rounded) < 0


@LAW
@given(numbers)
def test_rounding_twice_changes_nothing(number: str) -> None:
    older = spelt(CENTS, number, upwards=False)
    assert spelt(CENTS, spelt(CENTS, older, upwards=True), upwards=False) == older
