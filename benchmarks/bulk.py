"""Large bodies: a client that moves them and, as `python -m benchmarks.bulk PORT`, their backend.

Neither side copies the bytes: sendfile(2) sends them from a file, and the kernel discards received
bytes (MSG_TRUNC, see tcp(7)). So client and backend together cost less than the proxy between them,
and the proxy limits the rate.
"""

import socket
import sys
import tempfile
import threading
import time
from contextlib import suppress

from benchmarks.measure import Load

_PIECE = 1024 * 1024
_TIMEOUT = 60.0


def download(port: int, path: str) -> Load:
    """GET a path from a port of 127.0.0.1; the units of the result are megabytes."""
    return _exchange(port, "GET", path, 0)


def upload(port: int, path: str, count: int) -> Load:
    """PUT `count` bytes to a path of a port of 127.0.0.1; the units of the result are megabytes."""
    return _exchange(port, "PUT", path, count)


def _exchange(port: int, method: str, path: str, up: int) -> Load:
    began = time.perf_counter()
    with socket.create_connection(("127.0.0.1", port), _TIMEOUT) as peer:
        head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {up}\r\n"
        peer.sendall(f"{head}Connection: close\r\n\r\n".encode())
        _send(peer, up)
        (_, status, *_), down, begun = _read_head(peer)
        if status != "200":
            raise ConnectionError(f"{method} {path}: {status}")
        _drop(peer, down - begun)
    return Load((up + down) / 1e6, time.perf_counter() - began)


def serve(listener: socket.socket) -> None:
    """Respond to GET PATH/COUNT with COUNT bytes, and accept any PUT, until the process ends."""
    while True:
        peer, _ = listener.accept()
        threading.Thread(target=_serve, args=(peer,), daemon=True).start()


def _serve(peer: socket.socket) -> None:
    with peer, suppress(ConnectionError):
        while True:
            (method, path, *_), up, begun = _read_head(peer)
            _drop(peer, up - begun)
            down = int(path.rpartition("/")[2]) if method == "GET" else 0
            peer.sendall(f"HTTP/1.1 200 OK\r\nContent-Length: {down}\r\n\r\n".encode())
            _send(peer, down)


def _read_head(peer: socket.socket) -> tuple[list[str], int, int]:
    """Return the words of the first line, the body size, and the body bytes already received."""
    received = b""
    while b"\r\n\r\n" not in received:
        if not (data := peer.recv(_PIECE)):
            raise ConnectionError("the connection was closed before the head was complete")
        received += data
    head, _, body = received.partition(b"\r\n\r\n")
    first, *fields = head.decode("latin-1").lower().split("\r\n")
    sizes = [field.partition(":")[2] for field in fields if field.startswith("content-length:")]
    return first.upper().split(), int(sizes[0]) if sizes else 0, len(body)


def _drop(peer: socket.socket, count: int) -> None:
    nowhere = bytearray(_PIECE)
    while count > 0:
        dropped = peer.recv_into(nowhere, min(count, _PIECE), socket.MSG_TRUNC)
        if not dropped:
            raise ConnectionError(f"the connection was closed {count} bytes too early")
        count -= dropped


def _send(peer: socket.socket, count: int) -> None:
    with tempfile.TemporaryFile() as file:
        file.truncate(min(count, _PIECE))
        while count > 0:
            count -= peer.sendfile(file, 0, min(count, _PIECE))


if __name__ == "__main__":
    with socket.create_server(("127.0.0.1", int(sys.argv[1]))) as listening:
        serve(listening)
