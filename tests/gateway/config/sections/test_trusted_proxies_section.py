"""Trusted proxies: networks and single addresses."""

from ipaddress import ip_network

from tests.gateway.config.rules import RULES, loaded


def test_trusted_proxies() -> None:
    snapshot = loaded(RULES + 'trusted_proxies: [10.0.0.0/8, "::1", 192.0.2.7]\n')
    networks = [ip_network(text) for text in ("10.0.0.0/8", "::1/128", "192.0.2.7/32")]
    assert list(snapshot.trusted_proxies) == networks
    assert loaded(RULES).trusted_proxies == ()
