"""Starts programs by fork from a process that has imported them: importing takes a second of CPU.

A pytest process starts one server with the first program. The server runs no thread and no event
loop, and forks one child per program.

A forked program differs from an executed one: its modules are already imported, it shares memory
pages with the server, and its parent is the server. Also, a reload collects no garbage, since a
collection of all modules in the server would take most of the time of a reload. Tests of imports
and of memory execute the program instead.

The workers and the document process of a forked gateway are forked as well: its `sys.executable` is
a stand-in for Python, which asks the server for the program and ends with it.
"""

import atexit
import fcntl
import gc
import io
import json
import os
import runpy
import secrets
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Protocol

# All modules that a program may import, besides its own `__main__`.
_MODULES = (
    *("backend_v1.app", "backend_v2.app", "users_service.app", "gateway.app"),
    *("gateway.admin.page.page_app", "gateway.cli", "gateway.findings.notifier"),
    *("gateway.process.supervisor", "gateway.store.sqlite", "prometheus_client", "sqlalchemy"),
)
_LARGEST = 1 << 20
# The most descriptors in one message (SCM_MAX_FD of Linux).
_DESCRIPTORS = 253


class Process(Protocol):
    pid: int

    @property
    def returncode(self) -> int | None: ...
    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def send_signal(self, sig: int) -> None: ...
    def terminate(self) -> None: ...
    def kill(self) -> None: ...


class ForkedProcess:
    """A program that the server has forked; it behaves like a `subprocess.Popen`."""

    def __init__(self, program: str, status: socket.socket) -> None:
        self._program = program
        self._status = status
        self.returncode: int | None = None
        self.pid = int(status.recv(64))

    def poll(self) -> int | None:
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            if not select.select([self._status], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self._program, timeout or 0)
            ended = self._status.recv(64)
            self._status.close()
            self.returncode = int(ended or -signal.SIGKILL)  # the server and its programs ended
        return self.returncode

    def send_signal(self, sig: int) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, sig)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class ForkServer:
    """The client of a fork server, which runs as long as this process.

    Attributes:
        python: the path of a `python` for commands: `python -m program` is forked as well.
    """

    def __init__(self) -> None:
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        root = Path(__file__).parents[1]
        self._folder = TemporaryDirectory()
        self.python = f"{self._folder.name}/python"
        Path(self.python).write_text(_PYTHON.format(sys.executable, self._folder.name))
        Path(self.python).chmod(0o755)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        listener.bind(f"{self._folder.name}/socket")
        listener.listen()
        passed = [theirs.fileno(), listener.fileno()]
        with theirs, listener:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.fork_server", *map(str, passed)],
                cwd=root,
                env={**os.environ, "PYTHONPATH": str(root)},
                pass_fds=passed,
                stdin=subprocess.DEVNULL,
                process_group=0,
            )

    def start(
        self,
        program: str,
        folder: Path,
        environment: Mapping[str, str],
        output: IO[bytes],
        arguments: Sequence[str] = (),
    ) -> ForkedProcess:
        """Run `python -m program arguments` in a folder, in its own process group."""
        status, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        words = ["-m", program, *arguments]
        asked = json.dumps([words, [1, 2], str(folder), dict(environment)]).encode()
        with theirs:
            numbers = [theirs.fileno(), output.fileno(), output.fileno()]
            socket.send_fds(self._control, [asked], numbers)
        return ForkedProcess(program, status)

    def stop(self) -> None:
        self._control.close()
        self._process.wait()
        self._folder.cleanup()


# Asks the server to fork a program with the same descriptors, forwards signals to the program, and
# ends with its exit status. If it is killed, the server kills the program. Its own name is the
# process ID of the program. Starts in 20 ms.
_PYTHON = """\
#!{0} -IS
import json, os, signal, socket, sys
words = sys.argv[1:]
numbers = []
for number in map(int, os.listdir("/proc/self/fd")):
    try:
        os.fstat(number)
    except OSError:  # the descriptor that listed the others
        continue
    numbers.append(number)
served = words[:1] == ["-m"] or words[:1] == ["-c"] and "document_child" in words[1]
served = served and words[1] != "gateway.rules.draft"  # it limits its memory
# A closed standard stream has to be closed in the program too.
served = served and {{0, 1, 2}} <= {{*numbers}}
if not served or any(name.startswith("MALLOC_") for name in os.environ):
    os.execv("{0}", ["{0}", *words])
status = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
status.connect("{1}/socket")
asked = json.dumps([words, numbers, os.getcwd(), dict(os.environ)])
socket.send_fds(status, [asked.encode()], numbers)
pid = int(status.recv(64))
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, lambda number, _: os.kill(pid, number))
for number in {{*numbers}} - {{0, 1, 2}}:  # the program may close its listening sockets
    os.close(number)
with open("/proc/self/comm", "w") as name:
    name.write(str(pid))
ended = int(status.recv(64) or -signal.SIGKILL)
if ended < 0:
    if ended != -signal.SIGKILL:
        signal.signal(-ended, signal.SIG_DFL)
    os.kill(os.getpid(), -ended)
sys.exit(ended)
"""


