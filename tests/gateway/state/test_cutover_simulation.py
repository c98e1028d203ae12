"""Ten minutes of traffic, simulated: a healthy new route stays, and a bad one is left in time.

The gates are those that documents show; the traffic is as unfair as real traffic: few requests,
shares of 404 that are usual, clients that fail by themselves, and durations with a long tail.
"""

import random
from dataclasses import dataclass, field
from typing import NamedTuple

import pytest

from gateway.core.context import RequestContext
from gateway.core.cutover.cutover import CutoverRoute
from gateway.core.cutover.cutover_state import CutoverState, DecidedBy
from gateway.core.cutover.route_outcomes import OUTCOMES
from gateway.state.active_overrides import ActiveOverrides
from gateway.state.cutover_controller import CutoverController
from gateway.state.state_writer import StateWriter
from gateway.telemetry.delta import CutoverDelta, Delta
from tests.gateway.config.rules import edited, loaded

KEY = ("person", "1")
WINDOW = 30
LIMITS = "errors: 1%, latency: 1.5x"
PLACES = {name: place for place, name in enumerate(OUTCOMES)}


@dataclass
class Traffic:
    """Traffic of so many requests a second from so many clients.

    Attributes:
        shares: the usual share of each outcome but 2xx.
        worse: the shares that on the new route adds.
        slower: the seconds that on the new route adds.
        refused: the share of clients of which every request is answered 401.
        tail: the standard deviation of the logarithm of the durations.
    """

    rate: float = 20.0
    clients: int = 40
    shares: dict[str, float] = field(default_factory=dict)
    worse: dict[str, float] = field(default_factory=dict)
    slower: float = 0.0
    refused: float = 0.0
    tail: float = 0.5


class Run(NamedTuple):
    """What a cutover has done.

    Attributes:
        seconds: when it was rolled back, or the end.
        state: its state then.
        highest: the largest percentage that it had.
    """

    seconds: int
    state: CutoverState
    highest: float


LARGE = f"steps: [5, 25, 50, 100], every: 2m, gates: {{ window: {WINDOW}s, minimum: 20, {LIMITS} }}"


async def simulate(
    monkeypatch: pytest.MonkeyPatch,
    seed: int,
    traffic: Traffic,
    sticky: str,
    seconds: int,
    cutover_text: str = LARGE,
) -> Run:
    """Return what a cutover has done by the end, or when it was rolled back."""
    chance = random.Random(seed)
    clock = [1000.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    rules = loaded(
        edited(
            "{ service: old }",
            f'{{ service: old, cutover: {{ via: "2", sticky_by: {sticky}, {cutover_text} }} }}',
        )
    )
    writer = StateWriter(None)
    overrides = ActiveOverrides(writer)
    cutovers = CutoverController(writer, overrides, lambda: rules)
    cutover = rules.cutovers[KEY]
    refused = {f"c{number}" for number in range(int(traffic.clients * traffic.refused))}
    highest = 0.0
    for second in range(seconds):
        deltas = []
        for _ in range(round(traffic.rate * chance.uniform(0.5, 1.5))):
            client = f"c{chance.randrange(traffic.clients)}"
            context = RequestContext(client, 0.0, overrides.in_force, 0.0, chance.random())
            route = cutover.route_for(context)
            new = route is CutoverRoute.NEW
            ends, draw = "2xx", chance.random()
            for name in OUTCOMES:
                draw -= traffic.shares.get(name, 0) + (new * traffic.worse.get(name, 0))
                if draw < 0:
                    ends = name
                    break
            if client in refused:
                ends = "401"
            duration = chance.lognormvariate(-4.5, traffic.tail) + new * traffic.slower
            counts = [0] * len(OUTCOMES)
            counts[PLACES[ends]] = 1
            deltas.append(
                CutoverDelta(
                    *(
                        *KEY,
                        route.value,
                        cutover.cell_of(client),
                        1,
                        0,
                        counts,
                        duration,
                        duration**2,
                    ),
                    buckets=[],
                    whole=duration,
                )
            )
        writer.totals.absorb(Delta(clock[0], [], [], [], deltas, []))
        clock[0] += 1.0
        await cutovers.decide(clock[0])
        state = cutovers._states[KEY]
        highest = max(highest, state.percent)
        if state.decided_by is DecidedBy.ROLLED_BACK:
            return Run(second + 1, state, highest)
    return Run(seconds, state, highest)


HEALTHY = {
    "all is well": Traffic(),
    "some fail always": Traffic(shares={"404": 0.1, "4xx": 0.05, "5xx": 0.02}),
    "few requests": Traffic(rate=2, shares={"404": 0.2, "5xx": 0.03}),
    "clients that are refused": Traffic(refused=0.3),
    "a long tail": Traffic(tail=1.5),
}


SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 4))]


