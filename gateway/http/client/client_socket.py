"""What the socket of a client tells: what it has not acknowledged yet, and whether it has left."""

import asyncio
import select
import struct
from fcntl import ioctl
from termios import TIOCOUTQ

# The client has closed its side. Elsewhere than on Linux, only a reset is known before all that
# came before it is read.
_CLOSED: int = getattr(select, "POLLRDHUP", 0)


def unsent_bytes(transport: asyncio.Transport) -> int:
    """Return the number of bytes in the write buffer and, unacknowledged, in the kernel.

    The kernel's buffer counts because a slow client can drain it for minutes before the write
    buffer shrinks: it holds megabytes, and accepts more only when a third of it is free.
    """
    waiting = transport.get_write_buffer_size()
    end = transport.get_extra_info("socket")
    if end is not None and end.fileno() >= 0:
        (queued,) = struct.unpack("i", ioctl(end.fileno(), TIOCOUTQ, b"\0\0\0\0"))
        waiting += queued
    return waiting


def has_left(transport: asyncio.Transport, *, reset: bool) -> bool:
    """Return whether the client has closed its side, or, with `reset`, the whole connection.

    It costs a system call. The event loop tells the same, but only where it reads.
    """
    end = transport.get_extra_info("socket")
    if end is None or end.fileno() < 0:
        return False
    poll = select.poll()
    poll.register(end.fileno(), 0 if reset else _CLOSED)  # a reset is always told
    return bool(poll.poll(0))
