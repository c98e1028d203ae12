"""The client's request: checks of the parsed head, and the stream of the body."""

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from functools import lru_cache
from ipaddress import IPv6Address
from typing import Final, Protocol, Self
from urllib.parse import quote

from aiohttp import StreamReader
from aiohttp.http import HttpVersion11
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web import RequestPayloadError
from multidict import istr

from gateway.base.addresses import Network, client_network
from gateway.base.errors import Fault, FaultCode, FaultError
from gateway.base.headers import METHOD_OVERRIDES, OURS, connection_options, takes_trailers
from gateway.base.request import RequestHead
from gateway.http.client.client_response import ClientTransport, RequestMessage
from gateway.http.limits import Limits

# RFC 3986, section 3.2.2, as far as hosts use it: a name, an IPv4 or a bracketed IPv6 address,
# and a port. Other characters would be forwarded and misread by services: a comma, for instance,
# would make two hosts of X-Forwarded-Host.
_AUTHORITY = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|[A-Za-z0-9\-._~]+)(?::[0-9]{0,5})?\Z")
LONGEST_AUTHORITY: Final = 260
"""A host name has at most 253 characters (RFC 1035, section 2.3.4), a port 5 digits."""
# The look-up of such a name is faster, since it is not examined each time.
_HOST: Final = istr("Host")
_TRANSFER_ENCODING: Final = istr("Transfer-Encoding")
_CONTENT_LENGTH: Final = istr("Content-Length")
_EXPECT: Final = istr("Expect")
# A service may misread a length of more digits.
_DIGITS: Final = 18
# A body of more bytes is streamed, since one that is held takes memory until it is answered.
_SMALL: Final = 16 * 1024
X_REQUEST_ID: Final = istr("X-Request-Id")
"""The name of the field of request ids."""
REQUEST_ID: Final = re.compile(r"[A-Za-z0-9._~:/+=@-]{1,128}\Z")
"""The pattern of request ids that may be written to a log unchanged."""

# Fields that Connection must not name, beside those that the rules read.
_CREDENTIALS = frozenset({b"authorization", b"cookie"})

# A site has a network of this prefix, and all of its addresses (RFC 4291, section 2.5.4).
_ONE_SITE = 64

_SAFE = "/%:@!$&'()*+,;=~[]"
is_loggable: Final = re.compile(rf"/[A-Za-z0-9_.\-{re.escape(_SAFE)}]*\Z").match
"""Returns a match if a path can be written to a JSON log without escapes."""


