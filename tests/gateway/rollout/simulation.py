"""Simulates the traffic through a cutover, second by second and without sockets.

The traffic is as uneven as real traffic: few requests, bursts, clients with far more requests than
others, usual shares of errors, clients with their own faults, incidents in both services, and
durations with a long tail.
"""

import random
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

from gateway.base.errors import FaultCode
from gateway.base.path_templates import parse_template
from gateway.base.request import RequestContext
from gateway.proxy.cutover_counts import CutoverCounts, operation_of, place_of
from gateway.proxy.exchange import Exchange
from gateway.rollout.cutover import CutoverRoute
from gateway.rollout.cutovers import CutoverState, DecidedBy, PercentCommand
from gateway.rollout.decisions import overrides_of
from gateway.routing.snapshot import Endpoint, Snapshot
from gateway.usage.delta import Delta
from gateway.verify.live.sampling import SampleBudget
from gateway.versions.version import Version
from tests.gateway.rollout.deciding import KEY, Decider
from tests.gateway.rules.rules import edited, loaded

FINE = "2xx"
STATUSES = {FINE: 200, "3xx": 302, "4xx": 422, "5xx": 502, "conversion": 502, "abandoned": 200}
STATUSES |= {name: int(name) for name in ("401", "403", "404", "429")}
# The number of responses that are validated per second, separately for reads and writes.
_SAMPLES_A_SECOND = 50


