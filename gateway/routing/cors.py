"""`cors` in gateway.yaml: the origins whose scripts may read responses.

At the top level, `cors` applies to the gateway's own responses. The `cors` of an API applies to all
its responses, and the gateway answers preflights (Fetch, section 3.2).
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated

from pydantic import Field

from gateway.base.headers import FieldLines
from gateway.base.mistakes import Mistakes
from gateway.base.model import FieldName, NumberText, SectionModel, Some, matching
from gateway.base.request import HeaderLookup
from gateway.conversion.chain import Conversion
from gateway.conversion.version_step import Direction, MessageKind, VersionLink

PREFLIGHT = "Access-Control-Request-Method"
ANY = "*"
"""The value in `origins`, `methods`, `headers` and `exposed` that stands for all."""
RESPONSE_FIELDS = frozenset(
    b"access-control-" + name
    for name in (
        b"allow-credentials allow-headers allow-methods allow-origin expose-headers max-age".split()
    )
)
"""The response header fields that the `cors` of an API replaces."""
_ORIGIN = "Origin"
_REQUESTED = "Access-Control-Request-Headers"
# Fields that need not be exposed: scripts can read them in any response (Fetch, section 2.2.6) or
# have no use for them.
_READABLE = frozenset(
    {b"cache-control", b"content-length", b"content-type", b"date", b"vary", b"via"}
)


def is_preflight(method: str, fields: HeaderLookup) -> bool:
    """Return whether a request is a CORS preflight (Fetch, section 3.2.2)."""
    return (
        method == "OPTIONS"
        and bool(fields.getall(PREFLIGHT, ()))
        and bool(fields.getall("Origin", ()))
    )


@dataclass(frozen=True, slots=True)
class CorsRules:
    """The origins whose scripts may read responses.

    Attributes:
        methods: The methods that a preflight allows; empty allows the requested method.
        headers: The header names that a preflight allows; empty allows the requested names.
        exposed: The service's header names that scripts may read; `*` stands for all.
        max_age: How many seconds browsers may store the result of a preflight; None uses their
            default.
    """

    origins: frozenset[str]
    credentials: bool = False
    methods: bytes = b""
    headers: bytes = b""
    exposed: tuple[bytes, ...] = ()
    max_age: int | None = None

    @property
    def vary(self) -> tuple[str, ...]:
        return () if ANY in self.origins else (_ORIGIN,)

    def answer(
        self,
        request: HeaderLookup,
        fields: Iterable[tuple[bytes, bytes]],
        added: FieldLines | None = None,
    ) -> FieldLines:
        """Return the header fields that allow a script to read a response.

        Args:
            added: The fields that the gateway has added to a service's response, of which the
                script may read only these and `exposed`; None for a response of the gateway.

        Returns:
            Empty if the origin of the request is not allowed.
        """
        allowed = self._allowed(request)
        if not allowed:
            return ()
        names = [name for name, _ in fields]
        if added is not None and ANY.encode() not in self.exposed:
            names = [*self.exposed, *(name for name, _ in added), b"X-Request-Id"]
        known = {name.lower(): name for name in names}
        shown = [name for lower, name in known.items() if lower not in _READABLE]
        return (*allowed, (b"Access-Control-Expose-Headers", b", ".join(shown)))

    def preflight(self, request: HeaderLookup) -> FieldLines:
        """Return the header fields that allow a browser to send a request after its preflight.

        The result is empty if the request is not a preflight, or if its origin is not allowed.
        """
        method, allowed = _one(request, PREFLIGHT), self._allowed(request)
        if not method or not allowed:
            return ()
        lines = [*allowed, (b"Access-Control-Allow-Methods", self.methods or method)]
        names = self.headers or _one(request, _REQUESTED)
        if names:
            lines.append((b"Access-Control-Allow-Headers", names))
        if self.max_age is not None:
            lines.append((b"Access-Control-Max-Age", b"%d" % self.max_age))
        return tuple(lines)

    def _allowed(self, request: HeaderLookup) -> FieldLines:
        origin = _one(request, _ORIGIN)
        if not origin:
            return ()
        if ANY in self.origins:
            return ((b"Access-Control-Allow-Origin", ANY.encode()),)
        if origin.decode("latin-1") not in self.origins:
            return ()
        line = b"Access-Control-Allow-Origin", origin
        return (
            (line, (b"Access-Control-Allow-Credentials", b"true")) if self.credentials else (line,)
        )


def _one(request: HeaderLookup, name: str) -> bytes:
    values = request.getall(name, ())
    return values[0].encode("utf-8", "surrogateescape") if len(values) == 1 else b""


NamePair = tuple[tuple[str, ...], tuple[str, ...]]
"""The names of header fields before and after a conversion. Either side may be empty."""


def name_pairs(conversion: Conversion, method: str, kind: MessageKind) -> tuple[NamePair, ...]:
    up = conversion.direction is Direction.UP
    known = "GET" if method == "HEAD" else method
    return tuple(
        (older, newer) if up else (newer, older)
        for link in conversion.links
        if kind in link.on and (link.methods is None or {known, method} & link.methods)
        for newer, older in (_moved(link) if up else reversed([*_moved(link)]))
    )


def _moved(link: VersionLink) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    for rewritten in link.headers:
        yield from (each for each in rewritten.names if {*each.newer} != {*each.older})
    for change in link.changes:
        if change.carried is not None:
            yield from change.carried.names


def requested(names: Sequence[str], pairs: Sequence[NamePair]) -> list[str]:
    found = _lower(names)
    for client, service in pairs:
        found = _replaced(found, client, service, whole=False)
    return found


def allowed(names: Sequence[str], pairs: Sequence[NamePair]) -> list[str]:
    """Convert the header names that a service allows to the names in the client's version.

    If the conversion turns one header of the client into several headers, the client's header is
    allowed only if the service allows all of them. A header without a counterpart in the service's
    version is always allowed.
    """
    found = _lower(names)
    if ANY in found:
        return found
    for client, service in reversed(pairs):
        found = _replaced(found, service, client, whole=True) if service else [*found, *client]
    return _lower(found)


def exposed(names: Sequence[str], pairs: Sequence[NamePair], present: Collection[str]) -> list[str]:
    """Convert the header names that a service exposes to the names in the client's version.

    Args:
        present: The names of the fields in the converted response, in lower case. A header field
            that the conversion made from another part of the response is also exposed.
    """
    found = _lower(names)
    if ANY in found:
        return found
    for service, client in pairs:
        if service:
            found = _replaced(found, service, client, whole=False)
        else:
            found += (name for name in client if name.lower() in present)
    return _lower(found)


def _replaced(
    names: list[str], source: tuple[str, ...], target: tuple[str, ...], *, whole: bool
) -> list[str]:
    """Replace the names in `source` with the names in `target`, at the position of the first match.

    Args:
        whole: Whether all names in `source` must be present; otherwise, a single name is
            sufficient.
    """
    gone = {name.lower() for name in source}
    here = gone.intersection(names)
    if not here or (whole and here != gone):
        return names
    place = min(names.index(name) for name in here)
    kept = [name for name in names if name not in gone]
    return _lower([*kept[:place], *target, *kept[place:]])


def _lower(names: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(name.lower() for name in names if name))


# The form in which browsers write origins (RFC 6454, section 6.2; Fetch, section 3.2.1).
_WRITTEN_ORIGIN = re.compile(
    r"[a-z][a-z0-9+.-]*://(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?\Z", re.ASCII
)
_USUAL_PORTS = ("http", ":80"), ("https", ":443")


class Cors(SectionModel):
    """The origins of browser scripts that may read the gateway's own responses."""

    origins: Some[str]
    """The origins of the scripts, such as https://app.example.com, or "*" for all. Name only
    origins that the services also allow."""
    credentials: bool = False
    """Whether scripts may send cookies and client certificates, as with the Fetch option
    `credentials: include`. This requires named origins instead of "*". The default is false."""

    def compile(self, mistakes: Mistakes) -> CorsRules:
        for index, origin in enumerate(self.origins):
            here = mistakes.below("origins", index)
            if origin != ANY:
                here.attempt(partial(_check, origin))
            elif len(self.origins) > 1:
                here.add("allows all origins; remove the others")
            elif self.credentials:
                text = (
                    'browsers do not accept credentials together with all origins ("*");'
                    " name the origins"
                )
                mistakes.add(text, "credentials")
        return CorsRules(frozenset(self.origins), self.credentials)


