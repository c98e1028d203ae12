"""Documents: access to values at a location, and the comparison of numbers."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.document import MISSING, PLAIN, Missing, Number, get, kind, put, take
from gateway.conversion.field_path import Keys
from gateway.conversion.scalars import is_same_number
from tests.gateway.conversion.documents import Json, jsons, untouched
from tests.gateway.world import LAW


class TestPlain:
    def test_opening_a_plain_array_or_object_returns_a_copy(self) -> None:
        for value in ({"a": [1]}, [[1]]):
            opened, parsed = PLAIN.open(value), PLAIN.parse(value)
            assert opened == parsed == value
            assert opened is not value
            assert PLAIN.take(value) is PLAIN.close(value) is value


def test_missing_is_not_a_json_value() -> None:
    assert isinstance(MISSING, Missing)
    with pytest.raises(TypeError):
        json.dumps(MISSING)


paths = st.lists(st.sampled_from(["x", "y"]), min_size=1, max_size=3).map(tuple)


objects = st.dictionaries(st.sampled_from("xyz"), jsons, max_size=3)


@LAW
@given(objects, paths, st.integers())
def test_put_makes_a_value_available_to_get_and_take_removes_it(
    document: Json, path: Keys, value: int
) -> None:
    with untouched(document):
        fields = dict(document)
        try:
            put(fields, path, value, PLAIN)
        except ConversionError as error:
            place = get(dict(document), tuple(error.pointer.split("/")[1:]), PLAIN)
            assert not isinstance(place, dict)
            return
        assert get(fields, path, PLAIN) == Number(str(value))
        assert take(fields, path, PLAIN) == value
        assert get(fields, path, PLAIN) is MISSING
        if path[0] not in document:
            assert fields == document


@LAW
@given(objects, paths)
def test_get_fails_only_if_a_value_on_the_path_is_not_an_object(document: Json, path: Keys) -> None:
    try:
        value = get(dict(document), path, PLAIN)
    except ConversionError as error:
        place = get(dict(document), tuple(error.pointer.split("/")[1:]), PLAIN)
        assert not isinstance(place, dict)
        assert place is not None
    else:
        assert value is MISSING or kind(value)


HUGE = "1e99999999999999999999"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("1", "1", True),
        ("1", "1.0", True),
        ("100", "1e2", True),
        ("0", "-0.0", True),
        ("1", "2", False),
        ("1", HUGE, False),
        (HUGE, HUGE, True),
    ],
)
def test_numbers_are_compared_by_value_and_not_by_spelling(
    one: str, other: str, same: bool
) -> None:
    assert is_same_number(one, other) is same
    assert is_same_number(other, one) is same
