"""Transports that batch writes, and a reader that parses input in slices.

Sending bytes wakes the receiving process, most often on another processor, which costs more than
the sending itself. `BatchingTransport` sends the bytes of all connections at the end of an
iteration of the event loop, so a process that receives many requests wakes only once. `PacedReader`
splits input that is expensive to parse into slices, and serves other connections in between.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Final

_log = logging.getLogger(__name__)

# The maximum number of transports in a batch. A full batch is sent immediately, so that the end of
# an iteration stays short.
_MOST: Final = 64
# Larger data is sent immediately instead of being buffered here and in the transport.
_LARGE: Final = 64 * 1024


class BatchingTransport:
    """A transport that can also delay a write to the end of the event loop's iteration.

    It has the methods of asyncio's transports, each of which first sends the delayed bytes. All
    connections of a process share `batch`.

    Attributes:
        kept: the delayed bytes; they stay if the connection ends before they are sent.
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
        """Delay a small first write to the end of the iteration; otherwise write immediately."""
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


def _send_batch(batch: WriteBatch) -> None:
    transports = batch[:]
    batch.clear()
    for transport in transports:
        try:  # inlined for speed: see `BatchingTransport.flush`
            if transport.kept and not transport.own.is_closing():
                kept, transport.kept = transport.kept, b""
                transport.own.write(kept)
        except Exception:  # the other transports still send
            _log.exception("a connection took no bytes")
            transport.own.abort()


SLICE = 4096
"""The number of bytes parsed at a time. Even a small HTTP chunk costs some microseconds."""
# Slices grow up to this size while no slice is costly, since each slice costs some microseconds.
_LARGEST_SLICE = 16 * SLICE


class PacedReader:
    """Passes received bytes to a parser in slices.

    After a costly slice, other connections are served first. The transport is paused until all
    bytes are parsed.

    Attributes:
        transport: the transport; None before the connection is made, and after its end.
        more: whether bytes after the current slice have arrived.
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
        self.paused = False
        self._go_on()

    def end(self) -> None:
        """Drop the references to the connection, which form a reference cycle."""
        self.transport, self.rest = None, b""
        self._parse, self._costly = _ignore, bool

    def feed(self, data: bytes) -> None:
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
