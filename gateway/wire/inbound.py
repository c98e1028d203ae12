"""The client's request, taken off aiohttp's hands: head, authority, body."""

import re
import secrets
from collections.abc import AsyncIterator
from urllib.parse import quote

from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web import BaseRequest, RequestPayloadError

from gateway.core.errors import Code, Failed, Fault
from gateway.core.head import Head

# RFC 3986, section 3.2.2, as far as Host may use it: a name, an IPv4 or a bracketed IPv6 address,
# and a port. Anything else would travel on in Forwarded and in what services make of it.
_AUTHORITY = re.compile(
    r"(?:\[[0-9A-Fa-f:.]+\]|(?:[A-Za-z0-9\-._~!$&'()*+,;=]|%[0-9A-Fa-f]{2})+)(?::[0-9]{0,5})?\Z"
)
_REQUEST_ID = re.compile(r"[A-Za-z0-9._~:/+=@-]{1,128}\Z")


def request_id(request: BaseRequest) -> str:
    """Return the request's X-Request-Id if it can be trusted in a log, else a new one."""
    given = request.headers.get("X-Request-Id")
    return given if given and _REQUEST_ID.match(given) else secrets.token_hex(16)


def loggable_path(request: BaseRequest) -> str:
    """Return the path, without the query, as a URI may hold it, so that it can go into JSON."""
    path = request.raw_path.partition("?")[0]
    return quote(path.encode("utf-8", "surrogateescape"), safe="/%:@!$&'()*+,;=~[]")


def peer(request: BaseRequest) -> str:
    """Return the address that the request came from."""
    return request.remote or ""


def read(request: BaseRequest) -> tuple[Head, str]:
    """Return the head of a request and the authority that it is for.

    Raises:
        Failed: the target or the Host field is not what RFC 9112, section 3.2, allows.
    """
    target, authority = request.raw_path, request.headers.get("Host")
    if not target.startswith("/"):
        target, authority = _other_form(request.method, target, authority)
    if authority is None:  # HTTP/1.0 may leave it out; then it is us who were meant
        authority = _own_authority(request)
    if not _AUTHORITY.match(authority):
        raise _bad("the Host header names no host")
    if "#" in target:
        raise _bad("the request target has a fragment, which belongs to the client alone")
    path, mark, query = target.partition("?")
    return Head(request.method, path, query if mark else None, request.headers), authority


def _other_form(method: str, target: str, host: str | None) -> tuple[str, str | None]:
    if target == "*" and method == "OPTIONS":
        return target, host
    scheme, separator, rest = target.partition("://")
    if not separator or scheme.lower() not in ("http", "https") or method == "CONNECT":
        raise _bad("the request target is neither a path nor an absolute URL")
    # The authority of an absolute target overrules Host (RFC 9112, section 3.2.2).
    match = re.match(r"[^/?#]*", rest)
    authority = match.group() if match else ""
    path = rest[len(authority) :]
    return path if path.startswith("/") else f"/{path}", authority


def _own_authority(request: BaseRequest) -> str:
    host, port = request.transport.get_extra_info("sockname")[:2] if request.transport else ("", 0)
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def content_length(request: BaseRequest) -> int | None:
    """Return the declared length of the body, in bytes; the parser has checked its digits."""
    value = request.headers.get("Content-Length")
    return None if value is None else int(value)


async def pieces(request: BaseRequest) -> AsyncIterator[bytes]:
    """Yield the body as it comes; the client waits while nobody asks for more.

    Raises:
        Failed: the body is not framed as it should be.
    """
    try:
        while piece := await request.content.readany():
            yield piece
    except (RequestPayloadError, HttpProcessingError) as error:
        raise _bad(f"the request body is not framed as HTTP asks: {type(error).__name__}") from None


async def whole(request: BaseRequest, limit: int) -> bytes:
    """Return the whole body.

    Raises:
        Failed: it is larger than `limit` bytes, or not framed as it should be.
    """
    too_large = Fault(Code.BODY_TOO_LARGE, f"The body may have {limit} bytes at this endpoint.")
    if (content_length(request) or 0) > limit:
        raise Failed(too_large)
    collected: list[bytes] = []
    size = 0
    async for piece in pieces(request):
        size += len(piece)
        if size > limit:
            raise Failed(too_large)
        collected.append(piece)
    return b"".join(collected)


def _bad(what: str) -> Failed:
    return Failed(Fault(Code.BAD_REQUEST, f"{what[0].upper()}{what[1:]}."))
