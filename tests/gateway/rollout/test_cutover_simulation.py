"""Simulations of cutovers: a healthy new route stays, and a faulty one is rolled back in time.

The limits are the limits in the examples of the documentation. The claims hold for all seeds; the
seeds were not selected.
"""

from dataclasses import replace

import pytest

from gateway.rollout.cutovers import DecidedBy
from tests.gateway.rollout.simulation import Fault, Run, Traffic, simulate

WINDOW = 30
# The seconds within which a fault is found: at most six blocks of evidence.
WITHIN = 60
LIMITS = "errors: 1%, latency: 1.5x"


def cutover(
    sticky: str,
    steps: str = "[5, 25, 50, 100]",
    every: str = "2m",
    window: int = WINDOW,
    minimum: int = 20,
) -> str:
    gates = f"{{ window: {window}s, minimum: {minimum}, {LIMITS} }}"
    return f'{{ via: "2", sticky_by: {sticky}, steps: {steps}, every: {every}, gates: {gates} }}'


HEALTHY = {
    "all is well": Traffic(),
    "some fail always": Traffic(shares={"404": 0.1, "4xx": 0.05, "5xx": 0.02}),
    "few requests": Traffic(rate=2, shares={"404": 0.2, "5xx": 0.03}),
    "clients that are refused": Traffic(refused=0.3),
    "a long tail": Traffic(tail=1.5),
    "few clients and bursts": Traffic(
        clients=12, heavy=True, bursts=5, shares={"404": 0.015}, of_writes={"4xx": 0.03}
    ),
    "few writes of which many fail": Traffic(writes=0.02, of_writes={"4xx": 0.2, "404": 0.1}),
    "a peak of both services": Traffic(peak=range(75, 125)),
    "a peak after all have moved": Traffic(peak=range(230, 300)),
    "an incident of both services": Traffic(of_writes={"4xx": 0.03}, incident=range(75, 95)),
    "a client whose writes are refused for a while": Traffic(clients=12, batch=range(118, 142)),
    "a client whose writes are refused for several steps": Traffic(
        clients=12, batch=range(50, 200)
    ),
    "a document that is wrong about some": Traffic(violating=0.3, violating_writes=0.05),
    "one that is wrong about all": Traffic(violating=1, violating_writes=1),
    "one that is wrong about writes": Traffic(rate=60, writes=0.1, violating_writes=0.9),
    "one that is wrong about some clients": Traffic(
        clients=12, heavy=True, bursts=5, violating=0.02, violating_clients=0.3
    ),
    "one that is wrong, and few requests": Traffic(rate=2, violating=0.2, violating_writes=0.5),
    "services that stand still": Traffic(
        shares={"404": 0.01}, stalls=(range(75, 78), range(150, 155), range(200, 205))
    ),
    "one operation that fails on both routes for a while": Traffic(
        rare=0.05, rare_incident=range(75, 105)
    ),
    "a client that always fails in one operation": Traffic(
        clients=12, heavy=True, rare=0.2, rare_client="c3"
    ),
}

SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 5))]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("traffic", HEALTHY)
def test_a_healthy_new_route_is_never_rolled_back(seed: int, traffic: str) -> None:
    text = cutover(["client", "request"][seed % 2], every="1m")
    state = simulate(seed, HEALTHY[traffic], text, seconds=300).state
    assert state.decided_by is DecidedBy.RULES, state.why


