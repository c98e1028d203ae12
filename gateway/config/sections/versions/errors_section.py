"""`apis.NAME.versions.VERSION.errors` in gateway.yaml: the shape of a version's errors."""

from typing import Annotated

from pydantic import JsonValue

from gateway.config.shape import SectionModel, matching
from gateway.config.text.mistakes import Location, Mistakes, suggest
from gateway.core.answers.error_template import (
    JSON,
    PLACEHOLDERS,
    PROBLEM,
    ErrorTemplate,
    placeholders,
)

JsonType = Annotated[
    str,
    matching(
        r"^application/([!#$%&'*.^_`|~0-9A-Za-z-]+\+)?json(; ?charset=utf-8)?$",
        "not a media type of JSON; write application/json or application/problem+json",
    ),
]


class ErrorsConfig(SectionModel):
    """The shape in which clients of the version get errors."""

    body: dict[str, JsonValue] | None = None
    """The body of the gateway's own refusals, with placeholders in its texts: `{code}`, `{detail}`,
    `{status}`. Without it, that is a problem detail (RFC 9457)."""
    content_type: JsonType | None = None
    """The media type of errors, also of those that services of other versions answer with. The
    default is application/json with a body, and otherwise application/problem+json."""


def build_errors(config: ErrorsConfig, at: Location, mistakes: Mistakes) -> ErrorTemplate:
    """Return the shape of a version's errors; mistakes go to `mistakes`."""
    if config.body is None and config.content_type is None:
        mistakes.add("has nothing in it; add body, such as { code: '{code}' }", *at)
    _check_quotes(config.body, (*at, "body"), mistakes)
    for name in dict.fromkeys(placeholders(config.body)):
        if name not in PLACEHOLDERS:
            hint = suggest(name, PLACEHOLDERS)
            mistakes.add(f"no part of a refusal is called '{name}'; {hint}", *at, "body")
    fallback = PROBLEM if config.body is None else JSON
    return ErrorTemplate(config.content_type or fallback, config.body)


def _check_quotes(value: JsonValue, at: Location, mistakes: Mistakes) -> None:
    """Record placeholders that YAML reads as mappings, since they have no quotes."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if inner is None and len(value) == 1 and key in PLACEHOLDERS:
                mistakes.add(f"is a mapping without quotes; write '{{{key}}}'", *at)
            _check_quotes(inner, (*at, key), mistakes)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            _check_quotes(inner, (*at, index), mistakes)
