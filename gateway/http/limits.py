"""The limits on the resources that clients may use."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits on the resources that clients may use.

    Attributes:
        convert: The maximum of bytes of a body to convert, both before and after its content
            coding is decoded.
        elements: The maximum number of elements and members in a large body to convert.
        body: The maximum of bytes of a request body; None sets no limit. An endpoint may have its
            own limit.
        target: The maximum of bytes of a request target.
        header_bytes: The maximum of bytes of all header fields of a request together.
        header_fields: The maximum number of header fields of a request.
        header_seconds: The maximum of seconds from the first byte of a request to the end of its
            header fields.
        idle_seconds: The seconds after which a connection without a request is closed.
        stall_seconds: The seconds in which a client has to send, or receive, a share of a body.
        min_rate: The bytes of that share for each of these seconds; 0 for a single byte in all.
        connections: The maximum number of concurrent client connections of one worker.
        tunnels: The maximum number of those connections that have switched to another protocol.
        tunnel_seconds: The maximum of seconds without any byte on a connection that has switched
            to another protocol.
    """

    convert: int = 16 * 1024 * 1024
    elements: int = 1_000_000
    body: int | None = None
    target: int = 8 * 1024
    header_bytes: int = 64 * 1024
    header_fields: int = 128
    header_seconds: float = 10.0
    # Longer than the usual idle time-outs of clients and load balancers, so that they close first.
    idle_seconds: float = 75.0
    stall_seconds: float = 60.0
    min_rate: int = 240  # as in Kestrel
    connections: int = 10_000
    tunnels: int = 1000
    tunnel_seconds: float = 3600.0


DEFAULT_LIMITS = Limits()
"""The limits of a configuration that has none."""
