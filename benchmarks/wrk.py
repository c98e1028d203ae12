"""Closed load: wrk sends on each connection as soon as the previous response has arrived.

The result is the maximum rate of a system. The latencies are those of a saturated system, to which
wrk sends nothing while it stalls; `openloop` measures latencies as clients see them.
"""

import json
import subprocess
from pathlib import Path

from benchmarks.measure import Load, NoResultError
from benchmarks.request import Request

CONNECTIONS = 32
_SCRIPT = Path(__file__).with_name("wrk.lua")
_SPARE = 15.0


def command(port: int, request: Request, seconds: int) -> list[str]:
    """Return the command line for `run`, which adds the script."""
    fields = (word for name, value in request.fields for word in ("-H", f"{name}: {value}"))
    url = f"http://127.0.0.1:{port}{request.target}"
    return ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", *fields, url]


def run(command: list[str], seconds: int) -> Load:
    """Run a command line of `command`, possibly pinned to a core.

    Raises:
        NoResultError: a response is missing, or its status is not 2xx or 3xx.
    """
    *options, url = command
    try:
        done = subprocess.run(
            [*options, "-s", str(_SCRIPT), url],
            capture_output=True,
            text=True,
            check=True,
            timeout=seconds + _SPARE,
        )
    except subprocess.SubprocessError as error:
        raise NoResultError(f"wrk: {error}") from None
    seen = json.loads(done.stdout.splitlines()[-1])
    if seen["wrong"] or not seen["requests"]:
        raise NoResultError(f"{seen['wrong']} of {seen['requests']} responses were bad: {command}")
    return Load(
        units=seen["requests"],
        seconds=seen["duration"] / 1e6,
        p50=seen["p50"] / 1e3,
        p99=seen["p99"] / 1e3,
    )
