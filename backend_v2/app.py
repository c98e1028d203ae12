"""The example backend for version 2: serves a person, health checks and an OpenAPI document.

Responses are JSON. Refusals are problem details (RFC 9457).
"""

import json
from functools import partial
from hashlib import sha256
from http import HTTPStatus
from time import perf_counter
from uuid import uuid4

from aiohttp import web
from aiohttp.typedefs import Handler
from pydantic import BaseModel  # one class for the data, its JSON and its schema

VERSION = "2"
PROGRAM = f"backend_v{VERSION}"
ALLOW = {"Allow": "GET, HEAD, OPTIONS"}
JSON, PROBLEM = "application/json", "application/problem+json"


class Name(BaseModel):
    firstName: str  # noqa: N815  # as in JSON
    lastName: str  # noqa: N815


class Person(BaseModel):
    """A person with separate first and last names."""

    name: Name


def person(first: str, last: str) -> Person:
    return Person(name=Name(firstName=first, lastName=last))


def application(first: str, last: str) -> web.Application:
    app = web.Application(middlewares=[_refuse_and_log])
    health = {"/healthz": {"status": "ok"}, "/readyz": {"status": "ready"}}
    resources = {"/person": person(first, last).model_dump(), "/openapi.json": _openapi(), **health}
    for path, resource in resources.items():
        app.router.add_get(path, partial(_send, json.dumps(resource, separators=(",", ":"))))
        app.router.add_options(path, _options)
    return app


async def _options(_: web.Request) -> web.StreamResponse:
    return web.Response(status=204, headers=ALLOW)


async def _send(body: str, request: web.Request) -> web.StreamResponse:
    etag = sha256(body.encode()).hexdigest()
    known = any(tag.value in ("*", etag) for tag in request.if_none_match or ())
    response = web.Response(status=304 if known else 200, text="" if known else body)
    response.etag, response.content_type = etag, JSON
    return response


@web.middleware
async def _refuse_and_log(request: web.Request, handler: Handler) -> web.StreamResponse:
    start, path = perf_counter(), request.rel_url.raw_path
    given = request.headers.get("X-Request-Id", "")
    request_id = given if given.isascii() and given else uuid4().hex
    try:
        response = await handler(request)
    except web.HTTPException as error:
        response = _problem(HTTPStatus(error.status), path)
    response.headers["X-Request-Id"] = request_id
    if path not in ("/healthz", "/readyz"):
        fields = {"method": request.method, "path": path, "status": response.status}
        log("request", request_id=request_id, **fields, seconds=perf_counter() - start)
    return response


def _problem(status: HTTPStatus, path: str) -> web.Response:
    about = {"type": "about:blank", "title": status.phrase, "status": status, "instance": path}
    body = {**about, "detail": f"{status.description}.", "code": status.name.lower()}
    headers = ALLOW if status == HTTPStatus.METHOD_NOT_ALLOWED else None
    return web.json_response(body, status=status, content_type=PROBLEM, headers=headers)


def _openapi() -> dict[str, object]:
    schema = Person.model_json_schema(ref_template="#/components/schemas/{model}")
    components = {"schemas": schema.pop("$defs", {})}
    person = {"description": "The person.", "content": {JSON: {"schema": schema}}}
    paths = {"/person": {"get": {"operationId": "person", "responses": {"200": person}}}}
    info = {"title": PROGRAM, "version": VERSION}
    return {"openapi": "3.1.1", "info": info, "paths": paths, "components": components}


def log(event: str, **fields: object) -> None:
    print(json.dumps({"event": event, "program": PROGRAM} | fields), flush=True)  # noqa: T201
