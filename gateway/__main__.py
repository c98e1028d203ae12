"""The main module: runs the gateway, a worker or a command.

`main` contains the imports, because garbage collection must be disabled before them and each role
needs different ones. A worker needs neither the admin port nor the state, and serving needs no
commands.
"""

import gc
import os
import sys


def main() -> int:
    """Run the gateway or a command; return the exit status: 0 success, 1 refused, 2 wrong usage."""
    if sys.platform == "win32":
        sys.exit("version-gateway runs on Linux and macOS; on Windows, run it in WSL 2 or Docker")
    # By default, pydantic reads the metadata of all installed packages to look for plugins.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    gc.disable()  # collecting garbage among imported objects took 5 % of the start time
    try:
        if sys.argv[1:]:
            from gateway.cli import parse

            run = parse(sys.argv[1:])
        else:
            from gateway.process.listening import is_worker

            if is_worker(os.environ):
                from gateway.process.worker import run
            else:
                from gateway.app import run
    finally:
        gc.freeze()
        gc.enable()
    return run()


if __name__ == "__main__":
    sys.exit(main())
