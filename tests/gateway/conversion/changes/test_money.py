"""Money: the currency determines the number of decimal places of an amount."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.conversion.changes.money import PLACES, money, money_by_currency
from gateway.conversion.field_path import Members
from gateway.conversion.scalars import Type
from tests.gateway.conversion.documents import Json, both, down, fails, up
from tests.gateway.world import LAW

TEXTS = money((), ("currency",), (), ("amount",), Type.TEXT)
LINES = money((("orders",),), ("m", "c"), (("lines",), ()), ("p", "a"), Type.TEXT)
REFUSED = "its currency is absent, or not an alphabetic code of ISO 4217"


@pytest.mark.parametrize(
    ("currency", "newer", "older"),
    [
        ("EUR", 1250, "12.50"),
        ("eur", 5, "0.05"),
        ("JPY", 1250, "1250"),
        ("JPY", -3, "-3"),
        ("KWD", 1250, "1.250"),
        ("CLF", 1, "0.0001"),
        ("XXX", None, None),
    ],
)
def test_an_amount_is_converted_with_the_decimal_places_of_its_currency(
    currency: str, newer: Json, older: Json
) -> None:
    rest = {"currency": currency}
    assert both(TEXTS, {"amount": newer, **rest}, upwards=False) == {"amount": older, **rest}
    assert both(TEXTS, {"amount": older, **rest}, upwards=True) == {"amount": newer, **rest}


def test_the_currency_may_be_in_an_outer_object() -> None:
    newer = {"orders": [{"m": {"c": "JPY"}, "lines": [[{"p": {"a": 5}}]]}, {"m": {"c": "EUR"}}]}
    older = {"orders": [{"m": {"c": "JPY"}, "lines": [[{"p": {"a": "5"}}]]}, {"m": {"c": "EUR"}}]}
    assert both(LINES, newer, upwards=False) == older
    assert both(LINES, older, upwards=True) == newer


def test_amounts_in_the_members_of_an_object_are_converted() -> None:
    change = money((), ("c",), (Members(("prices",)),), ("a",), Type.TEXT)
    newer = {"c": "EUR", "prices": {"net": {"a": 5}, "gross": {"a": 6}}}
    older = {"c": "EUR", "prices": {"net": {"a": "0.05"}, "gross": {"a": "0.06"}}}
    assert change.touches == (("c",), ("prices",))
    assert both(change, newer, upwards=False) == older
    assert both(change, older, upwards=True) == newer


AMOUNTS = money_by_currency((), ("a", "b"), Type.TEXT)


def test_amounts_with_currencies_as_keys_are_converted() -> None:
    newer: Json = {"a": {"b": {"EUR": 5, "jpy": -3, "KWD": None}}}
    older: Json = {"a": {"b": {"EUR": "0.05", "jpy": "-3", "KWD": None}}}
    assert both(AMOUNTS, newer, upwards=False) == older
    assert both(AMOUNTS, older, upwards=True) == newer
    for none in ({}, {"a": None}, {"a": {"b": None}}):
        assert both(AMOUNTS, none, upwards=True) == none
    two = money_by_currency((), ("a",), Type.NUMBER, 2)
    assert down(two, {"a": {"XAU": 5}}) == {"a": {"XAU": Decimal("0.05")}}


@pytest.mark.parametrize(
    ("amounts", "at", "reason"),
    [
        ([], "", "expected an object, found an array"),
        ({"EUR": "1", "XAU": "1"}, "/XAU", REFUSED),
        ({"JPY": "1.5"}, "/JPY", "has more than 0 decimal places"),
        ({"EUR": 1}, "/EUR", "expected a string, found a number"),
    ],
)
def test_invalid_amounts_with_currencies_as_keys_are_refused(
    amounts: Json, at: str, reason: str
) -> None:
    with fails(f"/a/b{at}", reason):
        up(AMOUNTS, {"a": {"b": amounts}})


@pytest.mark.parametrize("currency", [{}, {"currency": None}, {"currency": 1}, {"currency": "XAU"}])
def test_an_unknown_currency_is_refused_without_a_default_number_of_places(currency: Json) -> None:
    with fails("/amount", REFUSED):
        down(TEXTS, {"amount": 1, **currency})
    with fails("/amount", REFUSED):
        up(TEXTS, {"amount": "1", **currency})
    assert up(TEXTS, currency) == down(TEXTS, currency) == currency
    two = money((), ("currency",), (), ("amount",), Type.TEXT, 2)
    assert down(two, {"amount": 1, **currency}) == {"amount": "0.01", **currency}


@pytest.mark.parametrize(("currency", "places"), [("JPY", 0), ("USD", 2), ("BHD", 3)])
def test_more_decimal_places_than_the_currency_has_are_refused(currency: str, places: int) -> None:
    amount = f"1.{'0' * places}1"
    with fails("/amount", f"has more than {places} decimal places"):
        up(TEXTS, {"amount": amount, "currency": currency})


def test_all_currency_codes_have_three_letters_and_a_valid_number_of_places() -> None:
    assert all(len(code) == 3 and code.isascii() and code.isupper() for code in PLACES)
    assert set(PLACES.values()) == {0, 2, 3, 4}


@LAW
@given(st.integers(), st.sampled_from(sorted(PLACES)), st.sampled_from([Type.TEXT, Type.NUMBER]))
def test_an_amount_survives_a_round_trip(units: int, currency: str, older: Type) -> None:
    change = money((), ("c",), (), ("a",), older)
    document = {"a": units, "c": currency}
    changed = down(change, document)
    assert up(change, changed) == document
    assert isinstance(changed, dict)
    assert Decimal(changed["a"]) == Decimal(f"{units}e-{PLACES[currency]}")
