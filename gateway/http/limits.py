"""The key `limits` of gateway.yaml: limits on the size and duration of what clients send."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from gateway.base.model import STRICT, Bytes, NumberText, PositiveInt, Seconds


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on the size and duration of requests, and on connections."""

    __pydantic_config__ = STRICT

    convert: Bytes = 16 * 1024 * 1024
    """The largest converted body, in bytes, both encoded and decoded. The default is 16777216,
    which is 16 MiB."""
    elements: PositiveInt = 1_000_000
    """The maximum number of elements of arrays and members of objects in a converted JSON body or
    document of a stream of more than 64 KiB, of fields in a form of more than 16 KiB, and of lines
    in an event. Commas, brackets, ampersands and line ends are counted, even within strings. For a
    compressed stream, the sum over all documents counts. The default is 1000000."""
    body: Bytes | None = None
    """The largest request body, in bytes. An endpoint may set its own max_body. Without either,
    there is no limit."""
    target: Annotated[int, Field(ge=256, le=64 * 1024), NumberText] = 8 * 1024
    """The longest request target (path and query), in bytes. The default is 8192."""
    header_bytes: Annotated[int, Field(ge=1024, le=1024 * 1024), NumberText] = 64 * 1024
    """The largest size of all header fields of a request together, in bytes. The default is
    65536."""
    header_fields: Annotated[int, Field(ge=8, le=10_000), NumberText] = 128
    """The largest number of header fields of a request. The default is 128."""
    header_seconds: Seconds = 10.0
    """The longest time from the first byte of a request to the end of its header fields, in
    seconds. The default is 10."""
    # Longer than the usual idle timeouts of clients and load balancers, so that they close first.
    idle_seconds: Seconds = 75.0
    """The longest time for which a client's connection stays open without a request, in seconds.
    The default is 75."""
    stall_seconds: Seconds = 60.0
    """The longest time in which a client sends or reads a body more slowly than min_rate, in
    seconds. The default is 60."""
    min_rate: Annotated[int, Field(ge=0, le=1024 * 1024), NumberText] = 240  # as in Kestrel
    """The lowest rate at which a client may send or read a body, in bytes a second, averaged over
    stall_seconds. Time in which the gateway or the service is slower does not count. With 0, one
    byte in stall_seconds suffices. The default is 240."""
    connections: PositiveInt = 10_000
    """The largest number of clients connected to one worker at a time. The number is lower if the
    process cannot open enough files for one service connection per client. The default is 10000."""
    tunnels: PositiveInt = 1000
    """The largest number of connections to one worker that have switched to another protocol,
    such as WebSocket, at a time. The default is 1000."""
    tunnel_seconds: Seconds = 3600.0
    """The longest time in which no byte passes through a connection that has switched to
    another protocol, in seconds. The default is 3600."""


DEFAULT_LIMITS = Limits()
