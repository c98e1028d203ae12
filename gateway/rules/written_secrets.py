"""Written secrets: where rules that can be used have a secret written out, by their JSON Schema."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from gateway.base.mistakes import Location
from gateway.rules.source import Data, YamlDocument
from gateway.rules.variables import UnsetVariablesError, fill

# The keyword for what nobody should read (JSON Schema Validation 2020-12, section 9.4).
_SECRET = "writeOnly"  # noqa: S105  # the keyword
# A password in a URL, or a token in place of the user; the user of a database alone is none.
_LOGIN = re.compile(r"://(?:[^/\s@:]*:[^\s@]+|(?<!sql://)[^/\s@:]+)@")
# A parameter of a URL that is not a capture.
_QUERY = re.compile(r"(?i)[?&](?:api_?key|key|password|secret|sig|token)=(?!\{)[^&\s\"'#]")
_KEY = re.compile(r"\b(?:hash|keys?|password|secret|token|url)[\"']?:\s+\S")
_TOLD = _KEY, _LOGIN, _QUERY
_PUBLIC = "BEGIN PUBLIC KEY"

_Schema = Mapping[str, Any]


def secret_lines(document: YamlDocument, schema: _Schema) -> list[int]:
    """Return the numbers of the lines, from 1, in which secrets are written out.

    What comes from a variable is not written out, but a default of it is.

    Args:
        document: of rules that the schema takes.
        schema: of rules, in which `writeOnly` marks what is secret.
    """
    written = _written(document, document.data, (), [schema], schema)
    return sorted({document.marks[at][0] for at in written})


def comment_lines(content: str) -> list[int]:
    """Return the numbers of the lines whose comment may hold a secret, which nobody can tell."""
    comments = (line.partition("#")[2] for line in content.split("\n"))
    return [at for at, text in enumerate(comments, 1) if any(one.search(text) for one in _TOLD)]


def _written(
    document: YamlDocument, data: Data, at: Location, allowed: list[_Schema], whole: _Schema
) -> Iterator[Location]:
    """Yield the locations of secrets in a part, which is one of what is allowed there."""
    options = [*_options(allowed, whole)]
    if isinstance(data, dict):
        for key, value in data.items():
            below = [_member(option, key) for option in options]
            yield from _written(document, value, (*at, key), below, whole)
    elif isinstance(data, list):
        below = [option.get("items", {}) for option in options]
        for index, value in enumerate(data):
            yield from _written(document, value, (*at, index), below, whole)
    elif isinstance(data, str):
        text = _literal(document.texts[at][1] if at in document.texts else data)
        secret = any(_SECRET in option for option in options) and _PUBLIC not in text
        if (secret and text) or _LOGIN.search(text) or _QUERY.search(text):
            yield at


def _options(allowed: Iterable[_Schema], whole: _Schema) -> Iterator[_Schema]:
    for one in allowed:
        if "$ref" in one:
            yield from _options([whole["$defs"][one["$ref"].rpartition("/")[2]]], whole)
        elif "anyOf" in one:
            yield from _options(one["anyOf"], whole)
        else:
            yield one


def _member(option: _Schema, key: str) -> _Schema:
    known: Mapping[str, _Schema] = option.get("properties", {})
    others = [option.get("additionalProperties"), *option.get("patternProperties", {}).values()]
    return known.get(key, {"anyOf": [each for each in others if isinstance(each, dict)]})


def _literal(text: str) -> str:
    """Return a text with nothing in place of its variables, but with their defaults."""
    try:
        return fill(text, {})
    except UnsetVariablesError as error:
        return fill(text, dict.fromkeys(error.names, ""))
