"""Types: every digit stays, whatever holds it; nothing is rounded."""

import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.conversion.change import Change
from gateway.core.conversion.document import PLAIN, JsonForm, Number
from gateway.core.conversion.field_path import Keys
from gateway.core.conversion.retype import Retype, Scale, Type, retyping
from tests.gateway.core.conversion.documents import (
    SEALED,
    Json,
    Sealed,
    down,
    fails,
    up,
)
from tests.gateway.core.world import LAW

F: Keys = ("f",)
TEXT, NUMBER, BOOLEAN = Type


def spelt(change: Change, value: str, *, upwards: bool) -> str:
    """Return what becomes of a field with this JSON text."""
    fields = {"f": Sealed(value)}
    changed = (up if upwards else down)(change, fields, _OPEN)
    assert isinstance(changed, dict)
    result = changed["f"]
    return result.text if isinstance(result, Sealed) else json.dumps(result)


def _open(value: object) -> object:
    if isinstance(value, Sealed) and value.text[0] in "-0123456789":
        return Number(value.text)
    return SEALED.open(value)


def _digits(value: object) -> str | None:
    opened = _open(value)
    return opened.digits if isinstance(opened, Number) else None


_OPEN = JsonForm(_open, lambda fields: fields, _digits, SEALED.number, SEALED.parse, SEALED.take)

RETYPED = [
    (NUMBER, TEXT, "12.50", '"12.50"'),
    (NUMBER, TEXT, "0", '"0"'),
    (NUMBER, TEXT, "-0.0", '"-0.0"'),
    (NUMBER, TEXT, "1E+400", '"1E+400"'),
    (NUMBER, TEXT, "123456789012345678901234567890", '"123456789012345678901234567890"'),
    (NUMBER, TEXT, "0.1000000000000000000000000000001", '"0.1000000000000000000000000000001"'),
    (BOOLEAN, TEXT, "true", '"true"'),
    (BOOLEAN, TEXT, "false", '"false"'),
    (BOOLEAN, NUMBER, "true", "1"),
    (BOOLEAN, NUMBER, "false", "0"),
    (NUMBER, TEXT, "null", "null"),
    (BOOLEAN, NUMBER, "null", "null"),
]


@pytest.mark.parametrize(("newer", "older", "one", "other"), RETYPED)
def test_retyped_both_ways(newer: Type, older: Type, one: str, other: str) -> None:
    assert spelt(Retype((), F, newer, older), one, upwards=False) == other
    assert spelt(Retype((), F, newer, older), other, upwards=True) == one
    assert spelt(Retype((), F, older, newer), one, upwards=True) == other


@pytest.mark.parametrize(
    ("source", "target", "value", "reason"),
    [
        (TEXT, NUMBER, '""', "expected a string that is a number, found another one"),
        (TEXT, NUMBER, '"007"', "expected a string that is a number, found another one"),
        (TEXT, NUMBER, '"1."', "expected a string that is a number, found another one"),
        (TEXT, NUMBER, '" 1"', "expected a string that is a number, found another one"),
        (TEXT, NUMBER, '"+1"', "expected a string that is a number, found another one"),
        (TEXT, NUMBER, '"NaN"', "expected a string that is a number, found another one"),
        (TEXT, NUMBER, '"1,5"', "expected a string that is a number, found another one"),
        (TEXT, NUMBER, '"\\u0661"', "expected a string that is a number, found another one"),
        (TEXT, NUMBER, "1", "expected a string, found a number"),
        (TEXT, NUMBER, "true", "expected a string, found a boolean"),
        (NUMBER, TEXT, '"1"', "expected a number, found a string"),
        (NUMBER, TEXT, "[1]", "expected a number, found an array"),
        (BOOLEAN, TEXT, "1", "expected a boolean, found a number"),
        (TEXT, BOOLEAN, '"True"', "expected true or false, found something else"),
        (TEXT, BOOLEAN, '"1"', "expected true or false, found something else"),
        (NUMBER, BOOLEAN, "2", "expected 1 or 0, found something else"),
        (NUMBER, BOOLEAN, "1.0", "expected 1 or 0, found something else"),
    ],
)
def test_what_is_not_of_the_type_is_refused(
    source: Type, target: Type, value: str, reason: str
) -> None:
    with fails("/f", reason):
        spelt(Retype((), F, target, source), value, upwards=True)


