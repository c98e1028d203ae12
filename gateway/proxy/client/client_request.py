"""The client's request, as aiohttp's parser left it: head, authority, body."""

import asyncio
import re
import secrets
from collections.abc import AsyncIterator
from functools import lru_cache
from itertools import count
from urllib.parse import quote

from aiohttp import StreamReader
from aiohttp.http import HttpVersion11, RawRequestMessage
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.streams import EMPTY_PAYLOAD
from aiohttp.web import RequestPayloadError
from msgspec import Struct

from gateway.core.errors import Fault, FaultCode, FaultError
from gateway.core.request import RequestHead

# RFC 3986, section 3.2.2, as far as hosts use it: a name, an IPv4 or a bracketed IPv6 address,
# and a port. Anything else would travel on in Forwarded and in what services make of it: a comma,
# say, as two hosts in X-Forwarded-Host.
_AUTHORITY = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9\-._~]+)(?::[0-9]{0,5})?\Z")
# A host name has at most 253 characters (RFC 1035, section 2.3.4), a port 5 digits.
_LONGEST = 260
# More digits than this, and what some service makes of a length may be another number.
_DIGITS = 18
_REQUEST_ID = re.compile(r"[A-Za-z0-9._~:/+=@-]{1,128}\Z")
_SAFE = "/%:@!$&'()*+,;=~[]"
_LOGGABLE = re.compile(rf"[A-Za-z0-9_.\-{re.escape(_SAFE)}]*\Z")

# Unique without asking the system for randomness each time; nobody's security hangs on it.
_id_prefix = secrets.token_hex(10)
_id_count = count()


class ClientRequest(Struct, frozen=True):
    """One request of a client.

    Attributes:
        message: the parsed head.
        content: the body as it comes.
        peer: the address that the request came from.
        own: the authority of the socket that it came to.
        stall: how long to wait for more of the body, in seconds.
    """

    message: RawRequestMessage
    content: StreamReader
    peer: str
    own: str
    stall: float

    @property
    def has_body(self) -> bool:
        """Whether there is a body, were it of no bytes in chunks."""
        return self.content is not EMPTY_PAYLOAD

    @property
    def length(self) -> int | None:
        """Return the declared length of the body, in bytes; its digits have been checked."""
        value = self.message.headers.get("Content-Length")
        return None if value is None else int(value)

    @property
    def upgrade(self) -> bytes | None:
        """Return the protocol to switch to, if it is one that can be passed through: WebSocket."""
        protocol = self.message.headers.get("Upgrade", "") if self.message.upgrade else ""
        return protocol.encode() if protocol.lower() == "websocket" else None

    @property
    def request_id(self) -> str:
        """Return the request's X-Request-Id if it can be trusted in a log, else a new one."""
        given = self.message.headers.get("X-Request-Id")
        if given is not None and _REQUEST_ID.match(given):
            return given
        return f"{_id_prefix}{next(_id_count):012x}"

    @property
    def loggable_path(self) -> str:
        """Return the path, without the query, as a URI may hold it, so that it can go into JSON."""
        path = self.message.path.partition("?")[0]
        if not path.startswith("/") and "://" in path:  # RFC 9112, section 3.2.2
            path = "/" + path.partition("://")[2].partition("/")[2]
        if _LOGGABLE.match(path):
            return path
        return quote(path.encode("utf-8", "surrogateescape"), safe=_SAFE)

    def read(self) -> RequestHead:
        """Return the head of the request.

        Raises:
            FaultError: the request line, the Host field or the framing of the body is not what
                RFC 9112, sections 3 and 6, allows.
        """
        message = self.message
        if message.version[0] != 1:
            raise _bad("only HTTP/1.0 and HTTP/1.1 are spoken here")
        self._check_framing()
        if message.method == "CONNECT":  # it asks for a tunnel, which may not even have a path
            raise _bad("no tunnel can be had here")
        target, authority = message.path, message.headers.get("Host")
        if not target.startswith("/"):
            target, authority = _other_form(message.method, target, authority)
        if authority is None:  # HTTP/1.0 may leave it out; then it is us who were meant
            authority = self.own
        if len(authority) > _LONGEST or not _is_authority(authority):
            raise _bad("the Host header names no host")
        if "#" in target:
            raise _bad("the request target has a fragment, which belongs to the client alone")
        path, mark, query = target.partition("?")
        return RequestHead(
            message.method, path, query if mark else None, message.headers, authority
        )

    def _check_framing(self) -> None:
        # The parser takes some more than can be passed on without saying something else.
        headers = self.message.headers
        coding = headers.get("Transfer-Encoding")
        if coding is not None:
            if coding.lower() != "chunked":
                raise _bad("the only transfer coding that is taken here is chunked")
            if self.message.version != HttpVersion11:  # RFC 9112, section 6.1
                raise _bad("HTTP/1.0 has no transfer codings")
        if len(headers.get("Content-Length", "")) > _DIGITS:
            raise _bad("the Content-Length has too many digits")

    def pieces(self, most: int | None) -> AsyncIterator[bytes]:
        """Return the body as it comes; the client waits while nobody asks for more.

        Args:
            most: how many bytes it may have; None for any number.

        Raises:
            FaultError: it is larger than that, not framed as it should be, or does not come. What
                is declared to be larger is not begun to be read.
        """
        if most is not None and (self.length or 0) > most:
            raise _too_large(most)
        return self._pieces(most)

    async def _pieces(self, most: int | None) -> AsyncIterator[bytes]:
        size = 0
        try:
            while piece := await self._next():
                size += len(piece)
                if most is not None and size > most:
                    raise _too_large(most)
                yield piece
        except (RequestPayloadError, HttpProcessingError):
            raise _bad("the request body is not framed as HTTP asks") from None

    async def _next(self) -> bytes:
        try:
            async with asyncio.timeout(self.stall):
                return await self.content.readany()
        except TimeoutError:
            detail = f"Nothing of the request body came for {self.stall:g} seconds."
            raise FaultError(Fault(FaultCode.REQUEST_TIMEOUT, detail)) from None


def _too_large(most: int) -> FaultError:
    return FaultError(
        Fault(FaultCode.BODY_TOO_LARGE, f"The body may have {most} bytes at this endpoint.")
    )


@lru_cache(maxsize=1024)  # clients name the same few hosts over and over
def _is_authority(text: str) -> bool:
    return _AUTHORITY.match(text) is not None


def _other_form(method: str, target: str, host: str | None) -> tuple[str, str | None]:
    if target == "*" and method == "OPTIONS":
        return target, host
    scheme, separator, rest = target.partition("://")
    if not separator or scheme.lower() not in ("http", "https"):
        raise _bad("the request target is neither a path nor an absolute URL")
    # The authority of an absolute target overrules Host (RFC 9112, section 3.2.2).
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    path = rest[len(authority) :]
    return path if path.startswith("/") else f"/{path}", authority


def _bad(what: str) -> FaultError:
    return FaultError(Fault(FaultCode.BAD_REQUEST, f"{what[0].upper()}{what[1:]}."))
