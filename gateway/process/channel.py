"""The channel between a worker and its supervisor: reports go up, overrides go down."""

import asyncio
import socket

import msgspec

from gateway.core.overrides import Overrides
from gateway.telemetry import log
from gateway.telemetry.delta import Delta

_LENGTH = 4
# A supervisor that does not read any more, which is a fault, must not fill a worker's memory.
_MOST_WAITING = 16 * 1024 * 1024


class Ready(msgspec.Struct, tag=True, frozen=True):
    """Up: this worker serves."""


class Counted(msgspec.Struct, tag=True, frozen=True):
    """Up: what this worker has counted."""

    report: Delta


class Applied(msgspec.Struct, tag=True, frozen=True):
    """Up: the overrides of that number are in force here."""

    number: int


class ApplyOverrides(msgspec.Struct, tag=True, frozen=True):
    """Down: the overrides to go by from now on; the first message, and then when they change."""

    number: int
    overrides: Overrides


class OrphanedListeners(msgspec.Struct, tag=True, frozen=True):
    """Down: the listening sockets, by their numbers, whose workers are dead at the moment."""

    listeners: list[int]


ChannelMessage = Ready | Counted | Applied | ApplyOverrides | OrphanedListeners
_encode = msgspec.msgpack.Encoder().encode
_decoder: msgspec.msgpack.Decoder[ChannelMessage] = msgspec.msgpack.Decoder(ChannelMessage)


class Channel:
    """One end of a socket pair, on which each message has its length before it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def over(cls, end: socket.socket) -> "Channel":
        """Return the channel over a socket, which belongs to it from here on."""
        end.setblocking(False)
        return cls(*await asyncio.open_unix_connection(sock=end))

    def send(self, message: ChannelMessage) -> None:
        """Send a message; where the other side is gone, `receive` says so."""
        if self._writer.transport.get_write_buffer_size() > _MOST_WAITING:
            log.event("report_lost", "error", reason="the supervisor does not read")
        elif not self._writer.is_closing():
            content = _encode(message)
            self._writer.write(len(content).to_bytes(_LENGTH) + content)

    async def receive(self) -> ChannelMessage | None:
        """Return the next message, or None when the other side is gone."""
        try:
            length = int.from_bytes(await self._reader.readexactly(_LENGTH))
            return _decoder.decode(await self._reader.readexactly(length))
        except (asyncio.IncompleteReadError, ConnectionError):
            return None

    async def close(self) -> None:
        """Close it when all that was sent is on its way."""
        self._writer.close()
        try:
            await self._writer.wait_closed()
        except ConnectionError:
            return
