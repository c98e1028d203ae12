"""The command line; imports only what the command needs."""

import gc
import linecache
import mimetypes
import os
import sys
from collections.abc import Iterator, Set
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from types import ModuleType

_AUTHORITIES = "SSL_CERT_FILE"
# Functions and types that libraries import at once and use hardly ever, by their modules: those of
# pydantic for plugins and time zones; those of aiohttp for the proxies of the environment, for
# pages of HTML, for files in forms and for a command line. With what they import in turn, they are
# 3.4 MB of an idle gateway.
_LATER = {
    "argparse": ("ArgumentParser",),
    "html": ("escape",),
    "importlib.metadata": ("entry_points",),
    "tempfile": ("SpooledTemporaryFile",),
    "urllib.request": ("getproxies", "proxy_bypass"),
    "zoneinfo": ("ZoneInfo", "ZoneInfoNotFoundError"),
}


def main() -> int:
    """Run a command and return its exit status: 0 done, 1 refused, 2 wrongly asked."""
    with _importing({"argparse", "zoneinfo"} if sys.argv[1:] else set()):
        if sys.argv[1:]:
            from gateway.cli.main import parse

            run = parse(sys.argv[1:])
        else:
            from gateway.process.listening import is_worker

            if is_worker(os.environ):
                from gateway.process.work import run
            else:
                from gateway.app import run
    return run()


@contextmanager
def _importing(at_once: Set[str]) -> Iterator[None]:
    # Imported objects stay, and looking for garbage in them took a twentieth of the start; what is
    # frozen is never looked at again, and holds some 0.4 MB of garbage. aiohttp imports its client
    # along with its server, which reads the certificate authorities, twice: 40 ms and 2 MB for
    # nothing, as whoever uses that client gives it a context; and the system's types of files,
    # half a MB, as the gateway sends none.
    mimetypes.knownfiles.clear()
    # pydantic would read the metadata of all that is installed, to look for plugins.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    absent = _LATER.keys() - sys.modules.keys() - at_once
    for name in absent:
        sys.modules[name] = _StandIn(name)
    named = os.environ.get(_AUTHORITIES)
    os.environ[_AUTHORITIES] = os.devnull
    gc.disable()
    try:
        yield
    finally:
        for name in absent:
            _StandIn.leave(name)
        # The folders that were looked through, and the source that attrs compiled: 0.3 MB.
        sys.path_importer_cache.clear()
        linecache.clearcache()
        gc.freeze()
        gc.enable()
        del os.environ[_AUTHORITIES]
        if named is not None:
            os.environ[_AUTHORITIES] = named


class _StandIn(ModuleType):
    """Stands in for a module, which its functions import when they are called."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        for function in _LATER[name]:
            setattr(self, function, partial(self._call, function))

    def _call(self, function: str, *positional: object, **named: object) -> object:
        self.leave(self.__name__)
        return getattr(import_module(self.__name__), function)(*positional, **named)

    @staticmethod
    def leave(name: str) -> None:
        """Have the module itself imported from now on."""
        if isinstance(sys.modules.get(name), _StandIn):
            del sys.modules[name]


if __name__ == "__main__":
    sys.exit(main())
