"""How many clients the file descriptors of this process are enough for."""

import resource

# For listeners, the state, the log, the channel to the supervisor, the admin port, and the like.
_RESERVE = 64


def raise_limit() -> None:
    """Let this process open as many files as the system grants without asking."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def most_clients() -> int:
    """Return how many clients may be connected so that each can have a connection to a service."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(1, (soft - _RESERVE) // 2)
