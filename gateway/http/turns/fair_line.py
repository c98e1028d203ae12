"""Fair lines: those who wait for the same, of whom the networks of clients have turns."""

import asyncio
from collections import deque
from typing import Generic, TypeVar

_T = TypeVar("_T")


class FairLine(Generic[_T]):
    """A line in which each network of clients has its turn, however many of its own each has there.

    So one that sends a thousand requests at once has the others wait for one of them.

    Attributes:
        size: how many wait; to read it costs less than `len`.
    """

    def __init__(self) -> None:
        self._networks: dict[str, deque[asyncio.Future[_T]]] = {}  # that whose turn it is first
        self.size = 0

    def __len__(self) -> int:
        return self.size

    def join(self, network: str) -> asyncio.Future[_T]:
        """Return the place of one that begins to wait, to be resolved when it is its turn."""
        place: asyncio.Future[_T] = asyncio.get_running_loop().create_future()
        self._networks.setdefault(network, deque()).append(place)
        self.size += 1
        return place

    def pop(self) -> asyncio.Future[_T] | None:
        """Take the place whose turn it is out of the line; None if nobody waits."""
        while self._networks:
            network = next(iter(self._networks))
            places = self._networks.pop(network)
            place = places.popleft()
            self.size -= 1
            if places:
                self._networks[network] = places  # behind all others
            if not place.done():
                return place
        return None

    def displace(self, network: str, error: Exception) -> bool:
        """End the last wait of the network that has most here, for one of a network with fewer.

        Args:
            network: of the other.
            error: is raised where the wait ends.

        Returns:
            Whether a network has more than that one would have.
        """
        if not self._networks:
            return False
        most = max(self._networks, key=lambda name: len(self._networks[name]))
        places = self._networks[most]
        if len(places) <= len(self._networks.get(network, ())) + 1:
            return False
        place = places[-1]
        self.leave(most, place)
        if not place.done():
            place.set_exception(error)
        return True

    def leave(self, network: str, place: asyncio.Future[_T]) -> None:
        """Take a place out whose owner waits no more, if it is there."""
        places = self._networks.get(network)
        if places is not None and place in places:
            places.remove(place)
            self.size -= 1
            if not places:
                del self._networks[network]
