"""The users service: routes, handlers and two middlewares."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from time import perf_counter
from traceback import format_exc
from typing import Any
from urllib.parse import quote
from uuid import uuid4

from aiohttp import web
from aiohttp.typedefs import Handler
from pydantic import ValidationError
from pydantic_core import to_json

from .settings import Settings
from .store import StorageError, Store
from .user import NewUser, parse, violations

SETTINGS, STORE = web.AppKey("settings", Settings), web.AppKey("store", Store)
STOPPING = web.AppKey("stopping", asyncio.Event)
IN_FLIGHT = web.AppKey("in_flight", set[asyncio.Task[Any]])
FIELDS = web.RequestKey("fields", dict[str, str])  # for log entries about the request
JSON, PROBLEM_JSON = "application/json", "application/problem+json"
OPENAPI = json.loads((Path(__file__).parent / "openapi.json").read_text())
SANE_REQUEST_ID = re.compile(r"[A-Za-z0-9._~:/+=@-]{1,128}")
# host [":" port] (RFC 3986, section 3.2), without percent-encoding and sub-delims.
AUTHORITY = re.compile(r"(?:[A-Za-z0-9._~-]{1,255}|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?")


class ProblemError(Exception):
    """Ends a request with a problem detail (RFC 9457).

    `code` is for programs, `detail` for people.
    """

    def __init__(self, status: int, code: str, detail: str, **headers: str) -> None:
        super().__init__(detail)
        self.status, self.code, self.detail = status, code, detail
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}

    def response(self, path: str) -> web.Response:
        title = self.code.replace("_", " ").capitalize()
        about = {"type": f"urn:problem:{self.code}", "title": title, "status": self.status}
        instance = quote(path, safe="/%:@!$&'()*+,;=", errors="surrogateescape")
        body = {**about, "detail": self.detail, "instance": instance, "code": self.code}
        return _json(body, self.status, PROBLEM_JSON, headers=self.headers)


def application(settings: Settings) -> web.Application:
    """Create the application, whose startup raises StorageError or OSError without a database."""
    middlewares = [_log_requests, _answer_problems]
    app = web.Application(middlewares=middlewares, client_max_size=settings.max_body)
    app[SETTINGS], app[STOPPING], app[IN_FLIGHT] = settings, asyncio.Event(), set()
    app.cleanup_ctx.append(_open_store)
    app.router.add_post("/users", _create_user, expect_handler=_expect)
    app.router.add_get("/users/{id}", _read_user)
    app.router.add_get("/healthz", partial(_send, {"status": "ok"}))
    app.router.add_get("/readyz", _check_readiness)
    app.router.add_get("/openapi.json", partial(_send, OPENAPI))
    return app


async def _open_store(app: web.Application) -> AsyncIterator[None]:
    store = app[STORE] = Store(app[SETTINGS].database_url, app[SETTINGS].database_timeout)
    try:
        await store.create_table()
        yield
    finally:
        await store.close()


async def _create_user(request: web.Request) -> web.Response:
    settings, body = request.app[SETTINGS], await _read_body(request)
    today = {"today": datetime.now(settings.timezone).date()}
    try:
        new = NewUser.model_validate(parse(body, settings.max_depth), context=today)
    except ValidationError as error:
        return _json(violations(error, "user"), 400)
    except ValueError as error:
        raise ProblemError(400, "malformed_json", f"Send valid JSON: {error}.") from error
    user = await request.app[STORE].add(new.model_dump())
    return _json(dict(user), 201, headers={"Location": location(request, user["id"])})


async def _read_user(request: web.Request) -> web.Response:
    digits = request.match_info["id"]
    known = re.fullmatch("[1-9][0-9]{0,18}", digits) and int(digits) < 2**63
    if not known or not (user := await request.app[STORE].get(int(digits))):
        raise ProblemError(404, "user_not_found", "No user has this id.")
    return _json(dict(user))


async def _check_readiness(request: web.Request) -> web.Response:
    try:
        await request.app[STORE].check()
    except StorageError as error:
        log("not_ready", "warning", error=str(error))
        return _json({"status": "not ready", "reason": "storage_unavailable"}, 503)
    return _json({"status": "ready"})


async def _send(value: object, _: web.Request) -> web.Response:
    return _json(value)


def _json(value: object, status: int = 200, form: str = JSON, **options: Any) -> web.Response:
    return web.Response(body=to_json(value), status=status, content_type=form, **options)


async def _expect(_: web.Request) -> None:
    """Do nothing. `_read_body` handles the header field Expect."""


async def _read_body(request: web.Request) -> bytes:
    limit, seconds = request.app[SETTINGS].max_body, request.app[SETTINGS].body_timeout
    codings = ",".join(request.headers.getall("Content-Encoding", [])).lower().split(",")
    if not {coding.strip() for coding in codings} <= {"", "identity"}:
        hint = "Send the body without Content-Encoding."
        raise ProblemError(415, "unsupported_encoding", hint, Accept_Encoding="identity")
    charset = (request.charset or "utf-8").lower()
    if request.content_type != JSON or charset not in ("utf-8", "utf8"):
        raise ProblemError(415, "unsupported_media_type", f"Send {JSON} in UTF-8.", Accept=JSON)
    try:
        if (request.content_length or 0) > limit:
            raise web.HTTPRequestEntityTooLarge(limit)
        if request.headers.get("Expect", "").lower() == "100-continue":
            await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            request.writer.output_size = 0  # otherwise aiohttp assumes that the response has begun
        async with asyncio.timeout(seconds):
            return await request.read()
    except web.HTTPRequestEntityTooLarge:  # also raised for the application's client_max_size
        status, code, hint = 413, "body_too_large", f"Send {limit} bytes at most."
    except TimeoutError:  # also after an invalid chunk, which aiohttp does not report
        status, code, hint = 408, "body_timeout", f"Send the body within {seconds:g} seconds."
    except (web.RequestPayloadError, ConnectionError):
        status, code, hint = 400, "body_incomplete", "The body ended too early."
    raise ProblemError(status, code, hint, Connection="close")


def location(request: web.Request, user_id: int) -> str:
    """Return the URL of a new user, with the scheme and authority that the client used.

    The gateway sends both in X-Forwarded-* headers. Repeated or malformed headers are ignored.
    """
    host, port, *_ = request.get_extra_info("sockname") or ("localhost", 80)
    fallback = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    names = ("X-Forwarded-Host", "Host", "X-Forwarded-Proto")
    once = [",".join(request.headers.getall(name, [])) for name in names]
    authority = next(name for name in (*once[:2], fallback) if AUTHORITY.fullmatch(name))
    scheme = "https" if once[2].lower() == "https" else "http"
    return f"{scheme}://{authority}{request.rel_url.raw_path}/{user_id}"


@web.middleware
async def _log_requests(request: web.Request, handler: Handler) -> web.StreamResponse:
    start, app, task = perf_counter(), request.app, asyncio.current_task()
    given = request.headers.get("X-Request-Id", "")
    request_id = given if SANE_REQUEST_ID.fullmatch(given) else uuid4().hex
    path = request.rel_url.raw_path or "/"  # CONNECT has no path
    fields = request[FIELDS] = {"request_id": request_id, "method": request.method, "path": path}
    if task:
        app[IN_FLIGHT].add(task)
        task.add_done_callback(app[IN_FLIGHT].discard)
    response = await handler(request)
    if app[STOPPING].is_set():
        response.force_close()
    response.headers["X-Request-Id"] = request_id
    if path not in ("/healthz", "/readyz"):
        duration = round((perf_counter() - start) * 1000, 3)
        log("request", **fields, status=response.status, duration_ms=duration)
    return response


@web.middleware
async def _answer_problems(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        if "%" in request[FIELDS]["path"]:  # aiohttp's router would treat /%75sers as /users
            raise web.HTTPNotFound
        return await handler(request)
    except ProblemError as error:
        problem = error
    except web.HTTPNotFound:
        problem = ProblemError(404, "not_found", "See /openapi.json for the paths.")
    except web.HTTPMethodNotAllowed as error:
        allow = ", ".join(sorted({*error.allowed_methods, "OPTIONS"}))
        if request.method == "OPTIONS":
            return web.Response(status=204, headers={"Allow": allow})
        problem = ProblemError(405, "method_not_allowed", f"Use one of {allow}.", Allow=allow)
    except StorageError as error:
        log("storage_unavailable", "warning", **request[FIELDS], error=str(error))
        problem = ProblemError(503, "storage_unavailable", "Try again soon.", Retry_After="1")
    except Exception:
        log("failed", "error", **request[FIELDS], traceback=format_exc())
        problem = ProblemError(500, "internal_error", "The service has a fault; see its log.")
    return problem.response(request[FIELDS]["path"])


def log(event: str, level: str = "info", **fields: object) -> None:
    time = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    entry = {"time": time, "level": level, "event": event, "program": __package__}
    print(json.dumps(entry | fields), flush=True)  # noqa: T201
