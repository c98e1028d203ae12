"""AdminListener: accepts connections to the admin port, with TLS or without."""

import asyncio
import socket
import ssl
from collections.abc import Callable

from gateway.admin.access.admin_guard import MOST_CONNECTIONS, REQUEST_SECONDS

# How long nothing is accepted when no descriptor is free, in seconds.
_PAUSE = 1.0


class AdminListener:
    """Accepts connections from a listening socket, while `run` runs.

    No more than 256 TLS handshakes are under way; further connections are closed. `create_server`
    of asyncio bounds neither, and keeps its first certificate.

    Args:
        listener: the socket.
        protocol: makes the protocol of a new connection.
        tls: returns the context for a new connection; None for one without TLS.
    """

    def __init__(
        self,
        listener: socket.socket,
        protocol: Callable[[], asyncio.Protocol],
        tls: Callable[[], ssl.SSLContext | None],
    ) -> None:
        listener.setblocking(False)
        self._listener = listener
        self._protocol = protocol
        self._tls = tls
        self._beginning: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Accept until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _ = await loop.sock_accept(self._listener)
            except OSError:  # no descriptor is free, or the client has left already
                await asyncio.sleep(_PAUSE)
                continue
            if len(self._beginning) >= MOST_CONNECTIONS:
                connection.close()
                continue
            begin = loop.create_task(self._begin(connection))
            self._beginning.add(begin)
            begin.add_done_callback(self._beginning.discard)

    def close(self) -> None:
        """Close the socket, and whatever has not begun."""
        self._listener.close()
        for begin in self._beginning:
            begin.cancel()

    async def _begin(self, connection: socket.socket) -> None:
        tls = self._tls()
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                self._protocol,
                connection,
                ssl=tls,
                ssl_handshake_timeout=None if tls is None else REQUEST_SECONDS,
            )
        except OSError:  # no TLS, or not in time: ssl.SSLError and ConnectionError are among them
            connection.close()
