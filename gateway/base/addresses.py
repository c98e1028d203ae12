"""Addresses of clients and proxies, and the forwarding fields that hold them."""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from gateway.base.request import RequestHead

Network = IPv4Network | IPv6Network


def trusts(networks: Sequence[Network], peer: str) -> bool:
    """Return whether the address `peer` is in one of the networks; False for an invalid address."""
    if not networks:
        return False
    address = parse_address(peer)
    return address is not None and _lies_in(address, networks)


def _lies_in(address: IPv4Address | IPv6Address, networks: Sequence[Network]) -> bool:
    return any(address in network for network in networks)


# The length, in bits, of the prefix of IPv4-mapped IPv6 addresses.
_MAPPED_BITS = 96


def parse_network(text: str) -> Network:
    """Parse a network such as 10.0.0.0/8; raises ValueError with the correct form.

    A network of IPv4-mapped IPv6 addresses becomes the IPv4 network, since addresses are compared
    as IPv4 addresses (RFC 4291, section 2.5.5.2).
    """
    try:
        written = ip_network(text)
    except ValueError:
        raise ValueError(
            "not a network, or not the first address of a network; write one like 10.0.0.0/8"
        ) from None
    if isinstance(written, IPv4Network) or written.prefixlen < _MAPPED_BITS:
        return written
    mapped = written.network_address.ipv4_mapped
    return written if mapped is None else IPv4Network((mapped, written.prefixlen - _MAPPED_BITS))


# RFC 7239, section 4: the sender of the request, in quotes if it contains a colon.
_FOR = re.compile(r'(?:^|[;,])[ \t]*for=(?:"([^"\\]*)"|([^",; \t]+))', re.IGNORECASE)


# An address in a forwarding field: with or without brackets, with or without a port.
_NODE = re.compile(r"\[([0-9A-Fa-f:.]+)\](?::[0-9]+)?\Z|([0-9.]+):[0-9]+\Z")


def _forwarded_for(head: RequestHead) -> Iterator[IPv4Address | IPv6Address]:
    """Yield the reliable addresses of X-Forwarded-For and Forwarded, the nearest first.

    A proxy that writes only one of the two fields forwards the other as the client sent it. If both
    fields are present, only addresses on which they agree are reliable. An unknown or obfuscated
    entry ends the list, since the addresses beyond it may be forged.
    """
    lines = head.fields.getall("X-Forwarded-For", ())
    listed = [node for line in lines for node in line.split(",")]
    lines = head.fields.getall("Forwarded", ())
    nodes = [quoted or plain for line in lines for quoted, plain in _FOR.findall(line)]
    # Parsed lazily: a client may send very long fields, and usually only the nearest is needed.
    chain = [
        (parse_address(node.strip(" \t")) for node in reversed(each))
        for each in (listed, nodes)
        if each
    ]
    for address, *other in zip(*chain, strict=False):
        if address is None or other not in ([], [address]):
            return
        yield address


# The maximum length of an address with brackets and port, in characters; IPv6 may have a zone.
_LONGEST_NODE = 64


def parse_address(text: str) -> IPv4Address | IPv6Address | None:
    """Return the address in a string from a proxy or a socket, or None if it is invalid.

    An IPv4-mapped IPv6 address becomes an IPv4 address (RFC 4291, section 2.5.5.2).
    """
    return _read(text) if len(text) <= _LONGEST_NODE else None


def plain_address(text: str) -> str:
    """Return a socket's address, with an IPv4-mapped IPv6 address converted to IPv4.

    A socket that listens on `::` reports IPv4 clients with IPv4-mapped addresses.
    """
    return text.removeprefix("::ffff:") if "." in text else text


@lru_cache(maxsize=1024)
def _read(text: str) -> IPv4Address | IPv6Address | None:
    node = _NODE.match(text)
    try:
        address = ip_address(text if node is None else node[1] or node[2])
    except ValueError:
        return None
    return (address.ipv4_mapped if isinstance(address, IPv6Address) else None) or address


@lru_cache(maxsize=1024)
def _network(address: IPv4Address | IPv6Address, ipv4: int, ipv6: int) -> str:
    kept = ipv4 if address.version == 4 else ipv6
    network = ip_network((address, kept), strict=False)
    return str(address) if kept == network.max_prefixlen else str(network)


def client_network(
    head: RequestHead, peer: str, ipv4: int, ipv6: int, trusted: Sequence[Network]
) -> str | None:
    """Return the network of the client, or None if no address is known.

    The client's address is the nearest one that is not a trusted proxy's.

    Args:
        ipv4: The prefix length of the network of an IPv4 address, in bits.
        ipv6: The prefix length of the network of an IPv6 address, in bits.
        trusted: The networks of trusted proxies; only their forwarding fields are read.
    """
    address = parse_address(peer)
    if trusted and address is not None and _lies_in(address, trusted):
        for before in _forwarded_for(head):
            address = before
            if not _lies_in(address, trusted):
                break
    return None if address is None else _network(address, ipv4, ipv6)


def client_site(head: RequestHead, peer: str, trusted: Sequence[Network]) -> str | None:
    """Return the IPv4 address or the IPv6 /64 (RFC 4291, section 2.5.4) of the client."""
    return client_network(head, peer, 32, 64, trusted)
