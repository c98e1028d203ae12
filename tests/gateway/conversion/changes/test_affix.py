"""Affix: the same value with another prefix and suffix."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.conversion.changes.affix import AffixForm
from gateway.conversion.changes.value_rewrite import FormRewriting, ValueRewrite
from gateway.conversion.field_path import Keys
from gateway.conversion.scalars import Type
from tests.gateway.conversion.documents import Json, down, fails, spelt, up
from tests.gateway.world import LAW

NUMBER = AffixForm(type=Type.NUMBER)


def affix(field: Keys, newer: AffixForm, older: AffixForm) -> ValueRewrite:
    """Declare the two forms of a field."""
    to_newer, to_older = FormRewriting(older, newer), FormRewriting(newer, older)
    return ValueRewrite((), field, to_newer, to_older, newer.type, older.type)


IDS = affix(("f",), NUMBER, AffixForm("E"))
NAMES = affix(("f",), AffixForm("cus_"), AffixForm("<", ">"))


@pytest.mark.parametrize(
    ("change", "newer", "older"),
    [
        (IDS, "12", '"E12"'),
        (IDS, "-1.50e3", '"E-1.50e3"'),
        (IDS, "12345678901234567890", '"E12345678901234567890"'),
        (IDS, "null", "null"),
        (NAMES, '"cus_a"', '"<a>"'),
        (NAMES, '"cus_"', '"<>"'),
    ],
)
def test_both_ways(change: ValueRewrite, newer: str, older: str) -> None:
    assert spelt(change, newer, upwards=False) == older
    assert spelt(change, older, upwards=True) == newer


@pytest.mark.parametrize("document", [{}, {"m": {}}, {"m": None}])
def test_what_is_absent_stays_absent(document: Json) -> None:
    change = affix(("m", "f"), NUMBER, AffixForm("E"))
    assert up(change, document) == down(change, document) == document


@pytest.mark.parametrize("value", ["12", "<", ">", "<a", "a>", "", "><"])
def test_what_is_not_written_so_is_refused(value: str) -> None:
    with fails("/f", "expected a text such as <12>, found another"):
        up(NAMES, {"f": value})


@pytest.mark.parametrize("value", ["E", "E012", "EE1", "E 1", "Ex"])
def test_what_is_no_number_is_refused(value: str) -> None:
    with fails("/f", "expected a number within the prefix and suffix, found a text"):
        up(IDS, {"f": value})


@LAW
@given(st.text(), st.text(max_size=3), st.text(max_size=3))
def test_there_and_back(bare: str, prefix: str, suffix: str) -> None:
    change = affix(("f",), AffixForm(), AffixForm(prefix, suffix))
    older = down(change, {"f": bare})
    assert older == {"f": prefix + bare + suffix}
    assert up(change, older) == {"f": bare}
