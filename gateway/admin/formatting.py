"""Formatting of times, clients and tables for the admin port and the commands."""

import time
from collections.abc import Container, Iterator, Sequence

from gateway.state.totals import OTHERS

ANONYMOUS = "(anonymous)"


def columns(rows: Sequence[Sequence[str]], right: Container[int] = ()) -> Iterator[str]:
    """Yield lines of aligned columns; those in `right` are aligned on the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (
            text.rjust(width) if place in right else text.ljust(width)
            for place, (text, width) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join(cells).rstrip()


def client_text(client: str | None) -> str:
    """Return the name of a client for people, also of one without a name, and of all others."""
    return OTHERS if client is None else client or ANONYMOUS


def format_time(seconds: float) -> str:
    """Return a time in the format of RFC 3339, in UTC, to the second."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