CorsMethod = Annotated[
    str,
    matching(
        r"^(\*|[A-Z]+(-[A-Z]+)*)$",
        'not an HTTP method; write it in capitals, as in GET, or "*" for all methods',
    ),
]


class ApiCors(Cors):
    """The browser scripts that may use an API. The gateway responds to their preflights itself."""

    origins: Some[str]
    """The origins of the scripts, such as https://app.example.com, or "*" for all."""
    methods: Some[CorsMethod] = (ANY,)
    """The methods that scripts may use; "*" stands for all. The default is *."""
    headers: Some[FieldName] = (ANY,)
    """The request header fields that scripts may send, by the names in the clients' versions; "*"
    stands for all. The default is *."""
    exposed: tuple[FieldName, ...] = ()
    """The response header fields that scripts may read, by the names in the clients' versions, or
    "*" for all. Scripts may always read the fields that the gateway adds. By default, scripts may
    read no other fields."""
    max_age: Annotated[int, Field(ge=0, le=86_400), NumberText] | None = None
    """The seconds for which browsers store the result of a preflight. Without it, most browsers
    store the result for 5 seconds."""

    def compile(self, mistakes: Mistakes) -> CorsRules:
        return replace(
            super().compile(mistakes),
            methods=_all_or_named(self.methods),
            headers=_all_or_named(self.headers),
            exposed=tuple(name.encode() for name in self.exposed),
            max_age=self.max_age,
        )


def _all_or_named(values: Sequence[str]) -> bytes:
    return b"" if ANY in values else ", ".join(values).encode()


def _check(origin: str) -> None:
    scheme, _, rest = origin.partition("://")
    if not _WRITTEN_ORIGIN.match(origin) or any(
        scheme == name and rest.endswith(port) for name, port in _USUAL_PORTS
    ):
        raise ValueError(
            "not an origin as browsers write it; write the scheme, the host in lower case, and "
            "the port if it is not the default port, as in https://app.example.com"
        )
