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
from gateway.proxy.client.exchange import Exchange

_encode = msgspec.json.Encoder().encode


def event(name: str, level: str = "info", **fields: object) -> None:
    """Write one line about the gateway itself, at once."""
    line = {"time": _now(), "level": level, "event": name, "program": "gateway", **fields}
    _write([_encode(line) + b"\n"])


def health(service: Service, target: Target, well: bool) -> None:
    """Write that a health check found a target in another state than before."""
    event("target_up" if well else "target_down", service=service.name, target=target.authority)


class _RequestLine(msgspec.Struct):
    """The line of a request, in its order; what does not apply to a request is left out."""

    time: str
    level: str
    event: str
    program: str
    request_id: str
    peer: str
    method: str
    path: str
    status: int
    bytes_sent: int
    duration_ms: float
    client: str | msgspec.UnsetType = msgspec.UNSET
    api: str | msgspec.UnsetType = msgspec.UNSET
    endpoint: str | msgspec.UnsetType = msgspec.UNSET
    version: str | msgspec.UnsetType | None = msgspec.UNSET
    chosen_by: str | msgspec.UnsetType | None = msgspec.UNSET
    service: str | msgspec.UnsetType = msgspec.UNSET
    target: str | msgspec.UnsetType | None = msgspec.UNSET
    converted: bool | msgspec.UnsetType = msgspec.UNSET
    upstream_ms: float | msgspec.UnsetType = msgspec.UNSET
    code: str | msgspec.UnsetType = msgspec.UNSET
    cause: str | msgspec.UnsetType = msgspec.UNSET
    aborted: bool | msgspec.UnsetType = msgspec.UNSET


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

    def record(self, exchange: Exchange) -> None:
        """Take the line of one request; times are in milliseconds."""
        line = _RequestLine(
            _now(),
            "info",
            "request",
            "gateway",
            exchange.request_id,
            exchange.peer,
            exchange.method,
            exchange.path,
            exchange.status,
            exchange.bytes_sent,
            int((time.perf_counter() - exchange.began) * 1_000_000) / 1000,
        )
        if exchange.client:
            line.client = exchange.client
        endpoint, plan = exchange.endpoint, exchange.plan
        if endpoint is not None:
            line.api = endpoint.api
            line.endpoint = endpoint.template.text
        if plan is not None or exchange.version is not None:
            line.version = None if exchange.version is None else str(exchange.version)
        if plan is not None:
            line.chosen_by = plan.chosen_by
            line.service = plan.route.service.name
            line.target = exchange.target
            line.converted = exchange.converted
            if exchange.answered:
                line.upstream_ms = int((exchange.answered - exchange.sent) * 1_000_000) / 1000
        if exchange.code is not None:
            line.code = exchange.code
        if exchange.cause is not None:
            line.cause = exchange.cause
        if exchange.aborted:
            line.aborted = True
        text = _encode(line) + b"\n"
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


def _write(lines: list[bytes]) -> None:
    with suppress(OSError):  # a log that cannot be written costs no answer
        sys.stdout.buffer.write(b"".join(lines))
        sys.stdout.buffer.flush()


def _now() -> str:
    return _text(int(time.time() * 1000))


@lru_cache(maxsize=2)
def _text(milliseconds: int) -> str:
    second, rest = divmod(milliseconds, 1000)
    return f"{_second(second)}.{rest:03d}Z"


@lru_cache(maxsize=2)
def _second(second: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
