"""Amounts of money in parameters, by the currency that another parameter names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.conversion.changes.money import Amount
from tests.gateway.world import LAW

MONEY, GUESSED = Amount("min", "currency"), Amount("min", "currency", 2)


@pytest.mark.parametrize(
    ("currency", "units", "decimal"),
    [("EUR", "1250", "12.50"), ("jpy", "1250", "1250"), ("KWD", "5", "0.005")],
)
def test_both_ways(currency: str, units: str, decimal: str) -> None:
    newer, older = (
        {"min": "-" + units, "currency": currency},
        {"min": "-" + decimal, "currency": currency},
    )
    assert MONEY.decimal(newer) == older
    assert MONEY.units(older) == newer


def test_a_currency_alone() -> None:
    assert MONEY.units({"currency": "x"}) == MONEY.decimal({"currency": "x"}) == {"currency": "x"}


@pytest.mark.parametrize("values", [{"min": "1"}, {"min": "1", "currency": "x"}])
def test_an_unknown_currency(values: dict[str, str]) -> None:
    for convert in (MONEY.units, MONEY.decimal):
        with pytest.raises(ValueError, match="the currency is absent, or not an alphabetic code"):
            convert(values)
    assert GUESSED.units(values) == {**values, "min": "100"}


def test_too_many_places() -> None:
    with pytest.raises(ValueError, match="has more than 0 decimal places"):
        MONEY.units({"min": "1.5", "currency": "JPY"})


@LAW
@given(st.integers().map(str), st.sampled_from(["EUR", "JPY", "KWD"]))
def test_there_and_back_is_the_same(units: str, currency: str) -> None:
    newer = {"min": units, "currency": currency}
    assert MONEY.units(MONEY.decimal(newer)) == newer
