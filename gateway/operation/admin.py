"""The admin port: health, apart from the paths that belong to the users' APIs."""

from collections.abc import Callable

from aiohttp import web


def admin_app(ready: Callable[[], str | None]) -> web.Application:
    """Return the admin application.

    Args:
        ready: says why the gateway cannot serve, or None if it can.
    """

    async def healthz(_: web.Request) -> web.Response:
        return web.json_response({"status": "ok"})

    async def readyz(_: web.Request) -> web.Response:
        reason = ready()
        if reason is None:
            return web.json_response({"status": "ready"})
        return web.json_response({"status": "not ready", "reason": reason}, status=503)

    app = web.Application()
    app.add_routes([web.get("/healthz", healthz), web.get("/readyz", readyz)])
    return app