CENTS = Scale((), F, 2, TEXT)
NUMBERS = Scale((), F, 2, NUMBER)


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
def test_scaled_both_ways(units: str, amount: str) -> None:
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
def test_other_spellings_of_an_amount(amount: str, units: str) -> None:
    assert spelt(CENTS, f'"{amount}"', upwards=True) == units
    assert spelt(NUMBERS, amount, upwards=True) == units


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ('"12.505"', "has more than 2 decimal places"),
        ('"1e-3"', "has more than 2 decimal places"),
        ('"twelve"', "expected an amount such as 12.50, found something else"),
        ('"12,50"', "expected an amount such as 12.50, found something else"),
        ('".5"', "expected an amount such as 12.50, found something else"),
        ('"1e9999"', "expected an amount such as 12.50, found something else"),
        ('"0x.50"', "expected an amount such as 12.50, found something else"),
        ('"xe5"', "expected an amount such as 12.50, found something else"),
        ("12.50", "expected a string, found a number"),
    ],
)
def test_an_amount_that_is_none(value: str, reason: str) -> None:
    with fails("/f", reason):
        spelt(CENTS, value, upwards=True)


@pytest.mark.parametrize("units", ["12.5", "1e3", "0.0"])
def test_units_that_are_not_whole(units: str) -> None:
    with fails("/f", "expected a whole number, found a fraction or an exponent"):
        spelt(CENTS, units, upwards=False)
    with pytest.raises(ValueError, match="expected a whole number"):
        CENTS.amount(units)


def test_units_that_are_no_number() -> None:
    with fails("/f", "expected a number, found a string"):
        spelt(CENTS, '"1250"', upwards=False)


@pytest.mark.parametrize(
    "change", [Retype((), ("m", "f"), TEXT, NUMBER), Scale((), ("m", "f"), 2, TEXT)]
)
@pytest.mark.parametrize("document", [{}, {"m": None}, {"m": {}}])
def test_what_is_absent_stays_absent(change: Change, document: Json) -> None:
    assert up(change, document) == down(change, document) == document


@LAW
@given(st.integers(), st.integers(1, 18))
def test_scaling_is_exact(units: int, places: int) -> None:
    change = Scale((), F, places, TEXT)
    older = down(change, {"f": units})
    assert isinstance(older, dict)
    assert Decimal(older["f"]).as_tuple().exponent == -places
    assert Decimal(older["f"]) * 10**places == units or abs(units) > 10**28
    assert up(change, older) == {"f": units}


@LAW
@given(
    st.from_regex(r"-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,4})?", fullmatch=True)
)
def test_a_number_is_its_text(digits: str) -> None:
    change = Retype((), F, NUMBER, TEXT)
    assert spelt(change, digits, upwards=False) == f'"{digits}"'
    assert spelt(change, f'"{digits}"', upwards=True) == digits


def test_texts_are_written_as_the_other_type() -> None:
    assert retyping(BOOLEAN, NUMBER)("true") == "1"
    assert retyping(NUMBER, BOOLEAN)("0") == "false"
    assert retyping(BOOLEAN, TEXT)("true") == "true"
    assert (CENTS.units("1.5"), CENTS.amount("150")) == ("150", "1.50")


def test_plain_numbers() -> None:
    change = Retype((), F, TEXT, NUMBER)
    assert up(change, {"f": 12}, PLAIN) == {"f": "12"}
    assert down(change, {"f": "12.50"}) == {"f": Decimal("12.50")}
