"""Simulated traffic through a cutover: second by second, without sockets.

The traffic is as unfair as real traffic: few requests, bursts, clients that ask far more than
others, shares of errors that are usual, clients that fail by themselves, incidents that strike both
services, and durations with a long tail.
"""

import random
from collections import defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple

import pytest

from gateway.core.context import RequestContext
from gateway.core.cutover.cutover import CutoverRoute
from gateway.core.cutover.cutover_state import CutoverState, DecidedBy
from gateway.core.cutover.gates import Gates
from gateway.core.cutover.route_outcomes import FAILED, OUTCOMES
from gateway.state.active_overrides import ActiveOverrides
from gateway.state.cutover_controller import CutoverController
from gateway.state.state_writer import StateWriter
from gateway.telemetry.delta import CutoverDelta, Delta
from gateway.verify.live.sample_budget import SampleBudget
from tests.gateway.config.rules import edited, loaded

KEY = ("person", "1")
PLACES = {name: place for place, name in enumerate(OUTCOMES)}
FINE = PLACES["2xx"]
# Answers are validated as the gateway does: so many a second of reads, and of writes.
_SAMPLES_A_SECOND = 50


@dataclass(frozen=True)
class Traffic:
    """Traffic of so many requests a second from so many clients, as it is on both routes.

    Attributes:
        writes: the share of requests that write.
        shares: the usual share of each outcome but 2xx.
        of_writes: the same of writes, beside those.
        refused: the share of clients of which every request is answered 401.
        heavy: whether some clients ask far more than others.
        bursts: how many times as many requests come in one second of thirty.
        incident: the seconds in which a third of all requests is answered 5xx.
        peak: the seconds in which all requests take three times as long.
        tail: the standard deviation of the logarithm of the durations.
        violating: the share of answers that violate the document on both routes, as it is wrong.
        violating_writes: the same of answers to writes.
        violating_clients: the share of clients of which every answer does.
        batch: the seconds in which all writes of one client are refused on both routes.
    """

    rate: float = 20.0
    clients: int = 40
    writes: float = 0.25
    shares: dict[str, float] = field(default_factory=dict)
    of_writes: dict[str, float] = field(default_factory=dict)
    refused: float = 0.0
    heavy: bool = False
    bursts: float = 1.0
    incident: range = range(0)
    peak: range = range(0)
    tail: float = 0.5
    violating: float = 0.0
    violating_writes: float = 0.0
    violating_clients: float = 0.0
    batch: range = range(0)


class Fault(NamedTuple):
    """What is wrong with the new route.

    Attributes:
        outcome: how requests that it strikes end.
        share: the share of requests that it strikes.
        writes: whether it strikes writes alone.
        client: whom it strikes alone; empty for all.
        slower: the seconds that a request takes longer.
        field: the field in which its answers violate the document; empty if they do not.
        begins: the second in which it begins.
    """

    outcome: str = "2xx"
    share: float = 1.0
    writes: bool = False
    client: str = ""
    slower: float = 0.0
    field: str = ""
    begins: int = 0


class Run(NamedTuple):
    """What a cutover has done.

    Attributes:
        seconds: when it was rolled back, or the end.
        state: its state then.
        highest: the largest percentage that it had.
        struck: how many requests the fault has struck.
    """

    seconds: int
    state: CutoverState
    highest: float
    struck: int


class _Counts:
    """The deltas of each second; a request that hangs has one when it is overdue, and one later."""

    def __init__(self, overdue: float) -> None:
        self._overdue = overdue
        self._budgets = {write: SampleBudget(_SAMPLES_A_SECOND) for write in (False, True)}
        self._due: dict[int, list[CutoverDelta]] = defaultdict(list)

    def count(
        self, second: int, place: tuple[str, int], outcome: int, duration: float, *, write: bool
    ) -> None:
        """Count a request that begins in a second, and ends after the seconds of its duration."""
        hangs = duration >= self._overdue
        seconds = min(duration, self._overdue)
        none = [0] * len(OUTCOMES)
        ends = [int(number == outcome) for number in range(len(OUTCOMES))]
        began = 1, int(hangs)
        times = seconds, seconds**2
        failed = int(write and outcome in FAILED)
        if not hangs:
            ended = CutoverDelta(*KEY, *place, *began, ends, *times, [], 0.0, int(write), failed)
            self._due[second].append(ended)
            return
        waits, later = second + int(self._overdue), second + int(duration)
        self._due[waits].append(CutoverDelta(*KEY, *place, *began, none, *times, [], 0.0))
        ended = CutoverDelta(*KEY, *place, 0, 0, ends, 0.0, 0.0, [], 0.0, int(write), failed)
        self._due[later].append(ended)

    def validate(
        self, second: int, place: tuple[str, int], fields: set[str], *, write: bool
    ) -> None:
        """Count an answer that a request has got in a second, if it is one of the samples."""
        if not self._budgets[write].has(1, second):
            return
        self._budgets[write].take(1)
        bad = int(bool(fields))
        none = [0] * len(OUTCOMES)
        checked = 1, bad, int(write), int(write) * bad
        sample = CutoverDelta(
            *(*KEY, *place, 0, 0, none, 0.0, 0.0, [], 0.0, 0, 0, *checked),
            fields=dict.fromkeys(fields, 1),
        )
        self._due[second].append(sample)

    def take(self, second: int) -> list[CutoverDelta]:
        """Return the deltas of a second."""
        return self._due.pop(second, [])


