"""An onlooker: an open page that is kept up to date, and a scrape of the metrics a second.

    python -m benchmarks.onlooker ADMIN_PORT

It is a process of its own, so that the load beside it does not wait for it. It does what a browser
does with the operator's page: it follows the stream of events and asks for the page again after
each. It says when it has seen all three once, and goes on until its standard input ends.
"""

import http.client
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.systems import ROOT

_PAGE, _EVENTS, _METRICS = "/", "/page/events", "/metrics"
_SCRAPE_EVERY = 1.0


@contextmanager
def onlooker(port: int) -> Iterator[None]:
    """Look at the gateway with this admin port on 127.0.0.1, from when this is entered."""
    command = [sys.executable, "-m", "benchmarks.onlooker", str(port)]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline(), "the onlooker was refused"
        try:
            yield
        finally:
            process.stdin.close()


def main() -> None:
    """Look on."""
    port, over = int(sys.argv[1]), threading.Event()
    stream = http.client.HTTPConnection("127.0.0.1", port)
    stream.request("GET", _EVENTS)
    events = stream.getresponse()
    _get(port, _PAGE)
    _get(port, _METRICS)
    sys.stdout.write("begun\n")
    sys.stdout.flush()
    threading.Thread(target=_follow, args=(events, port), daemon=True).start()
    threading.Thread(target=_scrape, args=(port, over), daemon=True).start()
    sys.stdin.read()
    over.set()


def _follow(events: http.client.HTTPResponse, port: int) -> None:
    while line := events.readline():
        if line.startswith(b"event:"):
            _get(port, _PAGE)


def _scrape(port: int, over: threading.Event) -> None:
    while not over.wait(_SCRAPE_EVERY):
        _get(port, _METRICS)


def _get(port: int, path: str) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", path)
    response = connection.getresponse()
    response.read()
    connection.close()
    if response.status != 200:
        raise SystemExit(f"{path} was answered {response.status}")


if __name__ == "__main__":
    main()
