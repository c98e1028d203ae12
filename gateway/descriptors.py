"""File descriptors: how many this process may open, and who may have how many of them.

A stranger opens connections for nothing. So clients and the admin port have shares, and what is
left is for listeners, the log, the state, the rules and workers that have to be started again.
"""

import resource

# For all that no stranger opens.
_RESERVE = 64
# Admin connections of each kind, and their share while descriptors are few: a sixteenth.
_MOST_ADMIN = 256
_ADMIN_SHARE = 16


def raise_limit() -> None:
    """Raise the soft limit on open files to the hard limit."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def most_clients() -> int:
    """Return how many clients may connect so that each can have a connection to a service."""
    return max(1, (_limit() - _RESERVE - 2 * most_admin()) // 2)


def most_admin() -> int:
    """Return how many connections the admin port may have, and how many TLS handshakes beside."""
    return max(1, min(_MOST_ADMIN, _limit() // _ADMIN_SHARE))


def _limit() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return soft
