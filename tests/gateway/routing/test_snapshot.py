"""The snapshot: trusted proxies, routes, lifecycles and labels."""

from dataclasses import FrozenInstanceError, replace
from ipaddress import ip_network
from math import inf

import pytest

from gateway.http.limits import Limits
from gateway.lifecycle.brownout import CompiledWindow, VersionBrownout
from gateway.lifecycle.lifecycle import VersionLifecycle
from gateway.versions.version import Version
from tests.gateway.world import PATH, V1, person, snapshot, users

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
def test_only_addresses_in_the_named_networks_are_trusted(
    networks: list[str], peer: str, trusted: bool
) -> None:
    world = replace(WORLD, trusted_proxies=tuple(map(ip_network, networks)))
    assert world.trusts(peer) is trusted


def test_the_summary_counts_services_and_endpoints() -> None:
    assert WORLD.summary == "3 services, 3 endpoints"


def test_the_routes_of_a_version_are_found_by_api_and_label() -> None:
    endpoint = person("/v{version}/person", PATH)
    assert list(WORLD.routes(("person", "1"))) == [endpoint.routes[V1]]
    assert list(WORLD.routes(("person", "9"))) == []
    assert list(WORLD.routes(("users", "1"))) == []


def test_the_lifecycle_of_a_served_or_retired_version_is_found() -> None:
    kept, gone = (
        VersionLifecycle(version, sunset=7.0).at_endpoint(()) for version in (V1, Version(0, "0"))
    )
    endpoint = person("/v{version}/person", PATH)
    served = {**endpoint.routes, V1: replace(endpoint.routes[V1], lifecycle=kept)}
    world = snapshot([replace(endpoint, routes=served, retired={Version(0, "0"): gone})])
    assert world.terms(("person", "1")) is kept
    assert world.terms(("person", "0")) is gone
    assert world.terms(("person", "2")) is None
    assert world.terms(("users", "1")) is None


@pytest.mark.parametrize(
    ("sunset", "windows", "begins"),
    [
        (inf, None, inf),
        (7.0, None, 7.0),
        (inf, (), inf),
        (7.0, (), 7.0),
        (7.0, (CompiledWindow(begins=9.0), CompiledWindow(begins=5.0)), 5.0),
        (3.0, (CompiledWindow(begins=5.0),), 3.0),
        (3.0, (CompiledWindow(),), -inf),
    ],
)
def test_the_time_of_the_first_possible_refusal_is_computed(
    sunset: float, windows: tuple[CompiledWindow, ...] | None, begins: float
) -> None:
    route = person("/v{version}/person", PATH).routes[V1]
    ends = None if sunset == inf else VersionLifecycle(V1, sunset=sunset).at_endpoint(())
    brownout = None if windows is None else VersionBrownout(("person", "1"), windows)
    assert replace(route, lifecycle=ends, brownout=brownout).refuses_from == begins


def test_the_versions_with_brownouts_are_listed() -> None:
    endpoint = person("/v{version}/person", PATH)
    routes = {
        **endpoint.routes,
        V1: replace(endpoint.routes[V1], brownout=VersionBrownout(("person", "1"), ())),
    }
    assert snapshot([replace(endpoint, routes=routes)]).brownouts == {("person", "1")}
    assert WORLD.brownouts == frozenset()


def test_the_labels_of_every_api() -> None:
    gone = VersionLifecycle(Version(0, "0")).at_endpoint(())
    endpoint = replace(person("/v{version}/person", PATH), retired={Version(0, "0"): gone})
    world = snapshot([endpoint, person("/person", PATH), users("/users")])
    assert world.labels == {"person": ["0", "1", "2"], "users": []}


def test_bodies_up_to_16_mib_are_converted_by_default() -> None:
    assert WORLD.limits == Limits(convert=16 * 1024 * 1024)


def test_a_snapshot_is_immutable() -> None:
    with pytest.raises(FrozenInstanceError):
        WORLD.limits = Limits()  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        users("/").api = "other"  # type: ignore[misc]
