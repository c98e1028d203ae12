"""The command line. A process takes no more into memory than what it is asked for needs."""

import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_AUTHORITIES = "SSL_CERT_FILE"


def main() -> int:
    """Run a command and return its exit status: 0 done, 1 refused, 2 wrongly asked."""
    status: int | None = None
    if sys.argv[1:]:
        with _importing():
            from gateway.cli import main
        status = main.run(sys.argv[1:])
    if status is None:
        with _importing():
            from gateway import app
        status = app.run()
    return status


@contextmanager
def _importing() -> Iterator[None]:
    # What imports make stays, and looking for garbage in it took a tenth of the start. And aiohttp
    # imports its client along with its server, which reads the certificate authorities, twice:
    # 40 ms and 2 MB for nothing, as services are spoken to in plain HTTP.
    named = os.environ.get(_AUTHORITIES)
    os.environ[_AUTHORITIES] = os.devnull
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
        del os.environ[_AUTHORITIES]
        if named is not None:
            os.environ[_AUTHORITIES] = named


if __name__ == "__main__":
    sys.exit(main())