@pytest.mark.parametrize("seed", SEEDS[:2])
@pytest.mark.parametrize("sticky", ["client", "request"])
@pytest.mark.parametrize("traffic", HEALTHY)
async def test_a_healthy_new_way_stays(
    monkeypatch: pytest.MonkeyPatch, seed: int, sticky: str, traffic: str
) -> None:
    found = HEALTHY[traffic]
    state = (await simulate(monkeypatch, seed, found, sticky, 600)).state
    assert state.decided_by is DecidedBy.RULES, state.why


@pytest.mark.parametrize(
    ("worse", "slower", "reason"),
    [
        ({"4xx": 1.0}, 0, "errors (4xx)"),
        ({"4xx": 0.3}, 0, "errors (4xx)"),
        ({"401": 0.5}, 0, "errors (401)"),
        ({"403": 0.5}, 0, "errors (403)"),
        ({"404": 0.5}, 0, "errors (404)"),
        ({"429": 0.5}, 0, "errors (429)"),
        ({"5xx": 0.5}, 0, "errors (5xx)"),
        ({"conversion": 0.2}, 0, "errors (conversion)"),
        ({"abandoned": 0.5}, 0, "errors (abandoned)"),
        ({"3xx": 0.5}, 0, "errors (3xx)"),
        ({}, 0.05, "latency"),
    ],
)
async def test_a_bad_one_is_left_within_the_window(
    monkeypatch: pytest.MonkeyPatch, worse: dict[str, float], slower: float, reason: str
) -> None:
    usual = {"404": 0.05, "5xx": 0.01}
    traffic = Traffic(rate=40, shares=usual, worse=worse, slower=slower)
    seconds, state, _ = await simulate(monkeypatch, 1, traffic, "request", 600)
    assert state.why.startswith(reason)
    assert seconds <= WINDOW + 2


USUAL = {"404": 0.01}
RATES = {"low": 1.0, "middle": 8.0, "high": 40.0}
SMALL = f"steps: [10, 40, 100], every: 1m, gates: {{ window: 60s, minimum: 5, {LIMITS} }}"


async def healthy(monkeypatch: pytest.MonkeyPatch, seed: int, rate: str) -> Run:
    """Simulate a new way that is as good as the old one; half of the runs move single requests."""
    traffic = Traffic(rate=RATES[rate], shares=USUAL)
    return await simulate(monkeypatch, seed, traffic, ["client", "request"][seed % 2], 600, SMALL)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("rate", RATES)
async def test_a_small_cutover_arrives(
    monkeypatch: pytest.MonkeyPatch, seed: int, rate: str
) -> None:
    found = await healthy(monkeypatch, seed, rate)
    assert found.state.decided_by is DecidedBy.RULES, found.state.why
    assert found.highest == 100


@pytest.mark.slow
@pytest.mark.parametrize("seeds", range(4, 24, 5), ids=lambda first: f"from {first}")
@pytest.mark.parametrize("rate", RATES)
async def test_none_of_sixty_more_is_rolled_back(
    monkeypatch: pytest.MonkeyPatch, seeds: int, rate: str
) -> None:
    for seed in range(seeds, seeds + 5):
        found = await healthy(monkeypatch, seed, rate)
        assert found.state.decided_by is DecidedBy.RULES, (seed, found.state.why)


@pytest.mark.parametrize("minimum", [5, 20])
@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("seed", SEEDS)
async def test_half_of_the_requests_cannot_pass_for_few(
    monkeypatch: pytest.MonkeyPatch, seed: int, rate: str, minimum: int
) -> None:
    """Five requests are not convincing, and all good by chance in 1 of 32 steps."""
    traffic = Traffic(rate=RATES[rate], shares=USUAL, worse={"404": 0.5})
    steps = SMALL.replace("minimum: 5", f"minimum: {minimum}")
    found = await simulate(monkeypatch, seed, traffic, "request", 600, steps)
    assert found.highest < 100
    if rate != "low":
        assert found.state.decided_by is DecidedBy.ROLLED_BACK
