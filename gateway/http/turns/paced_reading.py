"""PacedReading: bytes of a service that cost much to parse have several turns of the event loop."""

import asyncio
from collections.abc import Callable

SLICE = 4096
"""So many bytes are parsed at a time. A chunk costs some microseconds, however small it is."""
# Slices become as large while none is costly: each costs some microseconds as well.
_LARGEST_SLICE = 16 * SLICE


class PacedReading:
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
