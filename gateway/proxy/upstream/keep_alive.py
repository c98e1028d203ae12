"""How long a connection to a service may rest, and whether it is still quiet after that."""

import asyncio
import re
import select
from random import random

# Shorter than what servers usually grant (five seconds are the least that is common), so that they
# rarely close a connection just as it is used again.
USUAL = 4.0
# A service that grants another time in Keep-Alive has a second less than that, up to this.
_LONGEST = 30.0
# Each rest is up to so much shorter, so that connections do not all end at once.
_JITTER = 0.25
# To look whether it is quiet costs a system call, and is due after so long a rest, in seconds.
LOOK_AFTER = 0.01
_TIMEOUT = re.compile(rb"(?:^|[,\s])timeout\s*=\s*\"?([0-9]{1,6})", re.IGNORECASE)


def granted(value: bytes) -> float | None:
    """Return the seconds that a Keep-Alive field lets a connection rest; None if it names none."""
    found = _TIMEOUT.search(value)
    return None if found is None else min(max(int(found[1]) - 1.0, 0.0), _LONGEST)


def jittered(seconds: float) -> float:
    """Return a little less than a time, each time another."""
    return seconds * (1 - _JITTER * random())  # noqa: S311  # nothing secret hangs on it


def is_quiet(transport: asyncio.Transport) -> bool:
    """Return whether nothing has come that the event loop has not seen yet, not even the end.

    What a service sends unasked, such as 408 before it closes (RFC 9110, section 15.5.9), must not
    be taken for the answer to the next request.
    """
    end = transport.get_extra_info("socket")
    if end is None or end.fileno() < 0:
        return True
    poll = select.poll()
    poll.register(end.fileno(), select.POLLIN)
    return not poll.poll(0)
