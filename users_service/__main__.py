"""Runs the service until SIGTERM or SIGINT, then finishes the requests in flight."""

import asyncio
import os
import signal
import sys
from functools import partial
from traceback import format_exc
from typing import Any, cast

from aiohttp import web

from .app import IN_FLIGHT, STOPPING, ProblemError, application, log
from .settings import Settings
from .store import StorageError


class Connection(web.RequestHandler):
    """Sends a problem detail for invalid HTTP and for errors outside the middlewares."""

    def handle_error(self, request: Any, status: int = 500, *error: Any, **_: Any) -> web.Response:
        code = "bad_http" if status == 400 else "internal_error"
        if status == 400:
            log(code, error=repr(error[-1]))
        else:
            log("failed", "error", path=request.path, traceback=format_exc())
        response = ProblemError(status, code, "The connection ends here.").response(request.path)
        response.force_close()
        return response


async def serve(settings: Settings) -> None:
    """Serve until a signal; exit with a message of one line if the service cannot start."""
    app, loop = application(settings), asyncio.get_running_loop()
    host, port = settings.host, settings.port
    for signum in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signum, app[STOPPING].set)
    runner = web.AppRunner(app, shutdown_timeout=1)
    what = "use the database of USERS_DATABASE_URL"
    try:
        await runner.setup()
        what, server = f"listen on {host}:{port}", cast("web.Server", runner.server)
        connection = partial(Connection, server, loop=loop, auto_decompress=False)
        listener = await loop.create_server(connection, host, port)
    # Database drivers raise the last three for invalid hosts, ports and parameters in URLs.
    except (StorageError, OSError, OverflowError, TypeError, ValueError) as error:
        await runner.cleanup()
        sys.exit(f"users_service: cannot {what}: {error}")
    authority = f"[{host}]" if ":" in host else host
    log("listening", url=f"http://{authority}:{listener.sockets[0].getsockname()[1]}")
    await app[STOPPING].wait()
    log("stopping")
    listener.close()
    await asyncio.sleep(0.01)  # requests that have already arrived can begin
    # Wait first: `cleanup` would stop reading the bodies of requests in flight.
    in_flight = app[IN_FLIGHT]
    if in_flight and (await asyncio.wait(in_flight, timeout=settings.grace))[1]:
        log("grace_ended", "warning", in_flight=len(in_flight))
    await runner.cleanup()
    log("stopped")


try:
    settings = Settings.from_environment(os.environ)
except ValueError as error:
    sys.stderr.write(f"users_service: {error}\n")
    sys.exit(2)
asyncio.run(serve(settings))
