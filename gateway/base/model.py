"""Types shared by the models of gateway.yaml. All models are strict, frozen and closed."""

import re
from typing import Annotated, Any, Literal, TypeVar

# pydantic: one declaration gives validation with locations and the JSON Schema.
from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag

from gateway.base.client_names import LONGEST, UNVERIFIED

FIELD_NAME = r"^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$"
PATTERN_MESSAGES: dict[str, str] = {}
"""The error message for a string that does not match, by pattern; filled by `matching`."""


def matching(pattern: str, message: str) -> Any:
    """Constrain a string field to a pattern that editors support as well (ECMA-262).

    The message includes the correct form. Raises ValueError if the pattern has another one.
    """
    if PATTERN_MESSAGES.setdefault(pattern, message) != message:
        raise ValueError(f"the pattern {pattern} has the message '{PATTERN_MESSAGES[pattern]}'")
    return Field(pattern=pattern)


Name = Annotated[
    str,
    matching(
        r"^[A-Za-z_][A-Za-z0-9_.-]*$",
        "a name consists of ASCII letters, digits, '_', '-' and '.', and begins with a letter or "
        "'_'",
    ),
]
FieldName = Annotated[str, matching(FIELD_NAME, "not a header name; write one like X-API-VERSION")]
BodyTypes = Annotated[
    str,
    matching(
        r"^(none|[!#$%&'*+\-.^_`|~0-9A-Za-z]*[!#$%&'+\-.^_`|~0-9A-Za-z][!#$%&'*+\-.^_`|~0-9A-Za-z]*"
        r"/[!#$%&'*+\-.^_`|~0-9A-Za-z]+)$",
        "not a media type; write one like text/csv, image/* for all images, or none for a missing"
        " Content-Type",
    ),
]
Reading = Literal["json", "json_lines", "yaml", "pass"]
Method = Annotated[
    str, matching(r"^[A-Z]+(-[A-Z]+)*$", "not an HTTP method; write it in capitals, as in GET")
]
Date = Annotated[
    str,
    matching(
        r"^[0-9]{4}-[0-9]{2}-[0-9]{2}"
        r"([Tt][0-9]{2}:[0-9]{2}(:[0-9]{2})?([Zz]|[+-][0-9]{2}:[0-9]{2})?)?$",
        "not a date; write 2026-12-31, or a time such as 2026-12-31T18:00:00Z",
    ),
]
# A name of the maximum length, plus the prefix of an unverified name; see gateway.access.clients.
ClientName = Annotated[str, Field(min_length=1, max_length=LONGEST + len(UNVERIFIED))]
NonEmptyText = Annotated[str, Field(min_length=1)]
Reason = Annotated[str, matching(r"\S", "not a reason; write one in words")]
SECRET = Field(json_schema_extra={"writeOnly": True})
"""Marks a secret as write-only in the JSON Schema of the configuration."""
Secret = Annotated[str, Field(min_length=1), SECRET]


def _number(value: object) -> object:
    # In a YAML flow mapping, a variable must be quoted, so its number is read as a string.
    if isinstance(value, str) and _NUMBER.match(value):
        return float(value) if "." in value else int(value)
    return value


def _seconds(value: object) -> object:
    number = _number(value)
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise ValueError("expected a number of seconds, such as 2.5")
    return number


def _text(value: object) -> object:
    return str(value) if isinstance(value, int | float) else value


_NUMBER = re.compile(r"[0-9]{1,18}(?:\.[0-9]+)?\Z", re.ASCII)
NumberText = BeforeValidator(_number)
# A number without a unit becomes a string, so that the error message is the pattern's.
UnitText = BeforeValidator(_text)
Seconds = Annotated[float, Field(gt=0, le=86_400), BeforeValidator(_seconds)]
Bytes = Annotated[int, Field(ge=1), NumberText]
PositiveInt = Annotated[int, Field(ge=1), NumberText]
Percent = Annotated[float, Field(ge=0, le=100), NumberText]
T = TypeVar("T")
Some = Annotated[tuple[T, ...], Field(min_length=1)]


def _one_or_several(value: object) -> str:
    return "several" if isinstance(value, list | tuple) else "one"


OneOrPair = Annotated[
    Annotated[T, Tag("one")] | Annotated[tuple[T, T], Tag("several")],
    Discriminator(_one_or_several),
]
OneOrList = Annotated[
    Annotated[T, Tag("one")] | Annotated[tuple[T, ...], Tag("several")],
    Discriminator(_one_or_several),
]
U = TypeVar("U")
OneOrSome = Annotated[
    Annotated[T, Tag("one")] | Annotated[tuple[U, ...], Field(min_length=1), Tag("several")],
    Discriminator(_one_or_several),
]


def _text_or_section(value: object) -> str:
    return "text" if isinstance(value, str) else "section"


TextOr = Annotated[
    Annotated[T, Tag("text")] | Annotated[U, Tag("section")], Discriminator(_text_or_section)
]
"""A text, or a section of type `U` with more keys."""


STRICT = ConfigDict(strict=True, extra="forbid", hide_input_in_errors=True)
"""The settings of a pydantic dataclass. It is validated like a model, and its fields are read as
fast as those of any object with slots."""


class SectionModel(BaseModel):
    """The base of all models: strict, frozen, and without unknown keys.

    A model's `compile` reports mistakes with their location in gateway.yaml, and returns the object
    that is used for each request.
    """

    # Only the root model validates. Building validators for the other models would waste memory.
    model_config = ConfigDict(**STRICT, frozen=True, defer_build=True)
