"""What is wrong with an object, as a flat JSON object: path of a field -> message.

This is the contract's validation error body, for any pydantic model: nested objects have dotted
paths, list items their index (`guests.0.name`), and a violation of a whole object has the path of
that object, the outermost one going by a name of its own. Pydantic judges a whole object only
when each of its fields holds, so a rule over several fields speaks once these are right.
"""

import re

from pydantic import ValidationError
from pydantic_core import ErrorDetails

# What pydantic says of JSON of the wrong type is about Python; these say what JSON is expected.
EXPECTED = {
    "missing": "{} is required.",
    "string_type": "{} must be a string.",
    "bool_type": "{} must be true or false.",
    "int_type": "{} must be a whole number.",
    "float_type": "{} must be a number.",
    "list_type": "{} must be an array.",
    "dict_type": "{} must be an object.",
    "model_type": "{} must be an object.",
}


def violations(error: ValidationError, whole: str) -> dict[str, str]:
    """Map every violation in `error`; `whole` is the name of the object that was validated.

    Several of one path are one message, in the order in which pydantic found them.
    """
    found: dict[str, list[str]] = {}
    for details in error.errors(include_url=False, include_input=False):
        path = ".".join(map(str, details["loc"])) or whole
        found.setdefault(path, []).append(_message(details, path))
    return {path: " ".join(messages) for path, messages in found.items()}


def _message(details: ErrorDetails, path: str) -> str:
    if details["type"] in EXPECTED:
        return EXPECTED[details["type"]].format(_label(path))
    # A model's own ValueError or assert says it best, without the prefix that pydantic adds.
    reason = details.get("ctx", {}).get("error")
    return str(reason) if isinstance(reason, Exception) else details["msg"]


def _label(path: str) -> str:
    """Return the last name in a path as words: `guests.0.birthDate` is "Birth date"."""
    name = next((part for part in reversed(path.split(".")) if not part.isdecimal()), path)
    return re.sub(r"(?<=[a-z0-9])[A-Z]", lambda capital: f" {capital[0]}", name).capitalize()
