"""The log on standard output: one JSON object per line, one line per request."""

import asyncio
import logging
import sys
import time
import traceback
from collections import Counter
from functools import cache, lru_cache

import msgspec

from gateway.core.service import Service, Target
from gateway.proxy.answer_links import without_query
from gateway.proxy.client.exchange import Exchange
from gateway.telemetry.delta import CounterDelta, Deliver, Delta
from gateway.telemetry.log_output import LogOutput

_encode = msgspec.json.Encoder().encode


def event(name: str, level: str = "info", **fields: object) -> None:
    """Write a line about an event of the gateway itself, without delay."""
    line = {"time": _now(), "level": level, "event": name, "program": "gateway", **fields}
    _output().write(_fitting(line, _encode(line) + b"\n"), "event", 1)


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
    trace_id: str | msgspec.UnsetType = msgspec.UNSET
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
    unmapped_link: str | msgspec.UnsetType = msgspec.UNSET
    aborted: bool | msgspec.UnsetType = msgspec.UNSET


class RequestLog:
    """Writes a log line for every request.

    Lines are buffered briefly and written together: under load, a system call per line would cost
    as much as answering the request.
    """

    _PATIENCE = 0.05

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: list[bytes] = []
        self._size = 0
        self._output = _output()

    def flush(self) -> None:
        """Write the buffered lines."""
        lines, self._waiting, self._size = self._waiting, [], 0
        if lines:
            self._output.write(b"".join(lines), "request", len(lines))

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
            int((exchange.ended - exchange.began) * 1_000_000) / 1000,
            exchange.trace_id or msgspec.UNSET,
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
        if exchange.unmapped_link is not None:
            line.unmapped_link = without_query(exchange.unmapped_link)
        if exchange.aborted:
            line.aborted = True
        text = _encode(line) + b"\n"
        if self._size + len(text) > self._output.most:
            text = _fitting(line, text)
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
    logging.getLogger("alembic").setLevel(logging.WARNING)  # or it names each of its plugins


def count_dropped(deliver: Deliver) -> None:
    """Count the lines that are dropped because nobody reads the log, and log their number.

    Args:
        deliver: takes the counts.
    """

    def report(dropped: Counter[str]) -> None:
        counts = [CounterDelta("log_dropped", (kind,), lines) for kind, lines in dropped.items()]
        deliver(Delta(time.time(), [], [], counts, [], []))
        event("log_dropped", "error", lines=dropped.total())

    _output().report = report


def finish() -> None:
    """Write the lines that wait, as far as they are read soon."""
    _output().finish()


@cache
def _output() -> LogOutput:
    return LogOutput(sys.stdout.fileno())


def _fitting(line: object, text: bytes) -> bytes:
    """Return an encoded line, with its longest fields shortened where it would not stay whole.

    A longer write to a pipe could be mixed with the lines of other workers.
    """
    most = _output().most
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


def _now() -> str:
    return _text(int(time.time() * 1000))


@lru_cache(maxsize=2)
def _text(milliseconds: int) -> str:
    second, rest = divmod(milliseconds, 1000)
    return f"{_second(second)}.{rest:03d}Z"


@lru_cache(maxsize=2)
def _second(second: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
