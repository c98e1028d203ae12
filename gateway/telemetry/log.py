"""The log on standard output: one JSON object per line, one line per request."""

import asyncio
import logging
import sys
import time
import traceback
from collections import Counter
from functools import cache, lru_cache
from typing import Final

import msgspec
from msgspec import UNSET, UnsetType

from gateway.core.service import Service, Target
from gateway.proxy.answer_links import without_query
from gateway.proxy.client.exchange import Exchange
from gateway.telemetry.delta import CounterDelta, Deliver, Delta
from gateway.telemetry.log_output import LogOutput

_encoder = msgspec.json.Encoder()
_encode: Final = _encoder.encode
_encode_into: Final = _encoder.encode_into


def event(name: str, level: str = "info", **fields: object) -> None:
    """Write a line about an event of the gateway itself, without delay."""
    line = {"time": now(), "level": level, "event": name, "program": "gateway", **fields}
    _output().write(_fitting(line, _encode(line) + b"\n"), "event", 1)


def health(service: Service, target: Target, failure: str | None) -> None:
    """Log that health checks found a target down, by that failure, or up again."""
    about = {"service": service.name, "target": target.authority}
    if failure is None:
        event("target_up", **about)
    else:
        event("target_down", **about, reason=failure)


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
    trace_id: str | UnsetType = UNSET
    client: str | UnsetType = UNSET
    api: str | UnsetType = UNSET
    endpoint: str | UnsetType = UNSET
    version: str | UnsetType | None = UNSET
    chosen_by: str | UnsetType | None = UNSET
    service: str | UnsetType = UNSET
    target: str | UnsetType | None = UNSET
    converted: bool | UnsetType = UNSET
    upstream_ms: float | UnsetType = UNSET
    code: str | UnsetType = UNSET
    cause: str | UnsetType = UNSET
    unmapped_link: str | UnsetType = UNSET
    aborted: bool | UnsetType = UNSET


class RequestLog:
    """Writes a log line for every request.

    Lines are buffered briefly and written together: under load, a system call per line would cost
    as much as answering the request.
    """

    _PATIENCE = 0.05

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting = bytearray()
        self._lines = 0
        self._due: asyncio.TimerHandle | None = None
        self._output = _output()

    def flush(self) -> None:
        """Write the buffered lines."""
        text, lines = bytes(self._waiting), self._lines
        self._waiting, self._lines = bytearray(), 0
        if lines:
            self._output.write(text, "request", lines)

    def record(self, exchange: Exchange, time: str) -> None:
        """Add the log line of one request, of that time (see `now`); it took milliseconds."""
        plan, endpoint, version = exchange.plan, exchange.endpoint, exchange.version
        # Collected first, since to set a field of a Struct costs ten times as much.
        upstream_ms: float | UnsetType = UNSET
        if exchange.answered:
            upstream_ms = int((exchange.answered - exchange.sent) * 1_000_000) / 1000
        label: str | UnsetType | None = UNSET if plan is None else None
        if version is not None:
            label = _label(version)
        line = _RequestLine(
            time,
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
            exchange.trace_id or UNSET,
            exchange.client or UNSET,
            UNSET if endpoint is None else endpoint.api,
            UNSET if endpoint is None else endpoint.template.text,
            label,
            UNSET if plan is None else plan.chosen_by,
            UNSET if plan is None else plan.route.service.name,
            UNSET if plan is None else exchange.target,
            UNSET if plan is None else exchange.converted,
            upstream_ms,
        )
        if exchange.code is not None:
            line.code = exchange.code
        if exchange.cause is not None:
            line.cause = exchange.cause
        if exchange.unmapped_link is not None:
            line.unmapped_link = without_query(exchange.unmapped_link)
        if exchange.aborted:
            line.aborted = True
        waiting = self._waiting
        begin = len(waiting)
        _encode_into(line, waiting, begin)
        waiting += b"\n"
        if len(waiting) > self._output.most:
            text = _fitting(line, bytes(waiting[begin:]))
            del waiting[begin:]
            self.flush()
            self._waiting += text
        self._lines += 1
        if self._due is None:  # one timer, or each batch that is full would leave one more behind
            self._due = self._loop.call_later(self._PATIENCE, self._flush_in_time)

    def _flush_in_time(self) -> None:
        self._due = None
        self.flush()


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


_label: Final = lru_cache(maxsize=1024)(str)
