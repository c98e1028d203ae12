"""Keep-alive of connections to services: the idle time, and the check before reuse."""

import re
import select
from random import random
from typing import Final

from gateway.http.turns.turn_writes import TurnTransport

# The idle time in seconds without a Keep-Alive field. Servers rarely grant less than five seconds,
# so a server rarely closes a connection just as it is used again.
_USUAL = 4.0
# If a service grants a time in Keep-Alive, the idle time is one second less, up to these seconds.
_LONGEST = 30.0
# Each idle time is randomly shortened by up to this share, so that connections do not all end at
# once.
_JITTER = 0.25
# `is_quiet` costs a system call, so it is checked only after so many seconds of idle time.
LOOK_AFTER: Final = 0.01
_TIMEOUT = re.compile(rb"(?:^|[,\s])timeout\s*=\s*\"?([0-9]{1,6})", re.IGNORECASE)


def granted(value: bytes) -> float | None:
    """Return the idle seconds that a Keep-Alive field allows; None if it has no timeout."""
    found = _TIMEOUT.search(value)
    return None if found is None else min(max(int(found[1]) - 1.0, 0.0), _LONGEST)


def jittered(seconds: float | None) -> float:
    """Return an idle time, by itself the usual one, shortened by a random share."""
    return (_USUAL if seconds is None else seconds) * (1 - _JITTER * random())  # noqa: S311  # no secret depends on it


def is_quiet(transport: TurnTransport) -> bool:
    """Return whether the socket has no unread bytes and no end of the connection to read.

    An unrequested response, such as 408 before the service closes (RFC 9110, section 15.5.9), must
    not be taken for the answer to the next request.
    """
    end = transport.get_extra_info("socket")
    if end is None or end.fileno() < 0:
        return True
    poll = select.poll()
    poll.register(end.fileno(), select.POLLIN)
    return not poll.poll(0)
