"""Usage: who calls what, as rows that JSON can say and as a table for people."""

import msgspec

from gateway.admin.formatting import columns, format_time, named
from gateway.state.totals import Totals


class UsageLine(msgspec.Struct, frozen=True):
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


class UsageReport(msgspec.Struct, frozen=True):
    """Who asked for what, and since when this was counted."""

    since: str
    usage: list[UsageLine]


def usage(totals: Totals, api: str | None = None, version: str | None = None) -> UsageReport:
    """Return who asked for what, the busiest first.

    Args:
        totals: what was counted.
        api: this one only.
        version: this one only.
    """
    found = [
        (row, book_api, book_version, endpoint, client)
        for (book_api, book_version), book in totals.books.items()
        if api in (None, book_api) and version in (None, book_version)
        for (endpoint, client), row in book.rows.items()
    ]
    found.sort(key=lambda each: (each[1], each[2], -each[0].count, each[3], each[4] or ""))
    lines = [
        UsageLine(
            client,
            book_api,
            book_version,
            endpoint,
            row.count,
            row.refused,
            row.failed,
            row.slack,
            format_time(row.first),
            format_time(row.last),
            format_time(row.served) if row.served else None,
        )
        for row, book_api, book_version, endpoint, client in found
    ]
    return UsageReport(format_time(totals.since), lines)


def usage_table(found: UsageReport) -> str:
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
