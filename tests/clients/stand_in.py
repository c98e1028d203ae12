"""The base of the stand-ins: small services that send and receive the same as the real APIs."""

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

JSON = "application/json; charset=utf-8"
NOTHING = re.compile(r"(?!)")


@dataclass(frozen=True)
class Request:
    """A request as it arrived; header names are in lower case."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def query(self) -> list[tuple[str, str]]:
        return parse_qsl(urlsplit(self.target).query, keep_blank_values=True)

    @property
    def base(self) -> str:
        return "http://" + self.headers["host"]

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Response:
    """A response. A body that is not bytes is sent as JSON, and an iterator is sent in chunks."""

    status: int = 200
    body: Any = b""
    headers: dict[str, str] = field(default_factory=dict)


Answer = Callable[..., Response]


def route(method: str, pattern: str) -> Callable[[Answer], Answer]:
    """Mark a method of a stand-in as a route's handler; pattern groups are its arguments."""

    def mark(answer: Answer) -> Answer:
        answer.route = (method, re.compile(pattern))  # type: ignore[attr-defined]
        return answer

    return mark


class StandIn:
    """A service whose handlers are marked by `route`; `requests` are the received requests."""

    def __init__(self) -> None:
        self.requests: list[Request] = []

    def answer(self, request: Request) -> Response:
        asked = request.method.replace("HEAD", "GET")
        for name in dir(type(self)):
            method, pattern = getattr(getattr(type(self), name), "route", ("", NOTHING))
            if method == asked and (found := pattern.fullmatch(request.path)):
                response: Response = getattr(self, name)(request, *found.groups())
                return response
        return self.missing(request)

    def missing(self, request: Request) -> Response:
        raise NotImplementedError

    @contextmanager
    def serve(self) -> Iterator[str]:
        with _Server(self) as server:
            threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
            try:
                yield f"http://127.0.0.1:{server.server_port}"
            finally:
                server.shutdown()


class _Server(ThreadingHTTPServer):
    """Passes requests to a stand-in, one at a time."""

    daemon_threads = True

    def __init__(self, stand_in: StandIn) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self._stand_in = stand_in
        self._lock = threading.Lock()

    def answer(self, request: Request) -> Response:
        with self._lock:
            self._stand_in.requests.append(request)
            return self._stand_in.answer(request)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def handle_one_request(self) -> None:
        self.raw_requestline = self.rfile.readline(65537)
        if not self.raw_requestline or not self.parse_request():
            self.close_connection = True
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        self._write(self.server.answer(Request(self.command, self.path, headers, self._body())))

    def _body(self) -> bytes:
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def _write(self, response: Response) -> None:
        pieces, headers = response.body, dict(response.headers)
        if isinstance(pieces, Iterator):
            headers["Transfer-Encoding"] = "chunked"
            pieces = _chunks(pieces)
        else:
            body = pieces
            if not isinstance(body, bytes):
                body = json.dumps(body, ensure_ascii=False).encode()
                headers.setdefault("Content-Type", JSON)
            if response.status not in (204, 304):
                headers["Content-Length"] = str(len(body))
            pieces = [body] if self.command != "HEAD" and response.status != 304 else []
        self.send_response(response.status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        try:
            for piece in pieces:
                self.wfile.write(piece)
        except ConnectionError:  # clients end a watch this way
            self.close_connection = True

    def log_message(self, *_: object) -> None:
        pass


def _chunks(pieces: Iterator[bytes]) -> Iterator[bytes]:
    for piece in pieces:
        yield b"%x\r\n%b\r\n" % (len(piece), piece)
    yield b"0\r\n\r\n"
