"""Formatting of times, clients and tables for the admin port and the commands."""

import time
from collections.abc import Container, Iterator, Sequence

from gateway.base.mistakes import printable
from gateway.store.state import DataGap
from gateway.usage.totals import OTHERS

ANONYMOUS_TEXT = "(anonymous)"


def columns(rows: Sequence[Sequence[str]], right: Container[int] = ()) -> Iterator[str]:
    """Yield lines of aligned columns; the columns in `right` are right-aligned.

    Unprintable characters are escaped, since cells may contain field names from responses of
    services.
    """
    rows = [[printable(text) for text in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (
            text.rjust(width) if place in right else text.ljust(width)
            for place, (text, width) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join(cells).rstrip()


def client_text(client: str | None) -> str:
    return OTHERS if client is None else client or ANONYMOUS_TEXT


def format_time(seconds: float) -> str:
    """Return an RFC 3339 time in UTC, truncated to seconds."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def day_text(seconds: float) -> str:
    """Return a date in UTC, such as `2 Jan 2026`."""
    return time.strftime("%-d %b %Y", time.gmtime(seconds))


def moment_text(seconds: float) -> str:
    """Return a time such as `2 Jan 2026, 15:04 UTC`."""
    return time.strftime("%-d %b %Y, %H:%M UTC", time.gmtime(seconds))


_PERIODS = ((86_400, "day"), (3600, "hour"), (60, "minute"), (1, "second"))


def period_text(seconds: float) -> str:
    """Return a period in the largest unit that it has exactly once or at least twice."""
    for size, unit in _PERIODS:
        number = int(seconds / size)
        if number >= 2 or seconds == size:
            return f"{number} {plural(number, unit)}"
    return "1 second" if seconds >= 1 else "a moment"


def duration_text(seconds: float) -> str:
    """Return a duration with at least three digits, such as `12.3 ms`."""
    return f"{seconds:,.2f} s" if seconds >= 0.9995 else f"{seconds * 1000:.3g} ms"


def plural(count: float, noun: str) -> str:
    return noun if count == 1 else f"{noun}s"


def compared_text(compared: int, differing: int) -> str:
    verb = "differs" if differing == 1 else "differ"
    return f"{compared} {plural(compared, 'response')} compared, {differing} {verb}"


def sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', '?')) else '.'}"


def gap_text(gap: DataGap) -> str:
    since = format_time(gap.since)
    if gap.replica is None:
        return f"the database has been unreachable since {since}"
    return f"the replica {gap.replica} has sent no heartbeat since {since}"
