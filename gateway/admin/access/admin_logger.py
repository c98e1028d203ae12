"""AdminLogger: what aiohttp's server logs about the admin port, a plain line for a bad request."""

import logging
from typing import Any

from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web_protocol import RequestPayloadError

from gateway.observe import log

# What the bytes of a client cause: a head or a body that cannot be read.
_BAD = HttpProcessingError, RequestPayloadError


class AdminLogger(logging.LoggerAdapter[logging.Logger]):
    """The logger of the server of the admin port.

    Bad requests are a line without the bytes that were sent, which may hold a token. Only a fault
    of the gateway has its traceback in the log.
    """

    def __init__(self) -> None:
        super().__init__(logging.getLogger("aiohttp.server"))

    def exception(self, msg: object, *args: object, exc_info: Any = True, **more: Any) -> None:
        """Log an error, unless the client has left."""
        if isinstance(exc_info, _BAD):
            fields: dict[str, object] = {"peer": args[0]} if args else {}
            log.event("admin_request_bad", "info", **fields, reason=type(exc_info).__name__)
        elif not isinstance(exc_info, ConnectionError):
            super().exception(msg, *args, exc_info=exc_info, **more)
