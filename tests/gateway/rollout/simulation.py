"""Simulates the traffic through a cutover, second by second and without sockets.

The traffic is as uneven as real traffic: few requests, bursts, clients with far more requests than
others, usual shares of errors, clients with their own faults, incidents in both services, and
durations with a long tail.
"""

import random
from collections import defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple

from gateway.base.request import RequestContext
from gateway.rollout.cutover import CutoverRoute
from gateway.rollout.cutovers import CutoverState, DecidedBy
from gateway.rollout.decisions import overrides_of
from gateway.rollout.gates import GateLimits
from gateway.rollout.route_outcomes import FAILED, OUTCOMES
from gateway.usage.delta import CutoverDelta, Delta, OperationDelta
from gateway.verify.live.sample_budget import SampleBudget
from tests.gateway.rollout.deciding import KEY, Decider
from tests.gateway.rules.rules import edited, loaded

PLACES = {name: place for place, name in enumerate(OUTCOMES)}
FINE = PLACES["2xx"]
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
    stalls: tuple[range, ...] = ()


class Fault(NamedTuple):
    """A fault of the new route.

    Attributes:
        client: the only affected client; empty for all clients.
        slower: the seconds by which affected requests take longer.
        field: the field in which responses violate the document; empty without violations.
        begins: the second in which the fault begins.
    """

    outcome: str = "2xx"
    share: float = 1.0
    writes: bool = False
    client: str = ""
    slower: float = 0.0
    field: str = ""
    begins: int = 0
    rare: bool = False


class Run(NamedTuple):
    """The result of a simulation.

    Attributes:
        seconds: the second of the rollback, or of the end of the simulation.
        state: the state of the cutover at that time.
    """

    seconds: int
    state: CutoverState
    highest: float
    struck: int


@dataclass
class _Asked:
    client: str
    operation: str
    write: bool
    rare: bool
    outcome: int = FINE
    duration: float = 0.0
    fields: set[str] = field(default_factory=set)

    def strike(self, fault: Fault) -> None:
        if fault.outcome != "2xx":
            self.outcome = PLACES[fault.outcome]
        self.duration += fault.slower
        if fault.field:
            self.fields.add(fault.field)


class _Usual:
    def __init__(self, traffic: Traffic, chance: random.Random) -> None:
        number = traffic.clients
        self._names = [f"c{each}" for each in range(number)]
        self._weights = [1 / (each + 1) if traffic.heavy else 1.0 for each in range(number)]
        self._refused = set(self._names[: int(number * traffic.refused)])
        self._unfit = set(self._names[: int(number * traffic.violating_clients)])
        self._traffic, self._chance = traffic, chance
        self._asked = 0

    def clients(self) -> list[str]:
        chance, traffic = self._chance, self._traffic
        burst = traffic.bursts if chance.random() < 1 / 30 else 1.0
        number = traffic.rate * burst * chance.uniform(0.5, 1.5)
        number = int(number) + (chance.random() < number % 1)
        return chance.choices(self._names, self._weights, k=number)

    def ask(self, client: str, second: int) -> _Asked:
        chance, traffic = self._chance, self._traffic
        rare = traffic.rare > 0 and chance.random() < traffic.rare
        write = rare or chance.random() < traffic.writes
        self._asked += 1
        common = f"POST /w{self._asked % 2}" if write else f"GET /r{self._asked % 3}"
        asked = _Asked(client, "PATCH /rare" if rare else common, write, rare)
        asked.outcome = self._outcome(asked, second)
        asked.duration = chance.lognormvariate(-4.5, traffic.tail)
        asked.duration *= 3 if second in traffic.peak else 1
        for stall in traffic.stalls:
            if second in stall:
                asked.duration += stall.stop - second - chance.random()
        usual = traffic.violating_writes if write else traffic.violating
        if client in self._unfit or chance.random() < usual:
            asked.fields.add("/usual")
        return asked

    def _outcome(self, asked: _Asked, second: int) -> int:
        traffic = self._traffic
        if asked.rare and second in traffic.rare_incident:
            return PLACES["5xx"]
        if asked.rare and asked.client == traffic.rare_client:
            return PLACES["4xx"]
        if asked.write and asked.client == "c3" and second in traffic.batch:
            return PLACES["4xx"]
        if asked.client in self._refused:
            return PLACES["401"]
        shares = traffic.shares | (traffic.of_writes if asked.write else {})
        if second in traffic.incident:
            shares["5xx"] = 0.33
        draw = self._chance.random()
        for name, share in shares.items():
            draw -= share
            if draw < 0:
                return PLACES[name]
        return FINE


