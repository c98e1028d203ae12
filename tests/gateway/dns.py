"""A name server on the loopback interface, whose records a test changes."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from ipaddress import ip_address
from typing import cast

import aiodns
import pytest

# RFC 1035, section 4.1.1: the response codes.
_NO_ERROR, _SERVFAIL, _NXDOMAIN = 0, 2, 3
_A, _AAAA = 1, 28


class NameServer(asyncio.DatagramProtocol):
    """Answers queries for A and AAAA records over UDP.

    Attributes:
        addresses: the IP addresses of each name. Names that are missing get NXDOMAIN.
        failing: whether all queries get SERVFAIL.
        ttl: the time to live of the records in seconds.
        queries: the queried names, in order.
    """

    def __init__(self) -> None:
        self.addresses: dict[str, tuple[str, ...]] = {}
        self.failing = False
        self.ttl = 1
        self.port = 0
        self.queries: list[str] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, address: tuple[str, int]) -> None:
        labels, at = [], 12
        while size := data[at]:
            labels.append(data[at + 1 : at + 1 + size].decode())
            at += 1 + size
        question, kind = data[12 : at + 5], int.from_bytes(data[at + 1 : at + 3])
        name = ".".join(labels).lower()
        self.queries.append(name)
        known = self.addresses.get(name)
        code = _SERVFAIL if self.failing else _NO_ERROR if known else _NXDOMAIN
        found = [ip_address(each).packed for each in known or () if not code]
        wanted = [each for each in found if len(each) == {_A: 4, _AAAA: 16}.get(kind)]
        head = data[:2] + (0x8180 | code).to_bytes(2)
        head += b"\0\1" + len(wanted).to_bytes(2) + b"\0\0\0\0"
        records = b"".join(
            b"\xc0\x0c"
            + kind.to_bytes(2)
            + b"\0\1"
            + self.ttl.to_bytes(4)
            + len(each).to_bytes(2)
            + each
            for each in wanted
        )
        self._transport.sendto(head + question + records, address)

    def close(self) -> None:
        self._transport.close()

    def error(self) -> int:
        return socket.EAI_AGAIN if self.failing else socket.EAI_NONAME


@asynccontextmanager
async def name_server(
    patch: pytest.MonkeyPatch, *domains: str, ndots: int = 1
) -> AsyncIterator[NameServer]:
    """Start a name server that the resolver of this process uses instead of the system's.

    Args:
        ndots: the number of dots from which a name is looked up first without search domains.
    """
    loop, server = asyncio.get_running_loop(), NameServer()

    async def getaddrinfo(*_: object, **__: object) -> None:
        raise socket.gaierror(server.error(), "not found by the system")

    transport, _ = await loop.create_datagram_endpoint(lambda: server, local_addr=("127.0.0.1", 0))
    server.port = transport.get_extra_info("sockname")[1]
    made = partial(
        aiodns.DNSResolver,
        nameservers=["127.0.0.1"],
        udp_port=server.port,
        domains=list(domains),
        ndots=ndots,
        tries=1,
    )
    patch.setattr(aiodns, "DNSResolver", made)
    patch.setattr(loop, "getaddrinfo", getaddrinfo)
    try:
        yield server
    finally:
        server.close()
