"""The limit on file descriptors of this process, and its division.

A client can open any number of connections at no cost. Limits on client and admin connections keep
descriptors free for listeners, the log, the state, the configuration file and new workers.
"""

import os
import resource
import sys

# The descriptors for everything except client and admin connections.
_RESERVE = 64
# The maximum number of admin connections, and of TLS handshakes. If few descriptors are available,
# it is a sixteenth of them.
_MOST_ADMIN = 256
_ADMIN_SHARE = 16
# The limit in place of an unlimited number: OPEN_MAX of macOS.
_MOST_UNLIMITED = 10_240


def open_standard_streams() -> None:
    """Open the null device in place of each standard stream that is closed.

    Otherwise a socket would get the number of the stream and receive its output. libuv also aborts
    the process when it closes such a descriptor.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            # open() returns the lowest free number, which is `number`.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # worker processes inherit it
            setattr(sys, name, os.fdopen(number, mode))


def raise_limit() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY:  # macOS, which refuses an unlimited number
        hard = _MOST_UNLIMITED
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def max_clients() -> int:
    """Return the maximum number of client connections. Each may also need a service connection."""
    return max(1, (_limit() - _RESERVE - 2 * max_admin_connections()) // 2)


def max_admin_connections() -> int:
    return max(1, min(_MOST_ADMIN, _limit() // _ADMIN_SHARE))


def _limit() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return soft