class ClientRequest(Protocol):
    """The request of an exchange: the checked head and the stream of the body.

    Attributes:
        connection: the connection that received the request.
        message: the parsed head.
        method: the method of the request.
        content: the stream of the body.
        has_body: whether there is a body; an empty chunked body counts.
        length: the declared length of the body in bytes; None until the head is read, or if none
            is declared.
        peer: the IP address that the request came from.
        authority: the host and port that the client used; empty until the head is read.
    """

    connection: ClientTransport
    message: RequestMessage
    method: str
    content: StreamReader
    has_body: bool
    peer: str
    length: int | None
    authority: str

    @property
    def limits(self) -> Limits:
        """The limits for this request."""
        ...

    @property
    def trusted_proxies(self) -> tuple[Network, ...]:
        """The networks of the proxies whose forwarding fields are trusted."""
        ...

    @property
    def read_fields(self) -> frozenset[bytes]:
        """The names, in lower case, of the header fields that the gateway itself reads."""
        ...

    @property
    def takes_trailers(self) -> bool:
        """Whether the client accepts trailer fields in the answer."""
        return takes_trailers(self.message.headers.getall("TE", ()))

    @property
    def upgrade(self) -> bytes | None:
        """The requested protocol if the gateway can tunnel it, which is WebSocket; else None."""
        if not self.message.upgrade or self.message.version != HttpVersion11:  # RFC 9110, 7.8
            return None
        protocol = self.message.headers.get("Upgrade", "")
        return protocol.encode() if protocol.lower() == "websocket" else None

    def _check_expectation(self) -> None:
        """Raise FaultError if Expect is not 100-continue (RFC 9110, section 10.1.1)."""
        values = self.message.headers.getall("Expect")
        if any(value.lower() != "100-continue" for value in values):
            raise FaultError(
                Fault(FaultCode.EXPECTATION_FAILED, "Only 100-continue can be expected.")
            )

    def check_fields(self, watched: Sequence[bytes]) -> None:
        """Raise FaultError if Expect cannot be met, or if the service would see another request.

        Args:
            watched: the names of the watched fields that are present, as `FieldFates` returns them.
        """
        if b"connection" in watched:
            self._check_connection()
        if b"expect" in watched:
            self._check_expectation()
        if not METHOD_OVERRIDES.isdisjoint(watched):
            self._check_method()

    def _check_connection(self) -> None:
        """Raise FaultError if Connection names a field that is meant for the service as well.

        The version is chosen and the client is named before the fields that Connection names are
        dropped, so the service would get another request (RFC 9110, section 7.6.1). A field that
        the gateway itself sets is not dropped.
        """
        reserved = (self.read_fields | _CREDENTIALS) - OURS
        for line, value in self.message.raw_headers:
            if line.lower() == b"connection":
                for name in sorted(connection_options(value) & reserved):
                    raise _bad(f"the Connection header must not name {name.decode()}")

    def _check_method(self) -> None:
        """Raise FaultError if a field gives the request another method than its first line.

        What is allowed, converted, repeated and shadowed depends on the method, so the service must
        not see another one.
        """
        for line, value in self.message.raw_headers:
            other = value.strip(b" \t").upper()
            if line.lower() in METHOD_OVERRIDES and other != self.message.method.encode():
                name = line.decode()
                raise _bad(f"the {name} header names another method; send the request with that")

    def read(self) -> RequestHead:
        """Check and return the head of the request; set `authority` and `length`.

        Raises:
            FaultError: the request line, the Host field or the framing of the body violates
                RFC 9112, sections 3 and 6.
        """
        message, headers = self.message, self.message.headers
        if message.version[0] != 1:
            raise _bad("only HTTP/1.0 and HTTP/1.1 are spoken here")
        # The parser accepts some heads that cannot be forwarded with the same meaning.
        if (coding := headers.get(_TRANSFER_ENCODING)) is not None:
            if coding.lower() != "chunked":
                raise _bad("the only transfer coding that is taken here is chunked")
            if message.version != HttpVersion11:  # RFC 9112, section 6.1
                raise _bad("HTTP/1.0 has no transfer codings")
        if (length := headers.get(_CONTENT_LENGTH)) is not None:
            if len(length) > _DIGITS:
                raise _bad("the Content-Length has too many digits")
            self.length = int(length)
        if self.method == "CONNECT":  # a tunnel, whose request may not even have a path
            raise _bad("no tunnel can be had here")
        target, authority = message.path, headers.get(_HOST)
        if not target.startswith("/"):
            target, authority = _other_form(message.method, target, authority)
        if authority is None:  # HTTP/1.0 may omit Host; this server is meant
            authority = self.connection.own
        if len(authority) > LONGEST_AUTHORITY or not is_authority(authority):
            raise _bad("the Host header names no host")
        if "#" in target:
            raise _bad("the request target has a fragment, which belongs to the client alone")
        self.authority = authority
        path, mark, query = target.partition("?")
        head = (self.method, path, query if mark else None, headers, authority)
        return tuple.__new__(RequestHead, head)  # a fifth of the cost of RequestHead(...)

    def network(self) -> str:
        """Return the network of the client's address: that of a proxy only if no other is known."""
        found = client_network(self.read(), self.peer, 32, _ONE_SITE, self.trusted_proxies)
        return found or self.peer

    def arrived(self, most: int | None) -> bytes | None:
        """Return the body if it is small and came with the head; None if it has to be streamed.

        Args:
            most: the maximum size of the body in bytes; None for no maximum.

        Raises:
            FaultError: the body is too large.
        """
        content, length = self.content, self.length
        if length is None or length > _SMALL or not content.is_eof() or content.exception():
            return None
        if _EXPECT in self.message.headers:  # the service says whether it wants the body
            return None
        if most is not None and length > most:
            raise _too_large(most)
        return content.read_nowait()

    def pieces(self, most: int | None) -> AsyncIterator[bytes]:
        """Return the stream of the body; the client has to wait while it is not read.

        Args:
            most: the maximum size of the body in bytes; None for no maximum.

        Raises:
            FaultError: the body is too large, malformed, or does not arrive in time. A declared
                length above the maximum fails before anything is read.
        """
        if most is not None and (self.length or 0) > most:
            raise _too_large(most)
        return _Pieces(self, most)


