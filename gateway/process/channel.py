"""The channel between a worker and its supervisor.

The worker sends counts, and jobs for the document process (`MessageCheck`, `OperationList`) one at
a time; the supervisor sends the configuration, overrides and results of jobs (`JobResult`).
"""

import asyncio
import socket

import msgspec

from gateway.base.overrides import Overrides
from gateway.base.span import Span
from gateway.observe import log
from gateway.observe.failing_targets import FailingTarget
from gateway.process.reloader import Loaded
from gateway.usage.delta import Delta
from gateway.verify.live.document_jobs import JobResult, MessageCheck, OperationList

_LENGTH = 4
# The maximum bytes that wait in the channel, so that a hanging supervisor does not fill a worker's
# memory.
_MAX_WAITING = 16 * 1024 * 1024
# The limit for spans is lower, so that they never displace counts.
_MAX_BEFORE_SPANS = 4 * 1024 * 1024


class Ready(msgspec.Struct, tag=True, frozen=True):
    """Message to the supervisor: this worker serves requests."""


class Counted(msgspec.Struct, tag=True, frozen=True):
    """Message to the supervisor: the counts of this worker since its previous message."""

    delta: Delta


class Traced(msgspec.Struct, tag=True, frozen=True):
    """Message to the supervisor: spans to export."""

    spans: list[Span]


class FailingTargets(msgspec.Struct, tag=True, frozen=True):
    """Message to the supervisor: all failing targets of this worker, sent after each change."""

    targets: list[FailingTarget]


class Alive(msgspec.Struct, tag=True, frozen=True):
    """A heartbeat to the supervisor, sent every second.

    The supervisor replies with the same message, after all earlier messages of the worker are
    processed.
    """


class Applied(msgspec.Struct, tag=True, frozen=True):
    """Message to the supervisor: the overrides with this number are in force in this worker."""

    number: int


class DocumentCompiled(msgspec.Struct, tag=True, frozen=True):
    """Message to the worker: a needed OpenAPI document; the fields are the arguments of `adopt`."""

    location: str
    document: bytes


class ApplyOverrides(msgspec.Struct, tag=True, frozen=True):
    """Message to the worker: the overrides in force, sent second and after each change."""

    number: int
    overrides: Overrides


class SetClock(msgspec.Struct, tag=True, frozen=True):
    """Message to the worker: the seconds by which the store's clock is ahead of this machine's.

    It is sent third and after each change.
    """

    seconds: float


class KeysFetched(msgspec.Struct, tag=True, frozen=True):
    """A JWKS document that a worker has fetched, sent to the supervisor and on to all workers.

    The fields are the arguments of `key_sets.adopt_keys`.
    """

    url: str
    discover: bool
    document: bytes
    seconds: float


class OrphanedListeners(msgspec.Struct, tag=True, frozen=True):
    """Message to the worker: the descriptors of listening sockets without a running worker."""

    listeners: list[int]


ChannelMessage = (
    Ready
    | Counted
    | Traced
    | FailingTargets
    | Alive
    | Applied
    | Loaded
    | DocumentCompiled
    | MessageCheck
    | OperationList
    | JobResult
    | ApplyOverrides
    | SetClock
    | KeysFetched
    | OrphanedListeners
)
_encode = msgspec.msgpack.Encoder().encode
_decoder: msgspec.msgpack.Decoder[ChannelMessage] = msgspec.msgpack.Decoder(ChannelMessage)


class Channel:
    """One end of a socket pair. Each message is preceded by its length."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._lost = False
        self._length: int | None = None  # the length of the message that is being received

    @classmethod
    async def over(cls, end: socket.socket) -> "Channel":
        """Create a channel over a socket; closing the channel closes the socket."""
        end.setblocking(False)
        return cls(*await asyncio.open_unix_connection(sock=end))

    def send(self, message: ChannelMessage) -> bool:
        """Send a message, dropped if the other process has ended; return False without room for it.

        Only counts and spans can lack room.
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
        """Return the next message, or None if the other process has ended.

        If the call is cancelled, the next call returns the message instead.
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
