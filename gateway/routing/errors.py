"""`errors` of an API or a version in gateway.yaml: the format of the gateway's errors."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, JsonValue, Tag

from gateway.base.errors import BEFORE_VERSION, FaultCode
from gateway.base.headers import HeaderFields
from gateway.base.mistakes import Mistakes, suggest
from gateway.base.model import FieldName, NumberText, SectionModel, matching

JSON = "application/json"
PROBLEM = "application/problem+json"

PLACEHOLDERS = (
    *("type", "title", "status", "detail", "instance", "code"),
    *("supportedVersions", "successor", "request_id", "phrase"),
    *("field", "pointer", "reason", "serviceStatus"),
)
"""The names of placeholders. Their values are the members of a problem detail, the id of the
request, and the HTTP reason phrase of the status. `field`, `pointer` and `reason` describe why a
request does not fit its version (see `gateway.base.errors.Fault.misfit`). `serviceStatus` is the
status of a service's response that is refused after an unsafe method."""

_PLACEHOLDER = re.compile(r"\{\{|\}\}|\{([^{}]*)\}")
_BRACES = {"{{": "{", "}}": "}"}
_ABSENT = object()
# Reason phrases of error statuses: RFC 9110, sections 15.5 and 15.6, RFC 4918, RFC 6585, RFC 7725
# and RFC 8470.
_PHRASES: Mapping[object, str] = {
    int(status): phrase
    for status, phrase in re.findall(
        r"([0-9]+) ([^;]+)(?:;\s+|$)",
        """
400 Bad Request; 401 Unauthorized; 402 Payment Required; 403 Forbidden; 404 Not Found;
405 Method Not Allowed; 406 Not Acceptable; 407 Proxy Authentication Required;
408 Request Timeout; 409 Conflict; 410 Gone; 411 Length Required; 412 Precondition Failed;
413 Content Too Large; 414 URI Too Long; 415 Unsupported Media Type;
416 Range Not Satisfiable; 417 Expectation Failed; 421 Misdirected Request;
422 Unprocessable Content; 423 Locked; 424 Failed Dependency; 425 Too Early;
426 Upgrade Required; 428 Precondition Required; 429 Too Many Requests;
431 Request Header Fields Too Large; 451 Unavailable For Legal Reasons;
500 Internal Server Error; 501 Not Implemented; 502 Bad Gateway; 503 Service Unavailable;
504 Gateway Timeout; 505 HTTP Version Not Supported; 507 Insufficient Storage;
511 Network Authentication Required""",
    )
}
_NONE: Mapping[str, object] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ErrorTemplate:
    """The format of the errors of an API or a version.

    Attributes:
        body: The template of the body; None for a problem detail (RFC 9457).
        default: The version's own code for all other codes of the gateway; None keeps the gateway's
            codes.
        details: The version's own sentences, by the gateway's codes. A sentence is not used if one
            of its placeholders has no value.
        headers: The version's own header fields, by the gateway's codes and by name. They replace
            the gateway's fields. The value None removes a field.
    """

    content_type: str
    body: object = None
    codes: Mapping[str, str | int] = field(default_factory=dict)
    default: str | int | None = None
    details: Mapping[str, str] = field(default_factory=dict)
    statuses: Mapping[str, int] = field(default_factory=dict)
    headers: Mapping[str, Mapping[str, str | None]] = field(default_factory=dict)

    def dress(self, code: FaultCode, fields: HeaderFields) -> HeaderFields:
        given = self.headers.get(code)
        if given is None:
            return fields
        replaced = {name.lower().encode() for name in given}
        kept = [line for line in fields if line[0].lower() not in replaced]
        own = [(name, value) for name, value in given.items() if value is not None]
        return kept + [(name.encode(), value.encode()) for name, value in own]

    def render(
        self,
        problem: Mapping[str, object],
        request_id: str,
        misfit: Mapping[str, str] | None = None,
        own: Mapping[str, object] = _NONE,
    ) -> object:
        """Return the body of a refusal.

        Args:
            own: The members that the configuration sets for this refusal only. They override all
                other members.
        """
        shown = dict(problem)
        code = self.codes.get(str(problem["code"]), self.default)
        if code is not None:
            shown["code"] = code
        shown.update(own)
        detail = None if "detail" in own else self.details.get(str(problem["code"]))
        values = {**shown, "request_id": request_id, **(misfit or {})}
        if shown["status"] in _PHRASES:
            values["phrase"] = _PHRASES[shown["status"]]
        if detail is not None and all(name in values for name in placeholders(detail)):
            shown["detail"] = values["detail"] = _text(detail, values)
        if self.body is None:
            return shown
        rendered = _rendered(self.body, values)
        return {} if rendered is _ABSENT else rendered


