"""Refusals of the admin port: problem details (RFC 9457), for errors of aiohttp too."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any

import msgspec
from aiohttp import HttpVersion11, hdrs, web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web_protocol import RequestPayloadError

from gateway.observe import log

JSON = "application/json"

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class AdminProblemError(Exception):
    """A request cannot be answered; the text becomes the detail of the response.

    Attributes:
        status: the HTTP status.
        code: a stable, machine-readable name.
        fields: further header fields of the response.
    """

    def __init__(
        self, status: int, code: str, detail: str, fields: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.fields = fields or {}


class AccessDeniedError(AdminProblemError):
    """A request is refused because of its sender or its form; counted by code."""


def problem(request: web.BaseRequest, status: int, code: str, detail: str) -> web.Response:
    """Return a problem detail."""
    document = {
        "type": f"urn:problem:{code}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "instance": request.path,
        "code": code,
    }
    return json_answer(document, status, "application/problem+json")


def json_answer(document: object, status: int = 200, kind: str = JSON) -> web.Response:
    """Return a response with a document as JSON."""
    return web.Response(body=msgspec.json.encode(document), status=status, content_type=kind)


def with_expectations(handle: Any) -> Any:
    """Wrap the request handler of an aiohttp server: refuse expectations other than 100-continue.

    aiohttp quotes the expectation in its own refusal, which fails for bytes that are not text.
    """

    async def handle_expected(request: web.BaseRequest) -> web.StreamResponse:
        expected = request.headers.getall(hdrs.EXPECT, [])
        if request.version == HttpVersion11 and {each.lower() for each in expected} - {
            "100-continue"
        }:
            detail = "Only 100-continue can be expected."
            return problem(request, 417, "expectation_failed", detail)
        response: web.StreamResponse = await handle(request)
        return response

    return handle_expected


class AdminLogger(logging.LoggerAdapter[logging.Logger]):
    """The logger of the aiohttp server: only faults of the gateway are logged with a traceback.

    A malformed request is one line without its bytes, which may hold a token.
    """

    def __init__(self) -> None:
        super().__init__(logging.getLogger("aiohttp.server"))

    def exception(self, msg: object, *args: object, exc_info: Any = True, **more: Any) -> None:
        """Log an error, unless it is a connection that the client closed."""
        if isinstance(exc_info, (HttpProcessingError, RequestPayloadError)):
            fields: dict[str, object] = {"peer": args[0]} if args else {}
            log.event("admin_request_bad", "info", **fields, reason=type(exc_info).__name__)
        elif not isinstance(exc_info, ConnectionError):
            super().exception(msg, *args, exc_info=exc_info, **more)
