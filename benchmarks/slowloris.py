"""A slowloris: clients that begin a request and never come to its end, a byte a second.

    python -m benchmarks.slowloris PORT COUNT

It is a process of its own, so that the load beside it does not wait for it; it says when all have
begun, and goes on until its standard input ends. A client that is cut, or has had enough, begins
anew at once: connections come and go all the time, and not all of them in the same moment, which
would measure that moment.
"""

import random
import select
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.systems import ROOT

_BEGIN = b"GET /v2/person HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "
_TURNS = 100
_GIVE_UP = 0.1


@contextmanager
def slowloris(port: int, count: int) -> Iterator[None]:
    """Keep so many requests to a port of 127.0.0.1 begun, from when this is entered."""
    command = [sys.executable, "-m", "benchmarks.slowloris", str(port), str(count)]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield
        finally:
            process.stdin.close()


def main() -> None:
    """Attack."""
    port, count = map(int, sys.argv[1:])
    clients = [_begin(port) for _ in range(count)]
    sys.stdout.write("begun\n")
    sys.stdout.flush()
    turn = 0
    while not select.select([sys.stdin], [], [], 1 / _TURNS)[0]:
        for index in range(turn, count, _TURNS):
            if not _goes_on(clients[index]):
                clients[index].close()
                clients[index] = _begin(port)
        turn = (turn + 1) % _TURNS


def _begin(port: int) -> socket.socket:
    client = socket.create_connection(("127.0.0.1", port))
    client.sendall(_BEGIN)
    return client


def _goes_on(client: socket.socket) -> bool:
    try:
        client.send(b"x")
    except OSError:  # cut
        return False
    return random.random() > _GIVE_UP  # noqa: S311  # nobody's secret


if __name__ == "__main__":
    main()
