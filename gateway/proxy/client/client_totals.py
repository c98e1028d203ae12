"""What the clients of one process hold together, and how often a bound on them is reached."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum


class ClientBound(StrEnum):
    """The bounds on what clients hold, by the names that the metric has for them."""

    CONNECTIONS = "connections"
    """As many clients are connected as may be: one more is refused."""
    HEADER_BYTES = "header_bytes"
    """The head of a request is too large: it is refused before it is whole."""
    HEADER_SECONDS = "header_seconds"
    """The head of a request takes too long: it is refused."""
    STALL_SECONDS = "stall_seconds"
    """A client takes nothing of its response: its connection is cut."""
    TUNNELS = "tunnels"
    """As many connections have switched protocols as may: one more is refused."""
    TUNNEL_SECONDS = "tunnel_seconds"
    """Nothing passes through a connection that has switched protocols: it is cut."""


@dataclass(slots=True)
class ClientTotals:
    """What is held now.

    Attributes:
        reached: called whenever a bound is reached.
        most: how many connections the file descriptors are enough for.
        connections: the open connections.
        tunnels: those of them that have switched to another protocol.
    """

    reached: Callable[[ClientBound], None]
    most: int
    connections: int = 0
    tunnels: int = 0
