"""The conversion of pydantic's errors to messages, tested with a nested model."""

from typing import Annotated, Self

import pytest
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from users_service.user import violations


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, alias_generator=to_camel)


def _capital(text: str) -> str:
    if not text[:1].isupper():
        raise PydanticCustomError("capital", "Start {what} with a capital.", {"what": "it"})
    return text


class Address(_Strict):
    city: Annotated[str, AfterValidator(_capital)]
    zip_code: str

    @model_validator(mode="after")
    def city_has_zip(self) -> Self:
        if self.city == "Ghosttown":
            raise ValueError("There is no such address.")
        return self


class Guest(_Strict):
    first_name: str
    pays: bool = False
    address: Address | None = None


class Booking(_Strict):
    nights: int = Field(ge=1)
    price: float = 0.0
    address: Address
    guests: list[Guest] = []
    notes: dict[str, str] = {}

    @model_validator(mode="after")
    def fits(self) -> Self:
        if len(self.guests) > 2:
            raise AssertionError("Too many guests for one booking.")
        return self


ADDRESS = {"city": "Rome", "zipCode": "00118"}


def _violations(value: object) -> dict[str, str]:
    with pytest.raises(ValidationError) as caught:
        Booking.model_validate(value)
    return violations(caught.value, "booking")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"nights": 1}, {"address": "Address is required."}),
        (
            {"address": {}},
            {
                "nights": "Nights is required.",
                "address.city": "City is required.",
                "address.zipCode": "Zip code is required.",
            },
        ),
        (
            {"nights": "1", "price": "1", "address": ADDRESS, "guests": {}, "notes": []},
            {
                "nights": "Input should be a valid integer",
                "price": "Input should be a valid number",
                "guests": "Input should be a valid list",
                "notes": "Input should be a valid dictionary",
            },
        ),
        (
            {"nights": 1, "address": {"city": "rome", "zipCode": 1}},
            {
                "address.city": "Start it with a capital.",
                "address.zipCode": "Zip code must be a string.",
            },
        ),
        (
            {
                "nights": 1,
                "address": ADDRESS,
                "guests": [{"firstName": "Ann"}, {"pays": 1}, 3, {"firstName": "B", "address": 1}],
            },
            {
                "guests.1.firstName": "First name is required.",
                "guests.1.pays": "Input should be a valid boolean",
                "guests.2": "Guests must be an object.",
                "guests.3.address": "Address must be an object.",
            },
        ),
    ],
)
def test_every_invalid_field_has_a_message_under_its_path(
    value: object, expected: dict[str, str]
) -> None:
    assert _violations(value) == expected


def test_a_violation_of_the_outermost_object_is_under_the_name_of_the_object() -> None:
    guests = [{"firstName": name} for name in ("Ann", "Bob", "Cem")]
    assert _violations({"nights": 1, "address": ADDRESS, "guests": guests}) == {
        "booking": "Too many guests for one booking."
    }


def test_a_violation_of_a_nested_object_is_under_the_path_of_the_object() -> None:
    ghosttown = {"city": "Ghosttown", "zipCode": "0"}
    guests = [{"firstName": "Ann"}, {"firstName": "Bob", "address": ghosttown}]
    assert _violations({"nights": True, "address": ghosttown, "guests": guests}) == {
        "nights": "Input should be a valid integer",
        "address": "There is no such address.",
        "guests.1.address": "There is no such address.",
    }


@pytest.mark.parametrize("value", [None, [], "text", 1])
def test_a_value_that_is_not_an_object_violates_the_whole(value: object) -> None:
    assert _violations(value) == {"booking": "Booking must be an object."}


def test_other_violations_have_the_message_of_pydantic() -> None:
    found = _violations({"nights": 0, "address": ADDRESS})
    assert found == {"nights": "Input should be greater than or equal to 1"}


def test_several_violations_under_one_path_are_joined_to_one_message() -> None:
    error = ValidationError.from_exception_data(
        "Booking",
        [
            {"type": PydanticCustomError("one", "One."), "loc": ("nights",), "input": 0},
            {"type": PydanticCustomError("two", "Two."), "loc": ("nights",), "input": 0},
        ],
    )
    assert violations(error, "booking") == {"nights": "One. Two."}
