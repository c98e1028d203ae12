"""A slowloris attack: clients send a byte per second of requests that they never complete.

    python -m benchmarks.slowloris PORT COUNT

It runs as a separate process, so that it does not delay the load. It prints a line when all clients
have begun, and runs until its standard input ends. A client whose connection is closed, or that
gives up at random, begins again at once. So connections come and go all the time, not all in one
moment.
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
    """Keep this number of incomplete requests open at a port of 127.0.0.1 during the block."""
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
    port, count = map(int, sys.argv[1:])
    clients = [_begin(port) for _ in range(count)]
    sys.stdout.write("begun\n")
    sys.stdout.flush()
    turn = 0
    while not select.select([sys.stdin], [], [], 1 / _TURNS)[0]:
        for index in range(turn, count, _TURNS):
            if not _continues(clients[index]):
                clients[index].close()
                clients[index] = _begin(port)
        turn = (turn + 1) % _TURNS


def _begin(port: int) -> socket.socket:
    client = socket.create_connection(("127.0.0.1", port))
    client.sendall(_BEGIN)
    return client


def _continues(client: socket.socket) -> bool:
    try:
        client.send(b"x")
    except OSError:  # the connection was closed
        return False
    return random.random() > _GIVE_UP  # noqa: S311  # not security-relevant


if __name__ == "__main__":
    main()
