"""UsageReport: who calls what, as JSON and as a table for people."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from datetime import UTC, datetime

import msgspec

from gateway.admin.reports.piecewise import batches
from gateway.base.overrides import VersionKey
from gateway.findings.formatting import client_text, columns, format_time, gap_text
from gateway.store.state import StateUnreachableError, StateView

MOST_LINES = 200
"""The lines of a piece of JSON; it takes about a millisecond."""


class UsageLine(msgspec.Struct, frozen=True):
    """The usage of one endpoint and version by one client; see `top_clients.ClientUsage`.

    `client` is None for the sum of all clients that have no row, and `served` is None where all
    requests were refused. Times are to the second: msgspec writes them in the format of RFC 3339 at
    a third of the cost of `format_time`, of which there may be a million.
    """

    client: str | None
    api: str
    version: str
    endpoint: str
    count: int
    refused: int
    failed: int
    slack: int
    first: datetime
    last: datetime
    served: datetime | None


class UsageReport(msgspec.Struct, frozen=True):
    """The usage of all clients.

    Attributes:
        since: when counting began.
        usage: the lines.
        replica: the replica whose counts alone these are; None for all of them.
        missing: what may be missing, a sentence each.
    """

    since: str
    usage: list[UsageLine]
    replica: str | None = None
    missing: list[str] = []


def usage(view: StateView, api: str | None = None, version: str | None = None) -> UsageReport:
    """Return the usage of all clients, the busiest of each version first.

    Args:
        view: what was counted.
        api: an API to restrict the report to.
        version: a version to restrict the report to.
    """
    found = _without_lines(view)
    lines = [line for key in used_versions(view, api, version) for line in _lines(view, key)]
    return msgspec.structs.replace(found, usage=lines)


async def usage_json(
    view: StateView,
    read: Callable[[VersionKey], Awaitable[StateView]],
    api: str | None = None,
    version: str | None = None,
) -> AsyncIterator[bytes]:
    """Yield the same report as JSON, in pieces that take little time each.

    The rows of one version are in memory at a time: those of all are hundreds of megabytes.

    Args:
        view: what was counted; its rows of clients may be missing.
        read: returns what was counted of one version, with its rows.
        api: an API to restrict the report to.
        version: a version to restrict the report to.

    Raises:
        StateError: the store was lost meanwhile.
    """
    whole = msgspec.json.encode(_without_lines(view))
    before, lines, after = whole.partition(b'"usage":[')
    yield before + lines
    comma = b""
    for key in used_versions(view, api, version):
        found = await read(key)
        if found.replica != view.replica:  # it has what one replica counted, in place of all
            raise StateUnreachableError("the store was lost while usage was read; ask again")
        for batch in batches(_lines(found, key), MOST_LINES):
            yield comma + msgspec.json.encode(batch)[1:-1]
            comma = b","
    yield after


def used_versions(view: StateView, api: str | None, version: str | None) -> Sequence[VersionKey]:
    """Return the versions that were called, in order: all, or those of an API or a label."""
    asked = (
        key for key in view.totals.clients if api in (None, key[0]) and version in (None, key[1])
    )
    return sorted(asked)


def _lines(view: StateView, key: VersionKey) -> Iterator[UsageLine]:
    """Yield the lines of a version; what is counted meanwhile may be in later ones."""
    known = view.totals.clients.get(key)
    rows = [] if known is None else list(known.rows.items())
    rows.sort(key=lambda each: (-each[1].count, each[0][0], each[0][1] or ""))
    for (endpoint, client), row in rows:
        last = _moment(row.last)
        yield UsageLine(
            client,
            *key,
            endpoint,
            row.count,
            row.refused,
            row.failed,
            row.slack,
            _moment(row.first),
            last,
            last if row.served == row.last else _moment(row.served) if row.served else None,
        )


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(int(seconds), UTC)


def _without_lines(view: StateView) -> UsageReport:
    missing = [f"{gap_text(gap)}." for gap in view.gaps]
    return UsageReport(format_time(view.totals.since), [], view.replica, missing)


def usage_table(found: UsageReport) -> str:
    """Return a table for people; a count that may be too low has a plus sign."""
    if not found.usage:
        return "\n".join((f"Nobody has called since {found.since}.", *_remarks(found)))
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
                format_time(line.first.timestamp()),
                format_time(line.last.timestamp()),
                format_time(line.served.timestamp()) if line.served else "never",
            )
            for line in found.usage
        ),
    ]
    return "\n".join(
        (*columns(cells, right=range(4, 7)), f"Counted since {found.since}.", *_remarks(found))
    )


def _remarks(found: UsageReport) -> Iterator[str]:
    if found.replica is not None:
        yield f"These are the counts of the replica {found.replica} alone."
    for sentence in found.missing:
        yield f"{sentence[:1].upper()}{sentence[1:]}"
