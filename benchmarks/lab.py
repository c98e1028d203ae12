"""The lab: runs systems on one core, load and backends on the other, and cleans up afterwards."""

import http.client
import os
import shlex
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Self

# psutil: reads the memory and the children of any process in the same way.
import psutil

from benchmarks.measure import Load, NoResultError, Sample
from benchmarks.request import Request
from benchmarks.systems import ROOT, System, find

# The maximum seconds until a system responds. Envoy and a gateway with 10,000 routes start slowly.
_READY_WITHIN = 60.0
# Envoy responds with 503 and Traefik with 404 until they have read their routes.
_STARTING = (404, 503)
_END_WITHIN = 5.0
_WATCH_EVERY = 0.02
_PORTS = range(20000, 32768)  # below the ports of outgoing connections (ip(7), ip_local_port_range)


class Running:
    """A started system, and its use of CPU time and memory.

    Attributes:
        process: its first process.
        port: its port on 127.0.0.1.
        output: the file with its output.
        at_rest: its resident memory before any load, in MB.
    """

    def __init__(self, process: subprocess.Popen[bytes], port: int, output: Path) -> None:
        self.process = process
        self.port = port
        self.output = output
        self.at_rest = 0.0

    @cached_property
    def processes(self) -> list[psutil.Process]:
        """All processes of the system; first read when it responds, so all of them have started."""
        first = psutil.Process(self.process.pid)
        return [first, *first.children(recursive=True)]

    def cpu(self) -> float:
        """Return the CPU time used so far, in seconds."""
        return sum(time.clock_gettime(_cpu_clock(process.pid)) for process in self.processes)

    def rss(self) -> float:
        """Return the resident memory, in MB."""
        return sum(process.memory_info().rss for process in self.processes) / 1e6


class Lab:
    """A folder, some cores, and the programs that run there until the lab is closed.

    Args:
        folder: the folder for the programs' files; must be empty.
        cores: the first core is for the measured system, the second one for everything else,
            including this process. The others are for systems that need several cores.
        compiled: the folder of a compiled gateway; None without one.

    Attributes:
        cores: see above.
        compiled: see above.
        commands: all command lines so far.
        resources: the resources that are closed together with the lab.
    """

    def __init__(self, folder: Path, cores: Sequence[int], compiled: Path | None = None) -> None:
        self._folder = folder
        self._ports = iter(_PORTS)
        self.cores = cores
        self.compiled = compiled
        self.commands: list[str] = []
        self.resources = ExitStack()

    def __enter__(self) -> Self:
        os.sched_setaffinity(0, self.cores[1:2])
        return self

    def __exit__(self, *_: object) -> None:
        self.resources.close()

    def port(self) -> int:
        """Return a free port below the range of outgoing connections.

        So a restarted system finds its port free, however many connections were open.
        """
        for port in self._ports:
            with socket.socket() as held, suppress(OSError):
                held.bind(("127.0.0.1", port))
                return port
        raise NoResultError(f"no port of 127.0.0.1 is free from {_PORTS[0]} to {_PORTS[-1]}")

    def measured(self, system: System, *, cores: int = 1) -> Running:
        """Start a system on this number of cores, which no other program uses."""
        return self._start(system, [self.cores[0], *self.cores[2:]][:cores])

    def beside(self, system: System) -> Running:
        """Start a backend on the core of the load."""
        return self._start(system, self.cores[1:2])

    @contextmanager
    def interlude(self) -> Iterator[None]:
        """Stop the programs that the block starts at the end of the block."""
        outer, self.resources = self.resources, ExitStack()
        try:
            with self.resources:
                yield
        finally:
            self.resources = outer

    def load(self, command: Sequence[str]) -> list[str]:
        """Return a command line that runs on the core of the load, and record it."""
        pinned = _pinned(command, self.cores[1:2])
        self._note(pinned)
        return pinned

    def sample(self, system: Running, load: Callable[[], Load]) -> Sample:
        """Put load on a system and return its sample."""
        for log in self._folder.rglob("*.log"):  # writing large logs would affect the result
            os.truncate(log, 0)
        used = system.cpu()
        with _Peak(system) as peak:
            seen = load()
        used = system.cpu() - used
        return Sample(
            rate=seen.units / seen.seconds,
            cpu=used / seen.units * 1e6,
            busy=used / seen.seconds,
            rss=peak.rss,
            growth=peak.rss - system.at_rest,
            p50=seen.p50,
            p99=seen.p99,
        )

    def _start(self, system: System, cores: Sequence[int]) -> Running:
        folder = self._folder / str(len(list(self._folder.iterdir())))
        folder.mkdir()
        for name, text in system.files.items():
            (folder / name).write_text(text)
        program = find(system.command[0])
        assert program is not None  # `machine.obstacle` has checked it
        command = _pinned([program, *system.command[1:]], cores)
        shown = dict(system.environment)
        if system.code != ROOT:  # without the path on this machine
            shown["PYTHONPATH"] = system.code.name
        self._note(_pinned([Path(program).name, *system.command[1:]], cores), **shown)
        # In append mode, the file can be truncated while the program writes.
        output = folder / "output.log"
        with output.open("ab") as stream:
            process = subprocess.Popen(
                # The kernel ends the program if this process is killed.
                ["setpriv", "--pdeathsig", "TERM", *command],
                cwd=folder,
                env={**os.environ, "PYTHONPATH": str(system.code), **system.environment},
                stdout=stream,
                stderr=subprocess.STDOUT,
                process_group=0,  # Ctrl-C signals only this process, which stops all others
            )
        self.resources.callback(_stop, process)
        return Running(process, system.port, output)

    def _note(self, command: Sequence[str], **environment: str) -> None:
        settings = (f"{name}={value}" for name, value in environment.items())
        line = " ".join([*settings, *map(shlex.quote, command)])
        if line not in self.commands:
            self.commands.append(line)


