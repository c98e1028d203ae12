"""Affix: a value that has a different prefix and suffix in each version."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.conversion.change import Change
from gateway.conversion.changes.affix import rewrite_affixes
from gateway.conversion.changes.change_section import FormWays
from gateway.conversion.field_path import Keys
from gateway.conversion.scalars import Type
from tests.gateway.conversion.documents import Json, down, fails, spelt, up
from tests.gateway.world import LAW

Affix = tuple[str, str]
BARE: Affix = ("", "")


def affix(field: Keys, newer: Affix, older: Affix, kind: Type = Type.TEXT) -> Change:
    to_newer, to_older = rewrite_affixes(*older, *newer, kind), rewrite_affixes(*newer, *older)
    return FormWays(to_newer, to_older, kind).change((), field)


IDS = affix(("f",), BARE, ("E", ""), Type.NUMBER)
NAMES = affix(("f",), ("cus_", ""), ("<", ">"))


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
def test_the_prefix_and_suffix_are_replaced_in_both_directions(
    change: Change, newer: str, older: str
) -> None:
    assert spelt(change, newer, upwards=False) == older
    assert spelt(change, older, upwards=True) == newer


@pytest.mark.parametrize("document", [{}, {"m": {}}, {"m": None}])
def test_affix_leaves_an_absent_value_absent(document: Json) -> None:
    change = affix(("m", "f"), BARE, ("E", ""), Type.NUMBER)
    assert up(change, document) == down(change, document) == document


@pytest.mark.parametrize("value", ["12", "<", ">", "<a", "a>", "", "><"])
def test_a_value_without_the_declared_prefix_or_suffix_is_refused(value: str) -> None:
    with fails("/f", "expected a string such as <12>, found another"):
        up(NAMES, {"f": value})


@pytest.mark.parametrize("value", ["E", "E012", "EE1", "E 1", "Ex"])
def test_a_string_without_a_number_between_its_affixes_is_refused(value: str) -> None:
    with fails("/f", "expected a number between the prefix and suffix, found a string"):
        up(IDS, {"f": value})


@LAW
@given(st.text(), st.text(max_size=3), st.text(max_size=3))
def test_affix_survives_a_round_trip(bare: str, prefix: str, suffix: str) -> None:
    change = affix(("f",), BARE, (prefix, suffix))
    older = down(change, {"f": bare})
    assert older == {"f": prefix + bare + suffix}
    assert up(change, older) == {"f": bare}
