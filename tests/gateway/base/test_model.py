"""Types that the models share: numbers as strings, units, and one value or a pair."""

from typing import Annotated, Any

import pytest
from pydantic import TypeAdapter, ValidationError

from gateway.base.model import (
    PATTERN_MESSAGES,
    NumberText,
    OneOrPair,
    PositiveInt,
    Seconds,
    UnitText,
    matching,
)

Percents = OneOrPair[Annotated[float, NumberText]]
Share = Annotated[str, matching("^[0-9]+%$", "not a share"), UnitText]


@pytest.mark.parametrize(
    ("kind", "value", "taken"),
    [
        (Seconds, "2.5", 2.5),
        (Seconds, 3, 3.0),
        (PositiveInt, "7", 7),
        (Percents, "5", 5.0),
        (Percents, ["1", 50], (1.0, 50.0)),
        (Share, "5%", "5%"),
    ],
)
def test_a_number_may_be_a_string_from_a_variable(kind: Any, value: object, taken: object) -> None:
    assert TypeAdapter(kind).validate_python(value) == taken


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        (Seconds, "5s", "expected a number of seconds"),
        (Seconds, True, "expected a number of seconds"),
        (Seconds, None, "expected a number of seconds"),
        (Seconds, 0, "greater than 0"),
        (PositiveInt, "1e3", "valid integer"),
        (PositiveInt, "٣", "valid integer"),
        (Percents, (1,), "Field required"),
        (Share, 5, "match pattern"),
        (Share, [5], "valid string"),
    ],
)
def test_a_value_of_another_type_is_refused(kind: Any, value: object, message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        TypeAdapter(kind).validate_python(value, strict=True)


def test_the_message_of_a_pattern_is_stored() -> None:
    assert PATTERN_MESSAGES["^[0-9]+%$"] == "not a share"
