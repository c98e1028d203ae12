"""Who calls a version: its clients by endpoint, as a table and as CSV."""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from gateway.admin.page.listing import Listing, listing
from gateway.admin.reports.piecewise import batches
from gateway.base.overrides import VersionKey
from gateway.findings.formatting import client_text, format_time
from gateway.usage.totals import ClientUsage, TopClients, Totals

# What spreadsheets take for a formula when a cell begins with it; some take full-width signs, too.
_FORMULA = (*"=+-@\t\r\n", *"\uff1d\uff0b\uff0d\uff20")
_HEAD = (
    *("client", "api", "version", "endpoint", "count", "at_least", "refused", "failed"),
    *("first", "last", "served"),
)
MOST_LINES = 100
"""The lines of a piece of CSV; it takes about a millisecond."""

ROWS = 25
"""The rows of a page; less than elsewhere, since more stands below them."""


class Caller(NamedTuple):
    """A client at one endpoint of a version."""

    client: str | None
    endpoint: str
    usage: ClientUsage


_COLUMNS = {
    "client": lambda each: (each.client is None, (each.client or "").casefold()),
    "endpoint": lambda each: each.endpoint,
    "count": lambda each: each.usage.count,
    "refused": lambda each: each.usage.refused,
    "failed": lambda each: each.usage.failed,
    "first": lambda each: each.usage.first,
    "last": lambda each: each.usage.last,
    "served": lambda each: each.usage.served,
}


def callers(
    totals: Totals, key: VersionKey, query: Mapping[str, str], *, size: int = ROWS
) -> Listing[Caller]:
    """Return one page of the clients of a version.

    Args:
        totals: what was counted.
        key: the API and the label of the version.
        query: the parameters of the address: `find`, `sort`, `page`.
        size: the rows of a page.
    """
    text = query.get("find", "").casefold()
    rows = totals.clients.get(key, TopClients()).rows
    found = [Caller(client, endpoint, usage) for (endpoint, client), usage in rows.items()]

    def fits(each: Caller) -> bool:
        return text in client_text(each.client).casefold() or text in each.endpoint.casefold()

    return listing(found, query, _COLUMNS, default="-count", fits=fits if text else None, size=size)


def callers_csv(totals: Totals, key: VersionKey, query: Mapping[str, str]) -> Iterator[bytes]:
    """Yield all clients of a version that fit the filter, as CSV (RFC 4180), in pieces."""
    yield _lines([_HEAD])
    rows = totals.clients.get(key, TopClients()).rows
    found = callers(totals, key, {**query, "page": ""}, size=max(len(rows), 1)).rows
    for batch in batches(found, MOST_LINES):
        yield _lines(_cells(each, key) for each in batch)


def _lines(rows: Iterable[Iterable[str]]) -> bytes:
    out = io.StringIO()
    csv.writer(out).writerows(rows)
    return out.getvalue().encode("utf-8", "replace")


def _cells(each: Caller, key: VersionKey) -> Iterator[str]:
    usage = each.usage
    for text in (client_text(each.client), *key, each.endpoint):
        yield f"'{text}" if text.startswith(_FORMULA) else text
    yield str(usage.count)
    yield "yes" if usage.slack else "no"
    yield str(usage.refused)
    yield str(usage.failed)
    for moment in (usage.first, usage.last, usage.served):
        yield format_time(moment) if moment else ""
