"""Members of an object with the same key: each stays, unless a change names one of them."""

import pytest

from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.formats.original_text import (
    RepeatedKey,
    RepeatedValue,
    check_repeated,
    object_of,
    repeated,
)


def test_members_stay_in_their_order() -> None:
    fields = object_of([("a", 1), ("b", 2), ("a", 3)])
    assert [(str(key), value) for key, value in fields.items()] == [
        ("a", RepeatedValue(1, 2)),
        ("b", 2),
        ("a", RepeatedValue(3, 2)),
    ]
    check_repeated(fields)


def test_a_repeated_key_is_equal_to_itself_alone() -> None:
    key = RepeatedKey("a")
    assert key == key
    assert key not in ("a", RepeatedKey("a"))
    assert {"a": 1, key: 2}[key] == 2


def test_a_change_cannot_move_or_remove_one_of_several() -> None:
    for name in ("c", "b", None):
        fields = object_of([("a", 1), ("b", 2), ("a", 3)])
        value = fields.pop("a")
        if name is not None:
            fields[name] = value
        with pytest.raises(ConversionError) as caught:
            check_repeated(fields)
        assert str(caught.value) == str(repeated())
