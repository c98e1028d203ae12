"""Scale: exact conversion between whole units and decimal amounts."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.conversion.changes.type import scale
from gateway.conversion.field_path import Keys
from gateway.conversion.scalars import Type
from tests.gateway.conversion.documents import down, fails, spelt, up
from tests.gateway.world import LAW

F: Keys = ("f",)
TEXT, NUMBER, BOOLEAN = Type

CENTS = scale((), F, 2, TEXT)
NUMBERS = scale((), F, 2, NUMBER)


@pytest.mark.parametrize(
    ("units", "amount"),
    [
        ("1250", "12.50"),
        ("5", "0.05"),
        ("95", "0.95"),
        ("0", "0.00"),
        ("-5", "-0.05"),
        ("-1250", "-12.50"),
        ("123456789012345678901234567890", "1234567890123456789012345678.90"),
        ("null", "null"),
    ],
)
def test_whole_units_become_an_amount_and_back(units: str, amount: str) -> None:
    text = amount if amount == "null" else f'"{amount}"'
    assert spelt(CENTS, units, upwards=False) == text
    assert spelt(CENTS, text, upwards=True) == units
    assert spelt(NUMBERS, units, upwards=False) == amount
    assert spelt(NUMBERS, amount, upwards=True) == units


@pytest.mark.parametrize(
    ("amount", "units"),
    [
        *(("12", "1200"), ("12.5", "1250"), ("12.500", "1250"), ("1.25e1", "1250")),
        *(("125E-1", "1250"), ("0e5", "0"), ("1e2", "10000")),
    ],
)
def test_other_spellings_of_an_amount_are_accepted(amount: str, units: str) -> None:
    assert spelt(CENTS, f'"{amount}"', upwards=True) == units
    assert spelt(NUMBERS, amount, upwards=True) == units


ZEROS = "without a zero before its digits"


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ('"12.505"', "has more than 2 decimal places"),
        ('"1e-3"', "has more than 2 decimal places"),
        ('"twelve"', "expected an amount such as 12.50, found something else"),
        ('"12,50"', "expected an amount such as 12.50, found something else"),
        ('"007.50"', f"expected an amount such as 12.50, {ZEROS}, found something else"),
        ('".5"', "expected an amount such as 12.50, found something else"),
        ('"1e9999"', "expected an amount such as 12.50, found something else"),
        ('"0x.50"', "expected an amount such as 12.50, found something else"),
        ('"xe5"', "expected an amount such as 12.50, found something else"),
        ("12.50", "expected a string, found a number"),
    ],
)
def test_an_invalid_amount_is_refused(value: str, reason: str) -> None:
    with fails("/f", reason):
        spelt(CENTS, value, upwards=True)


@pytest.mark.parametrize("units", ["12.5", "1e3", "0.0"])
def test_units_with_a_fraction_or_exponent_are_refused(units: str) -> None:
    with fails("/f", "expected a whole number, found a fraction or an exponent"):
        spelt(CENTS, units, upwards=False)


def test_units_that_are_not_a_number_are_refused() -> None:
    with fails("/f", "expected a number, found a string"):
        spelt(CENTS, '"1250"', upwards=False)


@LAW
@given(st.integers(), st.integers(1, 18))
def test_scaling_is_exact_and_survives_a_round_trip(units: int, places: int) -> None:
    change = scale((), F, places, TEXT)
    older = down(change, {"f": units})
    assert isinstance(older, dict)
    assert Decimal(older["f"]).as_tuple().exponent == -places
    assert Decimal(older["f"]) * 10**places == units or abs(units) > 10**28
    assert up(change, older) == {"f": units}
