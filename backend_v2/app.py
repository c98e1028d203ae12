"""What each request is answered. Nothing changes while it runs, so the bodies are made once."""

import json
import re
import uuid
from collections.abc import Awaitable, Callable, Mapping
from hashlib import sha256
from http import HTTPStatus
from time import perf_counter
from typing import Literal

from aiohttp import web  # the HTTP server; its low level, as fixed answers need no router
from pydantic import BaseModel

from . import openapi, problem
from .log import logger
from .model import Person
from .settings import Settings

ALLOW = {"Allow": "GET, HEAD, OPTIONS"}
HEALTH = ("/healthz", "/readyz")
SANE_REQUEST_ID = re.compile(r"[A-Za-z0-9._~:/+=@-]{1,128}")


class Health(BaseModel, frozen=True):
    """Whether the program is alive or ready; it is ready as soon as it listens."""

    status: Literal["ok", "ready"]


def documents(settings: Settings) -> dict[str, bytes]:
    """Make the JSON body of every path, the OpenAPI description of the others included."""
    resources: dict[str, BaseModel] = {
        "/person": Person.of(settings.first_name, settings.last_name),
        "/healthz": Health(status="ok"),
        "/readyz": Health(status="ready"),
    }
    description = openapi.document({path: type(model) for path, model in resources.items()})
    bodies = {path: model.model_dump_json().encode() for path, model in resources.items()}
    return {**bodies, "/openapi.json": json.dumps(description).encode()}


def handler(bodies: Mapping[str, bytes]) -> Callable[[web.BaseRequest], Awaitable[web.Response]]:
    """Return what answers any request from these bodies by path, and logs that it did."""

    async def handle(request: web.BaseRequest) -> web.Response:
        start = perf_counter()
        path = request.rel_url.raw_path
        request_id = request.headers.get("X-Request-Id", "")
        if not SANE_REQUEST_ID.fullmatch(request_id):
            request_id = uuid.uuid4().hex
        fields = {"request_id": request_id, "method": request.method, "path": path}
        try:
            response = _answer(request, path, bodies)
        except Exception:
            logger.exception("failed", extra={"fields": fields})
            response = _refuse(HTTPStatus.INTERNAL_SERVER_ERROR, "The fault is ours.", path)
        response.headers["X-Request-Id"] = request_id
        if path not in HEALTH:
            milliseconds = round((perf_counter() - start) * 1000, 3)
            outcome = {"status": response.status, "duration_ms": milliseconds}
            logger.info("request", extra={"fields": fields | outcome})
        return response

    return handle


def _answer(request: web.BaseRequest, path: str, bodies: Mapping[str, bytes]) -> web.Response:
    if path not in bodies:
        return _refuse(HTTPStatus.NOT_FOUND, "Nothing is at this path.", path)
    if request.method == "OPTIONS":
        return web.Response(status=HTTPStatus.NO_CONTENT, headers=ALLOW)
    if request.method not in ("GET", "HEAD"):
        detail = f"{request.method} is not possible here; Allow lists what is."
        return _refuse(HTTPStatus.METHOD_NOT_ALLOWED, detail, path, ALLOW)
    body = bodies[path]
    etag = f'"{sha256(body).hexdigest()[:32]}"'
    headers = {"ETag": etag, "Cache-Control": "no-cache"}
    # RFC 9110, section 13.1.2: weak comparison, and several header lines are one list.
    known = ",".join(request.headers.getall("If-None-Match", ())).split(",")
    if {"*", etag} & {tag.strip(" \t").removeprefix("W/") for tag in known}:
        return web.Response(status=HTTPStatus.NOT_MODIFIED, headers=headers)
    return web.Response(body=body, content_type="application/json", headers=headers)


def _refuse(
    status: HTTPStatus, detail: str, path: str, headers: Mapping[str, str] | None = None
) -> web.Response:
    body = problem.Problem.of(status, detail, path).model_dump_json().encode()
    return web.Response(
        status=status, body=body, content_type=problem.CONTENT_TYPE, headers=headers
    )