def placeholders(template: object) -> Iterator[str]:
    if isinstance(template, str):
        for match in _PLACEHOLDER.finditer(template):
            if match[1] is not None:
                yield match[1]
    elif isinstance(template, dict):
        for key, value in template.items():
            yield from placeholders(key)
            yield from placeholders(value)
    elif isinstance(template, list | tuple):
        for value in template:
            yield from placeholders(value)


def _rendered(template: object, values: Mapping[str, object]) -> object:
    if isinstance(template, str):
        name = _only(template)
        return _text(template, values) if name is None else values.get(name, _ABSENT)
    if isinstance(template, dict):
        members = {
            _text(key, values): _rendered(value, values)
            if all(name in values for name in placeholders(key))
            else _ABSENT
            for key, value in template.items()
        }
        left = {key: value for key, value in members.items() if value is not _ABSENT}
        return left if left or not members else _ABSENT
    if isinstance(template, list | tuple):
        elements = [_element(value, values) for value in template]
        kept = [value for value in elements if value is not _ABSENT]
        return kept if kept or not elements else _ABSENT
    return template


def _element(template: object, values: Mapping[str, object]) -> object:
    if isinstance(template, dict):
        names = set(placeholders(template))
        if names and names.isdisjoint(values):
            return _ABSENT
    return _rendered(template, values)


def _text(template: str, values: Mapping[str, object]) -> str:
    return _PLACEHOLDER.sub(
        lambda match: _BRACES.get(match[0]) or _spelt(values.get(match[1])), template
    )


def _only(template: str) -> str | None:
    match = _PLACEHOLDER.fullmatch(template)
    return None if match is None else match[1]


def _spelt(value: object) -> str:
    if value is None:
        return ""
    return ", ".join(map(str, value)) if isinstance(value, list | tuple | dict) else str(value)


DEFAULT = "default"
_ALL = tuple(FaultCode)
_OWN = tuple(code for code in FaultCode if code not in BEFORE_VERSION)

JsonType = Annotated[
    str,
    matching(
        r"^application/([!#$%&'*.^_`|~0-9A-Za-z-]+\+)?json(; ?charset=(?:utf-8|UTF-8))?$",
        "not a media type of JSON; write application/json or application/problem+json",
    ),
]


