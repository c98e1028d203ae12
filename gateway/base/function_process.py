"""Processes for Python functions with a time limit, which can be ended at any moment.

A thread cannot be ended while it runs C code that holds the interpreter, such as a regular
expression that backtracks, and such code stops all other threads as well. A process can: it ends
itself by a timer of the system, and the gateway can kill it.

Each has one socket to the gateway, and no other descriptor of it but the standard streams. It ends
when the gateway does.
"""

import atexit
import pickle
import signal
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from socket import socketpair
from threading import Lock, Semaphore, local

from gateway.base.errors import FunctionError

# The processes of one process of the gateway. Each takes 10 MB, and what its functions import.
_MOST = 4
# For how many seconds a function waits for a free process, and a new process imports modules.
_PATIENCE, _START = 5.0, 10.0
_BOOT = """
import sys
sys.path[:] = sys.argv[2:]
from gateway.base.function_child import serve
serve(int(sys.argv[1]))
"""
_modules: dict[str, None] = {}
_idle: "list[FunctionProcess]" = []
_lock = Lock()
_places = Semaphore(_MOST)
_held = local()


class NoProcessError(Exception):
    """No process is free, or none can be started."""


class FunctionProcess:
    """One process; raises NoProcessError if it cannot be started.

    Attributes:
        calling: the function that it runs, as `module:function`; empty if it runs none.
    """

    def __init__(self) -> None:
        # Imported when first needed, since few gateways have such functions.
        import subprocess
        from multiprocessing.connection import Connection

        self.calling = ""
        self._knows = _known()
        own, other = socketpair()
        self._link = Connection(own.detach())
        with other:
            number = other.fileno()
            try:
                # A group of its own: Ctrl-C in a terminal is for the gateway.
                self._process = subprocess.Popen(  # noqa: S603  # this program
                    [sys.executable, "-c", _BOOT, str(number), *sys.path],
                    pass_fds=[number],
                    stdin=subprocess.DEVNULL,
                    process_group=0,
                    cwd=Path.cwd(),
                )
            except OSError as error:
                self._link.close()
                raise NoProcessError from error
        try:
            self._link.send_bytes(pickle.dumps(list(_modules)))
            if not self._link.poll(_START):
                raise EOFError
            self._link.recv_bytes()
        except (OSError, EOFError) as error:
            self.end()
            raise NoProcessError from error

    @property
    def is_well(self) -> bool:
        """Whether it can take another call, and knows the modules that are known now."""
        runs = self._process.poll() is None and not self._link.closed
        return runs and self._knows == _known()

    def kill(self) -> None:
        """End it, whatever it does."""
        self._process.kill()

    def end(self) -> None:
        """Kill it and wait until it has ended."""
        self.kill()
        self._process.wait()
        self._link.close()

    def call(
        self, name: str, seconds: float, given: tuple[object, ...], beside: dict[str, object]
    ) -> object:
        """Return what a function returns; raises FunctionError."""
        self.calling = name
        try:
            self._link.send_bytes(pickle.dumps((name, seconds, given, beside)))
            is_made, content = pickle.loads(self._link.recv_bytes())  # noqa: S301  # of its own code
        except (OSError, EOFError):
            self.kill()
            if self._process.wait() == -signal.SIGALRM:
                reason = f"the Python functions took longer than {seconds:g} s"
                raise FunctionError(reason, "took too long") from None
            raise FunctionError(cause="ended its process") from None
        except Exception as error:  # whatever the class of a returned object does
            self.kill()
            cause = f"returned what JSON cannot hold: {type(error).__name__}"
            raise FunctionError("the Python function returns no JSON value", cause) from None
        finally:
            self.calling = ""
        if not is_made:
            raise FunctionError(cause=str(content))
        return content


def _known() -> tuple[list[str], list[str]]:
    return [*sys.path], [*_modules]


def in_process(name: str, function: Callable[..., object], seconds: float) -> Callable[..., object]:
    """Return a function that is called in the process which the thread holds, if it holds one.

    Args:
        name: the function as `module:function`.
        function: the function.
        seconds: the longest time that a call may take.
    """
    _modules[name.partition(":")[0]] = None

    @wraps(function)
    def called(*given: object, **beside: object) -> object:
        process: FunctionProcess | None = getattr(_held, "process", None)
        if process is None:
            return function(*given, **beside)
        return process.call(name, seconds, given, beside)

    return called


def take() -> FunctionProcess:
    """Reserve a process for this thread and return it; raises NoProcessError."""
    if not _places.acquire(timeout=_PATIENCE):
        raise NoProcessError
    try:
        process = None
        while process is None:
            with _lock:
                known = _idle.pop() if _idle else None
            if known is None or known.is_well:
                process = known or FunctionProcess()
            else:
                known.end()
    except BaseException:
        _places.release()
        raise
    _held.process = process
    return process


def give_back() -> None:
    """Release the process that this thread has reserved, if any."""
    process: FunctionProcess | None = getattr(_held, "process", None)
    if process is None:
        return
    _held.process = None
    if process.is_well:
        with _lock:
            _idle.append(process)
    else:
        process.end()
    _places.release()


def _end_idle() -> None:
    with _lock:
        while _idle:
            _idle.pop().end()


atexit.register(_end_idle)
