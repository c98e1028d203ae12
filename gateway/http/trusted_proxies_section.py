"""`trusted_proxies` in gateway.yaml: the networks of proxies that the gateway trusts."""

from functools import partial
from ipaddress import IPv4Network, ip_network

from gateway.base.addresses import Network
from gateway.base.mistakes import Mistakes

# The bits of an IPv4-mapped address that say that it is one.
_MAPPED_BITS = 96


def build_trusted_proxies(texts: tuple[str, ...], mistakes: Mistakes) -> tuple[Network, ...]:
    """Return the trusted networks; mistakes go to `mistakes`."""
    networks = (
        mistakes.attempt(partial(network, text), "trusted_proxies", index)
        for index, text in enumerate(texts)
    )
    return tuple(network for network in networks if network is not None)


def network(text: str) -> Network:
    """Return the network that a text writes; raises ValueError with what would be right.

    A network of IPv4-mapped IPv6 addresses is returned as the IPv4 network, since addresses are
    compared as IPv4 addresses (RFC 4291, section 2.5.5.2).
    """
    try:
        written = ip_network(text)
    except ValueError:
        raise ValueError(
            "not a network, or its address does not begin it; write one like 10.0.0.0/8"
        ) from None
    if isinstance(written, IPv4Network) or written.prefixlen < _MAPPED_BITS:
        return written
    mapped = written.network_address.ipv4_mapped
    return written if mapped is None else IPv4Network((mapped, written.prefixlen - _MAPPED_BITS))