def _own_code(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError("expected a string or a whole number")
    return value


def _with_body(status: int) -> int:
    if status in (204, 205, 304):
        raise ValueError("a status without a response body; write another status")
    return status


FieldValue = Annotated[
    str, matching(r"^[!-~]([ -~]*[!-~])?$", "not a valid header value; use ASCII")
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

OwnStatus = Annotated[int, Field(ge=200, le=599), NumberText, AfterValidator(_with_body)]


# Only the gateway may write these fields: they describe the response and its connection.
_NEEDED = (
    *("allow", "connection", "content-encoding", "content-length", "content-type", "date"),
    *("transfer-encoding", "vary", "x-request-id"),
)


def _own_fields(headers: dict[str, object]) -> dict[str, object]:
    for name in headers:
        if name.lower() in _NEEDED:
            raise ValueError(f"'{name}' is written by the gateway; remove it")
    return headers


class Errors(SectionModel):
    """The format of errors for the clients of a version, or of an API."""

    body: dict[str, JsonValue] | None = None
    """The body of the gateway's own refusals. Its strings may have placeholders such as `{code}`,
    `{detail}` and `{status}`. The default is a problem detail (RFC 9457)."""
    codes: dict[str, OwnCode] = Field(default_factory=dict)
    """The values of `{code}`: for each code of the gateway, the version's own code, a string or a
    number. The key `default` applies to all other codes. By default, the gateway's codes are used.
    """
    details: dict[str, str] = Field(default_factory=dict)
    """The values of `{detail}`: for each code of the gateway, the version's own sentence, which may
    have placeholders. The gateway's sentence is used if the version has no sentence for the code or
    if a placeholder in it has no value."""
    statuses: dict[str, OwnStatus] = Field(default_factory=dict)
    """For each code of the gateway, the version's own status, such as `{ unconvertible_request: 422
    }`. Use 200 if the version reports errors only in the body. By default, the gateway's statuses
    are used."""
    headers: Annotated[dict[FieldName, OwnField], AfterValidator(_own_fields)] = Field(
        default_factory=dict
    )
    """The header fields of the gateway's own refusals, by name, such as `{ Cache-Control: no-cache
    }`. The value null removes a field. A value may depend on the gateway's code, as in `{
    Cache-Control: { operation_missing: no-cache, default: private } }`. Without `default`, refusals
    with other codes keep the gateway's value. Refusals of a brownout always keep the gateway's
    values. By default, Cache-Control is no-store. Only the gateway writes Vary and the fields that
    describe the response: length, type, coding, date, request id, connection and allowed methods.
    """
    content_type: JsonType | None = None
    """The media type of errors, including errors from other versions' services. The default is
    application/json with a body, and otherwise application/problem+json."""

    def compile(self, mistakes: Mistakes, *, of_version: bool = True) -> ErrorTemplate:
        """Return the template, for errors of a version or for all errors of an API."""
        known = _OWN if of_version else _ALL
        if not self.model_fields_set:
            mistakes.add("is empty; add body, such as { code: '{code}' }")
        _check_quotes(self.body, mistakes.below("body"))
        for key, template in (("body", self.body), ("details", self.details)):
            for name in dict.fromkeys(placeholders(template)):
                if name not in PLACEHOLDERS:
                    hint = suggest(name, PLACEHOLDERS)
                    mistakes.add(f"an error has no part called '{name}'; {hint}", key)
        _check_names(self.details, known, mistakes.below("details"))
        _check_names(self.statuses, known, mistakes.below("statuses"))
        if self.codes:
            _check_codes(self, known, mistakes.below("codes"))
        for name, value in self.headers.items():
            if isinstance(value, dict):
                here = mistakes.below("headers", name)
                _check_names(value, (*known, DEFAULT), here)
                if FaultCode.VERSION_BROWNOUT in value:
                    text = "always has the header fields of the gateway, for caches; remove it"
                    here.add(text, FaultCode.VERSION_BROWNOUT)
        fallback = PROBLEM if self.body is None else JSON
        codes = {code: own for code, own in self.codes.items() if code != DEFAULT}
        own = self.codes.get(DEFAULT)
        return ErrorTemplate(
            self.content_type or fallback,
            self.body,
            codes,
            own,
            self.details,
            self.statuses,
            _fields_by_code(self.headers, known),
        )


def _fields_by_code(
    headers: Mapping[str, _Field | dict[str, _Field]], known: Sequence[FaultCode]
) -> dict[str, dict[str, _Field]]:
    found: dict[str, dict[str, _Field]] = {}
    for name, value in headers.items():
        by_code = value if isinstance(value, dict) else {DEFAULT: value}
        for code in known:
            # A cache must not keep a refusal of a brownout after its end.
            if code is FaultCode.VERSION_BROWNOUT:
                continue
            key = code if code in by_code else DEFAULT
            if key in by_code:
                found.setdefault(code.value, {})[name] = by_code[key]
    return found


def _check_codes(errors: Errors, known: Sequence[FaultCode], mistakes: Mistakes) -> None:
    _check_names(errors.codes, (*known, DEFAULT), mistakes)
    if errors.body is not None and "code" not in placeholders(errors.body):
        mistakes.add("are not used in the body; write '{code}' in the body, or remove the codes")
    lacking = [code for code in known if code not in errors.codes]
    if lacking and DEFAULT not in errors.codes:
        text = "warning: clients get the gateway's own codes of"
        mistakes.warn(f"{text} {', '.join(lacking)}; add them, or default")


def _check_names(named: Iterable[str], known: Sequence[str], mistakes: Mistakes) -> None:
    for code in named:
        if code in BEFORE_VERSION and code not in known:
            text = "is refused before the version is known; write it in errors of the API"
            mistakes.add(text, code)
        elif code not in known:
            mistakes.add(f"the gateway has no code with this name; {suggest(code, known)}", code)


def _check_quotes(value: JsonValue, mistakes: Mistakes) -> None:
    """Report unquoted placeholders, which YAML parses as mappings."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if inner is None and len(value) == 1 and key in PLACEHOLDERS:
                mistakes.add(f"is a mapping without quotes; write '{{{key}}}'")
            _check_quotes(inner, mistakes.below(key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            _check_quotes(inner, mistakes.below(index))
