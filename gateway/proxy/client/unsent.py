"""The number of bytes written to a client that it has not acknowledged yet."""

import asyncio
import struct
from fcntl import ioctl
from termios import TIOCOUTQ


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
