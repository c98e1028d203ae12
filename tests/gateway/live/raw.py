"""Raw HTTP/1.1 for the live tests: requests are bytes, and responses are parsed strictly.

An HTTP library would normalize the bytes, order, case and framing that these tests check.
"""

import json
import re
import socket
import socketserver
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from tests.gateway.kit import DEADLINE, Program

Fields = list[tuple[bytes, bytes]]

_STATUS_LINE = re.compile(rb"HTTP/1\.1 ([1-5][0-9]{2}) ([^\r\n]*)\Z")
_FIELD_LINE = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]+): ([^\r\n\0]*)\Z")


@dataclass(frozen=True)
class Message:
    """A request or a response: its first line, its field lines in order, its body unframed."""

    line: bytes
    fields: Fields
    body: bytes

    def all(self, name: str) -> list[bytes]:
        return [value for key, value in self.fields if key.lower() == name.lower().encode()]

    def one(self, name: str) -> bytes:
        """Return the value of a field that occurs exactly once."""
        (value,) = self.all(name)
        return value

    def members(self, name: str) -> list[str]:
        values = b",".join(self.all(name)).decode("latin-1").lower().split(",")
        return [value.strip() for value in values if value.strip()]

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Answer(Message):
    """A final response, and the statuses of the interim ones before it."""

    status: int
    interim: tuple[int, ...] = ()

    @property
    def problem(self) -> Any:
        """Return the body as a problem detail, after checking the members that all of them have."""
        assert self.one("Content-Type") == b"application/problem+json"
        problem = self.json
        assert problem["status"] == self.status
        assert problem["type"] == f"urn:problem:{problem['code']}"
        assert re.fullmatch(r"[a-z]+(_[a-z]+)*", problem["code"])
        assert problem["title"]
        assert problem["detail"].endswith(".")
        assert problem["instance"].isascii()
        known = {"type", "title", "status", "detail", "instance", "code", "supportedVersions"}
        known |= {"serviceStatus"}
        assert set(problem) <= known
        return problem

    def refusal(self) -> tuple[int, str]:
        return self.status, self.problem["code"]


