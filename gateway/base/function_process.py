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
from threading import Condition, Thread, get_ident
from time import monotonic

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
# Guarded by _change: the free processes, and the others by the thread that holds each; None while
# the process is starting.
_idle: "list[FunctionProcess]" = []
_held: "dict[int, FunctionProcess | None]" = {}
_change = Condition()


class NoProcessError(Exception):
    """No process is free, or none can be started; the text is the reason, for the log.

    Attributes:
        is_busy: whether all processes run functions.
    """

    def __init__(self, reason: str, *, is_busy: bool = False) -> None:
        super().__init__(reason)
        self.is_busy = is_busy


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
        self._killed = False
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
                reason = f"a process for Python functions cannot be started: {error.strerror}"
                raise NoProcessError(reason) from error
        try:
            self._start()
        except BaseException:
            self.end()
            raise

    def _start(self) -> None:
        what, end = "a process for Python functions has not started", monotonic() + _START
        try:
            self._link.send_bytes(pickle.dumps(list(_modules)))
            while self._link.poll(max(end - monotonic(), 0)):
                module = self._link.recv_bytes()
                if not module:
                    return
                what = f"the Python module '{module.decode()}' is not imported"
        except (OSError, EOFError) as error:
            raise NoProcessError(f"{what}: the process has ended") from error
        raise NoProcessError(f"{what} within {_START:g} s")

    @property
    def is_well(self) -> bool:
        """Whether it can take another call, and knows the modules that are known now."""
        runs = self._process.poll() is None and not self._link.closed
        return runs and not self._killed and self._knows == _known()

    def kill(self) -> None:
        self._killed = True
        self._process.kill()

    def end(self) -> None:
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
    """Return a function that is called in the process which the thread holds, if it holds one."""
    _modules[name.partition(":")[0]] = None

    @wraps(function)
    def called(*given: object, **beside: object) -> object:
        process = _held.get(get_ident())
        if process is None:
            return function(*given, **beside)
        return process.call(name, seconds, given, beside)

    return called


def take(has_left: Callable[[], bool] = lambda: False) -> FunctionProcess:
    """Reserve a process for this thread and return it; raises NoProcessError.

    Args:
        has_left: returns whether nobody waits any more for what the thread computes; `wake` has it
            called again.
    """
    thread = get_ident()
    with _change:
        _change.wait_for(lambda: has_left() or len(_held) < _MOST, _PATIENCE)
        if has_left() or len(_held) >= _MOST:
            raise NoProcessError(f"{_MOST} processes run Python functions", is_busy=True)
        _held[thread] = None
    try:
        process = _held[thread] = _free_process()
    except BaseException:
        _release(thread)
        raise
    return process


def wake() -> None:
    """Have threads that wait for a process find out whether somebody waits for them."""
    with _change:
        _change.notify_all()


def give_back() -> None:
    """Release the process that this thread has reserved, if any."""
    with _change:
        process = _held.get(get_ident())
        if process is None:
            return
        _held[get_ident()] = None
    is_well = process.is_well
    if not is_well:
        process.end()
    _release(get_ident(), process if is_well else None)


def kill_held(thread: Thread) -> bool:
    """Kill the process that a thread has reserved; return whether there is one."""
    with _change:  # or another thread may hold it by then
        process = _held.get(thread.ident or 0)
        if process is not None:
            process.kill()
        return process is not None


def _free_process() -> FunctionProcess:
    while True:
        with _change:
            known = _idle.pop() if _idle else None
        if known is None:
            return FunctionProcess()
        if known.is_well:
            return known
        known.end()


def _release(thread: int, process: FunctionProcess | None = None) -> None:
    with _change:
        del _held[thread]
        if process is not None:
            _idle.append(process)
        _change.notify_all()


def _end_idle() -> None:
    with _change:
        while _idle:
            _idle.pop().end()


atexit.register(_end_idle)
