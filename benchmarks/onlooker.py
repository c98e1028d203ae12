"""An onlooker: an open page that is kept up to date, and a scrape of the metrics a second.

    python -m benchmarks.onlooker ADMIN_PORT

It is a process of its own, so that the load beside it does not wait for it. It does what a browser
does with the operator's page: it follows the stream of events and asks for the page again after
each; like a browser and like Prometheus, it keeps its connections. It says when it has seen all
three once, and goes on until its standard input ends, unless it is told to look away for a while.
"""

import http.client
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from benchmarks.systems import ROOT

_PAGE, _EVENTS, _METRICS = "/", "/page/events", "/metrics"
_SCRAPE_EVERY = 1.0


@contextmanager
def onlooker(port: int) -> Iterator[Callable[[bool], None]]:
    """Look at the gateway with this admin port on 127.0.0.1, from when this is entered.

    Yields a function by which it looks away (False) and again (True).
    """
    command = [sys.executable, "-m", "benchmarks.onlooker", str(port)]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline(), "the onlooker was refused"
        try:
            yield lambda look: process.send_signal(signal.SIGCONT if look else signal.SIGSTOP)
        finally:
            process.send_signal(signal.SIGCONT)
            process.stdin.close()


def main() -> None:
    """Look on."""
    port, over = int(sys.argv[1]), threading.Event()
    stream, page, metrics = (http.client.HTTPConnection("127.0.0.1", port) for _ in range(3))
    stream.request("GET", _EVENTS)
    events = stream.getresponse()
    _get(page, _PAGE)
    _get(metrics, _METRICS)
    sys.stdout.write("begun\n")
    sys.stdout.flush()
    threading.Thread(target=_follow, args=(events, page), daemon=True).start()
    threading.Thread(target=_scrape, args=(metrics, over), daemon=True).start()
    sys.stdin.read()
    over.set()


def _follow(events: http.client.HTTPResponse, page: http.client.HTTPConnection) -> None:
    while line := events.readline():
        if line.startswith(b"event:"):
            _get(page, _PAGE)


def _scrape(metrics: http.client.HTTPConnection, over: threading.Event) -> None:
    while not over.wait(_SCRAPE_EVERY):
        _get(metrics, _METRICS)


def _get(connection: http.client.HTTPConnection, path: str) -> None:
    connection.request("GET", path)
    response = connection.getresponse()
    response.read()
    if response.status != 200:
        raise SystemExit(f"{path} was answered {response.status}")


if __name__ == "__main__":
    main()
