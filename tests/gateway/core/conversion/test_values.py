"""Maps and lists: values said in other words, or wrapped."""

import json
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.conversion.change import Change, Inverse
from gateway.core.conversion.document import Number
from gateway.core.conversion.values import Map, Otherwise, Scalar, Unknown, Wrap
from tests.gateway.core.conversion.documents import (
    SEALED,
    Json,
    down,
    fails,
    jsons,
    seal,
    unsealed,
    untouched,
    up,
)
from tests.gateway.core.world import LAW


def mapped(
    older: Mapping[Scalar, Scalar], back: Otherwise = Unknown.REFUSE, **unknown: Otherwise
) -> Map:
    """Declare a map of `m.f`, one to one."""
    newer = {word: known for known, word in older.items()}
    return Map((), ("m", "f"), older, newer, unknown_back=back, **unknown)


WORDS = mapped({"OPEN": "open", "DONE": "done", "ODD": Number("1"), "YES": True})
KEPT = mapped({"OPEN": "open"}, Unknown.KEEP, unknown=Unknown.KEEP)
FOLDED = mapped({"OPEN": "open"}, "OTHER", unknown=Number("0"))


def both(change: Change, document: Json, upwards: bool) -> Json:
    """Convert a document, parsed and sealed, to the same."""
    way = up if upwards else down
    with untouched(document):
        result = way(change, document)
    assert json.dumps(unsealed(way(change, seal(document), SEALED))) == json.dumps(result)
    return result


class TestMap:
    """Each version has its words."""

    @pytest.mark.parametrize(
        ("newer", "older"),
        [("OPEN", "open"), ("ODD", 1), ("YES", True), (None, None)],
    )
    def test_both_ways(self, newer: Json, older: Json) -> None:
        assert both(WORDS, {"m": {"x": 1, "f": newer, "y": 2}}, upwards=False) == {
            "m": {"x": 1, "f": older, "y": 2}
        }
        assert both(WORDS, {"m": {"f": older}}, upwards=True) == {"m": {"f": newer}}

    @pytest.mark.parametrize("document", [{}, {"m": {}}, {"m": None}, {"m": {"x": 1}}])
    @pytest.mark.parametrize("upwards", [False, True])
    def test_what_is_absent_stays_absent(self, document: Json, upwards: bool) -> None:
        assert both(WORDS, document, upwards) == document

    @pytest.mark.parametrize(
        ("value", "kind"),
        [
            *(("open", "a string"), ("", "a string"), (0, "a number"), (1.5, "a number")),
            *((False, "a boolean"), ([], "an array"), ({"OPEN": 1}, "an object")),
        ],
    )
    def test_an_unknown_word_is_refused(self, value: Json, kind: str) -> None:
        with fails("/m/f", f"{kind} that is not in the map"):
            down(WORDS, {"m": {"f": value}})

    def test_true_is_no_1_and_1_no_text(self) -> None:
        assert up(WORDS, {"m": {"f": True}}) == {"m": {"f": "YES"}}
        assert up(WORDS, {"m": {"f": 1}}) == {"m": {"f": "ODD"}}
        with fails("/m/f", "a string that is not in the map"):
            up(WORDS, {"m": {"f": "1"}})

    @pytest.mark.parametrize("value", ["x", 7, 0.10, False, [1], {"a": 1}])
    def test_an_unknown_word_is_kept(self, value: Json) -> None:
        for upwards in (False, True):
            assert both(KEPT, {"m": {"f": value}}, upwards) == {"m": {"f": value}}

    @pytest.mark.parametrize("value", ["x", 7, False, [1]])
    def test_an_unknown_word_becomes_the_default(self, value: Json) -> None:
        assert both(FOLDED, {"m": {"f": value}}, upwards=False) == {"m": {"f": 0}}
        assert both(FOLDED, {"m": {"f": value}}, upwards=True) == {"m": {"f": "OTHER"}}


class TestWrap:
    """The older version has a list."""

    @pytest.mark.parametrize(
        ("newer", "older"), [(1, [1]), ({"a": [2]}, [{"a": [2]}]), ([1, 2], [[1, 2]]), (None, [])]
    )
    def test_both_ways(self, newer: Json, older: Json) -> None:
        change = Wrap((("i",),), ("f",))
        document = {"i": [{"x": 1, "f": newer, "y": 2}, {}]}
        wrapped = {"i": [{"x": 1, "f": older, "y": 2}, {}]}
        assert json.dumps(both(change, document, upwards=False)) == json.dumps(wrapped)
        assert json.dumps(both(change, wrapped, upwards=True)) == json.dumps(document)
        assert both(Inverse(change), document, upwards=True) == wrapped

    @pytest.mark.parametrize("upwards", [False, True])
    def test_what_is_absent_stays_absent(self, upwards: bool) -> None:
        assert both(Wrap((), ("m", "f")), {"m": None}, upwards) == {"m": None}

    def test_null_is_no_list(self) -> None:
        assert both(Wrap((), ("f",)), {"f": None}, upwards=True) == {"f": None}

    @pytest.mark.parametrize(("value", "kind"), [("x", "a string"), ({}, "an object")])
    def test_what_is_no_list_is_refused(self, value: Json, kind: str) -> None:
        with fails("/f", f"expected an array, found {kind}"):
            up(Wrap((), ("f",)), {"f": value})

    def test_several_are_cut_or_refused(self) -> None:
        assert both(Wrap((), ("f",)), {"f": [1, 2]}, upwards=True) == {"f": 1}
        with fails("/f", "an array of several elements"):
            up(Wrap((), ("f",), strict=True), {"f": [1, 2]})
        assert up(Wrap((), ("f",), strict=True), {"f": [1]}) == {"f": 1}


@LAW
@given(st.fixed_dictionaries({"x": jsons, "f": jsons, "y": jsons}))
def test_what_was_wrapped_is_unwrapped(document: Json) -> None:
    for strict in (False, True):
        change = Wrap((), ("f",), strict)
        assert json.dumps(up(change, down(change, document))) == json.dumps(document)


@LAW
@given(st.sampled_from(["OPEN", "DONE", "ODD", "YES", None]), jsons)
def test_a_map_one_to_one_loses_nothing(word: Json, other: Json) -> None:
    document = {"x": other, "m": {"f": word}}
    assert up(WORDS, down(WORDS, document)) == document
