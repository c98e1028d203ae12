"""Error templates: the gateway's own refusals, in the shape that a version's clients can read.

A template is a JSON value whose texts may hold placeholders, `{code}`. A text that is one
placeholder becomes the value itself, such as the number of the status, and a key the text of its
placeholders. Where one has no value, it is left out of its object or list, and so is an object or a
list of which nothing is left; and so is an object in a list that has placeholders, if none of them
has a value.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from gateway.base.errors import FaultCode
from gateway.base.headers import HeaderFields

JSON = "application/json"
PROBLEM = "application/problem+json"

PLACEHOLDERS = (
    *("type", "title", "status", "detail", "instance", "code"),
    *("supportedVersions", "successor", "request_id", "phrase"),
    *("field", "pointer", "reason"),
)
"""The names of placeholders: the members of a problem detail, the id of the request, the phrase
that HTTP has for the status, and what a request that does not fit its version is refused for (see
`gateway.base.errors.Fault.misfit`)."""

_PLACEHOLDER = re.compile(r"\{\{|\}\}|\{([^{}]*)\}")
_BRACES = {"{{": "{", "}}": "}"}
_ABSENT = object()
# Of errors: RFC 9110, sections 15.5 and 15.6, RFC 4918, RFC 6585, RFC 7725 and RFC 8470.
_PHRASES: Mapping[object, str] = {
    400: "Bad Request",
    401: "Unauthorized",
    402: "Payment Required",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    406: "Not Acceptable",
    407: "Proxy Authentication Required",
    408: "Request Timeout",
    409: "Conflict",
    410: "Gone",
    411: "Length Required",
    412: "Precondition Failed",
    413: "Content Too Large",
    414: "URI Too Long",
    415: "Unsupported Media Type",
    416: "Range Not Satisfiable",
    417: "Expectation Failed",
    421: "Misdirected Request",
    422: "Unprocessable Content",
    423: "Locked",
    424: "Failed Dependency",
    425: "Too Early",
    426: "Upgrade Required",
    428: "Precondition Required",
    429: "Too Many Requests",
    431: "Request Header Fields Too Large",
    451: "Unavailable For Legal Reasons",
    500: "Internal Server Error",
    501: "Not Implemented",
    502: "Bad Gateway",
    503: "Service Unavailable",
    504: "Gateway Timeout",
    505: "HTTP Version Not Supported",
    507: "Insufficient Storage",
    511: "Network Authentication Required",
}
_NONE: Mapping[str, object] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ErrorTemplate:
    """The shape of a version's errors.

    Attributes:
        content_type: The media type of errors.
        body: The template of the body; None for a problem detail (RFC 9457).
        codes: The version's own codes, by those of the gateway.
        default: The version's own code for all others; None leaves the gateway's.
        details: The version's own sentences, by the codes of the gateway. One with a placeholder
            that has no value is not used.
        statuses: The version's own statuses, by the codes of the gateway.
        headers: The version's own header fields, by the codes of the gateway and by name, which
            take the place of those of the gateway; None leaves a field away.
    """

    content_type: str
    body: object = None
    codes: Mapping[str, str | int] = field(default_factory=dict)
    default: str | int | None = None
    details: Mapping[str, str] = field(default_factory=dict)
    statuses: Mapping[str, int] = field(default_factory=dict)
    headers: Mapping[str, Mapping[str, str | None]] = field(default_factory=dict)

    def dress(self, code: FaultCode, fields: HeaderFields) -> HeaderFields:
        """Return the header fields of a refusal, with those of the version."""
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
            problem: The members of the problem detail.
            request_id: The id of the request.
            misfit: What a request that does not fit its version is refused for.
            own: The members that the rules give for this refusal alone, which come first.
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
    """Yield the names of all placeholders of a template."""
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
    """Return the placeholder that is all of a text; None for any other text."""
    match = _PLACEHOLDER.fullmatch(template)
    return None if match is None else match[1]


def _spelt(value: object) -> str:
    if value is None:
        return ""
    return ", ".join(map(str, value)) if isinstance(value, list | tuple | dict) else str(value)
