"""The child process of `function_process`: calls functions until the gateway closes the socket."""

import pickle
import signal
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib import import_module
from multiprocessing.connection import Connection
from os import _exit
from traceback import walk_tb
from typing import Any

from gateway.convert import Refused


def serve(number: int) -> None:
    """Execute the calls from the socket with this descriptor, then exit the process."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    link = Connection(number)
    with suppress(EOFError, OSError):
        for module in pickle.loads(link.recv_bytes()):  # noqa: S301  # of the gateway
            link.send_bytes(module.encode())
            with suppress(BaseException):  # each call reports the reason
                import_module(module)
        link.send_bytes(b"")
        while True:
            result = _result(link.recv_bytes())
            link.send_bytes(result)
    _exit(0)  # does not wait for threads that functions started


def _result(request: bytes) -> bytes:
    try:
        name, seconds, positional, keywords = pickle.loads(request)  # noqa: S301  # of the gateway
        function = _function(name)
        # The gateway kills this process at the time limit. The alarm ends it if the gateway no
        # longer exists.
        signal.setitimer(signal.ITIMER_REAL, 2 * seconds + 1)
        return pickle.dumps((True, function(*positional, **keywords)))
    except Refused as refused:
        return pickle.dumps((None, (refused.reason, refused.pointer)))
    except BaseException as error:  # foreign code may raise anything, such as SystemExit
        return pickle.dumps((False, f"raised {type(error).__name__} at {_where(error)}"))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


@cache
def _function(name: str) -> Callable[..., object]:
    module, _, path = name.partition(":")
    found: Any = import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    return found  # type: ignore[no-any-return]  # the gateway checked that it is callable


def _where(error: BaseException) -> str:
    *_, (frame, line) = walk_tb(error.__traceback__)
    return f"{frame.f_code.co_filename.rpartition('/')[2]}:{line}"
