"""Ten minutes of traffic, simulated: a healthy new route stays, and a bad one is left in time.

The gates are those that documents show; the traffic is as unfair as real traffic: few requests,
shares of 404 that are usual, clients that fail by themselves, and durations with a long tail.
"""

import random
from dataclasses import dataclass, field

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


async def simulate(
    monkeypatch: pytest.MonkeyPatch, seed: int, traffic: Traffic, sticky: str, seconds: int
) -> tuple[int, CutoverState]:
    """Return after how many seconds the cutover was rolled back, or all of them; and its state."""
    chance = random.Random(seed)
    clock = [1000.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    rules = loaded(
        edited(
            "{ service: old }",
            f'{{ service: old, cutover: {{ via: "2", steps: [5, 25, 50, 100], every: 2m,'
            f" sticky_by: {sticky}, gates: {{ errors: 1%, latency: 1.5x, window: {WINDOW}s,"
            " minimum: 20 } } }",
        )
    )
    writer = StateWriter(None)
    overrides = ActiveOverrides(writer)
    cutovers = CutoverController(writer, overrides, lambda: rules)
    cutover = rules.cutovers[KEY]
    refused = {f"c{number}" for number in range(int(traffic.clients * traffic.refused))}
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
        if state.decided_by is DecidedBy.ROLLED_BACK:
            return second + 1, state
    return seconds, state


HEALTHY = {
    "all is well": Traffic(),
    "some fail always": Traffic(shares={"404": 0.1, "4xx": 0.05, "5xx": 0.02}),
    "few requests": Traffic(rate=2, shares={"404": 0.2, "5xx": 0.03}),
    "clients that are refused": Traffic(refused=0.3),
    "a long tail": Traffic(tail=1.5),
}


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("sticky", ["client", "request"])
@pytest.mark.parametrize("traffic", HEALTHY)
async def test_a_healthy_new_way_stays(
    monkeypatch: pytest.MonkeyPatch, seed: int, sticky: str, traffic: str
) -> None:
    found = HEALTHY[traffic]
    _, state = await simulate(monkeypatch, seed, found, sticky, 600)
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
    seconds, state = await simulate(monkeypatch, 1, traffic, "request", 600)
    assert state.why.startswith(reason)
    assert seconds <= WINDOW + 2
