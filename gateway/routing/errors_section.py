"""`apis.NAME.versions.VERSION.errors` in gateway.yaml: the shape of a version's errors."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, JsonValue, Tag

from gateway.base.errors import BEFORE_VERSION, FaultCode
from gateway.base.mistakes import Location, Mistakes, suggest
from gateway.base.model import FieldName, NumberText, SectionModel, matching
from gateway.routing.error_template import (
    JSON,
    PLACEHOLDERS,
    PROBLEM,
    ErrorTemplate,
    placeholders,
)

DEFAULT = "default"
_OWN = tuple(code for code in FaultCode if code not in BEFORE_VERSION)
# No cache may have the refusals of a brownout when it is over.
_DRESSED = tuple(code.value for code in _OWN if code is not FaultCode.VERSION_BROWNOUT)

JsonType = Annotated[
    str,
    matching(
        r"^application/([!#$%&'*.^_`|~0-9A-Za-z-]+\+)?json(; ?charset=(?:utf-8|UTF-8))?$",
        "not a media type of JSON; write application/json or application/problem+json",
    ),
]


def _own_code(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError("expected a text or a whole number")
    return value


def _with_body(status: int) -> int:
    if status in (204, 205, 304):
        raise ValueError("an answer without a body; write another status")
    return status


FieldValue = Annotated[
    str, matching(r"^[!-~]([ -~]*[!-~])?$", "not the value of a header field; write it in ASCII")
]

_Field = FieldValue | None


def _one_or_by_code(value: object) -> str:
    return "by code" if isinstance(value, dict) else "one"


OwnField = Annotated[
    Annotated[_Field, Tag("one")]
    | Annotated[dict[str, _Field], Field(min_length=1), Tag("by code")],
    Discriminator(_one_or_by_code),
]

OwnCode = Annotated[str | int, BeforeValidator(_own_code)]

OwnStatus = Annotated[
    int,
    Field(ge=200, le=599),
    NumberText,
    AfterValidator(_with_body),
]


# What the gateway has to write itself: how long an answer is, what it is, and for whom.
_NEEDED = (
    *("allow", "connection", "content-encoding", "content-length", "content-type", "date"),
    *("transfer-encoding", "vary", "x-request-id"),
)


def _own_fields(headers: dict[str, object]) -> dict[str, object]:
    for name in headers:
        if name.lower() in _NEEDED:
            raise ValueError(f"'{name}' is the gateway's to write; remove it")
    return headers


class ErrorsConfig(SectionModel):
    """The shape in which clients of the version get errors."""

    body: dict[str, JsonValue] | None = None
    """The body of the gateway's own refusals, with placeholders in its texts: `{code}`, `{detail}`,
    `{status}`. Without it, that is a problem detail (RFC 9457)."""
    codes: dict[str, OwnCode] = Field(default_factory=dict)
    """The version's own codes, texts or numbers, by those of the gateway, which they replace in
    `{code}`; `default` is the code for all others. By default, the gateway's codes stay."""
    details: dict[str, str] = Field(default_factory=dict)
    """The version's own sentences by the codes of the gateway, which they replace in `{detail}`;
    they may have placeholders of their own. The gateway's sentence stays where there is none, or a
    placeholder has no value."""
    statuses: dict[str, OwnStatus] = Field(default_factory=dict)
    """The version's own statuses by the codes of the gateway, such as `{ unconvertible_request: 422
    }`, also 200 where a version has failures in the body alone. By default, the gateway's stay."""
    headers: Annotated[dict[FieldName, OwnField], AfterValidator(_own_fields)] = Field(
        default_factory=dict
    )
    """The header fields of the gateway's own refusals, by name, such as `{ Cache-Control: no-cache
    }`; null leaves a field away. A value may differ by the codes of the gateway, as in `{
    Cache-Control: { operation_missing: no-cache, default: private } }`; without `default`, the
    others keep the gateway's. Refusals of a brownout keep theirs. By default, Cache-Control is
    no-store. The gateway alone writes Vary and what describes the answer: its length, type, coding,
    date, request id, connection and allowed methods."""
    content_type: JsonType | None = None
    """The media type of errors, also of those that services of other versions answer with. The
    default is application/json with a body, and otherwise application/problem+json."""


def build_errors(config: ErrorsConfig, at: Location, mistakes: Mistakes) -> ErrorTemplate:
    """Return the shape of a version's errors; mistakes go to `mistakes`."""
    if not config.model_fields_set:
        mistakes.add("has nothing in it; add body, such as { code: '{code}' }", *at)
    _check_quotes(config.body, (*at, "body"), mistakes)
    for key, template in (("body", config.body), ("details", config.details)):
        for name in dict.fromkeys(placeholders(template)):
            if name not in PLACEHOLDERS:
                hint = suggest(name, PLACEHOLDERS)
                mistakes.add(f"no part of a refusal is called '{name}'; {hint}", *at, key)
    _check_names(config.details, _OWN, (*at, "details"), mistakes)
    _check_names(config.statuses, _OWN, (*at, "statuses"), mistakes)
    if config.codes:
        _check_codes(config, at, mistakes)
    for name, value in config.headers.items():
        if isinstance(value, dict):
            place = *at, "headers", name
            _check_names(value, (*_OWN, DEFAULT), place, mistakes)
            if FaultCode.VERSION_BROWNOUT in value:
                text = "keeps the gateway's fields, for caches; remove it"
                mistakes.add(text, *place, FaultCode.VERSION_BROWNOUT)
    fallback = PROBLEM if config.body is None else JSON
    codes = {code: own for code, own in config.codes.items() if code != DEFAULT}
    own = config.codes.get(DEFAULT)
    return ErrorTemplate(
        config.content_type or fallback,
        config.body,
        codes,
        own,
        config.details,
        config.statuses,
        _fields_by_code(config.headers),
    )


def _fields_by_code(
    headers: Mapping[str, _Field | dict[str, _Field]],
) -> dict[str, dict[str, _Field]]:
    """Return the fields of each code, without the codes that have none."""
    found: dict[str, dict[str, _Field]] = {}
    for name, value in headers.items():
        by_code = value if isinstance(value, dict) else {DEFAULT: value}
        for code in _DRESSED:
            key = code if code in by_code else DEFAULT
            if key in by_code:
                found.setdefault(code, {})[name] = by_code[key]
    return found


def _check_codes(config: ErrorsConfig, at: Location, mistakes: Mistakes) -> None:
    """Record codes that no refusal of the version has, and those that have none of its own."""
    at = (*at, "codes")
    _check_names(config.codes, (*_OWN, DEFAULT), at, mistakes)
    if config.body is not None and "code" not in placeholders(config.body):
        mistakes.add("stand nowhere in the body; write '{code}' in it, or remove them", *at)
    lacking = [code for code in _OWN if code not in config.codes]
    if lacking and DEFAULT not in config.codes:
        text = "warning: clients of the version get the gateway's own codes of"
        mistakes.warn(f"{text} {', '.join(lacking)}; add them, or default", *at)


def _check_names(
    named: Iterable[str], known: Sequence[str], at: Location, mistakes: Mistakes
) -> None:
    """Record names that are no codes of refusals of a version."""
    for code in named:
        if code in BEFORE_VERSION:
            text = "is refused before the version is known, as a problem detail; remove it"
            mistakes.add(text, *at, code)
        elif code not in known:
            mistakes.add(f"the gateway has no such code; {suggest(code, known)}", *at, code)


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