USUAL = Traffic(40, shares={"404": 0.02}, of_writes={"404": 0.02, "4xx": 0.03, "5xx": 0.005})
# Each service has its own data, and does not find data that the other service stored.
APART = Traffic(40, shares={"404": 0.15}, of_writes={"404": 0.2, "4xx": 0.03})
# The document is wrong about both services.
LOOSE = replace(USUAL, violating=0.2, violating_writes=0.1)
FAULTS = {
    "each write is refused": (Fault("4xx", writes=True), USUAL),
    "each write is refused, and data is apart": (Fault("4xx", writes=True), APART),
    "no write finds its own": (Fault("404", writes=True), APART),
    "no write can be converted": (Fault("conversion", writes=True), APART),
    "some are refused": (Fault("4xx", 0.3), USUAL),
    "401": (Fault("401", 0.5), USUAL),
    "403": (Fault("403", 0.5), USUAL),
    "404 on some": (Fault("404", 0.5), USUAL),
    "429": (Fault("429", 0.5), USUAL),
    "5xx": (Fault("5xx", 0.5), USUAL),
    "3xx": (Fault("3xx", 0.5), USUAL),
    "conversion": (Fault("conversion", 0.2), USUAL),
    "abandoned": (Fault("abandoned", 0.5), USUAL),
    "50 ms": (Fault(slower=0.05), USUAL),
    "a field is missing": (Fault(field="/total"), USUAL),
    "a type is wrong in some": (Fault(share=0.3, field="/total"), USUAL),
    "a field is missing, and the document is wrong": (Fault(share=0.5, field="/total"), LOOSE),
    "a type is wrong where it writes": (Fault(writes=True, field="/total"), LOOSE),
    "it hangs": (Fault(slower=20), USUAL),
    "each write hangs": (Fault(slower=20, writes=True), USUAL),
}
VIOLATIONS = ("answers",)
REASONS = {
    "each write is refused": ("other 4xx",),
    "each write is refused, and data is apart": ("other 4xx",),
    "no write finds its own": ("404",),
    "no write can be converted": ("conversion",),
    "some are refused": ("other 4xx",),
    "404 on some": ("404",),
    "conversion": ("conversion",),
    "a field is missing": VIOLATIONS,
    "a type is wrong in some": VIOLATIONS,
    "a field is missing, and the document is wrong": VIOLATIONS,
    "a type is wrong where it writes": VIOLATIONS,
    "50 ms": ("latency",),
    "it hangs": ("latency", "overdue"),
    "each write hangs": ("latency", "overdue"),
}


def reason(why: str) -> str:
    gate = why.partition(":")[0]
    return gate.partition(" (")[2].removesuffix(")") or gate


@pytest.mark.parametrize("seed", SEEDS[:5])
@pytest.mark.parametrize("name", FAULTS)
def test_a_faulty_new_route_is_rolled_back_within_a_minute(seed: int, name: str) -> None:
    """The fault begins with the step or during it.

    Hanging requests count when they become overdue.
    """
    fault, traffic = FAULTS[name]
    for begins in (0, 45):
        planted = fault._replace(begins=begins)
        text = cutover(["client", "request"][seed % 2], "[50, 100]", "10m")
        found = simulate(seed, traffic, text, fault=planted)
        assert reason(found.state.why) in REASONS.get(name, (name,)), found.state
        overdue = 10 if fault.slower > 10 else 0
        assert found.seconds <= begins + overdue + WITHIN


@pytest.mark.parametrize("seed", SEEDS[:5])
@pytest.mark.parametrize("name", FAULTS)
def test_a_faulty_new_route_is_rolled_back_at_one_percent(seed: int, name: str) -> None:
    """A window has only one or two requests, so all requests since the step began are judged."""
    fault, traffic = FAULTS[name]
    text = cutover("request", "[1, 100]", "30m")
    rare = replace(traffic, rate=10.0)
    found = simulate(seed, rare, text, fault=fault, seconds=1800)
    assert reason(found.state.why) in REASONS.get(name, (name,)), found.state
    assert (found.highest, found.state.percent) == (1, 0)
    assert found.struck <= 70


# One of six operations, with a twentieth of all requests.
RARE = Traffic(40, shares={"404": 0.005, "4xx": 0.003, "5xx": 0.002}, rare=0.05)
RARE_FAULTS = {
    "422": Fault("4xx"),
    "401": Fault("401"),
    "403": Fault("403"),
    "404": Fault("404"),
    "5xx": Fault("5xx"),
    "conversion": Fault("conversion"),
    "no JSON": Fault(field="/"),
    "it hangs": Fault(slower=20),
}
AT = {
    "50%": ("[50]", 20, 75),
    "100%": ("[50, 100]", 20, 75),
    "100%, in the end": ("[50, 100]", 20, 140),
}


