"""`shadow` in gateway.yaml: copies of requests to another version, to compare the responses."""

from typing import Annotated, Literal, NamedTuple
from urllib.parse import quote

from pydantic import Field

from gateway.base.headers import GATEWAY_FIELDS, RESERVED_FIELDS, HeaderFields
from gateway.base.mistakes import Location, Mistakes
from gateway.base.model import (
    Bytes,
    FieldName,
    Method,
    NonEmptyText,
    Percent,
    SectionModel,
    Some,
    matching,
)
from gateway.base.overrides import VersionKey
from gateway.base.urls import parameters
from gateway.rollout.differences import NOTHING, IgnoredPlaces, parse_ignored

_WRITES = "POST", "PUT", "PATCH", "DELETE"
WRITES = frozenset(_WRITES)

SAFE = frozenset({"GET", "HEAD"})


ShadowMode = Literal["send", "dry_run", "validate"]


class DryRun(SectionModel):
    """The mark of a dry run: the service of `via` processes a marked write without effect."""

    header: FieldName | None = None
    """The request header that marks a dry run, such as Prefer. Either a header or a query parameter
    marks a dry run."""
    query: NonEmptyText | None = None
    """The query parameter that marks a dry run, such as dryRun."""
    value: Annotated[
        str, matching(r"^[ -~]*$", "not a value of a header or parameter; write printable ASCII")
    ]
    """The value of the header or the query parameter that marks a dry run."""
    methods: Some[Method] = _WRITES
    """The methods for which the service supports dry runs. The default is POST, PUT, PATCH, DELETE.
    """
    paths: Some[str] | None = None
    """The paths of the endpoints for which the service supports dry runs. A service that ignores
    the mark would execute the request. The default is all."""

    def compile(self, at: Location, mistakes: Mistakes) -> "DryRunMark":
        if (self.header is None) == (self.query is None):
            mistakes.add("needs either header or query; write one of the two", *at)
        if (
            self.header is not None
            and self.header.lower().encode() in RESERVED_FIELDS | GATEWAY_FIELDS
        ):
            mistakes.add(
                "is reserved; name the header that the service expects, such as Prefer",
                *(*at, "header"),
            )
        return DryRunMark(
            self.header or self.query or "",
            self.value,
            self.query is not None,
            frozenset(self.methods),
            None if self.paths is None else frozenset(self.paths),
        )


class Shadow(SectionModel):
    """Copies of requests are sent to another version's service, and the responses are compared."""

    via: str
    """The version whose service gets the shadow requests, through the conversions between the
    two."""
    percent: Percent = 100.0
    """The percentage of repeated requests. The default is 100."""
    ignore: tuple[str, ...] = ()
    """The JSON Pointers of locations in the body that may differ, with `*` for every element of an
    array and every member of an object. By default, all locations are compared."""
    ignore_added: bool = False
    """Whether fields that only the service of `via` adds to objects are ignored. The default is
    false."""
    headers: tuple[FieldName, ...] = ()
    """The compared response headers. By default, headers are not compared."""
    methods: Some[Method] = ("GET",)
    """The methods of repeated requests; GET includes HEAD. The default is GET."""
    noise: bool = True
    """Whether the request is also repeated to the version's own service, to find the values that
    differ between any two responses. The default is true."""
    dry_run: DryRun | None = None
    """The mark of a dry run, which the service of `via` processes without effect. Writes are
    repeated with the mark, and their responses are compared. Without it, writes are repeated only
    if `methods` lists their method."""
    validate_: Annotated[bool, Field(alias="validate")] = False
    """Whether writes (POST, PUT, PATCH, DELETE) that are not repeated are converted and validated
    against the OpenAPI document of `via`. The default is false."""
    samples: Literal["redacted", "plain"] = "redacted"
    """Whether samples of differences show types and sizes (redacted) or values (plain). The
    default is redacted."""
    body: Bytes = 64 * 1024
    """The maximum size of a compared body, in bytes. The default is 65536."""

    def compile(self, key: VersionKey, at: Location, mistakes: Mistakes) -> "VersionShadow":
        places = mistakes.attempt_each(parse_ignored, self.ignore, *at, "ignore")
        dry_run = None
        if self.dry_run is not None:
            dry_run = self.dry_run.compile((*at, "dry_run"), mistakes)
        return VersionShadow(
            key,
            self.percent,
            IgnoredPlaces(frozenset(places), self.ignore_added),
            tuple(dict.fromkeys(name.lower() for name in self.headers)),
            frozenset({*self.methods, *(("HEAD",) if "GET" in self.methods else ())}),
            self.noise,
            self.samples == "plain",
            self.body,
            dry_run,
        )


class DryRunMark(NamedTuple):
    """The mark of a dry run: a header field or a query parameter of a request to a service.

    The mark replaces the client's fields or parameters of the same name. So a client cannot turn a
    dry run into a write.
    """

    name: str
    value: str
    in_query: bool = False
    methods: frozenset[str] = WRITES
    paths: frozenset[str] | None = None

    def applies(self, method: str, path: str) -> bool:
        return method in self.methods and (self.paths is None or path in self.paths)

    def target(self, target: str) -> str:
        if not self.in_query:
            return target
        path, _, query = target.partition("?")
        pairs = parameters(self.name).sub("", query).split("&")
        mark = f"{quote(self.name, safe='')}={quote(self.value, safe='')}"
        return f"{path}?{'&'.join([*filter(None, pairs), mark])}"

    def fields(self, fields: HeaderFields) -> HeaderFields:
        if self.in_query:
            return fields
        name = self.name.encode()
        others = [field for field in fields if field[0].lower() != name.lower()]
        return [*others, (name, self.value.encode())]


class VersionShadow(NamedTuple):
    """The shadow of one version.

    It compares the responses of the version's own service with the converted responses of another
    version's service.

    Attributes:
        body: The maximum size of a body in bytes; larger bodies are not compared.
        document: The URL or file path of the OpenAPI document against which writes are validated
            if they are not repeated; None without validation.
    """

    key: VersionKey
    percent: float = 100.0
    ignored: IgnoredPlaces = NOTHING
    headers: tuple[str, ...] = ()
    methods: frozenset[str] = SAFE
    noise: bool = True
    plain: bool = False
    body: int = 64 * 1024
    dry_run: DryRunMark | None = None
    document: str | None = None

    def mode(self, method: str, path: str) -> ShadowMode | None:
        """Return how requests with this method and endpoint path are handled; None ignores them.

        A dry run takes precedence: if the service supports dry runs, the request is never sent
        without the mark.
        """
        if self.dry_run is not None and self.dry_run.applies(method, path):
            return "dry_run"
        if method in self.methods:
            return "send"
        if self.document is not None and method in WRITES:
            return "validate"
        return None

    def selects(self, method: str, path: str, draw: float) -> bool:
        """Return whether to compare a request; `draw` is its random number from 0 to 1."""
        return draw * 100 < self.percent and (
            method in self.methods or self.mode(method, path) is not None
        )
