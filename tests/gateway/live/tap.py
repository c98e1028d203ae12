"""A service on raw sockets that records every byte, and a strict parser of these bytes."""

import re
import socket
import socketserver
from contextlib import suppress
from dataclasses import dataclass

from tests.gateway.live.raw import Fields, split_head

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
LAST = OK.replace(b"OK\r\n", b"OK\r\nConnection: close\r\n")
# The only chunk syntax that the gateway writes.
_CHUNK = re.compile(rb"(0|[1-9a-f][0-9a-f]*)\r\n")
_LENGTH = re.compile(rb"(0|[1-9][0-9]*)\Z")


class UnfinishedError(Exception):
    """The request is incomplete."""


@dataclass(frozen=True)
class Asked:
    line: bytes
    fields: Fields
    body: bytes | None

    def all(self, name: bytes) -> list[bytes]:
        return [value for key, value in self.fields if key.lower() == name.lower()]


def read_requests(data: bytes) -> list[Asked]:
    """Return the requests in the bytes of a connection; no bytes may be left over.

    Raises:
        AssertionError: another parser could read other requests.
    """
    requests = []
    while data:
        asked, data = _read_request(data)
        requests.append(asked)
    return requests


def _read_request(data: bytes) -> tuple[Asked, bytes]:
    if b"\r\n\r\n" not in data:
        raise UnfinishedError
    line, fields, rest = split_head(data)
    assert re.fullmatch(rb"[A-Z]+ [!-~]+ HTTP/1\.1", line), line
    hosts = [value for name, value in fields if name.lower() == b"host"]
    lengths = [value for name, value in fields if name.lower() == b"content-length"]
    codings = [value for name, value in fields if name.lower() == b"transfer-encoding"]
    assert len(hosts) == 1, fields
    assert len(lengths) + len(codings) <= 1, fields
    if codings:
        assert codings == [b"chunked"]
        body, rest = _unchunked(rest)
        return Asked(line, fields, body), rest
    if not lengths:
        return Asked(line, fields, None), rest
    assert _LENGTH.match(lengths[0]), lengths
    length = int(lengths[0])
    if len(rest) < length:
        raise UnfinishedError
    return Asked(line, fields, rest[:length]), rest[length:]


def _unchunked(data: bytes) -> tuple[bytes, bytes]:
    body = b""
    while True:
        if b"\r\n" not in data:
            raise UnfinishedError
        match = _CHUNK.match(data)
        assert match, data
        size, data = int(match[1], 16), data[match.end() :]
        if len(data) < size + 2:
            raise UnfinishedError
        assert data[size : size + 2] == b"\r\n", data
        piece, data = data[:size], data[size + 2 :]
        if not size:
            return body, data
        body += piece


class Tap(socketserver.ThreadingTCPServer):
    """Responds to each complete request, and records the bytes of every connection.

    Attributes:
        answer: the response bytes; Connection: close in them ends the connection.
        buffers: the received bytes of each connection; a reset does not stop old connections.
    """

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.answer = LAST
        self.buffers: list[bytearray] = []

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    @property
    def taken(self) -> list[bytes]:
        return [bytes(buffer) for buffer in self.buffers]

    @property
    def asked(self) -> list[Asked]:
        return [asked for data in self.taken for asked in read_requests(data)]


class _Connection(socketserver.BaseRequestHandler):
    server: Tap
    request: socket.socket

    def handle(self) -> None:
        taken, answered = bytearray(), 0
        self.server.buffers.append(taken)
        with suppress(ConnectionError):
            while data := self.request.recv(65536):
                taken += data
                with suppress(UnfinishedError, AssertionError):
                    for _ in range(len(read_requests(bytes(taken))) - answered):
                        self.request.sendall(self.server.answer)
                        answered += 1
                if (
                    answered
                    and b"Connection: close" in self.server.answer.partition(b"\r\n\r\n")[0]
                ):
                    return
