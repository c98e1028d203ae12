"""Multiply: units are converted exactly, in decimal notation."""

from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.conversion.change import Change
from gateway.conversion.changes.multiply import Product, decimal_places, multiply
from gateway.conversion.conversion_error import ConversionError
from tests.gateway.conversion.documents import Json, down, fails, spelt, up
from tests.gateway.world import LAW

EXACT = Context(3000, ROUND_HALF_UP)


def multiply_by(by: str, newer: int | None = None, older: int | None = None) -> Change:
    factor = Fraction(by)
    return multiply((), ("f",), Product(1 / factor, newer), Product(factor, older))


MINUTES = multiply_by("60")


def moved(by: str, plus: str) -> Change:
    product = Product(Fraction(by), plus=Fraction(plus))
    return multiply((), ("f",), product.inverse(), product)


FAHRENHEIT = moved("1.8", "32")
WHOLE = multiply(
    (), ("f",), Product(Fraction(1, 60), 0, rounds=True), Product(Fraction(60), 1, rounds=True)
)


@pytest.mark.parametrize(
    ("change", "newer", "older"),
    [
        (MINUTES, "15", "900"),
        (MINUTES, "1.5", "90"),
        (MINUTES, "-1.05", "-63"),
        (MINUTES, "0", "0"),
        (multiply_by("1000"), "0.0015", "1.5"),
        (multiply_by("1000"), "12", "12000"),
        (multiply_by("100"), "0.07", "7"),
        (multiply_by("100"), "0.285", "28.5"),  # the binary fraction is 28.499999999999996
        (multiply_by("0.3048"), "5", "1.524"),
        (multiply_by("1/60"), "900", "15"),
        (multiply_by("1/60"), "90", "1.5"),
        (multiply_by("0.001"), "7" * 400, f"{'7' * 397}.777"),
        (multiply_by("60", newer=2, older=0), "0.25", "15"),
        (FAHRENHEIT, "20", "68"),
        (FAHRENHEIT, "-40", "-40"),
        (FAHRENHEIT, "-17.5", "0.5"),
        (FAHRENHEIT, "-20", "-4"),
        (FAHRENHEIT, "37.05", "98.69"),
        (moved("1", "-273.15"), "0", "-273.15"),  # kelvins and degrees Celsius
        (moved("1", "-273.15"), "273.15", "0"),
        (moved("1/60", "1/3"), "40", "1"),
        (multiply_by("-1"), "12.5", "-12.5"),
        (multiply_by("-1"), "-7", "7"),
        (multiply_by("-100"), "0.07", "-7"),
        (multiply_by("-1", newer=2, older=2), "0", "0"),
        (moved("-1", "20"), "7.5", "12.5"),
    ],
)
def test_a_number_is_multiplied_exactly_in_both_directions(
    change: Change, newer: str, older: str
) -> None:
    for quote in ("", '"'):
        assert spelt(change, f"{quote}{newer}{quote}", upwards=False) == f"{quote}{older}{quote}"
        assert spelt(change, f"{quote}{older}{quote}", upwards=True) == f"{quote}{newer}{quote}"


@pytest.mark.parametrize(
    ("newer", "older"),
    [
        ("12.50", "750"),
        ("2e1", "1200"),
        ("2E-2", "1.2"),
        ("-0", "0"),
        ("0.000", "0"),
        ("1e999", f"6{'0' * 1000}"),
    ],
)
def test_a_product_is_written_in_the_shortest_notation(newer: str, older: str) -> None:
    assert spelt(MINUTES, newer, upwards=False) == older


def test_multiplying_by_minus_one_keeps_all_digits() -> None:
    opposite = multiply_by("-1")
    for newer, older in (("12.50", "-12.50"), ("-5.00", "5.00"), ("0.00", "0.00"), ("1e2", "-1e2")):
        assert spelt(opposite, newer, upwards=False) == older
        assert spelt(opposite, older, upwards=True) == newer
    assert spelt(opposite, "-0.0", upwards=False) == "-0.0"


@pytest.mark.parametrize(
    ("older", "newer", "again"),
    [
        ("89", "1", "60"),
        ("90", "2", "120"),
        ("-90", "-2", "-120"),
        ("29.9", "0", "0"),
        ("-29.9", "0", "0"),
        ("5970", "100", "6000"),
    ],
)
def test_a_product_is_rounded_half_away_from_zero(older: str, newer: str, again: str) -> None:
    assert spelt(WHOLE, older, upwards=True) == newer
    assert spelt(WHOLE, newer, upwards=False) == again


def test_a_product_is_rounded_to_the_declared_digits() -> None:
    assert spelt(WHOLE, "0.00417", upwards=False) == "0.3"
    assert spelt(WHOLE, "0.0075", upwards=False) == "0.5"
    assert spelt(WHOLE, "1e-999", upwards=False) == "0"


