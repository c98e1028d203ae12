"""The guard of the admin port: what keeps browsers of strangers and idle connections off it.

A browser on the machine of an operator reaches the port, with the operator's login, for any page:
by a host name of that page that resolves to 127.0.0.1 (DNS rebinding), or by a form that posts
across sites. Both are refused by what browsers always send: Host, Origin and Sec-Fetch-Site.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import cast
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.web_protocol import RequestPayloadError

from gateway.admin.access.connection_places import ConnectionPlaces
from gateway.core.answers.url_parts import is_address

# From the connection to the end of the first request, and for each body, in seconds.
REQUEST_SECONDS = 10.0
# For so many seconds at most, a client takes nothing of an answer that waits for it.
STALL_SECONDS = 60.0
# What probes ask, by whatever name they know the gateway, and what gives nothing away.
NOWHERE = "nowhere"
"""The name of the part of a path that no other route has."""
_OPEN_PATHS = frozenset({"/healthz", "/readyz"})

Handle = Callable[[web.Request], Awaitable[web.StreamResponse]]


class AdminProblemError(Exception):
    """A request of the admin port is refused; the text is the detail of the answer.

    Attributes:
        status: of the answer.
        code: a stable, machine-readable name.
        fields: further header fields of the answer.
    """

    def __init__(
        self, status: int, code: str, detail: str, fields: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.fields = fields or {}


class AdminGuard:
    """Refuses requests that a browser sends for a stranger, and bounds connections.

    Args:
        hosts: the host names under which the port may be asked, beside addresses, `localhost` and
            names without a dot, none of which a stranger can register.
        count: takes the name of a bound each time that it closes a connection.
    """

    def __init__(
        self, hosts: Collection[str] = (), count: Callable[[str], None] = lambda _: None
    ) -> None:
        self._hosts = frozenset(host.lower() for host in hosts)
        self._count = count
        self._open = ConnectionPlaces[asyncio.Transport]()
        self._asked: set[asyncio.BaseTransport] = set()

    async def check(self, request: web.Request) -> None:
        """Check a request, and read its body; that of a form is parsed for whoever reads it.

        Raises:
            AdminProblemError: it is refused.
        """
        transport = request.transport
        if transport is not None and transport in self._open:
            self._asked.add(transport)
        # A path that is not there has nothing to guard.
        if request.path not in _OPEN_PATHS and NOWHERE not in request.match_info:
            self._check_host(request.host)
            self._check_origin(request)
        try:
            if request.headers.get("Content-Encoding", "identity").lower() != "identity":
                raise ValueError("it is coded")
            async with asyncio.timeout(REQUEST_SECONDS) as limit:
                await request.read()
            await request.post()
        except TimeoutError:
            if not limit.expired():
                raise
            detail = f"the body was not there within {REQUEST_SECONDS:g} seconds"
            raise AdminProblemError(408, "request_timeout", detail) from None
        # Of the bytes, of their coding (LookupError), or of what they have to be.
        except (RequestPayloadError, LookupError, ValueError):
            detail = "the body cannot be read; send a form in UTF-8, without a content coding"
            raise AdminProblemError(400, "bad_request", detail) from None

    def _check_host(self, authority: str) -> None:
        try:
            host = urlsplit(f"//{authority}").hostname or ""
        except ValueError:
            raise AdminProblemError(400, "bad_request", "the field Host is no host") from None
        if (
            host in self._hosts
            or "." not in host
            or host.endswith(".localhost")
            or is_address(host)
        ):
            return
        raise AdminProblemError(
            421,
            "misdirected_request",
            f"'{host}' is not a name of this port; name it in GATEWAY_ADMIN_HOSTS, or use an"
            " address",
        )

    def _check_origin(self, request: web.Request) -> None:
        origin = request.headers.get("Origin")
        foreign = origin is not None and not _is_of(origin, request.host)
        across = request.headers.get("Sec-Fetch-Site") in ("cross-site", "same-site")
        if foreign or (across and not _follows_link(request)):
            detail = "a page of another site may not ask this"
            raise AdminProblemError(403, "foreign_origin", detail)

    def admit(self, transport: asyncio.Transport) -> None:
        """Take a new connection; while all places are taken, an older one is closed for it."""
        address, *_ = transport.get_extra_info("peername") or ("",)
        lost = self._open.take(transport, address)
        if lost is not None:
            self.close(lost, "connections")
        loop = asyncio.get_running_loop()
        loop.call_later(REQUEST_SECONDS, self._close_silent, transport)

    def close(self, transport: asyncio.Transport, bound: str) -> None:
        """Close a connection for a bound that it has reached."""
        self._count(bound)
        transport.abort()

    def leave(self, transport: asyncio.Transport) -> None:
        """Forget a connection that is closed."""
        self._open.leave(transport)
        self._asked.discard(transport)

    def __call__(self, server: Callable[[], asyncio.Protocol]) -> "GuardedConnection":
        """Return the protocol of a new connection to a server."""
        return GuardedConnection(self, server())

    def _close_silent(self, transport: asyncio.Transport) -> None:
        if transport in self._open and transport not in self._asked:
            transport.abort()


class GuardedConnection(asyncio.Protocol):
    """One admin connection, counted and timed; the server's own protocol does the rest."""

    _transport: asyncio.Transport

    def __init__(self, guard: AdminGuard, inner: asyncio.Protocol) -> None:
        self._guard = guard
        self._inner = inner
        self._stalled: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Admit the connection."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's does not derive from it
        self._guard.admit(self._transport)
        self._inner.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        """Hand bytes on."""
        self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        """Hand on that the client sends no more."""
        return self._inner.eof_received()

    def pause_writing(self) -> None:
        """Hand on that the client reads too slowly, and close the connection if it stays so."""
        loop, close = asyncio.get_running_loop(), self._guard.close
        self._stalled = loop.call_later(STALL_SECONDS, close, self._transport, "stall_seconds")
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        """Hand on that the client reads again."""
        self._end_stall()
        self._inner.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._end_stall()
        self._guard.leave(self._transport)
        self._inner.connection_lost(exc)

    def _end_stall(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None


def _follows_link(request: web.Request) -> bool:
    # A link in a message opens a page in a tab of its own, which its sender cannot read.
    fetch = request.headers.get("Sec-Fetch-Mode"), request.headers.get("Sec-Fetch-Dest")
    return request.method == "GET" and fetch == ("navigate", "document")


def _is_of(origin: str, host: str) -> bool:
    try:
        return urlsplit(origin).netloc.lower() == host.lower()
    except ValueError:
        return False
