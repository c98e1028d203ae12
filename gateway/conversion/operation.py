"""Operations in two adjacent versions, and the table that finds the operation of a request."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import takewhile
from types import MappingProxyType
from typing import NamedTuple
from urllib.parse import quote, unquote, unquote_plus

from gateway.base.path_templates import Router, Template, has_dot_segment, parse_template
from gateway.conversion.conversion_error import Beside, ConversionError
from gateway.conversion.parameter_change import QUERY, ParameterLine, ParameterLines
from gateway.conversion.patches import ListKeys
from gateway.http.upstream.service import Service
from gateway.versions.version import Version

_PATTERN = re.compile(r"(?:([A-Z]+(?:-[A-Z]+)*) +)?(/[^?\s]*)(?:\?(\S+))?\Z")
_VALUE = re.compile(r"([^{}]*)\{([A-Za-z_][A-Za-z0-9_]*)\}([^{}]*)\Z")
Captures = Mapping[str, str]
"""The raw (percent-encoded) values of the captures in a path, by name."""
END = "/"
"""The key in Captures for a final slash of the requested path that the operation's path lacks."""


class _QueryPart(NamedTuple):
    """A query parameter that belongs to an operation, with a captured or a fixed value.

    `capture` is None for a fixed value.
    """

    name: str
    capture: str | None
    value: str = ""
    suffix: str = ""

    @property
    def text(self) -> str:
        captured = "" if self.capture is None else f"{{{self.capture}}}"
        return f"{self.name}={self.value}{captured}{self.suffix}"

    def filled(self, captured: str) -> str:
        return f"{self.value}{captured}{self.suffix}"

    def read(self, value: str) -> str | None:
        """Return the captured part of a value, or None if the value does not match.

        The captured part of a fixed value is an empty string.
        """
        if self.capture is None:
            return "" if value == self.value else None
        if not (value.startswith(self.value) and value.endswith(self.suffix)):
            return None
        return value[len(self.value) : len(value) - len(self.suffix)] or None


class OperationPattern(NamedTuple):
    """An operation of one version, such as `POST /pay`, `/users/{id}` or `GET /find?id={id}`."""

    method: str | None
    template: Template
    query: tuple[_QueryPart, ...] = ()

    @property
    def captures(self) -> frozenset[str]:
        named = {part.capture for part in self.query if part.capture is not None}
        return frozenset({*self.template.captures, *named} - {"version"})

    @property
    def text(self) -> str:
        query = "&".join(part.text for part in self.query)
        path = f"{self.template.text}?{query}" if query else self.template.text
        return path if self.method is None else f"{self.method} {path}"

    def takes(self, method: str) -> bool:
        return self.method is None or self.method == ("GET" if method == "HEAD" else method)

    def read(self, lines: ParameterLines) -> tuple[Captures, ParameterLines] | None:
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
        """Return the path with captures filled in; raises ConversionError for a dot segment.

        With `END` in the captures, the path ends with a slash.
        """
        for part in self.template.segments:
            if part.capture is not None and part.capture != "version":
                taken = captures[part.capture]
                if not part.tail and has_dot_segment(taken):
                    reason = f"'{part.capture}' is a dot segment, which a path cannot contain"
                    raise ConversionError(reason, Beside("path"))
        path = self.template.fill({**captures, "version": str(version)})
        return path if END not in captures or path.endswith("/") else f"{path}/"

    def written(self, captures: Captures, lines: ParameterLines) -> ParameterLines:
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
    """Parse an operation such as `GET /users/{id}`.

    Raises:
        ValueError: The string is not an operation. The message explains the mistake to the
            operator.
    """
    match = _PATTERN.match(text)
    if match is None:
        raise ValueError(
            f"'{text}' is not an operation; write a method and a path, as in GET /users/{{id}}, or"
            " a path for all methods"
        )
    method, path, query = match.groups()
    template = parse_template(path)
    parts: list[_QueryPart] = []
    for pair in query.split("&") if query else ():
        name, sign, value = pair.partition("=")
        if not name or not sign:
            raise ValueError(f"'{pair}' is not a parameter; write name={{capture}} or name=value")
        captured = _VALUE.match(value)
        if captured is None and not {"{", "}"}.isdisjoint(value):
            raise ValueError(
                f"'{pair}' has no capture; write one, as in name={{id}} or name=C-{{id}}"
            )
        before, capture, behind = (value, None, "") if captured is None else captured.groups()
        fixed = unquote_plus(before), unquote_plus(behind)
        parts.append(_QueryPart(unquote_plus(name), capture, *fixed))
    names = [*template.captures, *(part.capture for part in parts if part.capture is not None)]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"'{{{name}}}' occurs twice; every capture needs a different name")
    return OperationPattern(method, template, tuple(parts))


