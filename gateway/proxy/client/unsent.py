"""How much of what was written to a client it has not taken yet."""

import asyncio
import struct
from fcntl import ioctl
from termios import TIOCOUTQ


def unsent_bytes(transport: asyncio.Transport) -> int:
    """Return the bytes that wait in this process, and in the kernel for the client's word.

    The kernel's share counts because a slow client empties it for minutes before anything moves
    here: a socket takes megabytes, and asks for more only when a third of them is free.
    """
    waiting = transport.get_write_buffer_size()
    end = transport.get_extra_info("socket")
    if end is not None and end.fileno() >= 0:
        (queued,) = struct.unpack("i", ioctl(end.fileno(), TIOCOUTQ, b"\0\0\0\0"))
        waiting += queued
    return waiting
