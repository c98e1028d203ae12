"""TurnWrites: what is written in a turn of the event loop, sent together at its end.

To send bytes wakes whoever waits for them, most often on another processor, and that costs more
than to send them. Sent one behind the other, the bytes of many requests wake a process once; sent
each when it is ready, they wake it each time, as it has gone to sleep in between.
"""

import asyncio
import logging
from typing import Any, Final

_log = logging.getLogger(__name__)

# With so many, they are sent at once, so that the end of a turn does not take long.
_MOST: Final = 64
# More bytes are sent at once: to keep them would be a second buffer beside that of the transport.
_LARGE: Final = 64 * 1024


class TurnWrites:
    """Holds the transports that have bytes to send at the end of the turn.

    Args:
        loop: the event loop.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: list[TurnTransport] = []

    def add(self, transport: "TurnTransport") -> None:
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
            try:  # in this frame, for speed: see `TurnTransport.flush`
                if kept and not transport.own.is_closing():
                    transport.own.write(kept)
            except Exception:  # the others have theirs
                _log.exception("a connection took no bytes")
                transport.own.abort()


class TurnTransport:
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

    def __init__(self, own: asyncio.Transport, writes: TurnWrites) -> None:
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
