"""The PROXY protocol, versions 1 and 2, with which a load balancer sends the client's address.

The protocol is HAProxy's (https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt). Its header
precedes everything else on a connection, including TLS.
"""

import asyncio
import re
from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any, Final, NamedTuple, cast

from gateway.base.addresses import Network, parse_address, plain_address, trusts

_SIGNATURE: Final = b"\r\n\r\n\0\r\nQUIT\n"
# Section 2.1: the maximum length of a version 1 header line, including the line end.
_LONGEST_LINE: Final = 107
# A version 2 header may have up to 64 KiB of further values. The gateway uses none of them.
_LONGEST: Final = 4096
_LINE: Final = re.compile(
    rb"PROXY (?:UNKNOWN(?: [^\r\n]*)?|TCP([46]) (\S+) (\S+) ([0-9]{1,5}) ([0-9]{1,5}))\r\n"
)
# Version 2 (section 2.2): the IP version and the length of the addresses, by family and protocol.
_TCP: Final = {0x11: (4, 12), 0x21: (16, 36)}


class ProxyHeaderError(Exception):
    """The connection does not begin with a valid PROXY protocol header."""


class ProxyHeader(NamedTuple):
    """`client` is None if the balancer opened the connection for itself, as for a health check."""

    size: int
    client: str | None


def parse_header(data: bytes) -> ProxyHeader | None:
    """Parse the header, or return None while it is incomplete; raises ProxyHeaderError."""
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
    except ValueError:  # UnicodeDecodeError is a ValueError
        raise ProxyHeaderError from None
    wanted = {b"4": 4, b"6": 6}[family]
    if any(each.version != wanted for each in addresses) or any(
        int(port) > 65535 for port in ports
    ):
        raise ProxyHeaderError
    return ProxyHeader(end, _unmapped(addresses[0]))


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
    return ProxyHeader(size, _unmapped(ip_address(address)))


def _unmapped(address: IPv4Address | IPv6Address) -> str:
    return str(parse_address(str(address)) or address)


class ProxyHeaderReader(asyncio.Protocol):
    """Reads the header of a new connection, and then passes it to the protocol of `found`."""

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
        """Refuse the connection of an unknown peer, which could claim any client address."""
        self._transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername")
        self._timer = self._loop.call_later(self._seconds, self._refuse)
        if not peer or not trusts(self._networks, plain_address(peer[0])):
            self._refuse()

    def data_received(self, data: bytes) -> None:
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
        del exc
        self._timer.cancel()

    def _refuse(self) -> None:
        self._timer.cancel()
        peer = self._transport.get_extra_info("peername")
        self._refused(plain_address(peer[0]) if peer else "")
        self._transport.abort()
