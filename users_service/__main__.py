"""Start, serve until SIGTERM or SIGINT, finish what is in flight, leave."""

import asyncio
import os
import signal
import sys

import uvloop  # a faster event loop, with the same interface

from . import PROGRAM, log
from .app import application
from .engine import shown
from .serving import serve
from .settings import SettingError, Settings, misspelt
from .store import StorageError, Store


def main() -> int:
    """Run the program; return its exit status: 0 stopped, 1 cannot serve, 2 bad setting."""
    try:
        settings = Settings.from_environment(os.environ)
    except SettingError as error:
        return _fail(str(error), 2)
    log.configure()
    for name, near in misspelt(os.environ).items():
        fields = {"variable": name, "reason": f"no setting has this name; did you mean {near}?"}
        log.logger.warning("variable_unknown", extra={"fields": fields})
    return uvloop.run(_run(settings))


async def _run(settings: Settings) -> int:
    stop = asyncio.Event()
    for signum in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(signum, stop.set)
    try:
        store = await Store.open(settings.database_url, settings.database_timeout)
    except StorageError as error:
        where = shown(settings.database_url)
        remedy = "mend that, or correct USERS_DATABASE_URL"
        return _fail(f"cannot use the database {where}: {error}; {remedy}", 1)
    try:
        await serve(application(store, settings), settings, stop)
    except (OSError, UnicodeError) as error:  # the latter: a host that cannot be a DNS name
        where = f"{settings.host}:{settings.port}"
        return _fail(f"cannot listen on {where}: {getattr(error, 'strerror', None) or error}", 1)
    finally:
        await store.close()
    log.logger.info("stopped")
    return 0


def _fail(why: str, status: int) -> int:
    sys.stderr.write(f"{PROGRAM}: {why}\n")
    return status


if __name__ == "__main__":
    sys.exit(main())
