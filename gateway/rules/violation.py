"""Mistakes found by pydantic, as issues with a line and a remedy."""

from collections.abc import Iterator
from functools import cache
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from gateway.base.mistakes import Issue, Location, place, suggest
from gateway.base.model import PATTERN_MESSAGES
from gateway.rules.document import Data, YamlDocument
from gateway.rules.root import Config

# The maximum number of explained mistakes, since each explanation takes time.
_MAX_EXPLAINED = 1_000


def explain(document: YamlDocument, error: ValidationError) -> list[Issue]:
    issues = []
    if error.error_count() > _MAX_EXPLAINED:
        many = f"{error.error_count()} values are wrong; the first {_MAX_EXPLAINED} are explained"
        issues.append(Issue(0, 0, "", many))
    # Without inputs: each error would contain a copy of its value.
    for detail in error.errors(include_url=False, include_input=False)[:_MAX_EXPLAINED]:
        location, value = _in_document(document.data, detail["loc"])
        if detail["type"] == "union_tag_invalid":
            location, value = _in_document(document.data, (*location, "in"))
        text = _misplaced(detail, location) or _text(detail, value)
        if text is not None:
            issues.append(document.issue(location, text))
    return issues


def with_written_numbers(document: YamlDocument, error: ValidationError) -> Data:
    """Return the data. Where a string is expected, a number is replaced by its text in the file."""
    data = document.data
    for detail in error.errors(include_url=False, include_input=False)[:_MAX_EXPLAINED]:
        location, _ = _in_document(document.data, detail["loc"])
        text = document.written_number(location) if detail["type"] == "string_type" else None
        if text is not None:
            data = _replaced(data, location, text)
    return data


def _replaced(data: Data, location: Location, text: str) -> Data:
    if not location:
        return text
    step, rest = location[0], location[1:]
    if isinstance(data, dict):
        return {**data, str(step): _replaced(data[str(step)], rest, text)}
    assert isinstance(data, list)  # the location exists
    return [_replaced(each, rest, text) if at == step else each for at, each in enumerate(data)]


def _in_document(data: Data, location: Location) -> tuple[Location, Data]:
    """Return the steps of a pydantic location that exist in the document, and the value there.

    A pydantic location also contains the names of union members.
    """
    known: list[str | int] = []
    for step in location:
        if isinstance(data, dict) and isinstance(step, str) and step in data:
            data = data[step]
        elif isinstance(data, list) and isinstance(step, int) and step < len(data):
            data = data[step]
        else:
            continue
        known.append(step)
    return tuple(known), data


_REMOVED: dict[tuple[int | str, ...], str] = {
    ("bypass",): "was removed: requests that bypass the gateway cannot be counted; remove it"
}
_RENAMED: dict[int | str, str] = {
    "unconverted": "was replaced by media_types; write media_types: { TYPE: pass } for each of "
    "these types"
}


# The keys that YAML 1.1 reads as booleans, and that a program such as Helm or PyYAML writes so.
_BOOLEANS = {"true": ("on", "yes", "y"), "false": ("off", "no", "n")}
_UNEXPECTED = ("extra_forbidden", "unexpected_keyword_argument")
_NO_MAPPING = ("dict_type", "model_type", "dataclass_type")


def _misplaced(error: ErrorDetails, location: Location) -> str | None:
    """Return the remedy for a key that is valid in an enclosing section; None for other mistakes.

    It may be unknown in its section, or be read as a name there, such as that of a version.
    """
    if error["type"] not in (*_UNEXPECTED, *_NO_MAPPING) or len(location) < 2:
        return None
    *outer, key = location
    if _has_key(tuple(outer), key) or location in _REMOVED:
        return None
    for length in range(len(outer) - 1, -1, -1):
        if isinstance(outer[length], str) and _has_key(tuple(outer[:length]), key):
            section = place(tuple(outer[:length])) or "the top level"
            return f"is a key of {section}; indent it like the keys there"
    return None


def _has_key(location: Location, key: object) -> bool:
    return any(key in schema.get("properties", ()) for schema in _schemas(location))


def _known(at: Location) -> str:
    known = [key for schema in _schemas(at[:-1]) for key in schema.get("properties", ())]
    read = next((word for word in _BOOLEANS.get(str(at[-1]), ()) if word in known), None)
    if read is not None:
        return f"YAML 1.1 reads {read} as {at[-1]}: write '{read}' in quotes"
    return suggest(str(at[-1]), known)


