"""Logs: one JSON object a line on standard output, one line for every request."""

import asyncio
import logging
import os
import stat
import sys
import time
import traceback
from contextlib import suppress
from functools import lru_cache
from select import PIPE_BUF

import msgspec

from gateway.core.service import Service, Target
from gateway.wire.downstream import Downstream
from gateway.wire.exchange import Exchange

_encode = msgspec.json.Encoder().encode


def event(name: str, level: str = "info", **fields: object) -> None:
    """Write one line about the gateway itself, at once."""
    _write([_line({"time": _now(), "level": level, "event": name, "program": "gateway", **fields})])


def health(service: Service, target: Target, well: bool) -> None:
    """Write that a health check found a target in another state than before."""
    event("target_up" if well else "target_down", service=service.name, target=target.authority)


_FILE = 64 * 1024


class RequestLog:
    """Writes a line for every request.

    Lines wait for one another a little and are written together: under load, a system call for
    each would cost as much as answering the request does. What is written together into a pipe
    stays below what it takes as one piece, so that the lines of several workers never mix; a file
    takes any size so.
    """

    _PATIENCE = 0.05

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: list[bytes] = []
        self._size = 0
        self._most = _FILE if stat.S_ISREG(os.fstat(sys.stdout.fileno()).st_mode) else PIPE_BUF

    def flush(self) -> None:
        """Write out what waits."""
        lines, self._waiting, self._size = self._waiting, [], 0
        if lines:
            _write(lines)

    def record(self, exchange: Exchange, down: Downstream) -> None:
        """Take the line of one request; times are in milliseconds."""
        line: dict[str, object] = {
            "time": _now(),
            "level": "info",
            "event": "request",
            "program": "gateway",
            "request_id": exchange.request_id,
            "peer": exchange.peer,
            "method": exchange.method,
            "path": exchange.path,
            "status": down.status,
            "bytes_sent": down.bytes_sent,
            "duration_ms": _milliseconds(time.perf_counter() - exchange.began),
        }
        endpoint, plan = exchange.endpoint, exchange.plan
        if endpoint is not None:
            line["api"] = endpoint.api
            line["endpoint"] = endpoint.template.text
        if plan is not None or exchange.version is not None:
            line["version"] = None if exchange.version is None else str(exchange.version)
        if plan is not None:
            leg = plan.leg
            line["mechanism"] = plan.mechanism
            line["service"] = leg.service.name
            line["target"] = exchange.target
            line["converted"] = exchange.converted
            if exchange.answered:
                line["upstream_ms"] = _milliseconds(exchange.answered - exchange.asked)
        if exchange.code is not None:
            line["code"] = exchange.code
        if exchange.cause is not None:
            line["cause"] = exchange.cause
        if exchange.aborted:
            line["aborted"] = True
        text = _line(line)
        if self._size + len(text) > self._most:
            self.flush()
        if not self._waiting:
            self._loop.call_later(self._PATIENCE, self.flush)
        self._waiting.append(text)
        self._size += len(text)


class JsonLines(logging.Handler):
    """Writes what libraries and the gateway's own last resort log, in the same form."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record; a traceback goes into the line as text."""
        fields: dict[str, object] = {"logger": record.name, "message": record.getMessage()}
        if record.exc_info and record.exc_info[0]:
            fields["traceback"] = "".join(traceback.format_exception(*record.exc_info))
        event("log", record.levelname.lower(), **fields)


def configure() -> None:
    """Send everything that is logged to standard output."""
    logging.basicConfig(level=logging.INFO, handlers=[JsonLines()], force=True)


def _line(entry: dict[str, object]) -> bytes:
    return _encode(entry) + b"\n"


def _write(lines: list[bytes]) -> None:
    with suppress(OSError):  # a log that cannot be written costs no answer
        sys.stdout.buffer.write(b"".join(lines))
        sys.stdout.buffer.flush()


def _now() -> str:
    now = time.time()
    second = int(now)
    return f"{_second(second)}.{int((now - second) * 1000):03d}Z"


@lru_cache(maxsize=2)
def _second(second: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))


def _milliseconds(seconds: float) -> float:
    return round(seconds * 1000, 3)
