"""What the models of gateway.yaml have in common: strict, frozen, nothing extra."""

import re
from typing import Annotated, TypeVar

# pydantic: one declaration gives validation with locations and the JSON Schema.
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

NAME = r"^[A-Za-z_][A-Za-z0-9_.-]*$"
FIELD_NAME = r"^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$"
HEALTH_PATH = r"^/[!-~]*$"
HOST = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,252}(:[0-9]{1,5})?$"
METHOD = r"^[A-Z]+(-[A-Z]+)*$"
SHARE = r"^[0-9]{1,3}(\.[0-9]{1,6})?%$"
FACTOR = r"^[0-9]{1,4}(\.[0-9]{1,6})?x$"
DURATION = r"^[0-9]{1,5}(\.[0-9]{1,3})?[smh]$"

Name = Annotated[str, Field(pattern=NAME)]
FieldName = Annotated[str, Field(pattern=FIELD_NAME)]
Method = Annotated[str, Field(pattern=METHOD)]


def _number(value: object) -> object:
    # Within braces, YAML wants a variable in quotes, so that its number comes as a text.
    if isinstance(value, str) and _NUMBER.match(value):
        return float(value) if "." in value else int(value)
    return value


_NUMBER = re.compile(r"[0-9]{1,18}(?:\.[0-9]+)?\Z", re.ASCII)
NumberText = BeforeValidator(_number)
Seconds = Annotated[float, Field(gt=0, le=86_400), NumberText]
Bytes = Annotated[int, Field(ge=1), NumberText]
PositiveInt = Annotated[int, Field(ge=1), NumberText]
Percent = Annotated[float, Field(ge=0, le=100), NumberText]
T = TypeVar("T")
Some = Annotated[tuple[T, ...], Field(min_length=1)]


class SectionModel(BaseModel):
    """What all models here share."""

    model_config = ConfigDict(
        strict=True,
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,
        use_attribute_docstrings=True,
        # The outermost model validates; validators of the others would only take memory.
        defer_build=True,
    )
