"""How the admin port and the commands write times, clients and tables."""

import time
from collections.abc import Container, Iterator, Sequence

from gateway.state.totals import OTHERS

ANONYMOUS = "(anonymous)"


def columns(rows: Sequence[Sequence[str]], right: Container[int] = ()) -> Iterator[str]:
    """Yield rows with their columns under each other; those in `right` end where all end."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (
            text.rjust(width) if place in right else text.ljust(width)
            for place, (text, width) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join(cells).rstrip()


def named(client: str | None) -> str:
    """Return what stands for a client in a text."""
    return OTHERS if client is None else client or ANONYMOUS


def format_time(seconds: float) -> str:
    """Return a time as RFC 3339 has it, in UTC, to the second."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