def ask(system: Running, request: Request, expected: str) -> None:
    """Return as soon as a system sends the expected response.

    Raises:
        NoResultError: the system sends another response, has ended, or does not respond in time.
    """
    deadline = time.monotonic() + _READY_WITHIN
    answered = ""
    while time.monotonic() < deadline:
        if system.process.poll() is not None:
            raise NoResultError(f"a program ended: {system.output.read_text()[-500:]}")
        connection = http.client.HTTPConnection("127.0.0.1", system.port, timeout=_READY_WITHIN)
        try:
            connection.request("GET", request.target, headers=dict(request.fields))
            response = connection.getresponse()
            body = response.read().decode()
        except OSError:
            time.sleep(0.02)
            continue
        finally:
            connection.close()
        if response.status == 200 and expected in body:
            system.at_rest = system.at_rest or system.rss()
            return
        answered = f"{request.target}: {response.status} {body[:500]}"
        if response.status not in _STARTING:
            raise NoResultError(answered)
        time.sleep(0.02)
    shown = answered or system.output.read_text()[-500:]
    raise NoResultError(f"a program does not send the expected response: {shown}")


class _Peak:
    """Measures the memory of a system repeatedly; `rss` is the maximum, in MB."""

    def __init__(self, system: Running) -> None:
        self._system = system
        self._over = threading.Event()
        self._watch = threading.Thread(target=self._run)
        self.rss = 0.0

    def __enter__(self) -> Self:
        self._watch.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._watch.join()
        self.rss = max(self.rss, self._system.rss())

    def _run(self) -> None:
        while not self._over.wait(_WATCH_EVERY):
            self.rss = max(self.rss, self._system.rss())


def _cpu_clock(process: int) -> int:
    """Return the clock of the CPU time of a process, exact to the nanosecond (clock_getres(2)).

    The times in /proc have steps of 10 ms, which is half a µs for each request of a second.
    """
    return (~process << 3) | 2


def _pinned(command: Sequence[str], cores: Sequence[int]) -> list[str]:
    return ["taskset", "-c", ",".join(map(str, cores)), *command]


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_END_WITHIN)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