class _Sums:
    def __init__(self) -> None:
        self.requests = self.overdue = self.writes = self.failed_writes = 0
        self.ends = [0] * len(OUTCOMES)
        self.seconds = self.squares = 0.0
        self.checked = self.violating = self.checked_writes = self.violating_writes = 0
        self.fields: dict[str, int] = {}
        self.operations: dict[str, _Sums] = {}

    def at(self, operation: str) -> "tuple[_Sums, _Sums]":
        """Return the counts that include a request: the total, and the counts of its operation."""
        of_operation = self.operations.get(operation)
        if of_operation is None:
            of_operation = self.operations[operation] = _Sums()
        return self, of_operation

    def delta(self, place: tuple[str, int]) -> CutoverDelta:
        return CutoverDelta(
            *KEY,
            *place,
            self.requests,
            self.overdue,
            self.ends,
            self.seconds,
            self.squares,
            [],
            0.0,
            self.writes,
            self.failed_writes,
            self.checked,
            self.violating,
            self.checked_writes,
            self.violating_writes,
            self.fields,
            {
                name: OperationDelta(
                    each.requests, each.overdue, each.ends, each.checked, each.violating
                )
                for name, each in self.operations.items()
            },
        )


class _Counts:
    """The counts by second.

    A hanging request is counted when it becomes overdue and when it ends.
    """

    def __init__(self, overdue: float) -> None:
        self._overdue = overdue
        self._budgets = {write: SampleBudget(_SAMPLES_A_SECOND) for write in (False, True)}
        self._due: dict[int, dict[tuple[str, int], _Sums]] = defaultdict(dict)

    def count(self, second: int, place: tuple[str, int], asked: _Asked) -> None:
        seconds = min(asked.duration, self._overdue)
        for counted in self._at(second + int(seconds), place).at(asked.operation):
            counted.requests += 1
            counted.overdue += asked.duration >= self._overdue
            counted.seconds += seconds
            counted.squares += seconds**2
        for ended in self._at(second + int(asked.duration), place).at(asked.operation):
            ended.ends[asked.outcome] += 1
            ended.writes += asked.write
            ended.failed_writes += asked.write and asked.outcome in FAILED

    def validate(self, second: int, place: tuple[str, int], asked: _Asked) -> None:
        budget, write = self._budgets[asked.write], asked.write
        if asked.outcome != FINE or not budget.has(1, second):
            return
        budget.take(1)
        for sums in self._at(second, place).at(asked.operation):
            sums.checked += 1
            sums.violating += bool(asked.fields)
            sums.checked_writes += write
            sums.violating_writes += write and bool(asked.fields)
        fields = self._at(second, place).fields
        for name in asked.fields:
            fields[name] = fields.get(name, 0) + 1

    def take(self, second: int) -> list[CutoverDelta]:
        return [sums.delta(place) for place, sums in self._due.pop(second, {}).items()]

    def _at(self, second: int, place: tuple[str, int]) -> _Sums:
        due = self._due[second]
        sums = due.get(place)
        if sums is None:
            sums = due[place] = _Sums()
        return sums


def simulate(
    seed: int,
    traffic: Traffic,
    cutover_text: str,
    *,
    fault: Fault | None = None,
    seconds: int = 600,
) -> Run:
    """Simulate a cutover until its rollback or the end of the time.

    Args:
        fault: the fault of the new route; None for a healthy route.
    """
    chance = random.Random(seed)
    rules = loaded(edited("{ service: old }", f"{{ service: old, cutover: {cutover_text} }}"))
    decider = Decider(rules)
    cutover = rules.cutovers[KEY]
    counts = _Counts((cutover.gates or GateLimits()).overdue)
    usual = _Usual(traffic, chance)
    highest, struck = 0.0, 0
    for second in range(seconds):
        overrides = overrides_of(decider.documents)
        for client in usual.clients():
            context = RequestContext(client, 0.0, overrides, 0.0, chance.random())
            route = cutover.route_for(context)
            asked = usual.ask(client, second)
            if route is CutoverRoute.NEW and _is_struck(asked, second, fault, chance):
                struck += 1
                asked.strike(fault or Fault())
            place = route.value, cutover.cell_of(client)
            counts.count(second, place, asked)
            counts.validate(second, place, asked)
        decider.totals.absorb(Delta(decider.date, [], [], [], counts.take(second), []))
        state = decider.advance(1.0)
        highest = max(highest, state.percent)
        if state.decided_by is DecidedBy.ROLLED_BACK:
            return Run(second + 1, state, highest, struck)
    return Run(seconds, state, highest, struck)


def _is_struck(asked: _Asked, second: int, fault: Fault | None, chance: random.Random) -> bool:
    if fault is None or second < fault.begins or fault.client not in ("", asked.client):
        return False
    of_it = asked.rare if fault.rare else asked.write or not fault.writes
    return of_it and chance.random() < fault.share
