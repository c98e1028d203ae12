"""The application on the admin port: its routes and middlewares.

Every refusal is a problem detail (RFC 9457), as on the port for clients. The handlers belong to the
parts `metrics`, `api` and `page`. A part is imported by the first request for it, which saves
memory in an idle gateway.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import partial
from typing import Any

from aiohttp import web

from gateway.access.admin import Right
from gateway.admin.access.authentication import Authentication
from gateway.admin.access.connections import with_expectations
from gateway.admin.access.middlewares import access_middlewares
from gateway.admin.access.rights import Handler, json_answer, needs
from gateway.admin.access.sessions import login_routes
from gateway.findings.formatting import format_time
from gateway.findings.operator import Operator

Load = Callable[[], Callable[[Operator], object]]
"""Imports a part and returns its class, whose methods handle the part's routes."""
_ROUTES: Mapping[str, Mapping[tuple[str, str], str]] = {
    "metrics": {("GET", "/metrics"): "metrics"},
    "api": {
        ("GET", "/usage"): "usage",
        ("GET", "/usage/set-aside"): "clients_set_aside",
        ("PUT", "/usage/set-aside"): "set_aside",
        ("DELETE", "/usage/set-aside"): "include",
        ("GET", "/versions"): "versions",
        ("GET", "/retire/{api}/{version}"): "retire",
        ("GET", "/history/{api}/{version}"): "history",
        ("GET", "/overrides"): "overrides",
        ("GET", "/brownouts/{api}/{version}"): "brownout",
        ("PUT", "/brownouts/{api}/{version}"): "pause_brownout",
        ("DELETE", "/brownouts/{api}/{version}"): "resume_brownout",
        ("GET", "/cutovers/{api}/{version}"): "cutover",
        ("PUT", "/cutovers/{api}/{version}"): "set_cutover",
        ("POST", "/cutovers/{api}/{version}"): "promote_cutover",
        ("DELETE", "/cutovers/{api}/{version}"): "clear_cutover",
        ("GET", "/shadows/{api}/{version}"): "shadow",
        ("DELETE", "/shadows/{api}/{version}"): "reset_shadow",
        ("GET", "/fleet"): "fleet",
        ("DELETE", "/fleet/{replica}"): "forget",
        ("GET", "/audit"): "audit",
        ("GET", "/notifications"): "notifications",
        ("POST", "/notifications/test"): "test_notification",
    },
    "page": {
        ("GET", "/"): "next",
        ("GET", "/page/versions"): "versions",
        ("GET", "/page/versions/{api}"): "version",
        ("GET", "/page/versions/{api}/{version}"): "version",
        ("POST", "/page/versions/{api}/{version}/{part:callers|cutover|brownouts|shadow}"): "act",
        ("POST", "/page/replicas/{replica}"): "forget",
        ("GET", "/page/callers/{api}"): "callers",
        ("GET", "/page/callers/{api}/{version}"): "callers",
        ("GET", "/page/services"): "services",
        ("GET", "/page/rules"): "rules",
        ("POST", "/page/rules"): "check_draft",
        ("GET", "/page/audit"): "audit",
        ("GET", "/page/events"): "events",
        ("GET", "/page/static/{name}"): "static",
    },
}
# Handlers whose needed right does not follow from the method. The login page loads the style sheet,
# so static files need no right. Checking a draft is a POST request but changes nothing.
_NEEDS = {"static": None, "check_draft": Right.READ}


async def start_admin(
    operator: Operator, parts: Mapping[str, Load], hosts: Collection[str] = ()
) -> web.AppRunner:
    runner = web.AppRunner(admin_app(operator, parts, hosts))
    await runner.setup()
    assert runner.server is not None
    runner.server.request_handler = with_expectations(runner.server.request_handler)
    return runner


def admin_app(
    operator: Operator, parts: Mapping[str, Load], hosts: Collection[str] = ()
) -> web.Application:
    """Create the admin application, with the middlewares that check access.

    Args:
        parts: a loader for each of `metrics`, `api` and `page`.
        hosts: accepted host names, in addition to IP addresses, `localhost` and names without a
            dot.
    """
    authentication = Authentication(lambda: operator.rules.admin)
    made = {name: _Part(operator, load) for name, load in parts.items()}

    @web.middleware
    async def show(request: web.Request, handler: Handler) -> web.StreamResponse:
        response = await handler(request)
        is_problem = response.content_type == "application/problem+json"
        if is_problem and _for_people(request, response.status):
            return await _problem_page(request, response, await made["page"].get())
        return response

    async def close_page(_: web.Application) -> None:
        if made["page"].part is not None:
            made["page"].part.close()

    app = web.Application(middlewares=[show, *access_middlewares(operator, authentication, hosts)])
    app.on_shutdown.append(close_page)
    app.on_response_prepare.append(_without_releases)
    for name, routes in _ROUTES.items():
        for (method, path), handler in routes.items():
            app.add_routes([web.route(method, path, made[name].handler(handler))])
    app.add_routes(_health_routes(operator))
    count = partial(operator.count, "admin_refusals")
    app.add_routes(login_routes(authentication.log_in, count))
    return app


class _Part:
    def __init__(self, operator: Operator, load: Load) -> None:
        self._operator = operator
        self._load = load
        self.part: Any = None

    async def get(self) -> Any:
        if self.part is None:
            # The import runs in a thread, so that the event loop can serve requests in the
            # meantime.
            made = (await asyncio.to_thread(self._load))(self._operator)
            self.part = self.part or made
        return self.part

    def handler(self, name: str) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def handle(request: web.Request) -> web.StreamResponse:
            response: web.StreamResponse = await getattr(await self.get(), name)(request)
            return response

        return needs(_NEEDS[name])(handle) if name in _NEEDS else handle


def _for_people(request: web.Request, status: int) -> bool:
    if request.path == "/" or request.path.startswith("/page/"):
        return True
    return status == 404 and "text/html" in request.headers.get("Accept", "")


async def _problem_page(
    request: web.Request, response: web.StreamResponse, page: Any
) -> web.StreamResponse:
    assert isinstance(response, web.Response)
    detail = json.loads(response.text or "{}").get("detail", "")
    shown: web.Response = await page.problem(request, response.status, detail)
    for name in ("Allow", "Retry-After", "WWW-Authenticate"):
        if name in response.headers:
            shown.headers[name] = response.headers[name]
    return shown


async def _without_releases(_: web.Request, response: web.StreamResponse) -> None:
    response.headers.pop("Server", None)  # it shows the versions of Python and aiohttp


def _health_routes(operator: Operator) -> list[web.RouteDef]:
    @needs(None)
    async def healthz(_: web.Request) -> web.Response:
        return json_answer({"status": "ok"})

    @needs(None)
    async def readyz(_: web.Request) -> web.Response:
        reason, failing = operator.unready(), operator.failing_tasks()
        # A failing task does not make the gateway unready: requests still succeed, and the task
        # would fail on all replicas.
        found: dict[str, object] = {"failing": failing} if failing else {}
        stale = operator.state.stale_since
        if stale is not None:  # requests are still served
            found["state_stale_since"] = format_time(stale)
        if reason is None:
            return json_answer({"status": "ready", **found})
        return json_answer({"status": "not ready", "reason": reason, **found}, 503)

    return [web.get("/healthz", healthz), web.get("/readyz", readyz)]
