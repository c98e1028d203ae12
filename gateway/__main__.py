"""The command line.

Imports are inside `main`: garbage collection has to be off before, and each role has imports of its
own. A worker does without the admin port and the state, serving without the commands.
"""

import gc
import os
import sys


def main() -> int:
    """Run a command and return its exit status: 0 done, 1 refused, 2 wrongly asked."""
    # pydantic would read the metadata of all installed packages to look for plugins.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    gc.disable()  # collecting garbage among imported objects took 5 % of the start
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