class Substitute(NamedTuple):
    """The service or the refusal that responds to an operation that the other version lacks.

    Attributes:
        service: A service that implements the version with the operation; None to refuse the
            request.
        methods: The methods that the client's version has at the path, for a refusal with 405.
    """

    service: Service | None
    status: int = 404
    detail: str = ""
    code: str | int | None = None
    usual: str = "This operation is no longer offered."
    methods: tuple[str, ...] = ()


class WriteRule(NamedTuple):
    """`writes` of a conversion or an operation.

    Attributes:
        methods: The methods of the clients' requests that are merged.
        keys: The names are those of the service's version.
        read: The operation that reads the document; None for GET with the path of the write.
        accepts_untagged: Whether writes are merged if the service sends no strong entity tag.
    """

    methods: frozenset[str]
    keys: ListKeys = MappingProxyType({})
    read: OperationPattern | None = None
    accepts_untagged: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class MappedOperation:
    """One operation in two adjacent versions, compared by identity.

    Attributes:
        newer: The operation in the newer version; None if the newer version lacks it.
        older: The operation in the older version; None if the older version lacks it.
        statuses: Maps statuses of the newer version to different statuses of the older version.
        body_in_newer: True if only requests of the newer version have a body, False if only
            requests of the older version have a body. None if the versions do not differ.
    """

    newer: OperationPattern | None
    older: OperationPattern | None
    statuses: Mapping[int, int] = field(default_factory=dict)
    substitute: Substitute | None = None
    body_in_newer: bool | None = None
    writes: WriteRule | None = None

    def side(self, *, newer: bool) -> OperationPattern | None:
        return self.newer if newer else self.older


def converted_status(statuses: Mapping[int, int], status: int, *, upwards: bool) -> int:
    """Convert the status of a response to the other version.

    If several newer statuses correspond to the same older one, an upgrade returns the first of
    them.
    """
    if not upwards:
        return statuses.get(status, status)
    return next((newer for newer, older in statuses.items() if older == status), status)


class FoundOperation(NamedTuple):
    """The operation of a request. `rest` has the query parameters that do not belong to it."""

    operation: MappedOperation
    captures: Captures
    rest: ParameterLines
    template: Template


# Percent-encoded letters, digits, hyphens, underscores and tildes. An encoded dot is not decoded,
# because it could form a dot segment.
_UNRESERVED = re.compile(r"%(?:2[Dd]|3[0-9]|[46][1-9A-Fa-f]|[57][0-9Aa]|5[Ff]|7[Ee])")
_Entry = tuple[OperationPattern, MappedOperation]


