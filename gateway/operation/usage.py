"""Usage: who calls what, as rows that JSON can say and as a table for people."""

import time
from collections.abc import Container, Iterator, Sequence

import msgspec

from gateway.operation.ledger import OTHERS, Ledger

ANONYMOUS = "(anonymous)"


class Line(msgspec.Struct, frozen=True):
    """A row of usage; see `book.Row`. `client` is None for all that were not told apart.

    `served` is when a request was let through last; None where all were refused.
    """

    client: str | None
    api: str
    version: str
    endpoint: str
    count: int
    refused: int
    failed: int
    slack: int
    first: str
    last: str
    served: str | None


class Usage(msgspec.Struct, frozen=True):
    """Who asked for what, and since when this was counted."""

    since: str
    usage: list[Line]


def usage(ledger: Ledger, api: str | None = None, version: str | None = None) -> Usage:
    """Return who asked for what, the busiest first.

    Args:
        ledger: what was counted.
        api: this one only.
        version: this one only.
    """
    found = [
        (row, book_api, book_version, endpoint, client)
        for (book_api, book_version), book in ledger.books.items()
        if api in (None, book_api) and version in (None, book_version)
        for (endpoint, client), row in book.rows.items()
    ]
    found.sort(key=lambda each: (each[1], each[2], -each[0].count, each[3], each[4] or ""))
    lines = [
        Line(
            client,
            book_api,
            book_version,
            endpoint,
            row.count,
            row.refused,
            row.failed,
            row.slack,
            moment(row.first),
            moment(row.last),
            moment(row.served) if row.served else None,
        )
        for row, book_api, book_version, endpoint, client in found
    ]
    return Usage(moment(ledger.since), lines)


def table(found: Usage) -> str:
    """Return usage for people; a count that may be too low has a plus sign."""
    if not found.usage:
        return f"Nobody has called since {found.since}."
    cells = [
        (
            "CLIENT",
            "API",
            "VERSION",
            "ENDPOINT",
            "COUNT",
            "REFUSED",
            "FAILED",
            "FIRST",
            "LAST",
            "SERVED",
        ),
        *(
            (
                named(line.client),
                line.api,
                line.version or "-",
                line.endpoint,
                f"{line.count}{'+' if line.slack else ''}",
                str(line.refused),
                str(line.failed),
                line.first,
                line.last,
                line.served or "never",
            )
            for line in found.usage
        ),
    ]
    return "\n".join((*columns(cells, right=range(4, 7)), f"Counted since {found.since}."))


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


def moment(seconds: float) -> str:
    """Return a time as RFC 3339 has it, in UTC, to the second."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
