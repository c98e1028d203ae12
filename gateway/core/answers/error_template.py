"""Error templates: the gateway's own refusals, in the shape that a version's clients can read.

A template is a JSON value whose texts may hold placeholders, `{code}`. A text that is one
placeholder becomes the value itself, such as the number of the status; a member of an object whose
placeholder has no value is left out.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

JSON = "application/json"
PROBLEM = "application/problem+json"

PLACEHOLDERS = (
    *("type", "title", "status", "detail", "instance", "code"),
    *("supportedVersions", "successor", "request_id"),
)
"""The names of placeholders: the members of a problem detail, and the id of the request."""

_PLACEHOLDER = re.compile(r"\{\{|\}\}|\{([^{}]*)\}")
_BRACES = {"{{": "{", "}}": "}"}


@dataclass(frozen=True, slots=True)
class ErrorTemplate:
    """The shape of a version's errors.

    Attributes:
        content_type: The media type of errors.
        body: The template of the body; None for a problem detail (RFC 9457).
        codes: The version's own codes, by those of the gateway.
        default: The version's own code for all others; None leaves the gateway's.
    """

    content_type: str
    body: object = None
    codes: Mapping[str, str | int] = field(default_factory=dict)
    default: str | int | None = None

    def render(self, problem: Mapping[str, object], request_id: str) -> object:
        """Return the body of a refusal.

        Args:
            problem: The members of the problem detail.
            request_id: The id of the request.
        """
        code = self.codes.get(str(problem["code"]), self.default)
        if code is not None:
            problem = {**problem, "code": code}
        if self.body is None:
            return problem
        return _rendered(self.body, {**problem, "request_id": request_id})


def placeholders(template: object) -> Iterator[str]:
    """Yield the names of all placeholders of a template."""
    if isinstance(template, str):
        for match in _PLACEHOLDER.finditer(template):
            if match[1] is not None:
                yield match[1]
    elif isinstance(template, dict):
        for value in template.values():
            yield from placeholders(value)
    elif isinstance(template, list | tuple):
        for value in template:
            yield from placeholders(value)


def _rendered(template: object, values: Mapping[str, object]) -> object:
    if isinstance(template, str):
        return _text(template, values)
    if isinstance(template, dict):
        return {
            key: _rendered(value, values)
            for key, value in template.items()
            if not _is_absent(value, values)
        }
    if isinstance(template, list | tuple):
        return [_rendered(value, values) for value in template]
    return template


def _is_absent(template: object, values: Mapping[str, object]) -> bool:
    name = _only(template) if isinstance(template, str) else None
    return name is not None and name not in values


def _text(template: str, values: Mapping[str, object]) -> object:
    name = _only(template)
    if name is not None:
        return values.get(name)
    return _PLACEHOLDER.sub(
        lambda match: _BRACES.get(match[0]) or _spelt(values.get(match[1])), template
    )


def _only(template: str) -> str | None:
    """Return the placeholder that is all of a text; None for any other text."""
    match = _PLACEHOLDER.fullmatch(template)
    return None if match is None else match[1]


def _spelt(value: object) -> str:
    if value is None:
        return ""
    return ", ".join(map(str, value)) if isinstance(value, list | tuple | dict) else str(value)
