"""Relay: a TCP relay in front of the database that can drop bytes or refuse connections."""

import selectors
import socket
import threading
from types import TracebackType

_PART = 65_536


class Relay:
    """Passes bytes between clients and a port of this machine; a thread does the work."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._pairs: dict[socket.socket, socket.socket] = {}
        self._dropping = self._refusing = self._closed = False
        self._closed_all = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def drop(self) -> None:
        """Accept all bytes and forward none, like an interrupted network."""
        self._dropping = True

    def refuse(self) -> None:
        """Close all connections, and each new connection at once."""
        self._refusing = True

    def pass_on(self) -> None:
        """Resume, and close the connections that have lost bytes."""
        if self._dropping:
            self._refusing = True
            self._dropping = False
            self._closed_all.clear()
            self._closed_all.wait()
        self._refusing = False

    def __enter__(self) -> "Relay":
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._closed = True
        self._thread.join()
        self._listener.close()

    def _run(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._listener, selectors.EVENT_READ)
            while not self._closed:
                if self._refusing:
                    for end in list(self._pairs):
                        self._close(selector, end)
                    self._closed_all.set()
                for key, _ in selector.select(0.02):
                    ready = key.fileobj
                    assert isinstance(ready, socket.socket)
                    if ready is self._listener:
                        self._accept(selector)
                    elif ready in self._pairs:
                        self._move(selector, ready)
            for end in list(self._pairs):
                self._close(selector, end)

    def _accept(self, selector: selectors.BaseSelector) -> None:
        client, _ = self._listener.accept()
        if self._refusing:
            client.close()
            return
        try:
            server = socket.create_connection(("127.0.0.1", self._target), 1)
        except OSError:
            client.close()
            return
        for end, other in ((client, server), (server, client)):
            self._pairs[end] = other
            selector.register(end, selectors.EVENT_READ)

    def _move(self, selector: selectors.BaseSelector, end: socket.socket) -> None:
        try:
            data = end.recv(_PART)
            if data and not self._dropping:
                self._pairs[end].sendall(data)
        except OSError:
            data = b""
        if not data:
            self._close(selector, end)

    def _close(self, selector: selectors.BaseSelector, end: socket.socket) -> None:
        other = self._pairs.pop(end, None)
        if other is not None:
            self._pairs.pop(other, None)
            for each in (end, other):
                selector.unregister(each)
                each.close()
