"""Acceptor: accepts the connections that wait at a listening socket, several in a turn of the loop.

libuv accepts one connection of a descriptor in a turn, however many wait. When turns take long, as
under load, new clients would wait for much longer than others; so a socket has several descriptors.
"""

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Self

from gateway.process.listening import BACKLOG

# How many connections are accepted in a turn of the event loop.
_A_TURN = 8


class Acceptor:
    """Accepts connections until it is closed."""

    def __init__(self) -> None:
        self._servers: list[asyncio.Server] = []

    @classmethod
    async def open(cls, protocol: Callable[[], asyncio.Protocol], listener: socket.socket) -> Self:
        """Accept from a listening socket, which is closed with the acceptor.

        Args:
            protocol: makes the protocol of a new connection.
            listener: the socket.
        """
        loop, made = asyncio.get_running_loop(), cls()
        with suppress(OSError):  # no descriptor is free: fewer are accepted in a turn
            while len(made._servers) < _A_TURN - 1:
                other = listener.dup()
                server = await loop.create_server(protocol, sock=other, backlog=BACKLOG)
                made._servers.append(server)
        server = await loop.create_server(protocol, sock=listener, backlog=BACKLOG)
        made._servers.append(server)
        return made

    def close(self) -> None:
        """Accept no more."""
        for server in self._servers:
            server.close()
