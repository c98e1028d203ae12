"""ConnectionPlaces: bounds how many connections are held, and has those who fill it give way."""

from collections import Counter
from collections.abc import Iterator
from typing import Generic, TypeVar

from gateway.base.descriptors import most_admin

_C = TypeVar("_C")


class ConnectionPlaces(Generic[_C]):
    """Places for connections, as many as the file descriptors are enough for.

    While all are taken, a new connection takes the place of the oldest one of the address that has
    the most. So whoever fills a port loses connections of their own, and probes and operators get
    in. nginx likewise closes connections for new ones when none is left (`drain_connections`).

    Args:
        most: fewer places than the file descriptors are enough for.
    """

    def __init__(self, most: int | None = None) -> None:
        self._most = most_admin() if most is None else most
        self._addresses: dict[_C, str] = {}  # the oldest first

    def take(self, connection: _C, address: str) -> _C | None:
        """Give a connection a place; return the one that has lost its place to it."""
        lost = None
        if len(self._addresses) >= self._most:
            ((most, _),) = Counter(self._addresses.values()).most_common(1)
            lost = next(one for one, of in self._addresses.items() if of == most)
            del self._addresses[lost]
        self._addresses[connection] = address
        return lost

    def leave(self, connection: _C) -> None:
        """Free the place of a connection, if it has one."""
        self._addresses.pop(connection, None)

    def __iter__(self) -> Iterator[_C]:
        """Yield the connections that have a place, the oldest first."""
        return iter(tuple(self._addresses))

    def __contains__(self, connection: object) -> bool:
        """Return whether a connection has a place."""
        return connection in self._addresses