def test_a_product_with_an_offset_is_rounded_away_from_zero() -> None:
    celsius = Product(Fraction("1.8"), plus=Fraction(32)).inverse(1, rounds=True)
    assert [celsius(text) for text in ("100", "0", "31.91", "32.09", "1e2")] == [
        *("37.8", "-17.8", "-0.1", "0.1", "37.8")
    ]


def test_an_infinite_decimal_fraction_is_refused() -> None:
    with fails("/f", "the other version would need infinitely many decimal places"):
        spelt(FAHRENHEIT, "100", upwards=True)
    with fails("/f", "the other version would need infinitely many decimal places"):
        spelt(MINUTES, "100", upwards=True)


def test_more_decimal_places_than_declared_are_refused() -> None:
    with fails("/f", "the other version would have more than 0 decimal places"):
        spelt(multiply_by("60", newer=0), "90", upwards=True)
    with fails("/f", "the other version would have more than 1 decimal places"):
        spelt(multiply_by("0.5", older=1), "0.5", upwards=False)


@pytest.mark.parametrize(
    "value", ['""', '"1."', '"007"', '" 1"', '"NaN"', "1e1000", "1" * 401, f"0.{'1' * 401}"]
)
def test_a_non_numeric_string_or_too_long_number_is_refused(value: str) -> None:
    with fails("/f", "expected a number such as 12.5, found something else"):
        spelt(MINUTES, value, upwards=False)


def test_a_value_that_is_not_a_number_or_string_is_refused() -> None:
    with fails("/f", "expected a number, found a boolean"):
        spelt(MINUTES, "true", upwards=False)


@pytest.mark.parametrize("document", [{}, {"m": None}, {"m": {}}, {"m": {"f": None}}])
def test_multiply_leaves_an_absent_value_absent(document: Json) -> None:
    one = Product(Fraction(2))
    change = multiply((), ("m", "f"), one, one)
    assert up(change, document) == down(change, document) == document


@pytest.mark.parametrize(
    ("factor", "places", "ends"),
    [("60", 0, True), ("1/60", 2, False), ("1/1000", 3, True), ("0.375", 3, True)],
)
def test_decimal_places_returns_the_places_of_a_factor_and_whether_they_end(
    factor: str, places: int, ends: bool
) -> None:
    assert decimal_places(Fraction(factor)) == (places, ends)


numbers = st.from_regex(
    r"-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,2})?", fullmatch=True
)
factors = st.decimals("0.000001", "100000", places=6).map(Fraction) | st.sampled_from(
    [Fraction(60), Fraction(1, 60), Fraction(1000), Fraction(1, 7), Fraction("0.3048")]
)


@LAW
@given(numbers, factors)
def test_a_product_survives_a_round_trip(number: str, factor: Fraction) -> None:
    change = multiply((), ("f",), Product(1 / factor), Product(factor))
    try:
        older = spelt(change, number, upwards=False)
    except ConversionError:
        # Only infinite decimal fractions are refused.
        assert not decimal_places(factor)[1]
        return
    assert Fraction(Decimal(older)) == Fraction(Decimal(number)) * factor
    assert Decimal(spelt(change, older, upwards=True)) == Decimal(number)


offsets = st.decimals("-1000", "1000", places=6).map(Fraction)


@LAW
@given(numbers, factors, offsets)
def test_a_product_with_an_offset_survives_a_round_trip(
    number: str, factor: Fraction, plus: Fraction
) -> None:
    product = Product(factor, plus=plus)
    exact = Fraction(Decimal(number)) * factor + plus
    try:
        older = product(number)
    except ValueError:
        assert not decimal_places(Fraction(1, exact.denominator))[1]
        return
    assert Fraction(Decimal(older)) == exact
    assert Decimal(product.inverse()(older)) == Decimal(number)


@LAW
@given(numbers, factors, offsets, st.integers(0, 18))
def test_a_product_with_an_offset_is_rounded_to_the_nearest_value(
    number: str, factor: Fraction, plus: Fraction, digits: int
) -> None:
    rounded = Fraction(Decimal(Product(factor, digits, rounds=True, plus=plus)(number)))
    exact = Fraction(Decimal(number)) * factor + plus
    assert abs(rounded - exact) <= Fraction(1, 2 * 10**digits)
    assert abs(rounded - exact) < Fraction(1, 2 * 10**digits) or abs(rounded) > abs(exact)


@LAW
@given(numbers, factors, st.integers(0, 18))
def test_rounding_uses_the_exact_product(number: str, factor: Fraction, digits: int) -> None:
    rounded = Product(factor, digits, rounds=True)(number)
    exact = Fraction(Decimal(number)) * factor
    assert abs(Fraction(Decimal(rounded)) - exact) <= Fraction(1, 2 * 10**digits)
    if decimal_places(factor)[1]:
        product = EXACT.divide(Decimal(exact.numerator), Decimal(exact.denominator))
        unit = Decimal(1).scaleb(-digits)
        assert Decimal(rounded) == product.quantize(unit, context=EXACT)
