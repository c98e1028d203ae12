"""The load generators of this project, run against small backends."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from benchmarks import bulk, openloop
from benchmarks.measure import NoResultError
from benchmarks.onlooker import onlooker
from benchmarks.request import Request
from benchmarks.slowloris import slowloris


@pytest.fixture
def large() -> Iterator[int]:
    def serve() -> None:
        try:
            bulk.serve(listener)
        except OSError:
            return

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


@pytest.mark.parametrize("count", [0, 1, 3_000_001])
def test_large_bodies_are_downloaded_and_uploaded(large: int, count: int) -> None:
    assert bulk.download(large, f"/bytes/{count}").units == count / 1e6
    assert bulk.upload(large, f"/bytes/{count}", count).units == count / 1e6


@contextmanager
def small(status: int = 200, stall: float = 0) -> Iterator[tuple[int, list[str]]]:
    asked = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            asked.append(f"{self.path} {self.headers['X-Test']}")
            threading.Event().wait(stall)
            self.send_response(status)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        request_queue_size = 64

        def handle_error(self, *_: object) -> None:
            """Ignore disconnects of clients."""

    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server.server_port, asked
        server.shutdown()
        thread.join()


REQUEST = Request("/small?a=1", (("X-Test", "yes"),))


def test_a_constant_rate_sends_all_due_requests() -> None:
    with small() as (port, asked):
        load = openloop.load(port, REQUEST, rate=200, seconds=0.2)
    assert asked == ["/small?a=1 yes"] * 40
    assert load.units == 40
    assert load.p50 is not None
    assert load.p99 is not None
    assert 0 < load.p50 <= load.p99


def test_latency_includes_the_wait_for_a_connection() -> None:
    """64 requests are due at once, and 32 of them wait until a connection is free."""
    with small(stall=0.1) as (port, _):
        load = openloop.load(port, REQUEST, rate=64_000, seconds=0.001)
    assert load.units == 64
    assert load.p99 is not None
    assert load.p99 >= 200


def test_wrong_responses_give_no_result() -> None:
    with small(status=404) as (port, _), pytest.raises(NoResultError, match="404"):
        openloop.load(port, REQUEST, rate=100, seconds=0.1)


def test_an_onlooker_requests_all_three_paths_until_it_is_stopped() -> None:
    with small() as (port, asked), onlooker(port) as look:
        seen = {line.split()[0] for line in asked}
        look(False)
    assert seen == {"/", "/metrics", "/page/events"}


def test_a_slowloris_starts_requests_and_completes_none() -> None:
    """After a cut, it starts a new request."""
    heads: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        with slowloris(listener.getsockname()[1], 20):
            connections = [listener.accept()[0] for _ in range(20)]
            connections.pop().close()
            again, _ = listener.accept()
            connections.append(again)
        for connection in connections:
            with connection:
                heads.append(b"".join(iter(lambda: connection.recv(4096), b"")))  # noqa: B023
    assert len(heads) == 20
    assert all(head.startswith(b"GET /v2/person HTTP/1.1\r\n") for head in heads)
    assert not any(b"\r\n\r\n" in head for head in heads)
