"""Transports: writes that are batched, and reads that are parsed in slices.

Sending bytes wakes the receiving process, most often on another processor, which costs more than
sending. `BatchingTransport` sends the bytes of all connections at the end of an iteration of the
event loop, so a process that gets many requests wakes once. `PacedReader` parses input that is
expensive to parse in slices, and other connections are served in between.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Final

_log = logging.getLogger(__name__)

# A batch of this size is sent at once, so that the end of an iteration does not take long.
_MOST: Final = 64
# More bytes are sent at once, instead of being buffered here and in the transport.
_LARGE: Final = 64 * 1024


class BatchingTransport:
    """A transport that can also send at the end of the iteration of the event loop.

    It has the methods of asyncio's transports. Each call takes effect after the bytes that were
    written before.

    Args:
        own: the transport that sends.
        batch: the transports with bytes to send; all connections of a process share the list.

    Attributes:
        kept: the bytes to send at the end of the iteration.
    """

    __slots__ = ("_batch", "kept", "own")

    def __init__(self, own: asyncio.Transport, batch: "list[BatchingTransport]") -> None:
        self.own = own
        self._batch = batch
        self.kept = b""

    def write(self, data: bytes) -> None:
        self.flush()
        self.own.write(data)

    def write_soon(self, data: bytes) -> None:
        """Send bytes at the end of the iteration, if they are few and its first ones."""
        if self.kept or len(data) > _LARGE:
            self.write(data)
            return
        self.kept = data
        batch = self._batch
        batch.append(self)
        if len(batch) == 1:
            asyncio.get_running_loop().call_soon(_send_batch, batch)
        elif len(batch) >= _MOST:
            _send_batch(batch)

    def flush(self) -> None:
        """Send the kept bytes, unless the transport is closing."""
        kept, self.kept = self.kept, b""
        if kept and not self.own.is_closing():
            self.own.write(kept)

    def close(self) -> None:
        self.flush()
        self.own.close()

    def abort(self) -> None:
        self.kept = b""
        self.own.abort()

    def write_eof(self) -> None:
        self.flush()
        self.own.write_eof()

    def get_write_buffer_size(self) -> int:
        return len(self.kept) + self.own.get_write_buffer_size()

    def set_write_buffer_limits(self, high: int) -> None:
        self.flush()
        self.own.set_write_buffer_limits(high)

    def is_closing(self) -> bool:
        return self.own.is_closing()

    def pause_reading(self) -> None:
        self.own.pause_reading()

    def resume_reading(self) -> None:
        self.own.resume_reading()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self.own.get_extra_info(name, default)


WriteBatch = list[BatchingTransport]
"""The transports with bytes to send at the end of the iteration of the event loop."""


def _send_batch(batch: WriteBatch) -> None:
    transports = batch[:]
    batch.clear()
    for transport in transports:
        kept, transport.kept = transport.kept, b""
        try:  # in this frame, for speed: see `BatchingTransport.flush`
            if kept and not transport.own.is_closing():
                transport.own.write(kept)
        except Exception:  # the others are still sent
            _log.exception("a connection took no bytes")
            transport.own.abort()


SLICE = 4096
"""The bytes that are parsed at a time; each chunk costs some microseconds, even a small one."""
# Slices grow up to this size while none is costly, since each slice costs some microseconds.
_LARGEST_SLICE = 16 * SLICE


class PacedReader:
    """Passes received bytes on to a parser in slices.

    After a costly slice, other connections are served first. The transport is paused until all
    bytes are passed on.

    Args:
        loop: the event loop.
        parse: parses a slice.
        costly: returns whether the slices since the last pause were expensive to parse.

    Attributes:
        transport: the transport; None before the connection is made, and after its end.
        active: whether a slice is being parsed.
        more: whether more bytes than that slice have arrived.
        paused: whether the reader has paused it.
        rest: the bytes that wait to be parsed.
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
        self.paused = True
        self._stop()

    def resume(self) -> None:
        """Resume reading, once all received bytes are passed on."""
        self.paused = False
        self._go_on()

    def end(self) -> None:
        """Drop the references to the connection, which form a cycle."""
        self.transport, self.rest = None, b""
        self._parse, self._costly = _ignore, bool

    def feed(self, data: bytes) -> None:
        """Pass received bytes on, after those that wait."""
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
