"""Operations: one operation as two adjacent versions have it, or what answers in its place."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import quote, unquote, unquote_plus

from gateway.base.path_templates import Template, has_dot_segment, parse_template
from gateway.conversion.conversion_error import Beside, ConversionError
from gateway.conversion.parameter_change import QUERY, ParameterLine, ParameterLines
from gateway.http.upstream.service import Service
from gateway.versions.version import Version

_PATTERN = re.compile(r"(?:([A-Z]+(?:-[A-Z]+)*) +)?(/[^?\s]*)(?:\?(\S+))?\Z")
_VALUE = re.compile(r"([^{}]*)\{([A-Za-z_][A-Za-z0-9_]*)\}([^{}]*)\Z")
Captures = Mapping[str, str]
"""The raw texts of captures, as a path holds them."""
END = "/"
"""The key among captures for a slash at the end of a path whose operation has none."""


class QueryPart(NamedTuple):
    """A query parameter that belongs to an operation: a part of its path elsewhere, or a constant.

    Attributes:
        name: The name of the parameter.
        capture: The name under which the value, or a part of it, is captured; None where the value
            is fixed.
        value: The fixed value, or what stands before the captured part.
        suffix: What stands behind the captured part.
    """

    name: str
    capture: str | None
    value: str = ""
    suffix: str = ""

    @property
    def text(self) -> str:
        """The parameter as it is written."""
        captured = "" if self.capture is None else f"{{{self.capture}}}"
        return f"{self.name}={self.value}{captured}{self.suffix}"

    def filled(self, captured: str) -> str:
        """Return the value with what is captured."""
        return f"{self.value}{captured}{self.suffix}"

    def read(self, value: str) -> str | None:
        """Return the captured part of a value, empty where it is fixed; None without a match."""
        if self.capture is None:
            return "" if value == self.value else None
        if not (value.startswith(self.value) and value.endswith(self.suffix)):
            return None
        return value[len(self.value) : len(value) - len(self.suffix)] or None


class OperationPattern(NamedTuple):
    """An operation as one version has it: `POST /pay`, `/users/{id}`, `GET /find?id={id}`.

    Attributes:
        method: The method; None for all methods.
        template: The path that the version's service is asked for.
        query: The query parameters that belong to the operation.
    """

    method: str | None
    template: Template
    query: tuple[QueryPart, ...] = ()

    @property
    def captures(self) -> frozenset[str]:
        """The names of all captures, but for that of the version."""
        named = {part.capture for part in self.query if part.capture is not None}
        return frozenset({*self.template.captures, *named} - {"version"})

    @property
    def text(self) -> str:
        """The pattern as it is written."""
        query = "&".join(part.text for part in self.query)
        path = f"{self.template.text}?{query}" if query else self.template.text
        return path if self.method is None else f"{self.method} {path}"

    def takes(self, method: str) -> bool:
        """Return whether requests of a method are for this operation; HEAD goes with GET."""
        return self.method is None or self.method == ("GET" if method == "HEAD" else method)

    def read(self, lines: ParameterLines) -> tuple[Captures, ParameterLines] | None:
        """Return what the query captures and the other parameters, or None without a match."""
        found: dict[str, str] = {}
        for part in self.query:
            values = [line.value or "" for line in lines if line.key == part.name]
            if len(values) != 1:
                return None
            value = part.read(unquote_plus(values[0]))
            if value is None:
                return None
            if part.capture is not None:
                found[part.capture] = quote(value, safe="")
        names = {part.name for part in self.query}
        return found, [line for line in lines if line.key not in names]

    def path(self, captures: Captures, version: Version) -> str:
        """Return the path with its captures; raises ConversionError for one that leaves it.

        A slash that the operation lacks at its end is added where the captures have `END`.
        """
        for part in self.template.segments:
            if part.capture is not None and part.capture != "version":
                taken = captures[part.capture]
                if not part.tail and has_dot_segment(taken):
                    reason = f"'{part.capture}' is a dot segment, which no path has"
                    raise ConversionError(reason, Beside("path"))
        path = self.template.fill({**captures, "version": str(version)})
        return path if END not in captures or path.endswith("/") else f"{path}/"

    def written(self, captures: Captures, lines: ParameterLines) -> ParameterLines:
        """Return the query with the parameters of the operation before the others."""
        own = [
            ParameterLine(
                part.name,
                QUERY.name(part.name),
                QUERY.write(part.filled(unquote(captures.get(part.capture or "", "")))),
            )
            for part in self.query
        ]
        return own + lines


def parse_operation(text: str) -> OperationPattern:
    """Return the pattern that is written as `text`.

    Raises:
        ValueError: The text is no operation; the message is a sentence for the operator.
    """
    match = _PATTERN.match(text)
    if match is None:
        raise ValueError(
            f"'{text}' is not an operation; write a method and a path, as in GET /users/{{id}}, or"
            " a path for all methods"
        )
    method, path, query = match.groups()
    template = parse_template(path)
    parts: list[QueryPart] = []
    for pair in query.split("&") if query else ():
        name, sign, value = pair.partition("=")
        if not name or not sign:
            raise ValueError(f"'{pair}' is no parameter; write name={{capture}} or name=value")
        captured = _VALUE.match(value)
        if captured is None and not {"{", "}"}.isdisjoint(value):
            raise ValueError(
                f"'{pair}' has no capture; write one, as in name={{id}} or name=C-{{id}}"
            )
        before, capture, behind = (value, None, "") if captured is None else captured.groups()
        fixed = unquote_plus(before), unquote_plus(behind)
        parts.append(QueryPart(unquote_plus(name), capture, *fixed))
    names = [*template.captures, *(part.capture for part in parts if part.capture is not None)]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"'{{{name}}}' stands twice; every capture needs a name of its own")
    return OperationPattern(method, template, tuple(parts))


class Substitute(NamedTuple):
    """What answers an operation that the other version lacks: a service, or a fixed refusal.

    Attributes:
        service: The service, which speaks the version that has the operation; None refuses.
        status: The status of the refusal.
        detail: The sentence in the refusal that the rules give; empty for the usual one.
        code: The code in the refusal that the rules give; None for that of all such refusals.
        usual: The usual sentence.
        methods: The methods that the client's version has at the path, for a refusal with 405.
    """

    service: Service | None
    status: int = 404
    detail: str = ""
    code: str | int | None = None
    usual: str = "This operation is no longer offered."
    methods: tuple[str, ...] = ()

    @property
    def refusal(self) -> tuple[int, str, str, str | int | None, tuple[str, ...]]:
        """The arguments of `gateway.base.errors.not_offered`."""
        return self.status, self.usual, self.detail, self.code, self.methods


@dataclass(frozen=True, slots=True, eq=False)
class MappedOperation:
    """One operation in two adjacent versions; each is equal to itself alone.

    Attributes:
        newer: The operation in the newer version; None where that lacks it.
        older: The operation in the older version; None where that lacks it.
        statuses: The statuses of answers that differ: the older version's by the newer version's.
        substitute: What answers where one version lacks it.
        body_in_newer: Whether the newer version's requests have a body and the older version's have
            none, or the reverse; None where that does not differ.
    """

    newer: OperationPattern | None
    older: OperationPattern | None
    statuses: Mapping[int, int] = field(default_factory=dict)
    substitute: Substitute | None = None
    body_in_newer: bool | None = None

    def side(self, *, newer: bool) -> OperationPattern | None:
        """Return the operation as one of the two versions has it."""
        return self.newer if newer else self.older


def converted_status(statuses: Mapping[int, int], status: int, *, upwards: bool) -> int:
    """Return a status as the other version has it.

    Args:
        statuses: The older version's status by the newer version's.
        status: The status of an answer.
        upwards: Whether the answer is converted to the newer version; where several of its statuses
            are one in the older version, it is the first.
    """
    if not upwards:
        return statuses.get(status, status)
    return next((newer for newer, older in statuses.items() if older == status), status)
