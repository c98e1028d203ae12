"""The user, as clients send it and as they get it back, with the contract's constraints."""

import re
from datetime import date
from typing import Annotated

# One class is the shape, its constraints, its JSON and its schema.
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

NAME_LENGTH = "Name must be more than 2 characters."
BIRTH_DATE_PAST = "Birth date should be in past."
BIRTH_DATE_FORMAT = "Birth date must be a real date, written as yyyy-MM-dd."
NAME_NULL = "Name must not contain the character U+0000."

MIN_NAME, MAX_NAME = 3, 20


def _right_name(name: str) -> str:
    if not MIN_NAME <= len(name) <= MAX_NAME:  # in code points; too long says the same
        raise PydanticCustomError("name_length", NAME_LENGTH)
    if "\0" in name:  # PostgreSQL cannot store it, and no name has it
        raise PydanticCustomError("name_null", NAME_NULL)
    return name


def _exact_date(value: object) -> date:
    # fromisoformat alone would take week dates and dates without dashes as well.
    if isinstance(value, str) and re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", value):
        try:
            return date.fromisoformat(value)
        except ValueError:
            pass  # such as 30 February, or the year 0000, which the calendar does not have
    raise PydanticCustomError("birth_date_format", BIRTH_DATE_FORMAT)


def _in_past(value: date, info: ValidationInfo) -> date:
    today: date = (info.context or {})["today"]
    if value >= today:
        raise PydanticCustomError("birth_date_past", BIRTH_DATE_PAST)
    return value


class _Json(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, alias_generator=to_camel)


class NewUser(_Json):
    """What a client sends to have a user made. Other members, `id` too, are ignored.

    Validate it with the context `{"today": date}`, as the past depends on where today is.
    """

    name: Annotated[
        str,
        AfterValidator(_right_name),
        Field(json_schema_extra={"minLength": MIN_NAME, "maxLength": MAX_NAME}),
    ]
    birth_date: Annotated[date, BeforeValidator(_exact_date), AfterValidator(_in_past)] = Field(
        description="earlier than today in the service's time zone"
    )


class User(_Json):
    """A user that is kept."""

    model_config = ConfigDict(validate_by_name=True)

    id: int = Field(ge=1, description="given by the service, never twice")
    name: str
    birth_date: date
