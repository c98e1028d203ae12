"""AdminListener: accepts connections to the admin port, with TLS or without."""

import asyncio
import socket
import ssl
from collections.abc import Callable
from functools import partial

from gateway.admin.access.admin_guard import REQUEST_SECONDS
from gateway.admin.access.connection_places import ConnectionPlaces

# How long nothing is accepted when no descriptor is free, in seconds.
_PAUSE = 1.0
# So many bytes the system keeps of a connection, and doubles it: each read takes all that is there.
_RECEIVED = 16 * 1024


class AdminListener:
    """Accepts connections from a listening socket, while `run` runs.

    TLS handshakes under way have places; an older one gives way to a new one.
    `create_server` of asyncio has no such bound, and keeps its first certificate.

    Args:
        listener: the socket.
        protocol: makes the protocol of a new connection.
        tls: returns the context for a new connection; None for one without TLS.
        count: takes the name of a bound each time that it closes a connection.
    """

    def __init__(
        self,
        listener: socket.socket,
        protocol: Callable[[], asyncio.Protocol],
        tls: Callable[[], ssl.SSLContext | None],
        count: Callable[[str], None],
    ) -> None:
        listener.setblocking(False)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVED)  # connections have it
        self._listener = listener
        self._protocol = protocol
        self._tls = tls
        self._count = count
        self._beginning = ConnectionPlaces[asyncio.Task[None]]()

    async def run(self) -> None:
        """Accept until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, (address, *_) = await loop.sock_accept(self._listener)
            except OSError:  # no descriptor is free, or the client has left already
                await asyncio.sleep(_PAUSE)
                continue
            begin = loop.create_task(self._begin(connection))
            lost = self._beginning.take(begin, address)
            begin.add_done_callback(partial(self._ended, connection))
            if lost is not None:
                self._count("handshakes")
                lost.cancel()

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

    def _ended(self, connection: socket.socket, begin: "asyncio.Task[None]") -> None:
        self._beginning.leave(begin)
        if begin.cancelled():  # perhaps before it ran at all
            connection.close()