async def simulate(
    monkeypatch: pytest.MonkeyPatch,
    seed: int,
    traffic: Traffic,
    cutover_text: str,
    *,
    fault: Fault | None = None,
    seconds: int = 600,
) -> Run:
    """Return what a cutover has done by the end, or when it was rolled back.

    Args:
        monkeypatch: turns the clock.
        seed: that of the chance.
        traffic: what is asked, and how that usually ends.
        cutover_text: the cutover as in gateway.yaml.
        fault: what is wrong with the new route; None for a healthy one.
        seconds: for how long.
    """
    chance = random.Random(seed)
    clock = [1000.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    rules = loaded(edited("{ service: old }", f"{{ service: old, cutover: {cutover_text} }}"))
    writer = StateWriter(None)
    overrides = ActiveOverrides(writer)
    cutovers = CutoverController(writer, overrides, lambda: rules)
    cutover = rules.cutovers[KEY]
    counts = _Counts((cutover.gates or Gates()).overdue)
    names = [f"c{number}" for number in range(traffic.clients)]
    weights = [1 / (number + 1) if traffic.heavy else 1.0 for number in range(traffic.clients)]
    refused = set(names[: int(traffic.clients * traffic.refused)])
    unfit = set(names[: int(traffic.clients * traffic.violating_clients)])
    highest, struck = 0.0, 0
    for second in range(seconds):
        burst = traffic.bursts if chance.random() < 1 / 30 else 1.0
        number = traffic.rate * burst * chance.uniform(0.5, 1.5)
        number = int(number) + (chance.random() < number % 1)
        for client in chance.choices(names, weights, k=number):
            context = RequestContext(client, 0.0, overrides.in_force, 0.0, chance.random())
            route = cutover.route_for(context)
            write = chance.random() < traffic.writes
            shares = dict(traffic.shares)
            if write:
                shares |= traffic.of_writes
            if second in traffic.incident:
                shares["5xx"] = 0.33
            outcome = PLACES["401"] if client in refused else _drawn(chance, shares)
            if write and client == "c3" and second in traffic.batch:
                outcome = PLACES["4xx"]
            duration = chance.lognormvariate(-4.5, traffic.tail)
            if second in traffic.peak:
                duration *= 3
            usual = traffic.violating_writes if write else traffic.violating
            fields = {"/usual"} if client in unfit or chance.random() < usual else set()
            if route is CutoverRoute.NEW and fault is not None and second >= fault.begins:
                of_it = write or not fault.writes
                if of_it and fault.client in ("", client) and chance.random() < fault.share:
                    struck += 1
                    outcome = PLACES[fault.outcome] if fault.outcome != "2xx" else outcome
                    duration += fault.slower
                    fields |= {fault.field} if fault.field else set()
            place = route.value, cutover.cell_of(client)
            counts.count(second, place, outcome, duration, write=write)
            if outcome == FINE:
                counts.validate(second, place, fields, write=write)
        writer.totals.absorb(Delta(clock[0], [], [], [], counts.take(second), []))
        clock[0] += 1.0
        await cutovers.decide(clock[0])
        state = cutovers._states[KEY]
        highest = max(highest, state.percent)
        if state.decided_by is DecidedBy.ROLLED_BACK:
            return Run(second + 1, state, highest, struck)
    return Run(seconds, state, highest, struck)


def _drawn(chance: random.Random, shares: dict[str, float]) -> int:
    draw = chance.random()
    for name, share in shares.items():
        draw -= share
        if draw < 0:
            return PLACES[name]
    return FINE
