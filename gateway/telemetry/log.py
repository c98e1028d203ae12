"""The log on standard output: one JSON object per line, one line per request."""

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
    """Write a line about an event of the gateway itself, without delay."""
    line = {"time": _now(), "level": level, "event": name, "program": "gateway", **fields}
    _write([_encode(line) + b"\n"])


def health(service: Service, target: Target, well: bool) -> None:
    """Log that health checks found a target up or down, after a change."""
    event("target_up" if well else "target_down", service=service.name, target=target.authority)


class _RequestLine(msgspec.Struct):
    """The log line of a request, with fields in this order; inapplicable fields are omitted."""

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
    """Writes a log line for every request.

    Lines are buffered briefly and written together: under load, a system call per line would cost
    as much as answering the request. One write to a pipe is at most PIPE_BUF bytes, which the
    system keeps together, so that the lines of several workers never mix; writes to a file are not
    bound by that.
    """

    _PATIENCE = 0.05

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: list[bytes] = []
        self._size = 0
        self._most = _FILE if stat.S_ISREG(os.fstat(sys.stdout.fileno()).st_mode) else PIPE_BUF

    def flush(self) -> None:
        """Write the buffered lines."""
        lines, self._waiting, self._size = self._waiting, [], 0
        if lines:
            _write(lines)

    def record(self, exchange: Exchange) -> None:
        """Add the log line of one request; its times are in milliseconds."""
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


def _write(lines: list[bytes]) -> None:
    with suppress(OSError):  # a failing log must not fail an answer
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
