"""Workers: several processes that share the port, watched over by one that never serves.

The supervisor opens one listening socket a worker (SO_REUSEPORT), so that the kernel spreads new
connections over them, and it keeps them open: what waits to be accepted when a worker dies is
accepted by the one that takes its place. A worker holds one end of a socket pair. It says there
that it is ready; when the supervisor is gone, however that came, it reads the end and leaves.
"""

import asyncio
import signal
import socket
import sys
import time
from collections.abc import Mapping

from gateway.operation import log

# What the supervisor tells a worker: the numbers of its listening socket and of its lifeline.
LISTENER = "GATEWAY_WORKER_LISTENER"
LIFELINE = "GATEWAY_WORKER_LIFELINE"
_READY = b"r"
# A worker that dies young is started again after a while, each time a longer one, in seconds.
_YOUNG = 5.0
_LONGEST_WAIT = 10.0
# Beyond its grace, a worker gets this long before it is killed, in seconds.
_SPARE = 5.0


class Workers:
    """Starts workers, starts them again when they die, and ends them together."""

    def __init__(self, listeners: list[socket.socket], environment: Mapping[str, str]) -> None:
        self._listeners = listeners
        self._environment = environment
        self._running: dict[int, asyncio.subprocess.Process] = {}
        self._ready: set[int] = set()
        self._keepers: list[asyncio.Task[None]] = []
        self._stopping = False

    @property
    def ready(self) -> int:
        """Return how many workers serve."""
        return len(self._ready)

    async def start(self) -> None:
        """Start all workers and return when each is ready, or has died trying."""
        first = [asyncio.Event() for _ in self._listeners]
        self._keepers = [
            asyncio.create_task(self._keep(index, listener, first[index]))
            for index, listener in enumerate(self._listeners)
        ]
        for event in first:
            await event.wait()

    def reload(self) -> None:
        """Have every worker load the rules again, now."""
        for process in self._running.values():
            process.send_signal(signal.SIGHUP)

    async def stop(self, grace: float) -> None:
        """Stop accepting, let every worker finish within the grace; return when all are gone."""
        self._stopping = True
        for listener in self._listeners:
            listener.close()
        for process in self._running.values():
            process.terminate()
        _, late = await asyncio.wait(self._keepers, timeout=grace + _SPARE)
        for process in self._running.values() if late else ():
            process.kill()
        await asyncio.gather(*late)

    async def _keep(self, index: int, listener: socket.socket, first: asyncio.Event) -> None:
        wait = 0.1
        while True:
            began = time.monotonic()
            status = await self._run(index, listener, first)
            first.set()
            if self._stopping:
                return
            log.event("worker_died", "error", worker=index, exit_status=status)
            wait = 0.1 if time.monotonic() - began > _YOUNG else min(wait * 2, _LONGEST_WAIT)
            await asyncio.sleep(wait)

    async def _run(self, index: int, listener: socket.socket, first: asyncio.Event) -> int:
        ours, theirs = socket.socketpair()
        with ours:
            with theirs:
                process = await asyncio.create_subprocess_exec(
                    sys.executable,
                    "-m",
                    "gateway",
                    env={
                        **self._environment,
                        LISTENER: str(listener.fileno()),
                        LIFELINE: str(theirs.fileno()),
                    },
                    pass_fds=(listener.fileno(), theirs.fileno()),
                )
            self._running[index] = process
            try:
                ours.setblocking(False)
                if await asyncio.get_running_loop().sock_recv(ours, 1) == _READY:
                    self._ready.add(index)
                    first.set()
                return await process.wait()
            finally:
                self._ready.discard(index)
                del self._running[index]


class Worker:
    """A worker's side: the socket it accepts from, and the lifeline.

    Args:
        environment: as the supervisor made it.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.listener = socket.socket(fileno=int(environment[LISTENER]))
        self._lifeline = socket.socket(fileno=int(environment[LIFELINE]))
        self._lifeline.setblocking(False)

    async def report_ready(self) -> None:
        """Tell the supervisor that this worker serves."""
        await asyncio.get_running_loop().sock_sendall(self._lifeline, _READY)

    async def outlived(self) -> None:
        """Return when the supervisor is gone."""
        while await asyncio.get_running_loop().sock_recv(self._lifeline, 64):
            pass


def is_worker(environment: Mapping[str, str]) -> bool:
    """Whether this process was started by a supervisor."""
    return LISTENER in environment


def listening_sockets(host: str, port: int, count: int) -> list[socket.socket]:
    """Return sockets that listen on one address together, the kernel spreading connections.

    Args:
        host: an address or a host name.
        port: 0 for any that is free.
        count: how many.

    Raises:
        OSError: the address cannot be listened on, by whatever share of it.
    """
    family, kind, protocol, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    with socket.socket(family, kind, protocol) as probe:
        # Alone first: SO_REUSEPORT would share the port with another gateway unasked.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(address)
        address = probe.getsockname()
    sockets = []
    for _ in range(count):
        shared = socket.socket(family, kind, protocol)
        shared.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        shared.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        shared.bind(address)
        shared.listen(1024)
        sockets.append(shared)
    return sockets
