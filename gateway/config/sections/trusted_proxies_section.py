"""`trusted_proxies` in gateway.yaml: the networks of proxies that the gateway trusts."""

from functools import partial
from ipaddress import ip_network

from gateway.config.text.mistakes import Mistakes
from gateway.core.clients import Network


def build_trusted_proxies(texts: tuple[str, ...], mistakes: Mistakes) -> tuple[Network, ...]:
    """Return the trusted networks; mistakes go to `mistakes`."""
    networks = (
        mistakes.attempt(partial(network, text), "trusted_proxies", index)
        for index, text in enumerate(texts)
    )
    return tuple(network for network in networks if network is not None)


def network(text: str) -> Network:
    """Return the network that a text writes; raises ValueError with what would be right."""
    try:
        return ip_network(text)
    except ValueError:
        raise ValueError(
            "not a network, or its address does not begin it; write one like 10.0.0.0/8"
        ) from None
