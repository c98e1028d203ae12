"""The onlooker: keeps the operator's page open and up to date, and scrapes the metrics each second.

    python -m benchmarks.onlooker ADMIN_PORT

It runs as a separate process, so that it does not delay the load. Like a browser, it follows the
event stream and requests the page again after each event. Like a browser and Prometheus, it reuses
its connections. It prints a line after the first responses, and runs until its standard input ends.
Between the measurements, it is suspended by a signal.
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
    """Run an onlooker at this admin port of 127.0.0.1 during the block.

    Yields a function that suspends (False) and resumes (True) it.
    """
    command = [sys.executable, "-m", "benchmarks.onlooker", str(port)]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline(), "the admin port refused the requests"
        try:
            yield lambda look: process.send_signal(signal.SIGCONT if look else signal.SIGSTOP)
        finally:
            process.send_signal(signal.SIGCONT)
            process.stdin.close()


def main() -> None:
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
        raise SystemExit(f"{path}: status {response.status}")


if __name__ == "__main__":
    main()
