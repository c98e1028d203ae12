"""The front: aiohttp's low-level server, with the gateway's word for requests it cannot parse."""

from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp.http_exceptions import HttpProcessingError, LineTooLong
from aiohttp.web import BaseRequest, RequestHandler, Server, StreamResponse

from gateway.core.errors import Code, Fault
from gateway.wire.downstream import Downstream

# Two different bounds, because the parser says which one was broken and nothing more.
_MAX_TARGET = 8 * 1024
_MAX_FIELD = 16 * 1024
_MAX_FIELDS = 128
# Idle connections are kept longer than clients and load balancers usually keep theirs.
_KEEP_ALIVE = 75.0
# How long to read what a client still sends after its answer, before the connection is cut.
_LINGER = 5.0


class Front(Server):
    """Accepts connections and has every request answered by one handler.

    Args:
        handler: answers a request; it is cancelled when the client leaves.
        refuse: answers what is not a request with a fault.
    """

    def __init__(
        self,
        handler: Callable[[BaseRequest], Awaitable[Downstream]],
        refuse: Callable[[BaseRequest, Fault], Downstream],
    ) -> None:
        # aiohttp awaits `prepare` and `write_eof` of what a handler returns; a Downstream has both.
        super().__init__(
            handler,  # type: ignore[arg-type]
            handler_cancellation=True,
            access_log=None,
            auto_decompress=False,
            keepalive_timeout=_KEEP_ALIVE,
            lingering_time=_LINGER,
            max_line_size=_MAX_TARGET,
            max_field_size=_MAX_FIELD,
            max_headers=_MAX_FIELDS,
        )
        self.refuse = refuse

    def __call__(self) -> "ClientConnection":
        """Return the protocol for a new connection."""
        return ClientConnection(self, loop=self._loop, **self._kwargs)

    def close_idle(self) -> None:
        """Close every connection on which no request is under way."""
        for connection in self.connections:
            if isinstance(connection, ClientConnection):
                connection.close_if_idle()


class ClientConnection(RequestHandler):
    """One client connection."""

    __slots__ = ("_refuse",)

    def __init__(self, front: Front, **kwargs: Any) -> None:
        super().__init__(front, **kwargs)
        self._refuse = front.refuse

    def close_if_idle(self) -> None:
        """Close the connection unless a request is under way on it."""
        if not self._request_in_progress and not self._messages:
            self.close()

    def handle_error(
        self,
        request: BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> StreamResponse:
        """Answer what the parser refused with a problem detail instead of a page of text."""
        return self._refuse(request, _fault(exc))  # type: ignore[return-value]


def _fault(error: BaseException | None) -> Fault:
    if isinstance(error, LineTooLong):
        if error.args[1] == str(_MAX_TARGET):
            return Fault(Code.URI_TOO_LONG, f"The request target may have {_MAX_TARGET} bytes.")
        return Fault(Code.HEADERS_TOO_LARGE, f"A header field may have {_MAX_FIELD} bytes.")
    what = error.message if isinstance(error, HttpProcessingError) else ""
    if what.startswith("Too many headers"):
        return Fault(Code.HEADERS_TOO_LARGE, f"A request may have {_MAX_FIELDS} header fields.")
    # The parser's message quotes the request in several lines; its first line says what is wrong.
    reason = what.partition("\n")[0].rstrip(":. ") or "not HTTP"
    return Fault(Code.BAD_REQUEST, f"The request is not valid HTTP/1.1: {reason}.")
