"""The channel between a worker and its supervisor: deltas go up, rules and overrides go down."""

import asyncio
import socket
from collections.abc import Mapping

import msgspec

from gateway.base.overrides import Overrides
from gateway.base.span import Span
from gateway.observe import log
from gateway.observe.failing_targets import FailingTarget
from gateway.usage.delta import Delta

_LENGTH = 4
# A supervisor that hangs must not fill a worker's memory.
_MAX_WAITING = 16 * 1024 * 1024
# Spans get less space, so that they never displace counts.
_MAX_BEFORE_SPANS = 4 * 1024 * 1024


class Ready(msgspec.Struct, tag=True, frozen=True):
    """Up: this worker serves."""


class Counted(msgspec.Struct, tag=True, frozen=True):
    """Up: what this worker has counted."""

    delta: Delta


class Traced(msgspec.Struct, tag=True, frozen=True):
    """Up: spans to export."""

    spans: list[Span]


class FailingTargets(msgspec.Struct, tag=True, frozen=True):
    """Up: all targets that fail in this worker; sent after each change."""

    targets: list[FailingTarget]


class Alive(msgspec.Struct, tag=True, frozen=True):
    """Up: a heartbeat, sent every second.

    Down: the reply, once all earlier messages of the worker are processed.
    """


class Applied(msgspec.Struct, tag=True, frozen=True):
    """Up: the overrides of that number are in force in this worker."""

    number: int


class LoadRules(msgspec.Struct, tag=True, frozen=True):
    """Down: the configuration in force; the first message, and again after each change.

    Attributes:
        content: its text.
        files: the contents of the files that it names, by their path.
    """

    content: bytes
    files: Mapping[str, bytes]


class ApplyOverrides(msgspec.Struct, tag=True, frozen=True):
    """Down: the overrides in force; the second message, and again after each change."""

    number: int
    overrides: Overrides


class SetClock(msgspec.Struct, tag=True, frozen=True):
    """Down: the seconds by which the store's clock is ahead of this machine's.

    It is the third message, and is sent again after each change.
    """

    seconds: float


class OrphanedListeners(msgspec.Struct, tag=True, frozen=True):
    """Down: the descriptors of the listening sockets without a running worker."""

    listeners: list[int]


ChannelMessage = (
    Ready
    | Counted
    | Traced
    | FailingTargets
    | Alive
    | Applied
    | LoadRules
    | ApplyOverrides
    | SetClock
    | OrphanedListeners
)
_encode = msgspec.msgpack.Encoder().encode
_decoder: msgspec.msgpack.Decoder[ChannelMessage] = msgspec.msgpack.Decoder(ChannelMessage)


class Channel:
    """One end of a socket pair; each message follows its length."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._lost = False
        self._length: int | None = None  # of the message that is being received

    @classmethod
    async def over(cls, end: socket.socket) -> "Channel":
        """Return the channel over a socket, which the channel closes."""
        end.setblocking(False)
        return cls(*await asyncio.open_unix_connection(sock=end))

    def send(self, message: ChannelMessage) -> bool:
        """Send a message; it is dropped if the other process has ended.

        Returns:
            Whether there was room for it; messages other than counts and spans always have room.
        """
        if isinstance(message, Traced) and self._waiting > _MAX_BEFORE_SPANS:
            return False
        if isinstance(message, Counted):
            if self._waiting > _MAX_WAITING:
                log.event("delta_lost", "error", reason="the supervisor does not read")
                self._lost = True
                return False
            if self._lost:
                message = Counted(msgspec.structs.replace(message.delta, lost=True))
                self._lost = False
        if not self._writer.is_closing():
            content = _encode(message)
            self._writer.write(len(content).to_bytes(_LENGTH) + content)
        return True

    @property
    def _waiting(self) -> int:
        return self._writer.transport.get_write_buffer_size()

    async def receive(self) -> ChannelMessage | None:
        """Return the next message, or None when the other process has ended.

        When this is cancelled, the next call returns what this one would have.
        """
        try:
            if self._length is None:
                self._length = int.from_bytes(await self._reader.readexactly(_LENGTH))
            content = await self._reader.readexactly(self._length)
        except (asyncio.IncompleteReadError, ConnectionError):
            return None
        self._length = None
        return _decoder.decode(content)

    async def close(self) -> None:
        self._writer.close()
        try:
            await self._writer.wait_closed()
        except ConnectionError:
            return
