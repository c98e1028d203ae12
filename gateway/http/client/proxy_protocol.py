"""The PROXY protocol, versions 1 and 2, by which a load balancer passes on the client's address.

The protocol is HAProxy's (https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt). The header
precedes everything else on a connection, TLS included.
"""

import asyncio
import re
from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any, Final, NamedTuple, cast

from gateway.base.addresses import Network, plain_address, trusts

_SIGNATURE: Final = b"\r\n\r\n\0\r\nQUIT\n"
# Section 2.1: the longest line of version 1, with its end.
_LONGEST_LINE: Final = 107
# A header of version 2 may have up to 64 KiB of further values, of which none is used.
_LONGEST: Final = 4096
_LINE: Final = re.compile(
    rb"PROXY (?:UNKNOWN(?: [^\r\n]*)?|TCP([46]) (\S+) (\S+) ([0-9]{1,5}) ([0-9]{1,5}))\r\n"
)
# Of version 2 (section 2.2): the family and protocol of the addresses, and their length.
_TCP: Final = {0x11: (4, 12), 0x21: (16, 36)}


class ProxyHeaderError(Exception):
    """The connection begins with something else than a header."""


class ProxyHeader(NamedTuple):
    """A header.

    Attributes:
        size: its length in bytes.
        client: the address of the client; None if the balancer speaks for itself, as for its own
            health checks.
    """

    size: int
    client: str | None


def parse_header(data: bytes) -> ProxyHeader | None:
    """Return the header at the beginning of a connection, or None while it is incomplete.

    Raises:
        ProxyHeaderError: there is none.
    """
    if data.startswith(_SIGNATURE[: len(data)]):
        return _version_2(data)
    if not data.startswith(b"PROXY "[: len(data)]):
        raise ProxyHeaderError
    end = data.find(b"\n") + 1
    if not end and len(data) < _LONGEST_LINE:
        return None
    line = _LINE.fullmatch(data[:end])
    if line is None or end > _LONGEST_LINE:
        raise ProxyHeaderError
    family, source, target, *ports = line.groups()
    if family is None:
        return ProxyHeader(end, None)
    try:
        addresses = [ip_address(each.decode("ascii")) for each in (source, target)]
    except ValueError:  # UnicodeDecodeError is one
        raise ProxyHeaderError from None
    wanted = {b"4": 4, b"6": 6}[family]
    if any(each.version != wanted for each in addresses) or any(
        int(port) > 65535 for port in ports
    ):
        raise ProxyHeaderError
    return ProxyHeader(end, str(addresses[0]))


def _version_2(data: bytes) -> ProxyHeader | None:
    if len(data) < 16:
        return None
    command, family, size = data[12], data[13], 16 + int.from_bytes(data[14:16])
    if command not in (0x20, 0x21) or size > _LONGEST:
        raise ProxyHeaderError
    if len(data) < size:
        return None
    if command == 0x20 or family not in _TCP:
        return ProxyHeader(size, None)
    width, length = _TCP[family]
    if size < 16 + length:
        raise ProxyHeaderError
    address = data[16 : 16 + width]
    return ProxyHeader(size, str(IPv4Address(address) if width == 4 else IPv6Address(address)))


class ProxyHeaderReader(asyncio.Protocol):
    """Reads the header of a new connection, and hands the connection on to its protocol.

    Args:
        loop: the event loop.
        networks: those of the load balancers.
        seconds: the longest time until the header has arrived.
        refused: a function that is called when the connection is cut.
        found: takes the address of the client and returns the protocol of the connection.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        networks: tuple[Network, ...],
        seconds: float,
        refused: Callable[[str], None],
        found: Callable[[str | None], Any],
    ) -> None:
        self._loop, self._networks, self._seconds = loop, networks, seconds
        self._refused, self._found = refused, found
        self._data = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Cut the connection of a stranger, who could claim any address."""
        self._transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername")
        self._timer = self._loop.call_later(self._seconds, self._refuse)
        if not peer or not trusts(self._networks, plain_address(peer[0])):
            self._refuse()

    def data_received(self, data: bytes) -> None:
        """Go on with the header."""
        if self._transport.is_closing():
            return
        self._data += data
        try:
            header = parse_header(self._data)
        except ProxyHeaderError:
            self._refuse()
            return
        if header is None:
            return
        self._timer.cancel()
        rest, self._data = self._data[header.size :], b""
        protocol = self._found(header.client)
        self._transport.set_protocol(protocol)
        protocol.connection_made(self._transport)
        if rest:
            protocol.data_received(rest)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        del exc
        self._timer.cancel()

    def _refuse(self) -> None:
        self._timer.cancel()
        peer = self._transport.get_extra_info("peername")
        self._refused(plain_address(peer[0]) if peer else "")
        self._transport.abort()