@dataclass(frozen=True)
class Traffic:
    """The traffic on both routes of a cutover, without a fault of the new route.

    Attributes:
        rate: the mean number of requests per second.
        shares: the usual share of each outcome other than 2xx.
        of_writes: the usual share of each outcome for writes; overrides `shares`.
        refused: the share of clients whose requests always get 401.
        heavy: whether some clients send far more requests than others.
        bursts: the factor by which the rate is higher in about one second of thirty.
        incident: the seconds in which a third of all requests gets 5xx.
        peak: the seconds in which all requests take three times as long.
        tail: the standard deviation of the logarithm of the durations.
        violating: the share of responses that violate the document on both routes, since the
            document is wrong.
        violating_clients: the share of clients whose responses always violate the document.
        batch: the seconds in which all writes of one client are refused on both routes.
        rare: the share of requests for a rare operation, a write. There are five others.
        rare_client: the client whose requests for the rare operation are refused on both routes.
        rare_incident: the seconds in which the rare operation gets 5xx on both routes.
        outage: the seconds in which all requests get 5xx on both routes.
        retries: the factor by which the rate is higher during an outage or incident.
        stalls: the ranges of seconds in which both services do not respond until the end of the
            range.
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
    rare: float = 0.0
    rare_client: str = ""
    rare_incident: range = range(0)
    outage: range = range(0)
    retries: float = 1.0
    stalls: tuple[range, ...] = ()


class Fault(NamedTuple):
    """A fault of the new route.

    Attributes:
        client: the only affected client; empty for all clients.
        slower: the seconds by which affected requests take longer.
        field: the field in which responses violate the document; empty without violations.
        begins: the second in which the fault begins.
    """

    outcome: str = FINE
    share: float = 1.0
    writes: bool = False
    client: str = ""
    slower: float = 0.0
    field: str = ""
    begins: int = 0
    rare: bool = False
    reads: bool = False
    operations: tuple[str, ...] = ()


class Run(NamedTuple):
    """The result of a simulation.

    Attributes:
        seconds: the second of the rollback, or of the end of the simulation.
        state: the state of the cutover at that time.
        highest: the highest percentage.
        struck: the number of requests with the fault.
        steps: the changes of the percentage, with their seconds.
    """

    seconds: int
    state: CutoverState
    highest: float
    struck: int
    steps: list[tuple[int, float]]


class _Request(Exchange):
    def __init__(self, snapshot: Snapshot, client: str, operation: str, second: int) -> None:
        self.snapshot, self.client, self.operation = snapshot, client, operation
        self.method, _, path = operation.partition(" ")
        self.endpoint, self.version, self.began = _endpoint(path), Version(1, KEY[1]), second
        self.outcome, self.duration, self.invalid = FINE, 0.0, set[str]()

    @property
    def is_write(self) -> bool:
        return self.method != "GET"

    @property
    def is_rare(self) -> bool:
        return self.method == "PATCH"

    def strike(self, fault: Fault) -> None:
        if fault.outcome != FINE:
            self.outcome = fault.outcome
        self.duration += fault.slower
        if fault.field:
            self.invalid.add(fault.field)

    def finish(self) -> None:
        self.status, self.aborted = STATUSES[self.outcome], self.outcome == "abandoned"
        self.code = FaultCode.CONVERSION_FAILED if self.outcome == "conversion" else None


@cache
def _endpoint(path: str) -> Endpoint:
    return Endpoint(KEY[0], parse_template(path), None, None, {}, ())


class _Usual:
    def __init__(self, traffic: Traffic, chance: random.Random) -> None:
        number = traffic.clients
        self._names = [f"c{each}" for each in range(number)]
        self._weights = [1 / (each + 1) if traffic.heavy else 1.0 for each in range(number)]
        self._refused = set(self._names[: int(number * traffic.refused)])
        self._unfit = set(self._names[: int(number * traffic.violating_clients)])
        self._traffic, self._chance = traffic, chance
        self._asked = 0

    def clients(self, second: int) -> list[str]:
        chance, traffic = self._chance, self._traffic
        burst = traffic.bursts if chance.random() < 1 / 30 else 1.0
        burst *= traffic.retries if second in traffic.outage or second in traffic.incident else 1.0
        number = traffic.rate * burst * chance.uniform(0.5, 1.5)
        number = int(number) + (chance.random() < number % 1)
        return chance.choices(self._names, self._weights, k=number)

    def ask(self, snapshot: Snapshot, client: str, second: int) -> _Request:
        chance, traffic = self._chance, self._traffic
        rare = traffic.rare > 0 and chance.random() < traffic.rare
        write = rare or chance.random() < traffic.writes
        self._asked += 1
        common = f"POST /w{self._asked % 2}" if write else f"GET /r{self._asked % 3}"
        asked = _Request(snapshot, client, "PATCH /rare" if rare else common, second)
        asked.outcome = self._outcome(asked, second)
        asked.duration = chance.lognormvariate(-4.5, traffic.tail)
        asked.duration *= 3 if second in traffic.peak else 1
        for stall in traffic.stalls:
            if second in stall:
                asked.duration += stall.stop - second - chance.random()
        usual = traffic.violating_writes if write else traffic.violating
        if client in self._unfit or chance.random() < usual:
            asked.invalid.add("/usual")
        return asked

    def _outcome(self, asked: _Request, second: int) -> str:
        traffic = self._traffic
        if second in traffic.outage or (asked.is_rare and second in traffic.rare_incident):
            return "5xx"
        if asked.is_rare and asked.client == traffic.rare_client:
            return "4xx"
        if asked.is_write and asked.client == "c3" and second in traffic.batch:
            return "4xx"
        if asked.client in self._refused:
            return "401"
        shares = traffic.shares | (traffic.of_writes if asked.is_write else {})
        if second in traffic.incident:
            shares["5xx"] = 0.33
        draw = self._chance.random()
        for name, share in shares.items():
            draw -= share
            if draw < 0:
                return name
        return FINE


def simulate(
    seed: int,
    traffic: Traffic,
    cutover_text: str,
    *,
    fault: Fault | None = None,
    seconds: int = 600,
    before: int = 0,
) -> Run:
    """Simulate a cutover until its rollback or the end of the time.

    Args:
        fault: the fault of the new route; None for a healthy route.
        before: the number of seconds before the cutover, in which only the old route serves.
    """
    chance = random.Random(seed)
    rules = loaded(edited("{ service: old }", f"{{ service: old, cutover: {cutover_text} }}"))
    decider = Decider(rules)
    cutover, counts, usual = rules.cutovers[KEY], CutoverCounts(), _Usual(traffic, chance)
    budgets = {write: SampleBudget(_SAMPLES_A_SECOND) for write in (False, True)}
    ends: dict[int, list[_Request]] = defaultdict(list)
    highest, struck, steps = 0.0, 0, []
    if before:
        decider.order(0.0)
    for second in range(-before, seconds):
        if second == 0 and before:
            decider.order(PercentCommand.CLEAR)
        overrides = overrides_of(decider.documents)
        for client in usual.clients(second):
            asked = usual.ask(rules, client, second)
            context = RequestContext(client, 0.0, overrides, 0.0, chance.random())
            asked.cutover_route = cutover.route_for(context)
            if asked.cutover_route is CutoverRoute.NEW and _is_struck(asked, second, fault, chance):
                struck += 1
                asked.strike(fault or Fault())
            counts.begin(asked)
            ends[second + int(asked.duration)].append(asked)
            if asked.outcome == FINE and budgets[asked.is_write].has(1, second):
                budgets[asked.is_write].take(1)
                counts.check(place_of(asked), operation_of(asked), asked.invalid)
        for asked in ends.pop(second, ()):
            asked.finish()
            counts.end(asked, asked.duration)
        decider.totals.absorb(Delta(decider.date, outcomes=counts.take(second + 1)))
        state = decider.advance(1.0)
        if state.percent != highest and second >= 0:
            highest = max(highest, state.percent)
            steps.append((second + 1, state.percent))
        if state.decided_by is DecidedBy.ROLLED_BACK:
            return Run(second + 1, state, highest, struck, steps)
    return Run(seconds, state, highest, struck, steps)


def _is_struck(asked: _Request, second: int, fault: Fault | None, chance: random.Random) -> bool:
    if fault is None or second < fault.begins or fault.client not in ("", asked.client):
        return False
    if fault.operations and asked.operation not in fault.operations:
        return False
    of_it = asked.is_rare if fault.rare else asked.is_write or not fault.writes
    return of_it and not (fault.reads and asked.is_write) and chance.random() < fault.share
