"""The command line. Serving takes no more into memory than it needs, so it comes first."""

import os
import sys
from collections.abc import Coroutine

# uvloop: libuv's event loop, on which moving bytes costs least.
import uvloop

from gateway.app import CannotListen, serve, supervise, work
from gateway.config.load import load_file
from gateway.config.report import ConfigError
from gateway.operation import log
from gateway.operation.records import StateError
from gateway.operation.workers import is_worker
from gateway.settings import SettingError, Settings, from_environment


def main() -> int:
    """Run a command and return its exit status: 0 done, 1 refused, 2 wrongly asked."""
    words = sys.argv[1:]
    if words:
        from gateway import command

        status = command.run(words)
        if status is not None:
            return status
    try:
        log.configure()
        uvloop.run(_serve(from_environment(os.environ)))
    except (ConfigError, StateError, CannotListen) as error:
        print(error, file=sys.stderr)
        return 1
    except SettingError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def _serve(settings: Settings) -> Coroutine[None, None, None]:
    if is_worker(os.environ):
        return work(settings)
    rules = load_file(settings.config, os.environ)
    count = settings.workers or rules.workers or len(os.sched_getaffinity(0))
    return serve(settings) if count == 1 else supervise(settings, count)


if __name__ == "__main__":
    sys.exit(main())
