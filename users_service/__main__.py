"""Serve until SIGTERM or SIGINT, and finish the requests in flight."""

import asyncio
import os
import signal
import sys
from functools import partial
from typing import Any, cast

from aiohttp import web

from .app import IN_FLIGHT, STOPPING, application, log
from .body import ProblemError
from .settings import Settings
from .store import StorageError


class Connection(web.RequestHandler):
    """A connection that answers invalid HTTP with a problem."""

    def handle_error(self, request: Any, status: int = 500, *error: Any, **_: Any) -> web.Response:
        """Log the error and return the response."""
        code, level = ("bad_http", "info") if status == 400 else ("internal_error", "error")
        log(code, level, error=repr(error[-1] if error else None))
        response = ProblemError(status, code, "The connection ends here.").response(request.path)
        response.force_close()
        return response


async def serve(settings: Settings) -> str | None:
    """Serve until a signal; return why that is impossible, or None."""
    app, loop = application(settings), asyncio.get_running_loop()
    for signum in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signum, app[STOPPING].set)
    runner = web.AppRunner(app, shutdown_timeout=1)
    what = "use the database of USERS_DATABASE_URL"
    try:
        await runner.setup()
        what = f"listen on {settings.host}:{settings.port}"
        connection = partial(
            Connection, cast("web.Server", runner.server), loop=loop, auto_decompress=False
        )
        listener = await loop.create_server(connection, settings.host, settings.port)
    # Drivers raise the last three for wrong hosts, ports and parameters of URLs.
    except (StorageError, OSError, OverflowError, TypeError, ValueError) as error:
        await runner.cleanup()
        return f"cannot {what}: {error}"
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    log("listening", url=f"http://{host}:{listener.sockets[0].getsockname()[1]}")
    await app[STOPPING].wait()
    log("stopping")
    listener.close()
    end = loop.time() + settings.grace
    await asyncio.sleep(0.01)  # requests that have arrived may begin
    while app[IN_FLIGHT] and loop.time() < end:  # noqa: ASYNC110 (cleanup stops reading bodies)
        await asyncio.sleep(0.01)
    if app[IN_FLIGHT]:
        log("grace_ended", "warning", in_flight=len(app[IN_FLIGHT]))
    await runner.cleanup()
    log("stopped")
    return None


try:
    settings = Settings.from_environment(os.environ)
except ValueError as error:
    sys.stderr.write(f"users_service: {error}\n")
    sys.exit(2)
if reason := asyncio.run(serve(settings)):
    sys.exit(f"users_service: {reason}")
