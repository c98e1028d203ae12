"""Logs: one JSON object a line on standard output, one line for every request."""

import logging
import sys
import traceback
from datetime import UTC, datetime

import msgspec

from gateway.wire.exchange import Exchange

_encode = msgspec.json.Encoder().encode


def event(name: str, level: str = "info", **fields: object) -> None:
    """Write one line about the gateway itself."""
    _write({"time": _now(), "level": level, "event": name, "program": "gateway", **fields})


def request(exchange: Exchange) -> None:
    """Write the line of one request; times are in milliseconds."""
    line: dict[str, object] = {
        "time": _now(),
        "level": "info",
        "event": "request",
        "program": "gateway",
        "request_id": exchange.request_id,
        "peer": exchange.peer,
        "method": exchange.method,
        "path": exchange.path,
        "status": exchange.status,
        "bytes_sent": exchange.bytes_sent,
        "duration_ms": _milliseconds(exchange.ended - exchange.began),
    }
    if exchange.endpoint is not None:
        line["api"] = exchange.endpoint.api
        line["endpoint"] = exchange.endpoint.template.text
    plan = exchange.plan
    if plan is not None:
        line["version"] = None if plan.leg.version is None else str(plan.leg.version)
        line["mechanism"] = plan.mechanism
        line["service"] = plan.leg.service.name
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
    _write(line)


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


def _write(line: dict[str, object]) -> None:
    sys.stdout.buffer.write(_encode(line) + b"\n")
    sys.stdout.buffer.flush()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _milliseconds(seconds: float) -> float:
    return round(seconds * 1000, 3)
