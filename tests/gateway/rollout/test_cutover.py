"""A cutover always moves the same clients, and more of them at a higher percentage."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.base.overrides import NO_OVERRIDES, Overrides
from gateway.base.request import ANONYMOUS_CONTEXT, RequestContext
from gateway.rollout.cutover import (
    BUCKETS,
    CutoverRoute,
    VersionCutover,
    bucket,
    first_percent,
    percent_in_force,
)
from gateway.rollout.gates import GateLimits
from gateway.versions.version import Version
from tests.gateway.lifecycle.served import first_version
from tests.gateway.world import LAW

SERVED = ("person", "1")
HALF = VersionCutover(SERVED, "2", 50.0)
NAMES = st.text(max_size=20)
PERCENTS = st.floats(0, 100)


def moved(cutover: VersionCutover, client: str) -> bool:
    return cutover.route_for(RequestContext(client)) is CutoverRoute.NEW


def test_the_bucket_of_a_client_never_changes() -> None:
    """With another hash, an upgrade of the gateway would move clients."""
    assert [bucket(SERVED, name) for name in ("a", "b", "")] == [3414, 7206, 6420]


def test_buckets_of_versions_are_independent() -> None:
    names = [str(number) for number in range(2000)]
    one = {name for name in names if bucket(SERVED, name) < BUCKETS / 2}
    other = {name for name in names if bucket(("person", "2"), name) < BUCKETS / 2}
    assert all(900 < len(some) < 1100 for some in (one, other))
    assert 400 < len(one & other) < 600


@LAW
@given(NAMES)
def test_a_bucket_is_below_10000(name: str) -> None:
    assert 0 <= bucket(SERVED, name) < BUCKETS


@LAW
@given(NAMES, PERCENTS, PERCENTS)
def test_a_higher_percentage_never_moves_a_client_back(name: str, one: float, other: float) -> None:
    low, high = sorted((one, other))
    if moved(replace(HALF, percent=low), name):
        assert moved(replace(HALF, percent=high), name)


@LAW
@given(NAMES)
def test_0_percent_moves_no_client_and_100_percent_moves_all(name: str) -> None:
    assert not moved(replace(HALF, percent=0), name)
    assert moved(replace(HALF, percent=100), name)


def test_clients_without_a_name_move_at_100_percent_only() -> None:
    assert not moved(replace(HALF, percent=99.99), "")
    assert moved(replace(HALF, percent=100), "")


@pytest.mark.parametrize(
    ("draw", "route"),
    [
        (0.0, CutoverRoute.NEW),
        (0.49, CutoverRoute.NEW),
        (0.5, CutoverRoute.OLD),
        (1.0, CutoverRoute.OLD),
    ],
)
def test_sticky_by_request_moves_each_request_separately(draw: float, route: CutoverRoute) -> None:
    cutover = replace(HALF, sticky="request")
    assert cutover.route_for(RequestContext("a", cutover_draw=draw)) is route


def test_a_cutover_moves_the_same_share_of_requests_during_a_brownout() -> None:
    """Brownouts and cutovers use independent random numbers."""
    cutover = replace(HALF, percent=20, sticky="request")
    spared = [RequestContext("a", 0.0, NO_OVERRIDES, 0.99, number / 7919) for number in range(7919)]
    new = sum(cutover.route_for(context) is CutoverRoute.NEW for context in spared)
    assert 0.19 < new / len(spared) < 0.21


def test_an_override_replaces_the_configured_percentage() -> None:
    overrides = Overrides(percents={SERVED: 100.0})
    assert HALF.route_for(RequestContext("b", overrides=overrides)) is CutoverRoute.NEW
    assert percent_in_force(HALF, overrides) == 100
    assert percent_in_force(HALF, ANONYMOUS_CONTEXT.overrides) == 50
    assert percent_in_force(HALF, Overrides(percents={SERVED: 0.0})) == 0


def test_a_cutover_begins_with_its_first_step() -> None:
    assert first_percent(HALF) == 50
    assert first_percent(replace(HALF, steps=(5.0, 50.0))) == 5


KEY = ("person", "1")


def cutover(more: str) -> VersionCutover:
    found = first_version(f'shadow: {{ via: "2" }}, cutover: {{ via: "2", {more} }}').cutover
    assert found is not None
    assert found.route.service_version == Version(2, "2")
    return found.rule


@pytest.mark.parametrize(
    ("more", "built"),
    [
        ("percent: 25", VersionCutover(KEY, "2", 25.0)),
        ("percent: 0, sticky_by: request", VersionCutover(KEY, "2", 0.0, "request")),
        ("steps: [1, 5, 50]", VersionCutover(KEY, "2", 50.0, steps=(1.0, 5.0, 50.0))),
        ("steps: [1], every: 90s", VersionCutover(KEY, "2", 1.0, steps=(1.0,), every=90.0)),
        ("steps: [1], every: 1.5h", VersionCutover(KEY, "2", 1.0, steps=(1.0,), every=5400.0)),
    ],
)
def test_a_cutover_is_compiled(more: str, built: VersionCutover) -> None:
    assert cutover(more) == built


@pytest.mark.parametrize(
    ("gates", "built"),
    [
        ("violations: 0.5%", GateLimits(violations=0.005)),
        ("errors: 1%, violations: 100%", GateLimits(errors=0.01)),
        ("differences: 0.1%", GateLimits(violations=0.01, differences=0.001)),
        ("errors: 1%, window: 30s", GateLimits(violations=0.01, errors=0.01, window=30.0)),
        (
            "errors: 1%, window: 5s",
            GateLimits(violations=0.01, errors=0.01, window=5.0, overdue=2.5),
        ),
        ("errors: 1%, overdue: 20s", GateLimits(violations=0.01, errors=0.01, overdue=20.0)),
        ("errors: 1%, dry_run: true", GateLimits(violations=0.01, errors=0.01, dry_run=True)),
        (
            "latency: 1.5x, minimum: 7, then: hold",
            GateLimits(violations=0.01, latency=1.5, minimum=7, then="hold"),
        ),
    ],
)
def test_gates_are_compiled_with_parsed_units(gates: str, built: GateLimits) -> None:
    found = cutover(f"percent: 25, gates: {{ {gates} }}").gates
    assert found == built


def test_the_setting_inconclusive_of_gates_is_compiled_for_steps() -> None:
    found = cutover("steps: [5, 50], gates: { errors: 1%, inconclusive: roll_back }").gates
    assert found == GateLimits(violations=0.01, errors=0.01, inconclusive="roll_back")
