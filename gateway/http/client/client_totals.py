"""The counts of client connections in one process, and the bounds on clients."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from gateway.http.bounds.waiting_bytes import WaitingBytes

_ALL_WAITING = 96 * 1024 * 1024


class ClientBound(StrEnum):
    """The bounds on clients, by their label in the metric."""

    CONNECTIONS = "connections"
    """The maximum number of clients is connected: a further one is refused."""
    HEADER_BYTES = "header_bytes"
    """The head of a request, or what surrounds the chunks of its body, is too large: refused."""
    HEADER_SECONDS = "header_seconds"
    """The head of a request takes too long: it is refused."""
    SLOW = "slow"
    """A client takes next to nothing of its response while others wait for what is held for it, or
    what waits for all clients, or in all tunnels, takes too much: its connection is cut."""
    STALL_SECONDS = "stall_seconds"
    """A client receives nothing of its response for too long: its connection is cut."""
    TUNNELS = "tunnels"
    """The maximum number of connections has switched protocols: a further one is refused."""
    TUNNEL_SECONDS = "tunnel_seconds"
    """No bytes pass through a connection that has switched protocols: it is cut."""


@dataclass(slots=True)
class ClientTotals:
    """The current counts of client connections in this process.

    Attributes:
        reached: a function that is called whenever a bound is reached.
        most: the number of connections for which the file descriptors suffice.
        connections: the number of open connections.
        tunnels: the number of open connections that have switched to another protocol.
        waiting: the bytes that wait for clients who do not take them, buffered or converted ones
            among them; those of all connections together are bounded.
    """

    reached: Callable[[ClientBound], None]
    most: int
    connections: int = 0
    tunnels: int = 0
    waiting: WaitingBytes = field(default_factory=lambda: WaitingBytes(_ALL_WAITING))
