"""Keys of a map: one version has other words for them, or a prefix or suffix."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.conversion.change import Change
from gateway.conversion.changes.affix import rewrite_affixes
from gateway.conversion.changes.keys import replace_keys, rewrite_keys
from gateway.conversion.conversion_error import Beside, ConversionError
from tests.gateway.conversion.documents import Json, both, down, fails, up
from tests.gateway.world import LAW

EUROS, CODES = {"euro": "EUR", "dollar": "USD"}, {"EUR": "euro", "USD": "dollar"}
WORDS = rewrite_keys(
    (("i",),), ("m", "prices"), replace_keys(EUROS, CODES), replace_keys(CODES, EUROS)
)
PREFIX = rewrite_keys(
    (), ("a",), rewrite_affixes("cur_", "!", "", ""), rewrite_affixes("", "", "cur_", "!")
)
SWAPPED = replace_keys({"a": "b", "b": "a"}, {"a": "b", "b": "a"})
SWAP = rewrite_keys((), ("a",), SWAPPED, SWAPPED)


@pytest.mark.parametrize(
    ("newer", "older"),
    [
        (
            {"m": {"prices": {"GBP": 0, "USD": {"EUR": 1}}}},
            {"m": {"prices": {"GBP": 0, "dollar": {"EUR": 1}}}},
        ),
        ({"m": {"prices": {}}}, {"m": {"prices": {}}}),
        ({"m": {"prices": None}}, {"m": {"prices": None}}),
        ({"m": {}}, {"m": {}}),
        ({"m": None}, {"m": None}),
        (None, None),
    ],
)
def test_keys_are_translated_by_the_declared_values(newer: Json, older: Json) -> None:
    assert both(WORDS, {"i": [newer]}, upwards=False) == {"i": [older]}
    assert both(WORDS, {"i": [older]}, upwards=True) == {"i": [newer]}


def test_keys_get_a_prefix_and_a_suffix() -> None:
    newer, older = {"a": {"EUR": 1.50, "": None}}, {"a": {"cur_EUR!": 1.50, "cur_!": None}}
    assert both(PREFIX, newer, upwards=False) == older
    assert both(PREFIX, older, upwards=True) == newer


def test_two_keys_can_be_exchanged_with_each_other() -> None:
    assert both(SWAP, {"a": {"a": 1, "b": 2}}, upwards=True) == {"a": {"b": 1, "a": 2}}


def test_translated_keys_keep_their_order() -> None:
    changed = both(PREFIX, {"a": {"z": 1, "b": 2, "a": 3}}, upwards=False)
    assert isinstance(changed, dict)
    assert list(changed["a"]) == ["cur_z!", "cur_b!", "cur_a!"]


def test_a_key_that_could_not_be_restored_is_refused() -> None:
    with fails(
        "/i/0/m/prices/euro", "the key: is the new name of another key in the other version"
    ):
        down(WORDS, {"i": [{"m": {"prices": {"euro": 1}}}]})
    with fails("/a/EUR", "the key: expected a string such as cur_12!, found another"):
        up(PREFIX, {"a": {"EUR": 1}})


def test_two_keys_with_the_same_translation_are_refused() -> None:
    one = replace_keys({"a": "c", "b": "c"}, {})
    with fails("/a/b", "becomes 'c', which already exists"):
        down(rewrite_keys((), ("a",), one, one), {"a": {"a": 1, "b": 2}})


@pytest.mark.parametrize(
    ("value", "kind"), [(1, "a number"), ("x", "a string"), ([{}], "an array")]
)
def test_a_value_that_is_not_an_object_is_refused(value: Json, kind: str) -> None:
    with fails("/a", f"expected an object, found {kind}"):
        up(PREFIX, {"a": value})


maps = st.dictionaries(
    st.sampled_from(["EUR", "USD", "euro", "dollar", "GBP", "cur_EUR!", "cur_!"])
    | st.text(max_size=3),
    st.integers(),
)


@LAW
@given(maps, st.sampled_from([WORDS, PREFIX]), st.booleans())
def test_translated_keys_survive_a_round_trip(
    value: dict[str, int], change: Change, upwards: bool
) -> None:
    document: Json = {"a": value} if change is PREFIX else {"i": [{"m": {"prices": value}}]}
    try:
        other = both(change, document, upwards)
    except ConversionError:
        return
    assert both(change, other, not upwards) == document


def test_the_error_for_a_member_names_its_original_key() -> None:
    assert PREFIX.up.origin(("a", "x", 0)) == ("a", "cur_x!", 0)
    assert PREFIX.down.origin(("a", "cur_x!")) == ("a", "x")
    assert PREFIX.down.origin(("a", "x")) == ("a",)
    assert PREFIX.up.origin(("a",)) == ("a",)
    assert PREFIX.up.origin(("b", "x")) == ("b", "x")
    assert PREFIX.up.origin(Beside("path")) == Beside("path")
