"""What a schema violation means to the operator who wrote it."""

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from gateway.config.model import Model
from gateway.config.report import Issue, Location, suggest
from gateway.config.source import Data, Document

_EXPECTED = {
    "model_type": "expected a mapping of keys to values",
    "dict_type": "expected a mapping of keys to values",
    "tuple_type": "expected a list; write it in brackets: [ ... ]",
    "string_type": "expected a text; write it in quotes",
    "int_type": "expected a whole number",
    "float_type": "expected a number",
    "bool_type": "expected true or false",
}


def explain(document: Document, error: ValidationError) -> list[Issue]:
    """Return one issue for each thing that is wrong."""
    details = error.errors()
    places = [detail["loc"] for detail in details]
    return [
        _issue(document, detail)
        for detail in details
        # A list whose only element is bad is also reported as too short: once is enough.
        if not (
            detail["type"] == "too_short"
            and any(len(at) > len(detail["loc"]) == _shared(at, detail["loc"]) for at in places)
        )
    ]


def _shared(one: Location, other: Location) -> int:
    pairs = zip(one, other, strict=False)
    return next((index for index, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _issue(document: Document, error: ErrorDetails) -> Issue:
    location = _in_document(document.data, error["loc"])
    key = str(error["loc"][-1]) if error["loc"] else ""
    context = error.get("ctx", {})
    match error["type"]:
        case "extra_forbidden":
            text = f"unknown key; {suggest(key, _vocabulary(), otherwise='remove it')}"
        case "missing":
            text = f"'{key}' is missing here" if isinstance(error["loc"][-1], str) else "too short"
        case "union_tag_not_found":
            text = "'in' is missing here; it is one of path, query, header, accept"
        case "union_tag_invalid":
            location = (*location, "in")
            text = (
                f"'{context['tag']}' is not one of {context['expected_tags'].replace(chr(39), '')}"
            )
        case kind:
            plain = error["msg"].removeprefix("Input ").removeprefix("String ")
            text = _EXPECTED.get(kind, plain[0].lower() + plain[1:])
    return document.issue(location, text)


def _in_document(data: Data, location: Location) -> Location:
    """Return the part of a pydantic location that is in the document.

    pydantic puts the names of union members into its locations; the document has no such steps.
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
    return tuple(known)


def _vocabulary() -> set[str]:
    return {
        field.alias or name
        for kind in Model.__subclasses__()
        for name, field in kind.model_fields.items()
    }