class _Pieces:
    """The stream of a body; the client has a certain time to send a share of it.

    Only the time in which they are waited for counts, not that in which the service takes them.

    Args:
        request: the request.
        most: the maximum size of the body in bytes; None for no maximum.
    """

    def __init__(self, request: ClientRequest, most: int | None) -> None:
        self._content, self._most = request.content, most
        self._seconds = self._left = request.connection.stall_seconds
        self._share = request.limits.min_rate * self._seconds
        self._came = self._size = 0

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        try:
            piece = await self._next()
        except (RequestPayloadError, HttpProcessingError):
            raise _bad("the request body is not framed as HTTP asks") from None
        if not piece:
            raise StopAsyncIteration
        self._size += len(piece)
        if self._most is not None and self._size > self._most:
            raise _too_large(self._most)
        return piece

    async def _next(self) -> bytes:
        """Return the next bytes, empty at the end; raises FaultError."""
        clock = asyncio.get_running_loop().time
        began = clock()
        try:
            async with asyncio.timeout(self._left):
                piece = await self._content.readany()
        except TimeoutError:
            detail = f"Too little of the request body came in {self._seconds:g} seconds."
            raise FaultError(Fault(FaultCode.REQUEST_TIMEOUT, detail)) from None
        self._left -= clock() - began
        self._came += len(piece)
        if self._came >= self._share:
            self._left, self._came = self._seconds, 0
        return piece


def loggable_path(path: str) -> str:
    """Return a path percent-encoded, so that it can be written to a JSON log."""
    if not path.startswith("/") and "://" in path:  # RFC 9112, section 3.2.2
        path = "/" + path.partition("://")[2].partition("/")[2]
    return quote(path.encode("utf-8", "surrogateescape"), safe=_SAFE)


def _too_large(most: int) -> FaultError:
    return FaultError(
        Fault(FaultCode.BODY_TOO_LARGE, f"The body may have {most} bytes at this endpoint.")
    )


@lru_cache(maxsize=1024)  # clients use few different hosts
def is_authority(text: str) -> bool:
    """Return whether a text is a host, with or without a port, that can be passed on."""
    match = _AUTHORITY.match(text)
    if match is None or match[1] is None:
        return match is not None
    try:
        IPv6Address(match[1])
    except ValueError:
        return False
    return True


def _other_form(method: str, target: str, host: str | None) -> tuple[str, str | None]:
    if target == "*" and method == "OPTIONS":
        return target, host
    scheme, separator, rest = target.partition("://")
    if not separator or scheme.lower() not in ("http", "https"):
        raise _bad("the request target is neither a path nor an absolute URL")
    # The authority of an absolute target overrules Host (RFC 9112, section 3.2.2).
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    path = rest[len(authority) :]
    if method == "OPTIONS" and not path:  # RFC 9112, section 3.2.4
        return "*", authority
    return path if path.startswith("/") else f"/{path}", authority


def _bad(what: str) -> FaultError:
    return FaultError(Fault(FaultCode.BAD_REQUEST, f"{what[0].upper()}{what[1:]}."))
