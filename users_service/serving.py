"""Runs the server: listen, and when told to stop, finish what is in flight first."""

import asyncio
from functools import partial
from typing import cast

from aiohttp import web
from aiohttp.typedefs import Handler

from .log import logger
from .middleware import request_id
from .problem import BAD_HTTP, INTERNAL_ERROR, ProblemError, answer
from .settings import Settings

LAST_SECOND = 1.0  # for responses that are being written when the grace ends


class InFlight:
    """The requests that are being answered, and a way to wait until there are none."""

    def __init__(self) -> None:
        self._count = 0
        self._none = asyncio.Event()
        self._none.set()
        self._draining = False

    @web.middleware
    async def count(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Count a request while its handler runs; a middleware."""
        self._count += 1
        self._none.clear()
        try:
            response = await handler(request)
        finally:
            self._count -= 1
            if not self._count:
                self._none.set()
        if self._draining:
            response.force_close()
        return response

    async def drain(self, grace: float) -> None:
        """Wait until no request is in flight, `grace` seconds at most.

        From now on each response ends its connection. aiohttp's own shutdown comes later, as it
        stops reading the bodies that are still on their way.
        """
        self._draining = True
        try:
            async with asyncio.timeout(grace):
                await self._none.wait()
        except TimeoutError:
            logger.warning("grace_ended", extra={"fields": {"in_flight": self._count}})


class Protocol(web.RequestHandler):
    """aiohttp's connection, with problems in place of its own error pages."""

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer what never reached the application: bytes that are not HTTP, above all."""
        made_id = request_id({})
        fields = {"request_id": made_id, "status": status}
        if status == web.HTTPBadRequest.status_code:
            logger.info("bad_http", extra={"fields": {**fields, "error": message}})
            problem = ProblemError(BAD_HTTP, "The connection ends here.")
        else:
            logger.error("failed", exc_info=exc, extra={"fields": fields})
            problem = ProblemError(INTERNAL_ERROR, "It was logged.")
        response = answer(problem, request.path)
        response.headers["X-Request-Id"] = made_id
        response.force_close()
        return response


async def serve(app: web.Application, settings: Settings, stop: asyncio.Event) -> None:
    """Serve until `stop` is set, then finish within the grace.

    Raises:
        OSError: the address cannot be listened on.
    """
    in_flight = InFlight()
    app.middlewares.append(in_flight.count)
    runner = web.AppRunner(app, shutdown_timeout=LAST_SECOND)
    await runner.setup()
    loop = asyncio.get_running_loop()
    manager = cast("web.Server", runner.server)  # setup made it
    connection = partial(Protocol, manager, loop=loop, auto_decompress=False)
    try:
        server = await loop.create_server(connection, settings.host, settings.port)
        logger.info("listening", extra={"fields": {"url": _url(server, settings.host)}})
        await stop.wait()
        logger.info("stopping")
        server.close()
        await asyncio.sleep(0)  # what was received before may now begin
        await in_flight.drain(settings.grace)
    finally:
        await runner.cleanup()


def _url(server: asyncio.Server, host: str) -> str:
    port = server.sockets[0].getsockname()[1]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
