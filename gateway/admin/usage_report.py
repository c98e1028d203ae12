"""UsageReport: who calls what, as JSON and as a table for people."""

import msgspec

from gateway.admin.formatting import client_text, columns, format_time
from gateway.state.totals import Totals


class UsageLine(msgspec.Struct, frozen=True):
    """The usage of one endpoint and version by one client; see `top_clients.ClientUsage`.

    `client` is None for the sum of all clients that have no row, and `served` is None where all
    requests were refused.
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
    """The usage of all clients, and since when it was counted."""

    since: str
    usage: list[UsageLine]


def usage(totals: Totals, api: str | None = None, version: str | None = None) -> UsageReport:
    """Return the usage of all clients, the busiest of each version first.

    Args:
        totals: what was counted.
        api: an API to restrict the report to.
        version: a version to restrict the report to.
    """
    found = [
        (*key, endpoint, client, row)
        for key, clients in totals.clients.items()
        if api in (None, key[0]) and version in (None, key[1])
        for (endpoint, client), row in clients.rows.items()
    ]
    found.sort(key=lambda each: (each[0], each[1], -each[4].count, each[2], each[3] or ""))
    lines = [
        UsageLine(
            client,
            row_api,
            row_version,
            endpoint,
            row.count,
            row.refused,
            row.failed,
            row.slack,
            format_time(row.first),
            format_time(row.last),
            format_time(row.served) if row.served else None,
        )
        for row_api, row_version, endpoint, client, row in found
    ]
    return UsageReport(format_time(totals.since), lines)


def usage_table(found: UsageReport) -> str:
    """Return a table for people; a count that may be too low has a plus sign."""
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
                client_text(line.client),
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
