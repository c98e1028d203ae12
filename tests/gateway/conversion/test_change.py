"""Changes: properties for arbitrary documents, and changes of elements and members."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.conversion.change import ELEMENT, Change, elements, inverse
from gateway.conversion.changes.type import retype
from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.document import PLAIN
from gateway.conversion.field_path import Keys
from gateway.conversion.scalars import Type
from tests.gateway.conversion.documents import (
    SEALED,
    Json,
    default_at,
    down,
    fails,
    join_at,
    seal,
    text,
    unsealed,
    untouched,
    up,
)
from tests.gateway.world import LAW

# Any JSON value. Keys that changes name may also be at the wrong locations.
KEYS = ["name", "first", "last", "items", "x"]
anything: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers(0, 9) | st.sampled_from(["", " ", "B", "B C"]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4)
    ),
    max_leaves=8,
)
CHANGES: list[Change] = [
    join_at("name.first name.last", "name"),
    join_at("first last", "name"),
    join_at("items[].name.first items[].name.last", "items[].name"),
    join_at("items[][].first items[][].last", "items[][].name"),
    join_at("items[].items[].first items[].items[].last", "items[].items[].name"),
    inverse(join_at("first name.last", "name", "-")),
    default_at("first.last", {"name": 1}),
    default_at("items[].name", None),
    default_at("items[].items[].first.last", 1),
]


@LAW
@given(anything, st.sampled_from(CHANGES), st.booleans())
def test_any_document_is_either_converted_completely_or_refused_without_modification(
    document: Json, change: Change, upwards: bool
) -> None:
    way = up if upwards else down
    outcomes: list[Json] = []
    for value, form in ((document, PLAIN), (seal(document), SEALED)):
        with untouched(document):
            try:
                outcomes.append(text(unsealed(way(change, value, form))))
            except ConversionError as error:
                outcomes.append((error.pointer, error.reason))
    assert outcomes[0] == outcomes[1]


TO_TEXT = retype((), ELEMENT, Type.NUMBER, Type.TEXT)


def elements_of(array: Keys = ("a",), depth: int = 1, scopes: tuple[Keys, ...] = ()) -> Change:
    """Return a change of elements: numbers in the newer version, strings in the older version."""
    return elements(scopes, array, depth, TO_TEXT)


def test_the_error_for_an_array_element_names_the_location_of_the_element() -> None:
    with fails("/b", "expected a number, found a string"):
        down(elements_of((), depth=0), {"a": 1, "b": "2"})
    with fails("/a/x/1", "expected a number, found a string"):
        down(elements((), ("a",), 0, elements_of(ELEMENT)), {"a": {"x": [1, "2"]}})
    with fails("/a/1", "expected a number, found a string"):
        down(elements_of(), {"a": [1, "2"]})
    with fails("/a/0/1", "expected a number, found an object"):
        down(elements_of(depth=2), {"a": [[1, {}]]})


def test_the_error_for_an_object_member_names_the_location_of_the_member() -> None:
    members = elements_of(("m", "a"), 0)
    with fails("/m/a/x", "expected a number, found a string"):
        down(members, {"m": {"a": {"y": 1, "x": "2"}}})
    with fails("/m/a", "expected an object, found an array"):
        down(members, {"m": {"a": [1]}})
    assert members.up.origin(("m", "a", "x")) == ("m", "a", "x")
