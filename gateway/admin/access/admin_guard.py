"""The guard of the admin port: what keeps browsers of strangers and idle connections off it.

A browser on the machine of an operator reaches the port, with the operator's login, for any page:
by a host name of that page that resolves to 127.0.0.1 (DNS rebinding), or by a form that posts
across sites. Both are refused by what browsers always send: Host, Origin and Sec-Fetch-Site.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, cast
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.web_protocol import RequestPayloadError

from gateway.admin.access.connection_places import ConnectionPlaces
from gateway.base.addresses import plain_address
from gateway.conversion.url_parts import is_address

# From the connection to the end of the first request, and for each body, in seconds.
REQUEST_SECONDS = 10.0
# For so many seconds at most, a client takes nothing of an answer that waits for it.
STALL_SECONDS = 60.0
# A larger body has one of so many places until it is answered: that of a draft is of 1 MiB at most.
_SMALL = 16 * 1024
_LARGE_BODIES = 4
# So many bytes are parsed in a turn of the event loop, of all connections together: of a body in
# chunks of one byte, they take some 2 ms.
_BYTES_A_TURN = 2048
NOWHERE = "nowhere"
"""The name of the part of a path that no other route has."""
# What probes ask, by whatever name they know the gateway, and what gives nothing away.
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
        self._bodies = ConnectionPlaces[asyncio.Task[object]](_LARGE_BODIES)
        self._waiting: deque[GuardedConnection] = deque()

    def check(self, request: web.Request) -> None:
        """Check the head of a request.

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

    async def read(self, request: web.Request, *, large: bool) -> None:
        """Read the body of a request; that of a form is parsed for whoever reads it.

        Args:
            request: whose body has not been read.
            large: whether it may have more than 16 KiB, and so a place among few.

        Raises:
            AdminProblemError: it is refused.
        """
        if not request.body_exists:
            return
        length = request.content_length
        if length is None or length > _SMALL:  # chunks may become as large as any
            if not large:
                detail = (
                    f"a body of this path has {_SMALL // 1024} KiB at most, and says its length"
                )
                raise AdminProblemError(413, "body_too_large", detail)
            self._take_place(request)
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
        # Of the bytes, of their coding (LookupError), or of what they have to be; or the client has
        # left before any was awaited (RuntimeError).
        except (RequestPayloadError, LookupError, ValueError, RuntimeError):
            detail = "the body cannot be read; send a form in UTF-8, without a content coding"
            raise AdminProblemError(400, "bad_request", detail) from None

    def _take_place(self, request: web.Request) -> None:
        """Give a large body a place until its request is answered."""
        task = asyncio.current_task()
        assert task is not None
        lost = self._bodies.take(task, request.remote or "")
        task.add_done_callback(self._bodies.leave)
        if lost is not None:
            self._count("bodies")
            lost.cancel()  # which closes its connection

    def parse(self, connection: "GuardedConnection") -> None:
        """Have a connection parse what has come, in turn with others."""
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._parse)
        self._waiting.append(connection)

    def _parse(self) -> None:
        connection = self._waiting.popleft()
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._parse)
        connection.parse(_BYTES_A_TURN)

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
    """One admin connection, counted and timed; the server's own protocol does the rest.

    What comes is parsed in pieces, and the transport rests until it is; aiohttp would parse some
    50,000 chunks of a body in one turn of the event loop.
    """

    _transport: "_Transport"

    def __init__(self, guard: AdminGuard, inner: asyncio.Protocol) -> None:
        self._guard = guard
        self._inner = inner
        self._stalled: asyncio.TimerHandle | None = None
        self._come = b""
        self._queued = False
        self._ended = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Admit the connection."""
        self._transport = _Transport(cast(asyncio.Transport, transport), self._go_on)
        # It has the methods of a transport; uvloop's does not derive from it either.
        inner = cast(asyncio.Transport, self._transport)
        self._guard.admit(inner)
        self._inner.connection_made(inner)

    def data_received(self, data: bytes) -> None:
        """Have bytes parsed in turn."""
        self._come += data
        self._go_on()

    def parse(self, most: int) -> None:
        """Hand on so many bytes at most."""
        self._queued = False
        if self._transport.wanted:
            data, self._come = self._come[:most], self._come[most:]
            if data:
                self._inner.data_received(data)
        self._go_on()

    def _go_on(self) -> None:
        if self._queued:
            return
        self._transport.rest(bool(self._come))
        if self._come and self._transport.wanted:
            self._queued = True
            self._guard.parse(self)
        elif self._ended and not self._come:
            self._ended = False
            if not self._inner.eof_received():
                self._transport.close()

    def eof_received(self) -> bool:
        """Hand on that the client sends no more, once what it sent is parsed."""
        self._ended = True
        self._go_on()
        # TLS has no half of a connection, and asyncio logs a warning for each that is to be kept.
        return self._transport.get_extra_info("sslcontext") is None

    def pause_writing(self) -> None:
        """Hand on that the client reads too slowly, and close the connection if it stays so."""
        loop, close = asyncio.get_running_loop(), self._guard.close
        transport = cast(asyncio.Transport, self._transport)
        self._stalled = loop.call_later(STALL_SECONDS, close, transport, "stall_seconds")
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        """Hand on that the client reads again."""
        self._end_stall()
        self._inner.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._end_stall()
        self._come = b""
        self._guard.leave(cast(asyncio.Transport, self._transport))
        self._inner.connection_lost(exc)

    def _end_stall(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None


class _Transport:
    """The transport of a connection, which reads while its parser wants more and has none left.

    Attributes:
        wanted: whether the parser takes more.
    """

    def __init__(self, inner: asyncio.Transport, go_on: Callable[[], None]) -> None:
        self._inner = inner
        self._go_on = go_on
        self._reads = True
        self.wanted = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Return a detail of the connection; the address of an IPv4 client is always IPv4."""
        found = self._inner.get_extra_info(name, default)
        if name == "peername" and found:
            found = plain_address(found[0]), *found[1:]
        return found

    def pause_reading(self) -> None:
        """Note that the parser takes no more."""
        self.wanted = False

    def resume_reading(self) -> None:
        """Note that the parser takes more again."""
        self.wanted = True
        self._go_on()

    def rest(self, has_left: bool) -> None:
        """Read, or do not."""
        reads = self.wanted and not has_left
        if reads is not self._reads and not self._inner.is_closing():
            self._reads = reads
            (self._inner.resume_reading if reads else self._inner.pause_reading)()


def _follows_link(request: web.Request) -> bool:
    # A link in a message opens a page in a tab of its own, which its sender cannot read.
    fetch = request.headers.get("Sec-Fetch-Mode"), request.headers.get("Sec-Fetch-Dest")
    return request.method == "GET" and fetch == ("navigate", "document")


def _is_of(origin: str, host: str) -> bool:
    try:
        return urlsplit(origin).netloc.lower() == host.lower()
    except ValueError:
        return False