class OperationTable:
    """The operations declared between two adjacent versions, for requests in one of the versions.

    If several operations match a request, the first of these criteria that differs decides:

    1. operations with query parameters before operations without;
    2. more literal text in the path before less;
    3. more literal text in the query before less;
    4. operations with a method before operations for all methods;
    5. operations that both versions have before operations that one version lacks.
    """

    __slots__ = ("_all", "_both", "_by_method", "_without_get")

    def __init__(self, operations: Iterable[MappedOperation], *, newer: bool) -> None:
        sides = [(operation.side(newer=newer), operation) for operation in operations]
        own = [(side, operation) for side, operation in sides if side is not None]
        both = ((side.template, operation.side(newer=not newer)) for side, operation in own)
        self._both = tuple((one, other.template) for one, other in both if other is not None)
        methods = {side.method for side, _ in own if side.method is not None}
        self._all = _routers(entry for entry in own if entry[0].method is None)
        self._by_method = {
            method: _routers(entry for entry in own if entry[0].takes(method)) for method in methods
        }
        # HEAD matches only operations that are GET (or for all methods) in both versions.
        self._by_method["HEAD"] = _routers(
            (side, operation)
            for side, operation in own
            if side.takes("HEAD")
            and (operation.newer is None or operation.newer.takes("HEAD"))
            and (operation.older is None or operation.older.takes("HEAD"))
        )
        self._without_get = self._hidden_by_get(side for side, _ in own)

    def find(self, method: str, path: str, query: ParameterLines) -> FoundOperation | None:
        """Return the operation of a request, or None if no operation is declared for it.

        Percent-encoded unreserved characters match the plain characters (RFC 3986, section
        6.2.2.2). A final slash of the requested path is ignored if the path of the operation has no
        final slash, because many services ignore it.
        """
        if "%" in path:
            path = _UNRESERVED.sub(lambda match: unquote(match[0]), path)
        found = self._find(method, path, query)
        if not path.endswith("/") or (found is not None and not found.template.segments[-1].tail):
            return found
        bare = self._find(method, path[:-1], query)
        if bare is None or path.endswith("//"):
            return found
        return bare._replace(captures={**bare.captures, END: "/"})

    def _find(self, method: str, path: str, query: ParameterLines) -> FoundOperation | None:
        for router in self._by_method.get(method, self._all):
            sides, texts = router.find(path) or _NOTHING
            for side, operation in sides:
                taken = side.read(query)
                if taken is not None:
                    captures = dict(zip(side.template.captures, texts.values(), strict=True))
                    return FoundOperation(
                        operation, {**captures, **taken[0]}, taken[1], side.template
                    )
        return None

    def methods(
        self, path: str, query: ParameterLines, within: Template | None = None
    ) -> tuple[str, ...]:
        """Return the methods that have an operation at a path. Refused operations do not count.

        Args:
            within: If given, only operations with more literal text in the path than this template
                count.
        """
        found = {method: self.find(method, path, query) for method in sorted(self._by_method)}
        return tuple(
            method
            for method, one in found.items()
            if one is not None and (within is None or one.template.literal > within.literal)
            if one.operation.substitute is None or one.operation.substitute.service is not None
        )

    def method_of_link(self, path: Callable[[], str]) -> str:
        """Return the method that a client would use for a URL, usually GET.

        Another method is returned if its operation matches the path with more literal text. For
        example, `/orders/search` may be a POST operation, although `GET /orders/{id}` matches too.
        """
        found = None if self._without_get is None else self._without_get.find(path())
        return "GET" if found is None else found[0]

    def _hidden_by_get(self, sides: Iterable[OperationPattern]) -> Router[str] | None:
        hidden: dict[object, tuple[Template, str]] = {}
        for method, template, query in sides:
            if method is not None and not query:
                path = template.fill(dict.fromkeys(template.captures, "1"))
                got = self.find("GET", path, [])
                if got is not None and got.template.literal < template.literal:
                    hidden.setdefault(template.shape, (template, method))
        return Router(hidden.values()) if hidden else None

    def above(self, prefix: str, version: Version, other: Version) -> str | None:
        """Convert a path prefix to the other version.

        Args:
            prefix: A path of `version`, without a final slash.

        Returns:
            The longest common path in the version `other` of all operations below the prefix,
            without a final slash. None if no operation is at or below the prefix.
        """
        below = [
            _literal(there, other)
            for here, there in self._both
            if f"{here.text.replace(_VERSION, str(version))}/".startswith(f"{prefix}/")
        ]
        if not below:
            return None
        shared = takewhile(lambda column: len({*column}) == 1, zip(*below, strict=False))
        return "/".join(column[0] for column in shared)


def _literal(template: Template, version: Version) -> list[str]:
    segments = template.text.replace(_VERSION, str(version)).split("/")
    return list(takewhile(lambda segment: "{" not in segment, segments))


_VERSION = "{version}"
_Router = Router[tuple[_Entry, ...]]
_NOTHING: tuple[tuple[_Entry, ...], Captures] = ((), {})


def _routers(entries: Iterable[_Entry]) -> tuple[_Router, _Router]:
    by_shape: tuple[dict[object, list[_Entry]], dict[object, list[_Entry]]] = {}, {}
    for entry in entries:
        side = entry[0]
        by_shape[not side.query].setdefault(side.template.shape, []).append(entry)
    with_query, without = (
        Router((some[0][0].template, tuple(sorted(some, key=_rank))) for some in shapes.values())
        for shapes in by_shape
    )
    return with_query, without


def _rank(entry: _Entry) -> tuple[int, int, bool, bool]:
    side, operation = entry
    literal = sum(len(part.value) + len(part.suffix) for part in side.query)
    lacking = operation.newer is None or operation.older is None
    return -len(side.query), -literal, side.method is None, lacking
