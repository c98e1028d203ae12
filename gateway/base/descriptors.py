"""File descriptors: how many this process may open, and who may have how many of them.

A stranger opens connections for nothing. So clients and the admin port have shares, and what is
left is for listeners, the log, the state, the rules and workers that have to be started again.
"""

import os
import resource
import sys

# For all that no stranger opens.
_RESERVE = 64
# Admin connections of each kind, and their share while descriptors are few: a sixteenth.
_MOST_ADMIN = 256
_ADMIN_SHARE = 16


def open_standard_streams() -> None:
    """Open the null device in place of each standard stream that is closed.

    A socket would get its number otherwise: it would receive what is meant for the stream, and
    libuv aborts the process when it closes such a descriptor.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            # It gets the lowest number that is free, which is this one.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # for workers
            setattr(sys, name, os.fdopen(number, mode))


def raise_limit() -> None:
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
