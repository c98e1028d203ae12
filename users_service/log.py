"""Logs: one JSON object a line on standard output."""

import json
import logging
import sys
from datetime import UTC, datetime

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
    """Send everything that is logged to standard output; of the libraries, warnings and worse."""
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logger.setLevel(logging.INFO)
