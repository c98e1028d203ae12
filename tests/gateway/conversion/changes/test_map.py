"""Map: the older version has other words for the same values."""

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.conversion.change import Change
from gateway.conversion.changes.map import Otherwise, Unknown, map_words
from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.document import PLAIN, JsonForm, JsonObject, Number
from gateway.conversion.scalars import Scalar
from tests.gateway.calls import calls
from tests.gateway.conversion.documents import Json, both, down, fails, jsons, up
from tests.gateway.world import LAW


def mapped(
    older: Mapping[Scalar, Scalar], back: Otherwise = Unknown.REFUSE, **unknown: Otherwise
) -> Change:
    newer = {word: known for known, word in older.items()}
    return map_words((), ("m", "f"), older, newer, unknown_back=back, **unknown)


WORDS = mapped({"OPEN": "open", "DONE": "done", "ODD": Number("1"), "YES": True})
KEPT = mapped({"OPEN": "open"}, Unknown.KEEP, unknown=Unknown.KEEP)
FOLDED = mapped({"OPEN": "open"}, "OTHER", unknown=Number("0"))


class TestMap:
    @pytest.mark.parametrize(
        ("newer", "older"), [("OPEN", "open"), ("ODD", 1), ("YES", True), (None, None)]
    )
    def test_values_are_mapped_in_both_directions(self, newer: Json, older: Json) -> None:
        assert both(WORDS, {"m": {"x": 1, "f": newer, "y": 2}}, upwards=False) == {
            "m": {"x": 1, "f": older, "y": 2}
        }
        assert both(WORDS, {"m": {"f": older}}, upwards=True) == {"m": {"f": newer}}

    @pytest.mark.parametrize("document", [{}, {"m": {}}, {"m": None}, {"m": {"x": 1}}])
    @pytest.mark.parametrize("upwards", [False, True])
    def test_map_leaves_an_absent_value_absent(self, document: Json, upwards: bool) -> None:
        assert both(WORDS, document, upwards) == document

    @pytest.mark.parametrize(
        ("value", "kind"),
        [
            *(("open", "a string"), ("", "a string"), (0, "a number"), (1.5, "a number")),
            *((False, "a boolean"), ([], "an array"), ({"OPEN": 1}, "an object")),
        ],
    )
    def test_a_value_that_is_not_in_the_map_is_refused_by_default(
        self, value: Json, kind: str
    ) -> None:
        with fails("/m/f", f"{kind} other than OPEN, DONE, ODD, YES"):
            down(WORDS, {"m": {"f": value}})

    @pytest.mark.parametrize("number", [1, 1.0, Decimal("1.00"), Decimal("10e-1")])
    def test_a_number_matches_the_map_in_any_spelling(self, number: Json) -> None:
        assert up(WORDS, {"m": {"f": number}}) == {"m": {"f": "ODD"}}

    def test_a_boolean_a_number_and_a_string_are_different_map_values(self) -> None:
        assert up(WORDS, {"m": {"f": True}}) == {"m": {"f": "YES"}}
        assert up(WORDS, {"m": {"f": 1}}) == {"m": {"f": "ODD"}}
        with fails("/m/f", "a string other than open, done, 1, true"):
            up(WORDS, {"m": {"f": "1"}})

    @pytest.mark.parametrize("value", ["x", 7, 0.10, False, [1], {"a": 1}])
    def test_an_unmapped_value_is_unchanged_if_configured(self, value: Json) -> None:
        for upwards in (False, True):
            assert both(KEPT, {"m": {"f": value}}, upwards) == {"m": {"f": value}}

    @pytest.mark.parametrize("value", ["x", 7, False, [1]])
    def test_an_unmapped_value_becomes_the_configured_default(self, value: Json) -> None:
        assert both(FOLDED, {"m": {"f": value}}, upwards=False) == {"m": {"f": 0}}
        assert both(FOLDED, {"m": {"f": value}}, upwards=True) == {"m": {"f": "OTHER"}}


@LAW
@given(st.sampled_from(["OPEN", "DONE", "ODD", "YES", None]), jsons)
def test_a_one_to_one_map_survives_a_round_trip(word: Json, other: Json) -> None:
    document = {"x": other, "m": {"f": word}}
    assert up(WORDS, down(WORDS, document)) == document


TEXTS = replace(PLAIN, typed=False)


@pytest.mark.parametrize(("newer", "older"), [("OPEN", "open"), ("ODD", "1"), ("YES", "true")])
def test_map_values_match_form_fields_as_strings(newer: str, older: str) -> None:
    fields: JsonObject = {"m": {"f": older}}
    WORDS.up.step(fields, TEXTS)
    assert fields == {"m": {"f": newer}}


def test_an_unmapped_form_value_is_refused() -> None:
    with pytest.raises(ConversionError, match="/m/f: a string other than "):
        WORDS.up.step({"m": {"f": "false"}}, TEXTS)


@pytest.mark.parametrize("number", ["1e9999999999999999999", "7"])
def test_a_map_value_may_be_a_number_too_large_for_python(number: str) -> None:
    """Such a number matches only in the same spelling."""
    change = mapped({"HUGE": Number("1e9999999999999999999"), "NULL": None})
    fields: JsonObject = {"m": {"f": Number(number)}}
    form = replace(PLAIN, open=lambda value: value)
    if number == "7":
        with pytest.raises(ConversionError, match="a number other than "):
            change.up.step(fields, form)
    else:
        change.up.step(fields, form)
        assert fields == {"m": {"f": "HUGE"}}


@pytest.mark.parametrize(("value", "form"), [(7, PLAIN), ("x", TEXTS)], ids=["number", "text"])
def test_a_lookup_of_an_unmapped_value_does_not_depend_on_the_size_of_the_map(
    value: Json, form: JsonForm
) -> None:
    """A body may contain a million unmapped values."""

    def cost(size: int) -> int:
        change = mapped({str(i): Number(f"1{i}") for i in range(size)}, Unknown.KEEP)
        return calls(lambda: change.up.step({"m": {"f": value}}, form))

    assert cost(1000) == cost(1) > 0
