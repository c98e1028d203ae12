"""Parsing and validation of a user in a JSON body, with a message for each invalid field."""

import json
import re
from datetime import date
from typing import Annotated, Any, Never

from pydantic import AfterValidator, BaseModel, BeforeValidator, ValidationError
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

TYPES = {"missing": "is required", "string_type": "must be a string"}
TYPES["model_type"] = "must be an object"
DATE = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}")  # fromisoformat also accepts other formats


def _check_name(name: str) -> str:
    if not 3 <= len(name) <= 20:  # in code points; the API contract has one message for both bounds
        raise PydanticCustomError("name_length", "Name must be more than 2 characters.")
    if "\0" in name:  # PostgreSQL cannot store it
        raise PydanticCustomError("name_null", "Name must not contain the character U+0000.")
    return name


def _parse_birth_date(value: Any, info: Any) -> date:
    try:
        day = date.fromisoformat(DATE.fullmatch(value)[0])  # type: ignore[index]
    except (TypeError, ValueError):
        message = "Birth date must be a real date, written as yyyy-MM-dd."
        raise PydanticCustomError("birth_date_format", message) from None
    if day >= info.context["today"]:
        raise PydanticCustomError("birth_date_past", "Birth date should be in past.")
    return day


class NewUser(BaseModel, strict=True, alias_generator=to_camel):
    """A user in a request. Validate it with the context `{"today": date}`."""

    name: Annotated[str, AfterValidator(_check_name)]
    birth_date: Annotated[date, BeforeValidator(_parse_birth_date)]


def violations(error: ValidationError, whole: str) -> dict[str, str]:
    """Return a message by the dotted path of each invalid field, or by `whole` for the object."""
    messages: dict[str, str] = {}
    for violation in error.errors(include_url=False, include_input=False):
        path = ".".join(map(str, violation["loc"])) or whole
        message = str(violation.get("ctx", {}).get("error") or violation["msg"])
        if violation["type"] in TYPES:  # begin with the field's name, in words
            name = next(part for part in reversed(path.split(".")) if not part.isdecimal())
            words = re.sub("(?=[A-Z])", " ", name).capitalize()
            message = f"{words} {TYPES[violation['type']]}."
        messages[path] = f"{messages[path]} {message}" if path in messages else message
    return messages


def parse(body: bytes, max_depth: int) -> object:
    """Parse I-JSON (RFC 7493); raise ValueError if the body is not valid."""
    try:
        value: object = DECODER.decode(body.decode())
        json.dumps(value, ensure_ascii=False).encode()  # raises UnicodeError for lone surrogates
        if _depth(value) <= max_depth:
            return value
    except UnicodeError:
        raise ValueError("the text is not valid Unicode") from None
    except RecursionError:
        pass
    raise ValueError(f"arrays and objects may nest at most {max_depth} deep")


def _depth(value: object) -> int:
    if not isinstance(value, dict | list):
        return 0
    return 1 + max(map(_depth, value.values() if isinstance(value, dict) else value), default=0)


def _refuse(constant: str) -> Never:
    raise ValueError(f"{constant} is not a JSON number")


def _unique(members: list[tuple[str, object]]) -> dict[str, object]:
    if len(found := dict(members)) < len(members):  # parsers disagree on which one to use
        raise ValueError("an object has the same name twice")
    return found


# Numbers are parsed as floats, since int refuses more than 4300 digits. No field is a number.
DECODER = json.JSONDecoder(parse_int=float, parse_constant=_refuse, object_pairs_hook=_unique)
