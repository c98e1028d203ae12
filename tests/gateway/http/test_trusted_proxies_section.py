"""`trusted_proxies`: networks and single addresses."""

from ipaddress import ip_network

from tests.gateway.rules.rules import RULES, loaded


def test_trusted_proxies_accepts_networks_and_addresses() -> None:
    snapshot = loaded(RULES + 'trusted_proxies: [10.0.0.0/8, "::1", 192.0.2.7]\n')
    networks = [ip_network(text) for text in ("10.0.0.0/8", "::1/128", "192.0.2.7/32")]
    assert list(snapshot.trusted_proxies) == networks
    assert loaded(RULES).trusted_proxies == ()


def test_ipv4_mapped_networks_become_ipv4_networks() -> None:
    snapshot = loaded(RULES + 'trusted_proxies: ["::ffff:127.0.0.1", "::ffff:10.0.0.0/104"]\n')
    networks = [ip_network(text) for text in ("127.0.0.1/32", "10.0.0.0/8")]
    assert list(snapshot.trusted_proxies) == networks
    assert snapshot.trusts("::ffff:127.0.0.1")
    assert snapshot.trusts("10.1.2.3")
