"""Elements: a change of one value is made to every element of an array of scalars."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.conversion.change import ELEMENT, Elements
from gateway.conversion.changes.type import Retype
from gateway.conversion.field_path import Keys
from gateway.conversion.scalars import Type
from tests.gateway.conversion.documents import Json, both, down, fails, up
from tests.gateway.world import LAW

TO_TEXT = Retype((), ELEMENT, Type.NUMBER, Type.TEXT)


def elements(array: Keys = ("a",), depth: int = 1, scopes: tuple[Keys, ...] = ()) -> Elements:
    """Declare that the older version has texts where the newer one has numbers."""
    return Elements(scopes, array, depth, TO_TEXT)


@pytest.mark.parametrize(
    ("change", "newer", "older"),
    [
        (elements(), {"a": [1, None, 2]}, {"a": ["1", None, "2"]}),
        (elements(), {"a": []}, {"a": []}),
        (elements(("m", "a")), {"m": {"a": [1]}}, {"m": {"a": ["1"]}}),
        (elements(depth=0), {"a": {"x": 1, "y": None}}, {"a": {"x": "1", "y": None}}),
        (elements(depth=0), {"a": None}, {"a": None}),
        (elements(depth=2), {"a": [[1], [], None]}, {"a": [["1"], [], None]}),
        (elements((), depth=0), {"a": 1, "b": None}, {"a": "1", "b": None}),
        (Elements((), ("a",), 0, elements(ELEMENT)), {"a": {"x": [1]}}, {"a": {"x": ["1"]}}),
        (
            Elements((), ("a",), 1, elements(ELEMENT, depth=0)),
            {"a": [{"x": 1}, None]},
            {"a": [{"x": "1"}, None]},
        ),
        (
            elements(("b",), scopes=(("a",),)),
            {"a": [{"b": [1]}, {"b": None}, {}, None]},
            {"a": [{"b": ["1"]}, {"b": None}, {}, None]},
        ),
    ],
)
def test_both_ways(change: Elements, newer: Json, older: Json) -> None:
    assert both(change, newer, upwards=False) == older
    assert both(change, older, upwards=True) == newer


@pytest.mark.parametrize("document", [{}, {"m": {}}, {"m": None}, {"m": {"a": None}}])
def test_what_is_absent_stays_absent(document: Json) -> None:
    change = elements(("m", "a"))
    assert up(change, document) == down(change, document) == document


def test_what_is_no_array_is_refused() -> None:
    with fails("/a", "expected an array, found a number"):
        down(elements(), {"a": 1})
    with fails("/a/1", "expected an array, found a number"):
        down(elements(depth=2), {"a": [[], 1]})


def test_an_element_is_refused_at_its_place() -> None:
    with fails("/b", "expected a number, found a string"):
        down(elements((), depth=0), {"a": 1, "b": "2"})
    with fails("/a/x/1", "expected a number, found a string"):
        down(Elements((), ("a",), 0, elements(ELEMENT)), {"a": {"x": [1, "2"]}})
    with fails("/a/1", "expected a number, found a string"):
        down(elements(), {"a": [1, "2"]})
    with fails("/a/0/1", "expected a number, found an object"):
        down(elements(depth=2), {"a": [[1, {}]]})


def test_in_a_patch_request_an_array_is_whole() -> None:
    assert elements().for_patch() == elements()


@LAW
@given(st.lists(st.integers() | st.none()))
def test_there_and_back(values: list[int | None]) -> None:
    document = {"a": values, "x": 1}
    assert up(elements(), down(elements(), document)) == document


def test_members_that_do_not_fit() -> None:
    members = elements(("m", "a"), 0)
    with fails("/m/a/x", "expected a number, found a string"):
        down(members, {"m": {"a": {"y": 1, "x": "2"}}})
    with fails("/m/a", "expected an object, found an array"):
        down(members, {"m": {"a": [1]}})
    assert members.origin(("m", "a", "x"), upwards=True) == ("m", "a", "x")
