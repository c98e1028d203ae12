"""TopClients: the usage of one version by client, in bounded memory.

It has a row for each of the busiest clients of an endpoint, and one row an endpoint for the sum of
all others. This is Space-Saving (Metwally, Agrawal and El Abbadi, 2005), merged in batches (Agarwal
et al., "Mergeable Summaries", 2012). For n requests to the version and k rows:

-   The rows of an endpoint add up to all its requests; their latest `last` is that of the endpoint.
-   A row counts all requests since it exists (`count`); the true number of the client's requests is
    at most `slack` higher, and `slack` is at most n / k.
-   A client with more than n / k of the requests at one endpoint has a row.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import nlargest

from gateway.usage.delta import UsageDelta

KEPT = 2048
"""The rows of a version after a cut; up to twice as many before the next. A row is below 500 bytes,
so a version takes less than 2 MB."""
RowKey = tuple[str, str | None]
"""The template of an endpoint, and the name of a client or None for all others."""


@dataclass(slots=True)
class ClientUsage:
    """The usage of one endpoint by one client, or by all others; times in seconds since 1970.

    `served` is the time of the last request that was not refused; 0 if all were.
    """

    count: int = 0
    refused: int = 0
    failed: int = 0
    slack: int = 0
    first: float = 0.0
    last: float = 0.0
    served: float = 0.0

    def add(self, more: "ClientUsage") -> None:
        """Add other usage."""
        self.first = min(self.first or more.first, more.first)
        self.last = max(self.last, more.last)
        self.served = max(self.served, more.served)
        self.count += more.count
        self.refused += more.refused
        self.failed += more.failed


class TopClients:
    """The rows of one version of an API.

    Attributes:
        rows: by endpoint and client.
        floor: the highest number of requests that a client without a row can have made.
        changed: the keys of the rows that were changed or removed since this was last cleared.
        last: the time of the last request, in seconds since 1970; 0 for none.
        served: the time of the last request that was not refused; 0 for none.
    """

    def __init__(self, rows: dict[RowKey, ClientUsage] | None = None, floor: int = 0) -> None:
        self.rows = rows or {}
        self.floor = floor
        self.changed: set[RowKey] = set()
        self.last = max((row.last for row in self.rows.values()), default=0.0)
        self.served = max((row.served for row in self.rows.values()), default=0.0)
        self._limit = 2 * KEPT

    def put(self, key: RowKey, row: ClientUsage) -> None:
        """Add a stored row."""
        self.rows[key] = row
        self._note(row)

    def add(self, usage: UsageDelta, at: float) -> None:
        """Add the usage of a delta, at a time in seconds since 1970."""
        key = usage.endpoint, usage.client
        row = self.rows.get(key)
        if row is None:
            row = self.rows[key] = ClientUsage(slack=self.floor)
        served = at if usage.served else 0.0
        row.add(ClientUsage(usage.count, usage.refused, usage.failed, 0, at, at, served))
        self._note(row)
        self.changed.add(key)
        self.cut()

    def merge(self, other: "TopClients") -> None:
        """Add the rows of another summary of the same version, of other requests."""
        if other.floor:
            for (_, client), row in self.rows.items():
                row.slack += 0 if client is None else other.floor
        for key, row in other.rows.items():
            own = self.rows.get(key)
            if own is None:
                slack = 0 if key[1] is None else self.floor + row.slack
                own = self.rows[key] = ClientUsage(slack=slack)
            own.add(row)
            self._note(own)
            self.changed.add(key)
        self.floor += other.floor
        self.cut()

    def cut(self) -> None:
        """If there are too many clients, add those with the fewest requests to the others."""
        if len(self.rows) <= self._limit:
            return
        named = [key for key in self.rows if key[1] is not None]
        kept = set(nlargest(KEPT, named, key=self._estimate))
        for key in named:
            if key in kept:
                continue
            self.floor = max(self.floor, self._estimate(key))
            row, others = self.rows.pop(key), (key[0], None)
            self.rows.setdefault(others, ClientUsage()).add(row)
            self.changed |= {key, others}
        # One row an endpoint is for the others, and their number is that of the configuration.
        self._limit = len(self.rows) + KEPT

    def _note(self, row: ClientUsage) -> None:
        self.last = max(self.last, row.last)
        self.served = max(self.served, row.served)

    def _estimate(self, key: RowKey) -> int:
        return self.rows[key].count + self.rows[key].slack

    def __iter__(self) -> Iterator[tuple[RowKey, ClientUsage]]:
        return iter(self.rows.items())
