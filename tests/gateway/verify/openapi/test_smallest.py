"""Shrinking of failing examples, and the values on which a failure depends."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.conversion.document import kind
from gateway.verify.openapi.examples import decisive, smallest


@pytest.mark.parametrize(
    ("document", "still", "expected"),
    [
        ({"a": 1, "b": [1, {"c": "xyz"}]}, lambda d: "b" in d, {"b": []}),
        ([5, 4, 3], lambda d: len(d) > 1, [0, 0]),
        ("hello", lambda d: len(d) > 2, "aaa"),
        ("7-B", lambda d: len(d) == 3 and d[1] == "-" and d[0].isdigit(), "0-a"),
        (1000, lambda d: d > 36, 37),
        (-1000, lambda d: d < -36, -37),
        (2.5, lambda d: d > 1, 2),
        (2.5, lambda d: d != int(d), 2.5),
        (4.0, lambda d: True, 0),
        (True, lambda d: True, False),
        (None, lambda d: True, None),
    ],
)
def test_the_smallest_failing_document_is_found(
    document: object, still: Callable[[object], bool], expected: object
) -> None:
    found = smallest(document, still)
    assert found == expected
    assert type(found) is type(expected)


ANY = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(derandomize=True, max_examples=60)
@given(ANY)
def test_a_document_shrinks_to_the_empty_value_of_its_type(document: object) -> None:
    found = smallest(document, lambda other: kind(other) == kind(document))
    assert not found


@pytest.mark.parametrize(
    ("document", "mended", "expected"),
    [
        ({"a": 1, "b": [2, {"c~/": 3}]}, lambda d: d["b"][1]["c~/"] is None, ("/b/1/c~0~1",)),
        ({"a": [], "b": {}}, lambda d: None in d.values(), ("/a", "/b")),
        ({"a": None}, lambda d: d["a"] == 0, ("/a",)),
        ({"a": 1}, lambda _: False, ()),
        (7, lambda d: d is None, ("",)),
    ],
)
def test_the_values_that_a_failure_depends_on_are_found(
    document: object, mended: Callable[[object], bool], expected: tuple[str, ...]
) -> None:
    assert decisive(document, mended) == expected
