"""Start, serve until SIGTERM or SIGINT, finish what is in flight, leave."""

import asyncio
import os
import signal
import sys

import uvloop  # a faster event loop, with the same interface
from aiohttp import web

from . import PROGRAM, log
from .app import documents, handler
from .settings import SettingError, Settings, misspelt


def main() -> int:
    """Run the program; return its exit status: 0 stopped, 1 cannot listen, 2 bad setting."""
    try:
        settings = Settings.from_environment(os.environ)
    except SettingError as error:
        sys.stderr.write(f"{PROGRAM}: {error}\n")
        return 2
    log.configure()
    for name, near in misspelt(os.environ).items():
        fields = {"variable": name, "reason": f"no setting has this name; did you mean {near}?"}
        log.logger.warning("variable_unknown", extra={"fields": fields})
    return uvloop.run(serve(settings))


async def serve(settings: Settings) -> int:
    """Serve until a signal says to stop; return the exit status."""
    stop = asyncio.Event()
    for signum in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(signum, stop.set)
    # Request bodies are skipped, so one that does not decompress is no error.
    server = web.Server(handler(documents(settings)), access_log=None, auto_decompress=False)
    runner = web.ServerRunner(server, shutdown_timeout=settings.grace)
    await runner.setup()
    try:
        site = web.TCPSite(runner, settings.host, settings.port)
        await site.start()
    except (OSError, UnicodeError) as error:  # the latter: a host that cannot be a DNS name
        where = f"{settings.host}:{settings.port}"
        sys.stderr.write(f"{PROGRAM}: cannot listen on {where}: {error}\n")
        return 1
    else:
        log.logger.info("listening", extra={"fields": {"url": site.name}})
        await stop.wait()
        log.logger.info("stopping")
    finally:
        await runner.cleanup()
    log.logger.info("stopped")
    return 0


if __name__ == "__main__":
    sys.exit(main())
