"""`cors` in gateway.yaml: the origins whose scripts may read the gateway's own responses."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from gateway.base.headers import FieldLines
from gateway.base.mistakes import Mistakes
from gateway.base.model import SectionModel, Some
from gateway.base.request import HeaderLookup
from gateway.conversion.chain import Conversion
from gateway.conversion.version_step import Direction, MessageKind, VersionLink

PREFLIGHT = "Access-Control-Request-Method"
"""The header field of a preflight with the method of the request that follows."""
ANY_ORIGIN = "*"
"""The value in `origins` that allows all origins."""
_ORIGIN = "Origin"
_REQUESTED = "Access-Control-Request-Headers"
# Fields that need not be exposed: scripts may read them in any response (Fetch, section 2.2.6), or
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
    """The origins whose scripts may read the gateway's own responses."""

    origins: frozenset[str]
    credentials: bool = False

    @property
    def vary(self) -> tuple[str, ...]:
        """The names of the request header fields that the response depends on, for Vary."""
        return () if ANY_ORIGIN in self.origins else (_ORIGIN,)

    def answer(self, request: HeaderLookup, fields: Iterable[tuple[bytes, bytes]]) -> FieldLines:
        """Return the header fields that allow a script to read a response.

        Args:
            request: The header fields of the request.
            fields: The header fields of the response. The script may read them, too.

        Returns:
            Empty if the origin of the request is not allowed.
        """
        allowed = self._allowed(request)
        if not allowed:
            return ()
        names = dict.fromkeys(name for name, _ in fields if name.lower() not in _READABLE)
        return (*allowed, (b"Access-Control-Expose-Headers", b", ".join(names)))

    def preflight(self, request: HeaderLookup) -> FieldLines:
        """Return the header fields that allow a browser to send the request after its preflight.

        Without them, the script would get a network error instead of the response.

        Returns:
            Empty if the request is not a preflight, or if its origin is not allowed.
        """
        method, allowed = _one(request, PREFLIGHT), self._allowed(request)
        if not method or not allowed:
            return ()
        lines = [*allowed, (b"Access-Control-Allow-Methods", method)]
        names = _one(request, _REQUESTED)
        if names:
            lines.append((b"Access-Control-Allow-Headers", names))
        return tuple(lines)

    def _allowed(self, request: HeaderLookup) -> FieldLines:
        origin = _one(request, _ORIGIN)
        if not origin:
            return ()
        if ANY_ORIGIN in self.origins:
            return ((b"Access-Control-Allow-Origin", ANY_ORIGIN.encode()),)
        if origin.decode("latin-1") not in self.origins:
            return ()
        line = b"Access-Control-Allow-Origin", origin
        return (
            (line, (b"Access-Control-Allow-Credentials", b"true")) if self.credentials else (line,)
        )


def _one(request: HeaderLookup, name: str) -> bytes:
    """Return the value of a header field; empty if the field is missing or repeated."""
    values = request.getall(name, ())
    return values[0].encode("utf-8", "surrogateescape") if len(values) == 1 else b""


_ALL = "*"
NamePair = tuple[tuple[str, ...], tuple[str, ...]]
"""The names of header fields before a conversion and after it. Either side may be empty."""


def name_pairs(conversion: Conversion, method: str, kind: MessageKind) -> tuple[NamePair, ...]:
    """Return the names of the header fields that a conversion changes, in the order of changes."""
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
    """Convert the header names that a preflight requests to the names in the service's version."""
    found = _lower(names)
    for client, service in pairs:
        found = _replaced(found, client, service, whole=False)
    return found


def allowed(names: Sequence[str], pairs: Sequence[NamePair]) -> list[str]:
    """Convert the header names that a service allows to the names in the client's version.

    If one name of the client becomes several names of the service, it is allowed only if the
    service allows them all. A name without a counterpart in the service's version is always
    allowed.
    """
    found = _lower(names)
    if _ALL in found:
        return found
    for client, service in reversed(pairs):
        found = _replaced(found, service, client, whole=True) if service else [*found, *client]
    return _lower(found)


def exposed(names: Sequence[str], pairs: Sequence[NamePair], present: Collection[str]) -> list[str]:
    """Convert the header names that a service exposes to the names in the client's version.

    Args:
        names: The names that the service exposes.
        pairs: The changed names, with the service's names first.
        present: The names of the fields in the converted response, in lower case. If the conversion
            made a field from something other than a header field, its name is exposed, too.
    """
    found = _lower(names)
    if _ALL in found:
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
    """Replace the names in `source` with the names in `target`, at the position of the first one.

    Args:
        whole: Whether all names in `source` must be present; otherwise, one is enough.
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


# The format of origins in browsers (RFC 6454, section 6.2; Fetch, section 3.2.1).
_WRITTEN_ORIGIN = re.compile(
    r"[a-z][a-z0-9+.-]*://(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?\Z", re.ASCII
)
_USUAL_PORTS = ("http", ":80"), ("https", ":443")


class Cors(SectionModel):
    """The scripts in browsers that may read the gateway's own responses."""

    origins: Some[str]
    """The origins of the scripts, such as https://app.example.com, or "*" for all. Name only
    origins that the services also allow."""
    credentials: bool = False
    """Whether scripts may send cookies and client certificates, as with the Fetch option
    `credentials: include`. It requires named origins, not "*". The default is false."""

    def compile(self, mistakes: Mistakes) -> CorsRules:
        for index, origin in enumerate(self.origins):
            here = mistakes.below("cors", "origins", index)
            if origin != ANY_ORIGIN:
                here.attempt(partial(_check, origin))
            elif len(self.origins) > 1:
                here.add("stands for all origins; remove the others")
            elif self.credentials:
                text = 'no browser takes them from all origins ("*"); name the origins'
                mistakes.add(text, "cors", "credentials")
        return CorsRules(frozenset(self.origins), self.credentials)


def _check(origin: str) -> None:
    scheme, _, rest = origin.partition("://")
    if not _WRITTEN_ORIGIN.match(origin) or any(
        scheme == name and rest.endswith(port) for name, port in _USUAL_PORTS
    ):
        raise ValueError(
            "not an origin as browsers write it; write the scheme, the host in small letters and a"
            " port that is not the usual one, as in https://app.example.com"
        )
