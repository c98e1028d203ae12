"""CORS: which scripts in browsers may read the gateway's own answers (Fetch, section 3.2).

Services answer CORS for themselves. What a service never sees, such as a request of a version that
has ended, the gateway answers, and a browser hides that answer from the script unless it has the
fields of CORS. As with the CORS filters of Envoy and Kong, operators name the origins.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from gateway.base.headers import FieldLines
from gateway.base.request import HeaderLookup
from gateway.routing.preflight import PREFLIGHT

ANY_ORIGIN = "*"
"""What stands for all origins."""
_ORIGIN = "Origin"
_REQUESTED = "Access-Control-Request-Headers"
# What scripts may read of any answer (Fetch, section 2.2.6), and what is not for them.
_READABLE = frozenset(
    {b"cache-control", b"content-length", b"content-type", b"date", b"vary", b"via"}
)


@dataclass(frozen=True, slots=True)
class CorsRules:
    """The origins whose scripts may read the gateway's own answers.

    Attributes:
        origins: The origins; ANY_ORIGIN alone stands for all.
        credentials: Whether scripts may send cookies and the like. It goes with named origins.
    """

    origins: frozenset[str]
    credentials: bool = False

    @property
    def vary(self) -> tuple[str, ...]:
        """The names of the request fields that the answer depends on."""
        return () if ANY_ORIGIN in self.origins else (_ORIGIN,)

    def answer(self, request: HeaderLookup, fields: Iterable[tuple[bytes, bytes]]) -> FieldLines:
        """Return the fields by which a script can read an answer; none for other origins.

        Args:
            request: The header fields of the request.
            fields: The header fields of the answer, which the script can read too.
        """
        allowed = self._allowed(request)
        if not allowed:
            return ()
        names = dict.fromkeys(name for name, _ in fields if name.lower() not in _READABLE)
        return (*allowed, (b"Access-Control-Expose-Headers", b", ".join(names)))

    def preflight(self, request: HeaderLookup) -> FieldLines:
        """Return the fields that let a browser send what its preflight asks about.

        Without them, the script would see a network error in place of the answer to its request.

        Returns:
            The fields; none for any other request, and for other origins.
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
    """Return a field as bytes; empty where it is absent, or stands twice."""
    values = request.getall(name, ())
    return values[0].encode("utf-8", "surrogateescape") if len(values) == 1 else b""
