"""The TopClients: who uses one version of an API, in bounded memory.

It holds the busiest rows (a client at an endpoint), and what it lets go of is added to one row an
endpoint, for the others. This is Space-Saving (Metwally, Agrawal and El Abbadi, 2005), merged in
batches (Agarwal et al., "Mergeable Summaries", 2012), with these guarantees, n being all requests
to the version and k the rows kept:

-   No request goes uncounted: a row and the others of its endpoint add up to what was asked there,
    and the latest `last` of them is when it was asked last.
-   A row says no less than was counted while it was held (`count`), and the truth is at most
    `slack` more; `slack` is at most n / k.
-   Whoever made more than n / k of the requests at one endpoint has a row.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import nlargest

from gateway.telemetry.delta import UsageDelta

# So many rows are kept of a version; up to twice as many are held between two cuts. A row is less
# than 500 bytes, so a version costs less than 2 MB however many clients it has.
KEPT = 2048


@dataclass(slots=True)
class ClientUsage:
    """What one client, or all others, asked at one endpoint; times in seconds since 1970.

    `served` is when a request was let through last; 0 where none was.
    """

    count: int = 0
    refused: int = 0
    failed: int = 0
    slack: int = 0
    first: float = 0.0
    last: float = 0.0
    served: float = 0.0

    def add(self, more: "ClientUsage") -> None:
        """Count more."""
        self.first = min(self.first or more.first, more.first)
        self.last = max(self.last, more.last)
        self.served = max(self.served, more.served)
        self.count += more.count
        self.refused += more.refused
        self.failed += more.failed


# An endpoint's template, and a client's name or None for all others.
RowKey = tuple[str, str | None]


class TopClients:
    """The rows of one version of an API.

    Attributes:
        rows: by endpoint and client.
        floor: what a client that is not in the book can have asked at most at one endpoint.
        changed: the keys of rows that were changed or let go of since this was last cleared.
    """

    def __init__(self, rows: dict[RowKey, ClientUsage] | None = None, floor: int = 0) -> None:
        self.rows = rows or {}
        self.floor = floor
        self.changed: set[RowKey] = set()
        self._limit = 2 * KEPT

    def add(self, usage: UsageDelta, at: float) -> None:
        """Count what a report says; `at` is when."""
        key = usage.endpoint, usage.client
        row = self.rows.get(key)
        if row is None:
            row = self.rows[key] = ClientUsage(slack=self.floor)
        served = at if usage.served else 0.0
        row.add(ClientUsage(usage.count, usage.refused, usage.failed, 0, at, at, served))
        self.changed.add(key)
        if len(self.rows) > self._limit:
            self._cut()

    def _cut(self) -> None:
        named = [key for key in self.rows if key[1] is not None]
        kept = set(nlargest(KEPT, named, key=self._estimate))
        for key in named:
            if key in kept:
                continue
            self.floor = max(self.floor, self._estimate(key))
            row, others = self.rows.pop(key), (key[0], None)
            self.rows.setdefault(others, ClientUsage()).add(row)
            self.changed |= {key, others}
        # One row an endpoint is for the others, and their number is the configuration's.
        self._limit = len(self.rows) + KEPT

    def _estimate(self, key: RowKey) -> int:
        return self.rows[key].count + self.rows[key].slack

    def __iter__(self) -> Iterator[tuple[RowKey, ClientUsage]]:
        return iter(self.rows.items())