@cache
def fork_server() -> ForkServer:
    server = ForkServer()
    atexit.register(server.stop)
    return server


def _serve(control: socket.socket, shells: socket.socket) -> None:
    """Fork programs until the client disconnects; return only in each child, with its program."""
    running: dict[int, socket.socket] = {}
    stand_ins: dict[socket.socket, int] = {}
    woken, wake = socket.socketpair()
    wake.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
    while True:
        ready = {*select.select([control, shells, woken, *stand_ins], [], [])[0]}
        for each in stand_ins.keys() & ready:  # it was killed
            os.kill(stand_ins.pop(each), signal.SIGKILL)
        if woken in ready:
            woken.recv(4096)
            _reap(running)
            stand_ins = {each: pid for each, pid in stand_ins.items() if pid in running}
        if control in ready:
            asked, received, _, _ = socket.recv_fds(control, _LARGEST, 3)
            if not asked:
                for left in running:  # the client was killed
                    os.kill(left, signal.SIGKILL)
                return
            status = socket.socket(fileno=received.pop(0))
        elif shells in ready:
            status, _ = shells.accept()
            asked, received, _, _ = socket.recv_fds(status, _LARGEST, _DESCRIPTORS)
        else:
            continue
        words, numbers, folder, environment = json.loads(asked)
        _import(words)
        if pid := os.fork():
            for number in received:
                os.close(number)
            running[pid] = status
            if control not in ready:
                stand_ins[status] = pid
            with suppress(OSError):  # the client was killed
                status.send(b"%d" % pid)
            continue
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        sys.executable = str(Path(shells.getsockname()).with_name("python"))
        for each in (control, shells, woken, wake, status, *running.values()):
            each.close()
        _become(words, folder, environment, dict(zip(numbers, received, strict=True)))


def _import(words: list[str]) -> None:
    """Import a module of a program whose imports take seconds, and which most tests do not need."""
    if "verify" in words:
        import_module("gateway.verify.verify")
    elif words[0] == "-c":
        import_module("gateway.verify.live.document_child")


def _reap(running: dict[int, socket.socket]) -> None:
    """Send the exit statuses of programs that have ended."""
    while running and (ended := os.waitpid(-1, os.WNOHANG))[0]:
        with running.pop(ended[0]) as status, suppress(OSError):
            status.send(b"%d" % os.waitstatus_to_exitcode(ended[1]))


def _become(
    words: list[str], folder: str, environment: dict[str, str], descriptors: dict[int, int]
) -> None:
    """Run a program in this process, and end with its exit status.

    Args:
        words: the arguments of `python`: `-m` and a module, or `-c` and code.
        descriptors: the descriptors of the program, by the numbers that they must get.
    """
    os.setpgid(0, 0)
    beyond = max(descriptors) + 1
    moved = {
        number: fcntl.fcntl(each, fcntl.F_DUPFD, beyond) for number, each in descriptors.items()
    }
    for each in descriptors.values():
        os.close(each)
    for number, each in moved.items():
        os.dup2(each, number)
        os.close(each)
    # Otherwise the workers of a gateway would use the same request IDs.
    message = import_module("gateway.http.client.message")
    message._id_prefix = secrets.token_hex(10)  # type: ignore[attr-defined]
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    if environment.get("PYTHONUNBUFFERED"):
        sys.stdout = io.TextIOWrapper(io.FileIO(1, "w", closefd=False), write_through=True)
    sys.path[:] = [folder, *environment.get("PYTHONPATH", "").split(os.pathsep), *sys.path[1:]]
    sys.argv = words[1:]
    sys.modules.pop("__main__")
    if words[0] == "-m":
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = ["-c", *words[2:]]
        exec(words[1], {"__name__": "__main__"})  # noqa: S102  # the code of the document process
    sys.exit()


if __name__ == "__main__":
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # as in `gateway.__main__`
    gc.disable()
    for module in _MODULES:
        import_module(module)
    from gateway.process import reloader

    reloader._collect = lambda: None
    gc.freeze()
    gc.enable()
    _serve(*(socket.socket(fileno=int(number)) for number in sys.argv[1:]))
