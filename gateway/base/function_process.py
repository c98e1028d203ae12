"""Child processes that run Python functions with a time limit.

A thread cannot be stopped while it runs C code that holds the interpreter lock, such as a
backtracking regular expression. Such code also blocks all other threads. A process can be stopped:
by a system timer, or by the gateway. Each child has one socket to the gateway, inherits only the
standard streams besides, and exits when the socket is closed.
"""

import atexit
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from socket import socketpair
from threading import Condition, Thread, get_ident
from time import monotonic

from gateway.base.errors import FunctionError
from gateway.convert import Refused

# The maximum number of children per gateway process. Each takes 10 MB, plus the memory for the
# imports of its functions.
_MAX_PROCESSES = 4
# The maximum number of seconds to wait for a free child, and for a new child to import modules.
_MAX_WAIT, _START = 5.0, 10.0
_CHILD_PROGRAM = """
import sys
sys.path[:] = sys.argv[2:]
from gateway.base.function_child import serve
serve(int(sys.argv[1]))
"""
_modules: dict[str, None] = {}
# Guarded by _change: the idle children, and the child that each thread has reserved. It is None
# while the child starts.
_idle: "list[FunctionProcess]" = []
_reserved: "dict[int, FunctionProcess | None]" = {}
_change = Condition()


class NoProcessError(Exception):
    """No child is available; the message is the reason, for the log.

    Attributes:
        is_busy: whether all children are running functions. If not, a child could not be started.
    """

    def __init__(self, reason: str, *, is_busy: bool = False) -> None:
        super().__init__(reason)
        self.is_busy = is_busy


class FunctionProcess:
    """A child process; raises NoProcessError if it cannot be started.

    Attributes:
        calling: the running function as `module:function`; empty while the process is idle.
    """

    def __init__(self) -> None:
        # Imported only here, since few gateways use Python functions, and the import takes 0.2 MB.
        from multiprocessing.connection import Connection

        self.calling = ""
        self._killed = False
        self._imports = _import_state()
        own, other = socketpair()
        self._link = Connection(own.detach())
        with other:
            number = other.fileno()
            try:
                # The child has its own process group, so that Ctrl-C in a terminal signals only the
                # gateway.
                self._process = subprocess.Popen(  # noqa: S603  # this program
                    [sys.executable, "-c", _CHILD_PROGRAM, str(number), *sys.path],
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
    def is_usable(self) -> bool:
        """Whether the process runs and has imported all modules that the gateway now needs."""
        runs = self._process.poll() is None and not self._link.closed
        return runs and not self._killed and self._imports == _import_state()

    def kill(self) -> None:
        self._killed = True
        self._process.kill()

    def end(self) -> None:
        self.kill()
        self._process.wait()
        self._link.close()

    def call(
        self, name: str, seconds: float, positional: tuple[object, ...], keywords: dict[str, object]
    ) -> object:
        """Return what a function returns; raises FunctionError or Refused."""
        self.calling = name
        try:
            self._link.send_bytes(pickle.dumps((name, seconds, positional, keywords)))
            succeeded, content = pickle.loads(self._link.recv_bytes())  # noqa: S301  # of its own code
        except (OSError, EOFError):
            self.kill()
            if self._process.wait() == -signal.SIGALRM:
                reason = f"the Python functions took longer than {seconds:g} s"
                raise FunctionError(reason, "took too long") from None
            raise FunctionError(cause="ended its process") from None
        except Exception as error:  # unpickling may run foreign code
            self.kill()
            cause = f"returned a value that is not JSON: {type(error).__name__}"
            raise FunctionError("the Python function did not return a JSON value", cause) from None
        finally:
            self.calling = ""
        if succeeded is None:
            raise Refused(*content)
        if not succeeded:
            raise FunctionError(cause=str(content))
        return content


def _import_state() -> tuple[list[str], list[str]]:
    return [*sys.path], [*_modules]


def in_process(name: str, function: Callable[..., object], seconds: float) -> Callable[..., object]:
    """Wrap a function so that it runs in the child that the calling thread has reserved, if any."""
    _modules[name.partition(":")[0]] = None

    @wraps(function)
    def called(*positional: object, **keywords: object) -> object:
        process = _reserved.get(get_ident())
        if process is None:
            return function(*positional, **keywords)
        return process.call(name, seconds, positional, keywords)

    return called


def reserve(is_abandoned: Callable[[], bool] = lambda: False) -> FunctionProcess:
    """Reserve a child for this thread; raises NoProcessError.

    `is_abandoned` returns whether the result is no longer needed; `wake` makes waiting threads ask
    it again.
    """
    thread = get_ident()
    with _change:
        _change.wait_for(lambda: is_abandoned() or len(_reserved) < _MAX_PROCESSES, _MAX_WAIT)
        if is_abandoned() or len(_reserved) >= _MAX_PROCESSES:
            raise NoProcessError(f"{_MAX_PROCESSES} processes run Python functions", is_busy=True)
        _reserved[thread] = None
    try:
        process = _reserved[thread] = _new_or_idle()
    except BaseException:
        _release(thread)
        raise
    return process


def wake() -> None:
    """Make threads that wait for a child check again whether their result is still needed."""
    with _change:
        _change.notify_all()


def release() -> None:
    with _change:
        process = _reserved.get(get_ident())
        if process is None:
            return
        _reserved[get_ident()] = None
    is_usable = process.is_usable
    if not is_usable:
        process.end()
    _release(get_ident(), process if is_usable else None)


def kill_reserved(thread: Thread) -> None:
    """Kill the child that a thread has reserved, if any."""
    with _change:  # the lock prevents that another thread reserves the child in between
        process = _reserved.get(thread.ident or 0)
        if process is not None:
            process.kill()


def _new_or_idle() -> FunctionProcess:
    while True:
        with _change:
            known = _idle.pop() if _idle else None
        if known is None:
            return FunctionProcess()
        if known.is_usable:
            return known
        known.end()


def _release(thread: int, process: FunctionProcess | None = None) -> None:
    with _change:
        del _reserved[thread]
        if process is not None:
            _idle.append(process)
        _change.notify_all()


def _end_idle() -> None:
    with _change:
        while _idle:
            _idle.pop().end()


atexit.register(_end_idle)
