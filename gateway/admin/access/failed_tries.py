"""FailedTries: bounds how often wrong tokens are tried."""

from ipaddress import IPv6Address, ip_network
from math import ceil
from typing import NamedTuple

from gateway.base.addresses import parse_address

_TRIES = 20
_SECONDS = 60.0
# As a token has 16 characters or more, guessing is hopeless; the bound is on work and log lines.
_MOST_ADDRESSES = 1024
# A host of IPv6 usually has all addresses of such a network.
_IPV6_PREFIX = 64
OTHERS = "other addresses"
"""The name of all addresses together that came when 1,024 others had tries left to regain."""


class FailedTry(NamedTuple):
    """One failed try.

    Attributes:
        of: the address, the IPv6 network, or OTHERS, whichever it counts for.
        wait: the seconds to wait before the next try; 0 for a try within the bound.
        starts: whether it is the first one over the bound.
        unlogged: for a try within the bound, those over it since the last one within.
    """

    of: str
    wait: int
    starts: bool = False
    unlogged: int = 0


class _Row:
    """The failed tries of one address.

    Attributes:
        full: when all tries are available again (GCRA).
        over: the number over the bound; None if none was since all tries were available.
    """

    def __init__(self, now: float) -> None:
        self.full = now
        self.over: int | None = None


class FailedTries:
    """The failed tries of each address: 20 at once, and one more every three seconds.

    An IPv6 network /64 counts as one address. After 1,024 addresses, all others count as one.
    """

    def __init__(self) -> None:
        self._rows: dict[str, _Row] = {}

    def add(self, address: str, now: float) -> FailedTry:
        """Count a failed try of an address at a time in seconds."""
        of = self._row_name(_network(address), now)
        row = self._rows.get(of)
        if row is None or row.full <= now:
            row = self._rows[of] = _Row(now)
        over = row.full - now - _SECONDS + _SECONDS / _TRIES
        if over > 1e-9:
            starts = row.over is None
            row.over = (row.over or 0) + 1
            return FailedTry(of, ceil(over), starts)
        row.full += _SECONDS / _TRIES
        unlogged, row.over = row.over or 0, None if row.over is None else 0
        return FailedTry(of, 0, unlogged=unlogged)

    def _row_name(self, address: str, now: float) -> str:
        if address in self._rows or len(self._rows) < _MOST_ADDRESSES:
            return address
        self._rows = {name: row for name, row in self._rows.items() if row.full > now}
        has_room = len(self._rows.keys() - {OTHERS}) < _MOST_ADDRESSES
        return address if has_room else OTHERS


def _network(address: str) -> str:
    parsed = parse_address(address)
    if not isinstance(parsed, IPv6Address):
        return address
    return str(ip_network((parsed, _IPV6_PREFIX), strict=False))
