"""Usage: who calls what, as rows that JSON can say and as a table for people."""

import time

from gateway.operation.ledger import Ledger


def rows(ledger: Ledger, api: str | None = None, version: str | None = None) -> list[object]:
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
    return [
        {
            "client": client,
            "api": book_api,
            "version": book_version,
            "endpoint": endpoint,
            "count": row.count,
            "refused": row.refused,
            "failed": row.failed,
            "slack": row.slack,
            "first": moment(row.first),
            "last": moment(row.last),
        }
        for row, book_api, book_version, endpoint, client in found
    ]


def moment(seconds: float) -> str:
    """Return a time as RFC 3339 has it, in UTC, to the second."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