def text(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value


def chunked(*pieces: bytes) -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


def request(
    method: str, target: str | bytes, *lines: str | bytes, body: bytes | None = None
) -> bytes:
    """Return a request with Connection: close, Host and, for a body, Content-Length."""
    own: list[str | bytes] = ["Connection: close"]
    names = {text(line).partition(b":")[0].strip().lower() for line in lines}
    if b"host" not in names:
        own.append("Host: api.test")
    if body is not None and not names & {b"content-length", b"transfer-encoding"}:
        own.append(f"Content-Length: {len(body)}")
    head = [f"{method} ".encode() + text(target) + b" HTTP/1.1", *map(text, (*own, *lines))]
    return b"\r\n".join([*head, b"", body or b""])


def send(
    program: Program, data: bytes, *, source: str = "127.0.0.1", seconds: float = DEADLINE
) -> bytes:
    """Send bytes from a local address; return all bytes until the connection ends.

    Raises:
        TimeoutError: nothing comes for some seconds, not even the end.
    """
    received = b""
    target = ("127.0.0.1", program.port)
    with socket.create_connection(target, seconds, (source, 0)) as connection:
        connection.sendall(data)
        while piece := connection.recv(65536):
            received += piece
    return received


def ask(
    program: Program,
    method: str,
    target: str | bytes,
    *lines: str | bytes,
    body: bytes | None = None,
    source: str = "127.0.0.1",
) -> Answer:
    sent = request(method, target, *lines, body=body)
    return parse_answer(send(program, sent, source=source), method)


def get(program: Program, target: str | bytes, *lines: str | bytes) -> Answer:
    return ask(program, "GET", target, *lines)


def parse_answer(data: bytes, method: str = "GET") -> Answer:
    """Return the single complete response in `data`; nothing may follow it."""
    interim: list[int] = []
    while True:
        line, fields, rest = split_head(data)
        match = _STATUS_LINE.match(line)
        assert match, line
        status = int(match[1])
        if status >= 200:
            break
        interim.append(status)
        data = rest
    bodiless = method == "HEAD" or status in (204, 304)
    assert not (bodiless and rest), rest
    body = b"" if bodiless else _unframed(fields, rest)
    return Answer(line, fields, body, status, tuple(interim))


def split_head(data: bytes) -> tuple[bytes, Fields, bytes]:
    head, end, rest = data.partition(b"\r\n\r\n")
    assert end, data
    line, *lines = head.split(b"\r\n")
    fields: Fields = []
    for each in lines:
        match = _FIELD_LINE.match(each)
        assert match, each
        fields.append((match[1], match[2]))
    return line, fields, rest


def _unframed(fields: Fields, data: bytes) -> bytes:
    framing = {name.lower(): value for name, value in fields}
    if b"transfer-encoding" in framing:
        assert framing[b"transfer-encoding"] == b"chunked"
        assert b"content-length" not in framing
        pieces = b""
        while True:
            size, end, data = data.partition(b"\r\n")
            assert end, "the body breaks off"
            length = int(size, 16)
            assert data[length : length + 2] == b"\r\n", "the body breaks off"
            if length == 0:
                assert data == b"\r\n"
                return pieces
            pieces += data[:length]
            data = data[length + 2 :]
    assert int(framing[b"content-length"]) == len(data)
    return data


class Service(socketserver.ThreadingTCPServer):
    """A service that sends a configured response to every request, and records the requests.

    After a response with `Connection: close`, the service closes the connection. So a response
    that is shorter than its Content-Length breaks off.

    Attributes:
        answer: the response bytes, or a function that returns or yields them for a request.
    """

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Exchange)
        self.answer: bytes | Callable[[Message], bytes | Iterable[bytes]] = b""
        self.asked: list[Message] = []

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    @property
    def last(self) -> Message:
        return self.asked[-1]


class _Exchange(socketserver.StreamRequestHandler):
    server: Service

    def handle(self) -> None:
        with suppress(ConnectionError):
            while head := self._head():
                line, fields, _ = split_head(head)
                message = Message(line, fields, self._body(fields))
                self.server.asked.append(message)
                answer = self.server.answer
                data = answer if isinstance(answer, bytes) else answer(message)
                for piece in (data,) if isinstance(data, bytes) else data:
                    self.wfile.write(piece)
                if not isinstance(data, bytes):
                    return
                if b"connection: close" in data.partition(b"\r\n\r\n")[0].lower():
                    return

    def _head(self) -> bytes:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            line = self.rfile.readline()
            if not line:
                return b""
            head += line
        return head

    def _body(self, fields: Fields) -> bytes:
        named = {name.lower(): value for name, value in fields}
        if named.get(b"expect") == b"100-continue":
            self.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        if b"transfer-encoding" not in named:
            length = int(named.get(b"content-length", b"0"))
            data = self.rfile.read(length)
            if len(data) < length:
                raise ConnectionError("the request breaks off")
            return data
        data = b""
        while not (data == b"0\r\n\r\n" or data.endswith(b"\r\n0\r\n\r\n")):
            line = self.rfile.readline()
            if not line:
                raise ConnectionError("the request breaks off")
            data += line
        return _unframed(fields, data)


def answer(
    body: bytes,
    *lines: str | bytes,
    status: str = "200 OK",
    content_type: str | None = "application/json",
) -> bytes:
    """Return a response of a service, with its Content-Length unless the lines frame it."""
    head = [f"HTTP/1.1 {status}".encode(), *map(text, lines)]
    if content_type is not None:
        head.append(f"Content-Type: {content_type}".encode())
    names = {line.partition(b":")[0].lower() for line in head}
    if not names & {b"content-length", b"transfer-encoding"}:
        head.append(b"Content-Length: %d" % len(body))
    return b"\r\n".join([*head, b"", body])
