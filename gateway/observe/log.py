"""The log on standard output: one JSON object per line, one line per request."""

import logging
import sys
import time
import traceback
from collections import Counter
from functools import cache, lru_cache
from typing import Final

import msgspec

from gateway.http.upstream.service import Service, Target
from gateway.observe.log_output import LogOutput
from gateway.usage.delta import CounterDelta, Deliver, Delta

_encoder = msgspec.json.Encoder()
_encode: Final = _encoder.encode
encode_into: Final = _encoder.encode_into


def event(name: str, level: str = "info", **fields: object) -> None:
    """Write a line about an event of the gateway itself, without delay."""
    line = {"time": now(), "level": level, "event": name, "program": "gateway", **fields}
    output().write(fitting(line, _encode(line) + b"\n"), "event", 1)


def health(service: Service, target: Target, failure: str | None) -> None:
    """Log that health checks found a target down, by that failure, or up again."""
    about = {"service": service.name, "target": target.authority}
    if failure is None:
        event("target_up", **about)
    else:
        event("target_down", **about, reason=failure)


class JsonLines(logging.Handler):
    """A logging handler that writes the records of Python loggers as JSON lines."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record; its traceback becomes a field of the line."""
        fields: dict[str, object] = {"logger": record.name, "message": record.getMessage()}
        if record.exc_info and record.exc_info[0]:
            fields["traceback"] = "".join(traceback.format_exception(*record.exc_info))
        event("log", record.levelname.lower(), **fields)


def configure() -> None:
    """Configure Python's logging to write JSON lines to standard output."""
    logging.basicConfig(level=logging.INFO, handlers=[JsonLines()], force=True)
    logging.getLogger("alembic").setLevel(logging.WARNING)  # or it names each of its plugins


def count_dropped(deliver: Deliver) -> None:
    """Count the lines that are dropped as they cannot be written, and log their number.

    Args:
        deliver: takes the counts.
    """

    def report(dropped: Counter[str]) -> None:
        counts = [CounterDelta("log_dropped", (kind,), lines) for kind, lines in dropped.items()]
        deliver(Delta(time.time(), counts=counts))
        event("log_dropped", "error", lines=dropped.total())

    output().report = report


def finish() -> None:
    """Write the lines that wait, as far as they are read soon."""
    output().finish()


@cache
def output() -> LogOutput:
    """Return the output that all lines of this process go to."""
    return LogOutput(sys.stdout.fileno())


def fitting(line: object, text: bytes) -> bytes:
    """Return an encoded line, with its longest fields shortened where it would not stay whole.

    A longer write to a pipe could be mixed with the lines of other workers.
    """
    most = output().most
    if len(text) <= most:
        return text
    fields: dict[str, object] = msgspec.to_builtins(line)
    while len(text) > most:
        name = max(fields, key=lambda name: len(str(fields[name])))
        value = str(fields[name])
        over = len(text) - most + len("\u2026".encode())
        half = max(0, len(value) - over) // 2
        fields[name] = f"{value[:half]}\u2026{value[len(value) - half :]}"
        if len(str(fields[name])) >= len(value):
            break  # thousands of short fields, which no event has
        text = _encode(fields) + b"\n"
    return text


def now() -> str:
    """Return the time as lines have it."""
    return _text(int(time.time() * 1000))


@lru_cache(maxsize=2)
def _text(milliseconds: int) -> str:
    second, rest = divmod(milliseconds, 1000)
    return f"{_second(second)}.{rest:03d}Z"


@lru_cache(maxsize=2)
def _second(second: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
