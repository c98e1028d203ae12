"""The command line; imports only what the command needs."""

import gc
import mimetypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_AUTHORITIES = "SSL_CERT_FILE"


def main() -> int:
    """Run a command and return its exit status: 0 done, 1 refused, 2 wrongly asked."""
    with _importing():
        if sys.argv[1:]:
            from gateway.cli.main import parse

            run = parse(sys.argv[1:])
        else:
            from gateway.app import run
    return run()


@contextmanager
def _importing() -> Iterator[None]:
    # Imported objects stay, and looking for garbage in them took a tenth of the start. And aiohttp
    # imports its client along with its server, which reads the certificate authorities, twice:
    # 40 ms and 2 MB for nothing, as the gateway does not use that client; and the system's types of
    # files, half a MB, as it sends none.
    mimetypes.knownfiles.clear()
    # pydantic would read the metadata of all that is installed, to look for plugins.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    named = os.environ.get(_AUTHORITIES)
    os.environ[_AUTHORITIES] = os.devnull
    gc.disable()
    try:
        yield
    finally:
        gc.collect()  # once for all of it; what is frozen is never looked at again
        gc.freeze()
        gc.enable()
        del os.environ[_AUTHORITIES]
        if named is not None:
            os.environ[_AUTHORITIES] = named


if __name__ == "__main__":
    sys.exit(main())
