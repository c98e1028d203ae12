"""Value rewrite: the same value in another form, such as a word in another case."""

import pytest

from gateway.conversion.changes.case import CaseRewriting, WordCase
from gateway.conversion.changes.value_rewrite import ValueRewrite
from tests.gateway.conversion.documents import Json, both, down, fails, up

CAMEL, UPPER = WordCase.CAMEL, WordCase.UPPER_SNAKE
CHANGE = ValueRewrite((), ("m", "f"), CaseRewriting(UPPER, CAMEL), CaseRewriting(CAMEL, UPPER))


@pytest.mark.parametrize(
    ("newer", "older"), [("inTransit", "IN_TRANSIT"), ("n/a", "n/a"), (None, None)]
)
def test_both_ways(newer: Json, older: Json) -> None:
    assert both(CHANGE, {"m": {"f": newer}}, upwards=False) == {"m": {"f": older}}
    assert both(CHANGE, {"m": {"f": older}}, upwards=True) == {"m": {"f": newer}}


@pytest.mark.parametrize("document", [{}, {"m": {}}, {"m": None}])
def test_what_is_absent_stays_absent(document: Json) -> None:
    assert up(CHANGE, document) == down(CHANGE, document) == document


def test_another_case_or_type_is_refused() -> None:
    with fails("/m/f", "expected camel case, found upper_snake case"):
        down(CHANGE, {"m": {"f": "IN_TRANSIT"}})
    with fails("/m/f", "expected a string, found a number"):
        down(CHANGE, {"m": {"f": 1}})