def _text(error: ErrorDetails, value: Data) -> str | None:
    at, context = error["loc"], error.get("ctx", {})
    match error["type"]:
        case "extra_forbidden" | "unexpected_keyword_argument":
            removed = _REMOVED.get(at) or (_RENAMED.get(at[-1]) if at[0] == "apis" else None)
            return removed or f"unknown key; {_known(at)}"
        case "missing" if isinstance(at[-1], str):
            return f"'{at[-1]}' is missing here; add it"
        case "missing":
            sizes = (schema.get("minItems") for schema in _schemas(at[:-1]))
            return f"expected {next(filter(None, sizes), 'more')} elements"
        case "too_long":
            return f"expected {context['max_length']} elements"
        case "too_short" if isinstance(value, dict | list) and len(value) >= context["min_length"]:
            return None  # the elements have their own mistakes
        case "too_short" | "string_too_short" if context["min_length"] == 1:
            return "must not be empty"
        case "too_short":
            return f"expected at least {context['min_length']} elements"
        case "union_tag_not_found":
            return "'in' is missing here; add it, such as in: path"
        case "union_tag_invalid" if isinstance(value, str):
            known = context["expected_tags"].replace("'", "").split(", ")
            return f"no mechanism is called '{value}'; {suggest(value, known)}"
        case "union_tag_invalid":
            return "expected the name of a mechanism, such as path"
        case "string_pattern_mismatch":
            return PATTERN_MESSAGES[context["pattern"]]
        case _:
            return ("is empty; " if value is None else "") + _expected(error, value)


def _expected(error: ErrorDetails, value: Data) -> str:
    match error["type"]:
        case "dict_type" | "model_type" | "dataclass_type":
            keys = [key for schema in _schemas(error["loc"]) for key in _wanted(schema)]
            return f"expected a mapping such as {{ {', '.join(f'{key}: ...' for key in keys)} }}"
        case "tuple_type" if isinstance(value, dict):
            return "expected a list; begin each element with '- ', or write brackets: [ ... ]"
        case "tuple_type":
            return "expected a list; write it in brackets: [ ... ]"
        case "string_type" if isinstance(value, dict | list | None):
            return "expected a string"
        case "string_type":
            return "expected a string; write it in quotes"
        case "string_too_long":
            return f"expected at most {error['ctx']['max_length']} characters"
        case "bool_type":
            return "expected true or false"
        case "literal_error":
            return f"expected {error['ctx']['expected'].replace('True', 'true')}"
        case "int_type":
            return "expected a whole number, without a unit"
        case "float_type":
            return "expected a number, without a unit"
        case "value_error":
            return str(error["ctx"]["error"])
        case _:
            return error["msg"].replace("Input should be", "expected a number")


@cache
def _schema() -> dict[str, Any]:
    return Config.model_json_schema()


def _schemas(location: Location) -> list[dict[str, Any]]:
    """Return the JSON Schema at a pydantic location: one schema, or one per member of a union."""
    schemas = list(_members(_schema()))
    for step in location:
        inner = [
            member
            for schema in schemas
            for part in _inside(schema, step)
            for member in _members(part)
        ]
        schemas = inner or schemas  # the name of a union member is not a step in the schema
    return schemas


def _members(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if "$ref" in schema:
        yield _schema()["$defs"][schema["$ref"].rpartition("/")[2]]
    elif "discriminator" in schema:
        yield schema
    elif "anyOf" in schema or "oneOf" in schema:
        for member in schema.get("anyOf") or schema["oneOf"]:
            yield from _members(member)
    else:
        yield schema


def _inside(schema: dict[str, Any], step: str | int) -> Iterator[dict[str, Any]]:
    if "discriminator" in schema:
        mapping = schema["discriminator"]["mapping"]
        if step in mapping:
            yield {"$ref": mapping[step]}
    elif isinstance(step, int):
        if "items" in schema:
            yield schema["items"]
    elif step in schema.get("properties", {}):
        yield schema["properties"][step]
    elif isinstance(schema.get("additionalProperties"), dict):
        yield schema["additionalProperties"]
    else:
        yield from schema.get("patternProperties", {}).values()


def _wanted(schema: dict[str, Any]) -> list[str]:
    if "discriminator" in schema:
        return [schema["discriminator"]["propertyName"]]
    if schema.get("type") != "object":
        return []
    return schema.get("required") or list(schema.get("properties", ("NAME",)))[:1]
