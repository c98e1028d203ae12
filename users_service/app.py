"""What is at which path."""

import re
from collections.abc import Mapping
from datetime import datetime

from aiohttp import web  # the HTTP server
from aiohttp.typedefs import Handler
from pydantic import BaseModel, TypeAdapter, ValidationError

from . import body, openapi
from .location import location
from .log import logger
from .middleware import around
from .model import NewUser
from .problem import METHOD_NOT_ALLOWED, NOT_FOUND, USER_NOT_FOUND, ProblemError
from .settings import Settings
from .store import StorageError, Store
from .violations import violations

ID = re.compile(r"[1-9][0-9]{0,18}")  # the one way to write an id; the store knows the largest
JSON: TypeAdapter[object] = TypeAdapter(object)


def application(store: Store, settings: Settings) -> web.Application:
    """Make the application that keeps users in this store."""
    api = _Api(store, settings)
    app = web.Application(middlewares=[around], client_max_size=settings.max_body)
    paths: dict[str, dict[str, Handler]] = {
        "/users": {"POST": api.create_user},
        "/users/{id}": {"GET": api.read_user},
        "/healthz": {"GET": api.health},
        "/readyz": {"GET": api.readiness},
        "/openapi.json": {"GET": api.description},
        "/{path:.*}": {},
    }
    for path, methods in paths.items():
        app.router.add_route("*", path, _resource(methods), expect_handler=_expect)
    return app


class _Api:
    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._settings = settings
        self._description = openapi.document()

    async def create_user(self, request: web.Request) -> web.Response:
        settings = self._settings
        sent = await body.read(request, settings.max_body, settings.body_timeout)
        value = body.parse(sent, settings.max_depth)
        today = datetime.now(settings.timezone).date()
        try:
            new = NewUser.model_validate(value, context={"today": today})
        except ValidationError as error:
            return _json(violations(error, "user"), 400)
        user = await self._store.add(new)
        path = request.rel_url.raw_path
        where = location(request.headers, _listening(request), path, user.id)
        return _json(user, 201, {"Location": where})

    async def read_user(self, request: web.Request) -> web.Response:
        digits = request.match_info["id"]
        user = await self._store.get(int(digits)) if ID.fullmatch(digits) else None
        if user is None:
            raise ProblemError(USER_NOT_FOUND, "No user has this id.")
        return _json(user)

    async def health(self, _: web.Request) -> web.Response:
        return _json({"status": "ok"})

    async def readiness(self, _: web.Request) -> web.Response:
        try:
            await self._store.check()
        except StorageError as error:
            logger.warning("not_ready", extra={"fields": {"error": str(error)}})
            return _json({"status": "not ready", "reason": "storage_unavailable"}, 503)
        return _json({"status": "ready"})

    async def description(self, _: web.Request) -> web.Response:
        return _json(self._description)


def _resource(methods: Mapping[str, Handler]) -> Handler:
    """Return what answers every method at a path; with no methods, nothing is there."""
    handlers = dict(methods)
    if "GET" in handlers:
        handlers["HEAD"] = handlers["GET"]  # aiohttp leaves the body out
    allow = ", ".join(sorted([*handlers, "OPTIONS"]))

    async def handle(request: web.Request) -> web.StreamResponse:
        # Paths match exactly; aiohttp's router alone would take /%75sers for /users.
        if not methods or "%" in request.rel_url.raw_path:
            raise ProblemError(NOT_FOUND, "See /openapi.json for what there is.")
        if request.method == "OPTIONS":
            return web.Response(status=204, headers={"Allow": allow})
        if request.method not in handlers:
            raise ProblemError(METHOD_NOT_ALLOWED, f"Possible are {allow}.", {"Allow": allow})
        return await handlers[request.method](request)

    return handle


def _listening(request: web.Request) -> str:
    """Return the authority that the client connected to; if it has left, any will do."""
    host, port, *_ = request.get_extra_info("sockname") or ("localhost", 80)
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


async def _expect(_: web.Request) -> None:
    """Leave 100 Continue to the one who reads the body, and ignore other expectations."""


def _json(
    value: BaseModel | Mapping[str, object],
    status: int = 200,
    headers: Mapping[str, str] | None = None,
) -> web.Response:
    content = JSON.dump_json(value, by_alias=True)
    return web.Response(
        body=content, status=status, headers=headers, content_type="application/json"
    )
