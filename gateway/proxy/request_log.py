"""The log lines of requests."""

import asyncio
from functools import lru_cache
from typing import Final

import msgspec
from msgspec import UNSET, UnsetType

from gateway.observe.log import encode_into, fitting, output
from gateway.proxy.answer_links import without_query
from gateway.proxy.exchange import Exchange


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
        self._output = output()

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
        encode_into(line, waiting, begin)
        waiting += b"\n"
        if len(waiting) > self._output.most:
            text = fitting(line, bytes(waiting[begin:]))
            del waiting[begin:]
            self.flush()
            self._waiting += text
        self._lines += 1
        if self._due is None:  # one timer, or each batch that is full would leave one more behind
            self._due = self._loop.call_later(self._PATIENCE, self._flush_in_time)

    def _flush_in_time(self) -> None:
        self._due = None
        self.flush()


_label: Final = lru_cache(maxsize=1024)(str)
