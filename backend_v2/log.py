"""Logs: one JSON object a line on standard output."""

import json
import logging
import sys
from datetime import UTC, datetime

from aiohttp.http_exceptions import HttpProcessingError

from . import PROGRAM

logger = logging.getLogger(PROGRAM)


class JsonLines(logging.Formatter):
    """Writes a record as JSON: the message is the event, `extra={"fields": ...}` is added."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line; ASCII only, so any terminal or collector can hold it."""
        moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        entry = {
            "time": moment.replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            "program": PROGRAM,
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            entry["traceback"] = self.formatException(record.exc_info)
        return json.dumps(entry)


def configure() -> None:
    """Send everything that is logged, the libraries' records too, to standard output."""
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    logging.getLogger("aiohttp.server").addFilter(_soften_bad_http)


def _soften_bad_http(record: logging.LogRecord) -> bool:
    """Log a request that is not HTTP as the client's mistake: no error of ours, no traceback."""
    error = record.exc_info[1] if record.exc_info else None
    if isinstance(error, HttpProcessingError):
        record.levelname, record.msg, record.args = "INFO", "bad_http", ()
        record.exc_info = None
        record.fields = {"status": error.code, "error": error.message}
    return True
