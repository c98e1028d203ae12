"""What the clients of one process hold together, and how often a bound on them is reached."""

import resource
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

# For listeners, the state, the log, the channel to the supervisor, the admin port, and the like.
_RESERVE = 64


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


def raise_limit() -> None:
    """Let this process open as many files as the system grants without asking."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def most_clients() -> int:
    """Return how many clients may be connected so that each can have a connection to a service."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(1, (soft - _RESERVE) // 2)