@pytest.mark.parametrize("seed", SEEDS[:3])
@pytest.mark.parametrize("at", AT)
@pytest.mark.parametrize("name", RARE_FAULTS)
def test_one_failing_operation_among_many_stops_the_cutover(seed: int, at: str, name: str) -> None:
    """The fault begins during a step or after the last step.

    The rollback comes within a minute.
    """
    steps, window, begins = AT[at]
    text = cutover(["client", "request"][seed % 2], steps, "1m", window)
    fault = RARE_FAULTS[name]._replace(begins=begins, rare=True)
    found = simulate(seed, RARE, text, fault=fault, seconds=begins + 60)
    assert found.state.decided_by is DecidedBy.ROLLED_BACK
    assert found.seconds <= begins + (10 if fault.slower else 0) + WITHIN


@pytest.mark.parametrize("seed", SEEDS)
def test_failures_of_all_writes_stop_the_cutover_even_if_writes_are_rare(seed: int) -> None:
    """The failing writes are a share of all requests that is only half of the limit."""
    traffic = replace(USUAL, writes=0.005)
    text = cutover("client", "[50, 100]", "10m")
    fault = Fault("4xx", writes=True)
    found = simulate(seed, traffic, text, fault=fault)
    assert reason(found.state.why) == "other 4xx"
    assert found.struck <= 25


@pytest.mark.parametrize("seed", SEEDS)
def test_one_failing_client_among_many_stops_the_cutover(seed: int) -> None:
    """The client moves at 100 percent, when the old route no longer serves any client."""
    traffic = replace(USUAL, clients=12)
    text = cutover("client", "[50, 100]", "1m", minimum=100)
    fault = Fault("4xx", client="c3")
    found = simulate(seed, traffic, text, fault=fault)
    assert reason(found.state.why) == "other 4xx", found.state
    assert found.struck <= 4 * WITHIN


@pytest.mark.parametrize("seed", SEEDS)
def test_failing_writes_of_one_client_stop_the_cutover(seed: int) -> None:
    """The failing writes are a twelfth of all writes.

    Only the client's own history shows the fault.
    """
    traffic = replace(USUAL, clients=12)
    text = cutover("client", "[50, 100]", "1m", minimum=100)
    fault = Fault("4xx", writes=True, client="c3")
    found = simulate(seed, traffic, text, fault=fault)
    assert reason(found.state.why) == "other 4xx", found.state
    assert found.seconds <= 62 + 200


FEW = {"404": 0.01}
RATES = {"low": 1.0, "middle": 8.0, "high": 20.0}


def small(seed: int, rate: str, minimum: int = 5, fault: Fault | None = None) -> Run:
    """Simulate a cutover with few requests. Without a fault, odd seeds move single requests."""
    traffic = Traffic(rate=RATES[rate], shares=FEW)
    sticky = "request" if fault is not None else ["client", "request"][seed % 2]
    text = cutover(sticky, "[10, 40, 100]", "1m", 60, minimum)
    return simulate(seed, traffic, text, fault=fault, seconds=400 if fault is None else 600)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("rate", RATES)
def test_a_small_cutover_is_never_rolled_back(seed: int, rate: str) -> None:
    found = small(seed, rate)
    assert found.state.decided_by is DecidedBy.RULES, found.state.why
    if seed < 4:
        assert found.highest == 100


@pytest.mark.parametrize("minimum", [5, 20])
@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("seed", SEEDS[:4])
def test_a_small_cutover_is_rolled_back_if_half_of_the_requests_fail(
    seed: int, rate: str, minimum: int
) -> None:
    """At this rate of failures, five requests all succeed by chance in 1 of 32 steps."""
    found = small(seed, rate, minimum, Fault("404", 0.5))
    assert found.highest < 100
    assert found.state.decided_by is DecidedBy.ROLLED_BACK
