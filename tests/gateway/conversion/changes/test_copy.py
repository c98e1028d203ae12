"""Copy: the older version repeats a field under another name."""

import pytest

from gateway.conversion.change import inverse
from gateway.conversion.changes.copy import Winner, copy
from tests.gateway.conversion.documents import Json, both, down, fails, up

COPY = copy((("i",),), ("total",), ("amount",))


@pytest.mark.parametrize("value", [5, 1.50, None, {"a": [1]}])
def test_the_older_version_has_the_value_under_both_names(value: Json) -> None:
    newer, older = {"i": [{"total": value}]}, {"i": [{"total": value, "amount": value}]}
    assert both(COPY, newer, upwards=False) == older
    assert both(COPY, older, upwards=True) == newer
    assert both(inverse(COPY), newer, upwards=True) == older


@pytest.mark.parametrize("older", [{"total": 5}, {"amount": 5}, {"total": 5, "amount": 5.0}])
def test_one_of_the_two_names_is_enough_in_a_request(older: Json) -> None:
    assert both(COPY, {"i": [older]}, upwards=True) == {"i": [{"total": 5}]}


@pytest.mark.parametrize(("unequal", "total"), [("field", 5), ("to", 6)])
def test_the_setting_decides_which_of_two_different_values_is_used(
    unequal: Winner, total: int
) -> None:
    change = copy((), ("total",), ("amount",), unequal)
    assert up(change, {"total": 5, "amount": 6}) == {"total": total}


def test_two_different_values_are_refused_by_default() -> None:
    with fails(
        "/i/0/amount", "differs from the field that it repeats; send equal values, or one of them"
    ):
        up(COPY, {"i": [{"total": 5, "amount": 6}]})


def test_a_copy_does_not_overwrite_a_field() -> None:
    with fails("/amount", "already exists, and /total would become it"):
        down(copy((), ("total",), ("amount",)), {"total": 5, "amount": 5})


def test_a_document_without_the_field_is_unchanged() -> None:
    assert both(COPY, {"i": [{"other": 1}]}, upwards=False) == {"i": [{"other": 1}]}
    assert both(COPY, {"i": [{"other": 1}]}, upwards=True) == {"i": [{"other": 1}]}
