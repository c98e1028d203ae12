"""The snapshot: whom it trusts, what is in it."""

from dataclasses import FrozenInstanceError, replace
from ipaddress import ip_network

import pytest

from gateway.core.snapshot import Limits
from tests.gateway.core.world import PATH, person, snapshot, users

WORLD = snapshot([users("/users"), users("/users/{id}"), person("/v{version}/person", PATH)])


@pytest.mark.parametrize(
    ("networks", "peer", "trusted"),
    [
        ([], "127.0.0.1", False),
        ([], "", False),
        (["127.0.0.0/8"], "127.0.0.1", True),
        (["127.0.0.0/8"], "128.0.0.1", False),
        (["127.0.0.0/8"], "::1", False),
        (["127.0.0.0/8"], "", False),
        (["10.1.2.3/32"], "10.1.2.3", True),
        (["10.1.2.3/32"], "10.1.2.4", False),
        (["::1/128", "10.0.0.0/8"], "10.9.9.9", True),
        (["::1/128", "10.0.0.0/8"], "::1", True),
        (["fe80::/10"], "fe80::1%eth0", True),
        (["0.0.0.0/0"], "203.0.113.7", True),
    ],
)
def test_only_the_networks_that_are_named_are_trusted(
    networks: list[str], peer: str, trusted: bool
) -> None:
    world = replace(WORLD, trusted_proxies=tuple(map(ip_network, networks)))
    assert world.trusts(peer) is trusted


def test_the_summary_counts() -> None:
    assert WORLD.summary == "3 services, 3 endpoints"


def test_a_body_is_converted_up_to_sixteen_megabytes_unless_told_otherwise() -> None:
    assert WORLD.limits == Limits(convert=16 * 1024 * 1024)


def test_a_snapshot_never_changes() -> None:
    with pytest.raises(FrozenInstanceError):
        WORLD.limits = Limits()  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        users("/").api = "other"  # type: ignore[misc]
