"""Transports: writes that are batched, and reads that are parsed in slices.

Sending bytes wakes the process that waits for them, most often on another processor, which costs
more than sending. `WriteBatch` sends the bytes of all connections at the end of an iteration of the
event loop, so a process with many requests wakes once. `PacedReader` parses input that is expensive
to parse in slices, with other connections served in between.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Final

_log = logging.getLogger(__name__)

# With so many, they are sent at once, so that the end of a turn does not take long.
_MOST: Final = 64
# More bytes are sent at once: to keep them would be a second buffer beside that of the transport.
_LARGE: Final = 64 * 1024


class WriteBatch:
    """Holds the transports that have bytes to send at the end of the turn.

    Args:
        loop: the event loop.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: list[BatchingTransport] = []

    def add(self, transport: "BatchingTransport") -> None:
        """Have the bytes of a transport sent at the end of the turn."""
        waiting = self._waiting
        waiting.append(transport)
        if len(waiting) == 1:
            self._loop.call_soon(self._flush)
        elif len(waiting) >= _MOST:
            self._flush()

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        for transport in waiting:
            kept, transport.kept = transport.kept, b""
            try:  # in this frame, for speed: see `BatchingTransport.flush`
                if kept and not transport.own.is_closing():
                    transport.own.write(kept)
            except Exception:  # the others have theirs
                _log.exception("a connection took no bytes")
                transport.own.abort()


class BatchingTransport:
    """A transport that can also send at the end of the turn; it has the methods of asyncio's.

    Whatever is asked of it happens behind what was written before.

    Args:
        own: the transport that sends.
        writes: what sends at the end of the turn.

    Attributes:
        own: the transport that sends.
        kept: what is sent at the end of the turn.
    """

    __slots__ = ("_writes", "kept", "own")

    def __init__(self, own: asyncio.Transport, writes: WriteBatch) -> None:
        self.own = own
        self._writes = writes
        self.kept = b""

    def write(self, data: bytes) -> None:
        """Send bytes at once."""
        self.flush()
        self.own.write(data)

    def write_soon(self, data: bytes) -> None:
        """Send bytes at the end of the turn, if they are few and the first of the turn."""
        if self.kept or len(data) > _LARGE:
            self.write(data)
        else:
            self.kept = data
            self._writes.add(self)

    def flush(self) -> None:
        """Send what was kept; a transport that is closing by itself takes no more."""
        kept, self.kept = self.kept, b""
        if kept and not self.own.is_closing():
            self.own.write(kept)

    def close(self) -> None:
        """Close the connection once all is sent."""
        self.flush()
        self.own.close()

    def abort(self) -> None:
        """Close the connection at once; what is not sent is lost."""
        self.kept = b""
        self.own.abort()

    def write_eof(self) -> None:
        """Close the sending side once all is sent."""
        self.flush()
        self.own.write_eof()

    def get_write_buffer_size(self) -> int:
        """Return how many bytes are not sent yet."""
        return len(self.kept) + self.own.get_write_buffer_size()

    def set_write_buffer_limits(self, high: int) -> None:
        """Set with how many bytes that wait the protocol is asked to pause."""
        self.flush()
        self.own.set_write_buffer_limits(high)

    def is_closing(self) -> bool:
        """Return whether the connection is closing, or closed."""
        return self.own.is_closing()

    def pause_reading(self) -> None:
        """Read no more."""
        self.own.pause_reading()

    def resume_reading(self) -> None:
        """Read again."""
        self.own.resume_reading()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Return what is known of the connection by a name, such as `socket`."""
        return self.own.get_extra_info(name, default)


SLICE = 4096
"""So many bytes are parsed at a time. A chunk costs some microseconds, however small it is."""
# Slices become as large while none is costly: each costs some microseconds as well.
_LARGEST_SLICE = 16 * SLICE


class PacedReader:
    """Reads from a transport while its reader does not pause it, and hands the bytes on in slices.

    After a costly slice, others have a turn. The transport reads no more until all is handed on.

    Args:
        loop: the event loop.
        parse: takes a slice.
        costly: returns whether what was parsed since the last turn is enough for one.

    Attributes:
        transport: what is read from; None before there is a connection, and after its end.
        active: whether it is handing bytes on.
        more: whether more bytes have come than those that are being parsed.
        paused: whether the reader has paused it.
        rest: the bytes that wait for a turn.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        parse: Callable[[bytes], None],
        costly: Callable[[], bool],
    ) -> None:
        self.transport: asyncio.Transport | None = None
        self.active = self.more = self.paused = False
        self._loop, self._parse, self._costly = loop, parse, costly
        self.rest, self._slice = b"", SLICE

    def pause(self) -> None:
        """Pause reading, for the reader."""
        self.paused = True
        self._stop()

    def resume(self) -> None:
        """Resume reading, once all that has come is handed on."""
        self.paused = False
        self._go_on()

    def end(self) -> None:
        """Let go of the connection, which is over and refers to this: that is a cycle."""
        self.transport, self.rest = None, b""
        self._parse, self._costly = _ignore, bool

    def feed(self, data: bytes) -> None:
        """Hand received bytes on, behind those that wait."""
        if self.rest:
            self.rest += data
            self._stop()
            return
        begin, self.active = 0, True
        while begin < len(data):
            end = begin + self._slice
            self.more = end < len(data)
            self._parse(data[begin:end])
            costly = self._costly()
            self._slice = SLICE if costly else min(2 * self._slice, _LARGEST_SLICE)
            if costly and self.more:
                self.rest = data[end:]
                self._stop()
                self._loop.call_soon(self._take_turn)
                break
            begin = end
        self.active = False

    def _take_turn(self) -> None:
        data, self.rest = self.rest, b""
        self.feed(data)
        self._go_on()

    def _stop(self) -> None:
        if self.transport is not None and not self.transport.is_closing():
            self.transport.pause_reading()

    def _go_on(self) -> None:
        if self.rest or self.paused or self.transport is None or self.transport.is_closing():
            return
        self.transport.resume_reading()


def _ignore(data: bytes) -> None:
    del data
