"""Listening sockets that share an address, and the acceptor of their connections."""

import asyncio
import errno
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, Self

from gateway.base.files import system_reason
from gateway.http.client.listener import Listener

# The maximum number of connections that wait to be accepted at each listening socket.
BACKLOG = 1024
# The variables that a supervisor sets for a worker: the descriptors of the listening sockets, as in
# `Listening.written`, and the descriptor of the worker's end of the channel.
LISTENERS = "GATEWAY_WORKER_LISTENERS"
CHANNEL = "GATEWAY_WORKER_CHANNEL"
# The variable with the descriptor of the memory with the token buckets.
BUCKETS = "GATEWAY_WORKER_BUCKETS"
# The variable with the path of the file that a worker creates while the supervisor hangs.
UNHEARD = "GATEWAY_WORKER_UNHEARD"


class ListenError(Exception):
    """An address cannot be listened on; the message contains the address and the reason."""


def is_worker(environment: Mapping[str, str]) -> bool:
    return LISTENERS in environment


class Listening(NamedTuple):
    """One socket per worker; `address` is empty for the address from environment variables."""

    address: str
    own: socket.socket
    others: tuple[socket.socket, ...] = ()

    @property
    def written(self) -> str:
        """The string from which `read` restores the sockets in a process that inherits them."""
        numbers = (str(each.fileno()) for each in (self.own, *self.others))
        return f"{self.address}={','.join(numbers)}"

    @classmethod
    def read(cls, written: str) -> Self:
        address, _, numbers = written.rpartition("=")
        own, *others = (socket.socket(fileno=int(number)) for number in numbers.split(","))
        return cls(address, own, tuple(others))


def open_listeners(
    listeners: Sequence[Listener], host: str, port: int, count: int
) -> list[list[Listening]]:
    """Open sockets for each worker, by default at `host` and `port`; raises ListenError."""
    workers: list[list[Listening]] = [[] for _ in range(count)]
    places = {each.address: each.host_and_port for each in listeners} or {"": (host, port)}
    for address, place in places.items():
        sockets = listening_sockets(*place, count, "listen" if address else "GATEWAY_PORT")
        for index, own in enumerate(sockets):
            others = (*sockets[:index], *sockets[index + 1 :])
            workers[index].append(Listening(address, own, others))
    return workers


def listening_sockets(host: str, port: int, count: int, setting: str) -> list[socket.socket]:
    """Open sockets that share one address; the kernel distributes connections among them.

    Args:
        setting: The variable or key with the port, for the error message.
    """
    try:
        return _sockets(host, port, count)
    except UnicodeError:  # a label of the name is empty or too long
        reason = "no host has this name"
    except OSError as error:
        reason = system_reason(error)
        if error.errno == errno.EADDRINUSE:
            reason += f"; stop the program that listens there, or set {setting} to another port"
    raise ListenError(f"cannot listen on {host}:{port}: {reason}")


def _sockets(host: str, port: int, count: int) -> list[socket.socket]:
    family, kind, protocol, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    with socket.socket(family, kind, protocol) as probe:
        # First bound without SO_REUSEPORT, which would allow sharing the port with another gateway.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(address)
        address = probe.getsockname()
    sockets = []
    for _ in range(count):
        shared = socket.socket(family, kind, protocol)
        shared.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        shared.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        shared.bind(address)
        shared.listen(BACKLOG)
        sockets.append(shared)
    return sockets


# The number of connections accepted in one iteration of the event loop.
_A_TURN = 8


class Acceptor:
    """Accepts the waiting connections of a listening socket, several per event loop iteration.

    libuv accepts one connection per descriptor and iteration, however many are waiting. When
    iterations are long, as under load, new clients would wait longer than others. Therefore the
    acceptor duplicates the descriptor of the socket.
    """

    def __init__(self) -> None:
        self._servers: list[asyncio.Server] = []

    @classmethod
    async def open(cls, protocol: Callable[[], Any], listener: socket.socket) -> Self:
        """Accept connections from a listening socket; closing the acceptor closes the socket."""
        loop, made = asyncio.get_running_loop(), cls()
        with suppress(OSError):  # no free descriptor: it accepts fewer connections at a time
            while len(made._servers) < _A_TURN - 1:
                other = listener.dup()
                server = await loop.create_server(protocol, sock=other, backlog=BACKLOG)
                made._servers.append(server)
        server = await loop.create_server(protocol, sock=listener, backlog=BACKLOG)
        made._servers.append(server)
        return made

    def close(self) -> None:
        for server in self._servers:
            server.close()
