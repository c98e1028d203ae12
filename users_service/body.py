"""Bodies of requests, JSON responses, and problems by RFC 9457."""

import asyncio
from typing import Any
from urllib.parse import quote

from aiohttp import web
from pydantic_core import to_json

JSON, PROBLEM_JSON = "application/json", "application/problem+json"
CLOSE = {"Connection": "close"}


def respond(value: object, status: int = 200, form: str = JSON, **options: Any) -> web.Response:
    """Return a JSON response of this status and media type."""
    content = to_json(value, by_alias=True)
    return web.Response(body=content, status=status, content_type=form, **options)


class ProblemError(Exception):
    """Ends a request with a problem: `code` is for programs, `detail` for people."""

    def __init__(self, status: int, code: str, detail: str, **headers: str) -> None:
        super().__init__(detail)
        self.status, self.code, self.detail = status, code, detail
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}

    def response(self, path: str) -> web.Response:
        """Return the response to a request for this path."""
        title = self.code.replace("_", " ").capitalize()
        about = {"type": f"urn:problem:{self.code}", "title": title, "status": self.status}
        instance = quote(path, safe="/%:@!$&'()*+,;=", errors="surrogateescape")
        body = {**about, "detail": self.detail, "instance": instance, "code": self.code}
        return respond(body, self.status, PROBLEM_JSON, headers=self.headers)


async def expect(_: web.Request) -> None:
    """Ignore the header field Expect until `read`; a handler of aiohttp."""


async def read(request: web.Request, limit: int, seconds: float) -> bytes:
    """Return the body; raise ProblemError if it is not JSON, too large, too slow or incomplete."""
    if "Content-Encoding" in request.headers:
        hint = "Send the body without Content-Encoding."
        raise ProblemError(415, "unsupported_encoding", hint, Accept_Encoding="identity")
    if request.content_type != JSON or (request.charset or "utf-8").lower() != "utf-8":
        raise ProblemError(415, "unsupported_media_type", f"Send {JSON} in UTF-8.", Accept=JSON)
    too_large = ProblemError(413, "body_too_large", f"Send {limit} bytes at most.", **CLOSE)
    if (request.content_length or 0) > limit:
        raise too_large
    if request.headers.get("Expect", "").lower() == "100-continue":
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0  # or aiohttp assumes that the response has begun
    try:
        async with asyncio.timeout(seconds):
            return await request.read()
    except web.HTTPRequestEntityTooLarge:  # of the application's client_max_size
        raise too_large from None
    except TimeoutError:  # also after an invalid chunk, which aiohttp does not report here
        hint = f"Send the body within {seconds:g} seconds."
        raise ProblemError(408, "body_timeout", hint, **CLOSE) from None
    except (web.RequestPayloadError, ConnectionError) as error:
        raise ProblemError(400, "body_incomplete", "The body ended too early.") from error
