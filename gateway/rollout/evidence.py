"""The evidence for the gates of a cutover: the outcomes of its requests since the step began.

The requests are judged in several groups: all requests, all reads, all writes, each operation, and
the reads and the writes of each client. A unit of the evidence contains the requests of one client
in one block of 10 seconds, since such requests usually fail together.

In each block, the units of a group on the new route are compared with those on the old route. So
bursts and outages of both routes are no evidence. A client that often failed on the old route has a
higher usual share of failures. The reads or writes of one client are compared with those of all
other clients. If the old route has no requests in a block, the new route is compared with the
history of the old route.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from math import inf, log, sqrt
from typing import NamedTuple, TypeVar

import msgspec

from gateway.rollout.e_process import NO_SHIFT, EProcess, Units, penalties

BLOCK = 10.0
"""The length of a block in seconds."""
# An incomplete block is judged after this number of seconds, to find a dead route earlier.
_PART = 2.5
ALL, READS, WRITES = "", "reads", "writes"
"""The names of groups. All other names are operations, such as `GET /orders`."""
SLOW = "slow"
"""The measure of the gate `latency`: a unit whose requests take longer than most units."""
DIFFERS = "differs"
"""The measure of the gate `differences`: a compared response that differs."""
SHADOW = "shadow"
"""The route of compared responses."""

# Clients without a name and clients beyond the maximum number are divided into groups.
_UNNAMED, _UNNAMED_GROUPS = "\0", 64

SUSPECTED = log(3)
"""Above this logarithm of the e-value of one group, a step does not end."""
MAX_OPERATIONS = 500
MAX_CLIENTS = 2000
# The history of a group counts at most this number of units, so that it follows a slow change.
_MEMORY = 2000.0
# The history starts with this number of supposed units without failures. Services rarely fail, but
# refusals and redirects may be usual.
_SUPPOSED = {"5xx": 40.0, "conversion": 40.0, "overdue": 40.0}
_SUPPOSED_BAD = 0.5
# Clients that are always refused are common. If a client has fewer units on the old route, refusals
# are no evidence against the new route after this number of units that are mostly refused, unless
# most of its units are not.
_REFUSALS = frozenset({"401", "403", "404", "429", "other 4xx"})
_FEW = 3
# In a block in which the share on the old route exceeds its usual share by this many times the
# margin, both routes may have an outage.
_UNUSUAL = 3
# A unit is slow if it takes longer than this share of the units of the operation on the old route.
_SLOW_ABOVE = 0.8
# The number of units of an operation that define its usual duration, at least and at most.
_MIN_TIMES, _MAX_TIMES = 20, 200


class EvidenceRow(msgspec.Struct, array_like=True):
    """Requests of one client for one operation on one route.

    Attributes:
        operation: The operation, such as `POST /orders`.
        requests: The number of requests that ended or became overdue.
        counts: The number of requests by measure, without good requests.
        checked: The number of responses that were validated against the document.
        compared: The number of responses that the shadow compared.
        timed: The number of requests that ended.
        log_seconds: The sum of the logarithms of their durations in seconds.
    """

    client: str
    operation: str
    requests: int = 0
    counts: dict[str, int] = {}
    checked: int = 0
    compared: int = 0
    timed: int = 0
    log_seconds: float = 0.0

    def add(self, more: "EvidenceRow") -> None:
        self.requests += more.requests
        self.checked += more.checked
        self.compared += more.compared
        self.timed += more.timed
        self.log_seconds += more.log_seconds
        for measure, count in more.counts.items():
            self.counts[measure] = self.counts.get(measure, 0) + count

    def total(self, measure: str) -> int:
        """Return the number of requests or responses that can count for a measure."""
        found = self.requests
        if measure == "answers":
            found = self.checked
        elif measure == DIFFERS:
            found = self.compared
        elif measure == SLOW:
            found = min(self.timed, 1)
        return max(found, self.counts.get(measure, 0))


class Group(NamedTuple):
    """A group of requests: of all clients, or the reads or writes of one client."""

    name: str
    client: str = ""


class Subject(NamedTuple):
    """The subject of an e-value. With `any`, a unit counts as bad if any of its requests failed."""

    group: Group
    measure: str
    any: bool = False


_Key = TypeVar("_Key")
_Clients = dict[str, EvidenceRow]
_Unit = tuple[float, float, int]


@dataclass(slots=True)
class _History:
    """The units of a group on the old route; `bad` has the sum of their shares by measure."""

    units: float = 0.0
    bad: dict[str, float] = field(default_factory=dict)
    times: deque[float] = field(default_factory=lambda: deque(maxlen=_MAX_TIMES))
    slow_above: float = inf

    def add(self, row: EvidenceRow) -> None:
        if self.units >= 2 * _MEMORY:
            self.units /= 2
            self.bad = {measure: share / 2 for measure, share in self.bad.items()}
        self.units += 1
        for measure, count in row.counts.items():
            share = count / row.total(measure)
            self.bad[measure] = self.bad.get(measure, 0.0) + share

    def usual(self, measure: str) -> float:
        supposed = _SUPPOSED.get(measure, 1.0)
        return (self.bad.get(measure, 0.0) + _SUPPOSED_BAD) / (self.units + supposed)


_UNKNOWN = _History()
_NOTHING = EvidenceRow("", "")


class CutoverEvidence:
    """The evidence for one cutover. `history` is the result of `stored`."""

    def __init__(self, history: object = None) -> None:
        self._history: dict[str, _History] = {}
        self._failing: dict[Group, _History] = {}
        self._served: Counter[str] = Counter()
        self._block: dict[str, dict[str, _Clients]] = {}
        # The clients with a count of a measure, by route, group and measure.
        self._failed: defaultdict[tuple[str, str, str], set[str]] = defaultdict(set)
        # Computed once for each judgement.
        self._known_tallies: dict[tuple[str, str, str, bool], Counter[_Unit]] = {}
        self._known_sizes: dict[tuple[str, str, str, bool], Counter[int]] = {}
        self._began = self._judged = 0.0
        self._step: object = None
        self.reset()
        for name, (units, bad) in _read(history).items():
            self._history[name] = _History(units, bad)

    def reset(self) -> None:
        """Forget the requests since the percentage was set, but not the history."""
        self._blocks = 0
        self._processes: dict[Subject, EProcess] = {}
        self.values: dict[Subject, float] = {}
        self.sums: dict[str, dict[Group, EvidenceRow]] = {}
        self._clients: set[str] = set()
        self._served_by: dict[str, set[str]] = {}
        self._refused: Counter[tuple[Group, str]] = Counter()
        # The units of clients on the new route since their first refusal.
        self._units: Counter[Group] = Counter()
        # The history of clients during the step would hide an outage of both routes if only clients
        # on the old route had one. So it counts only for clients that both routes serve.
        self._failed_before = deepcopy(self._failing)
        # The clients whose units differ from those of other clients, by group and measure.
        self._special: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
        for group, known in self._failed_before.items():
            for measure in known.bad:
                self._special[group.name, measure].add(group.client)
        self._excess: dict[str, list[float]] = {}

    def reset_shadow(self) -> None:
        self._block.pop(SHADOW, None)
        for key in [each for each in self._failed if each[0] == SHADOW]:
            del self._failed[key]
        self.sums.pop(SHADOW, None)
        for subject in [each for each in self._processes if each.measure == DIFFERS]:
            del self._processes[subject], self.values[subject]

    def add(self, route: str, rows: Iterable[EvidenceRow]) -> None:
        groups = self._block.setdefault(route, {})
        sums = self.sums.setdefault(route, {})
        for row in rows:
            client, operation = self._known_client(row.client), row.operation
            if route != SHADOW:
                self._served_by.setdefault(client, set()).add(route)
            access = READS if operation.startswith(("GET ", "HEAD ")) else WRITES
            names = [ALL, access]
            if operation in groups or len(groups) < MAX_OPERATIONS:
                names.append(operation)
            for name in names:
                _row(groups.setdefault(name, {}), client).add(row)
                _row(sums, Group(name)).add(row)
                for measure in row.counts:
                    self._failed[route, name, measure].add(client)
            _row(sums, Group(access, client)).add(row)

    def _known_client(self, name: str) -> str:
        if name not in self._clients:
            if len(self._clients) >= MAX_CLIENTS:
                return unnamed(hash(name))
            self._clients.add(name)
        return name

    def advance(
        self,
        now: float,
        step: object,
        margins: Mapping[str, float],
        *,
        timed: bool,
        settled: bool,
    ) -> None:
        """Judge the requests up to a monotonic time in seconds.

        Args:
            step: The evidence of an earlier step does not count.
            margins: The share by which each measure may be higher on the new route. For SLOW, the
                logarithm of the factor by which durations may be longer.
            timed: Whether durations are compared with the history of the old route.
            settled: Whether the last step has ended. The history then follows the new route.
        """
        if self._step != step:
            self._step, self._began, self._judged = step, now, 0.0
            self._clear()
            self.reset()
        while now >= self._began + BLOCK:
            self._judge(1.0, margins, timed=timed, keep=True)
            self._remember(self._block.get("old", {}))
            if settled and not self._block.get("old") and not self.is_suspected:
                self._remember(self._block.get("new", {}))
            self._measure(margins)
            self._clear()
            self._blocks += 1
            self._began += BLOCK
            self._judged = 0.0
        if now - self._began >= self._judged + _PART:
            self._judged = now - self._began
            self._judge(self._judged / BLOCK, margins, timed=timed, keep=False)

    def _clear(self) -> None:
        self._block.clear()
        self._failed.clear()

    @property
    def is_suspected(self) -> bool:
        """Whether the e-value of any group is so high that a step should not end."""
        return max(self.values.values(), default=-inf) > SUSPECTED

    def usual(self, subject: Subject) -> float:
        return self._history.get(subject.group.name, _UNKNOWN).usual(subject.measure)

    def known_share(self, subject: Subject) -> float | None:
        """Return the share in the history of the old route; None without a history."""
        known = self._history.get(subject.group.name)
        return None if known is None else known.bad.get(subject.measure, 0.0) / known.units

    def excess(self, measure: str) -> tuple[float, float, float]:
        """Return how much higher a share is on the new route, the standard error, and the usual.

        Blocks in which both routes may have an outage are left out.
        """
        more, count, total = self._excess.get(measure, (0.0, 0.0, 0.0))
        total = max(total, 1.0)
        usual = self._history.get(ALL, _UNKNOWN).usual(measure)
        return more / total, sqrt(count + 1) / total, usual

    def stored(self) -> object:
        """Return the history of all clients as a JSON value."""
        groups = [*self._history.items()][: MAX_OPERATIONS // 5]
        return {name: [known.units, known.bad] for name, known in groups}

    def combined(self, measures: int) -> dict[str, list[tuple[float, Subject]]]:
        """Return the logarithms of the weighted e-values by measure; their sum is the mean e-value.

        All requests together, the operations, and the clients have equal weights.
        """
        operations = len(self._history.keys() - {ALL, READS, WRITES})
        clients = len({group.client for group in self.sums.get("new", ())})
        weights = (1 / 6, 1 / 2 / max(operations, 1), 1 / 2 / max(clients, 1))
        found: dict[str, list[tuple[float, Subject]]] = {}
        for subject, value in self.values.items():
            weighted = value + log(weights[_level(subject)] / 3 / measures)
            found.setdefault(subject.measure, []).append((weighted, subject))
        return found

    def _judge(
        self, elapsed: float, margins: Mapping[str, float], *, timed: bool, keep: bool
    ) -> None:
        for name, clients in self._block.get("new", {}).items():
            self._begin(name, clients, margins)
        for name in self._block.get(SHADOW, {}):
            if DIFFERS in margins and name not in (READS, WRITES):
                self._processes.setdefault(Subject(Group(name), DIFFERS), EProcess())
        self._known_tallies.clear()
        self._known_sizes.clear()
        for subject, process in self._processes.items():
            # Most subjects are judged only at the end of a block, which takes less time.
            is_quick = not (subject.any or subject.group.client) and self._has_failed(subject)
            if not (keep or is_quick):
                continue
            margin, measure = margins.get(subject.measure), subject.measure
            if margin is None or (measure == SLOW and not (timed or self._is_served(subject))):
                continue
            new, old = self._compared(subject, margin, elapsed)
            self.values[subject] = process.log_value(
                self._blocks,
                new,
                old,
                0.0 if measure == SLOW else margin,
                self._penalties(subject),
                keep=keep,
            )

    def _begin(self, name: str, clients: _Clients, margins: Mapping[str, float]) -> None:
        group, slow_above = Group(name), self._history.get(name, _UNKNOWN).slow_above
        for client, row in clients.items():
            for measure in row.counts.keys() & margins.keys():
                for subject in (Subject(group, measure), Subject(group, measure, any=True)):
                    self._processes.setdefault(subject, EProcess())
                if measure in _REFUSALS and self._served[client] < _FEW:
                    continue
                if name in (READS, WRITES) and not client.startswith(_UNNAMED):
                    subject = Subject(Group(name, client), measure)
                    self._processes.setdefault(subject, EProcess())
            # A group of several operations has no usual duration.
            is_operation = name not in (ALL, READS, WRITES)
            if SLOW in margins and is_operation and _is_slow(row, slow_above + margins[SLOW]):
                self._processes.setdefault(Subject(group, SLOW), EProcess())

    def _has_failed(self, subject: Subject) -> bool:
        """Return whether the current block may increase the e-value."""
        if subject.measure == SLOW:
            return True
        route = SHADOW if subject.measure == DIFFERS else "new"
        return bool(self._failed.get((route, subject.group.name, subject.measure)))

    def _is_served(self, subject: Subject) -> bool:
        return bool(self._block.get("old", {}).get(subject.group.name))

    def _compared(
        self, subject: Subject, margin: float, elapsed: float
    ) -> tuple[list[Units], list[Units]]:
        (name, client), measure = subject.group, subject.measure
        if measure == DIFFERS:
            return _units(self._tally(SHADOW, subject, elapsed)), []
        slower = margin if measure == SLOW else 0.0
        old = self._tally("old", subject, elapsed)
        new = self._tally("new", subject, elapsed, slower)
        if not client:
            return _units(new), _units(old)
        row = self._block.get("new", {}).get(name, {}).get(client)
        if row is None or not row.total(measure):
            return [], []
        others = old + new
        own = self._unit(subject, client, row, elapsed)
        others[own] -= 1
        return [Units(1, *own)], _units(others)

    def _tally(
        self,
        route: str,
        subject: Subject,
        elapsed: float,
        slower: float = 0.0,
    ) -> Counter[_Unit]:
        """Return the number of equal units of all clients in the current block."""
        name, measure = subject.group.name, subject.measure
        key = route, name, measure, subject.any
        if key in self._known_tallies:
            return self._known_tallies[key]
        clients = self._block.get(route, {}).get(name, {})
        found: Counter[_Unit] = Counter()
        sizes, special = Counter[int](), set(clients)
        if measure != SLOW:  # the durations of all clients differ
            sizes = self._sizes(route, subject)
            failed = self._failed.get((route, name, measure), set())
            special &= failed | self._special.get((name, measure), set())
        for client in special:
            row = clients[client]
            if size := row.total(measure):
                sizes[_rounded(size) if subject.any else 1] -= 1
                if route != "new" or not self._is_refused(subject, client):
                    found[self._unit(subject, client, row, elapsed, slower)] += 1
        usual = self._usual_of(Group(name), measure, self.usual(subject))
        for size, number in sizes.items():
            if number > 0:
                found[0.0, usual, size] += number
        self._known_tallies[key] = found
        return found

    def _sizes(self, route: str, subject: Subject) -> Counter[int]:
        """Return the number of units by size, without regard to what failed."""
        total = subject.measure if subject.measure in ("answers", DIFFERS) else ""
        key = route, subject.group.name, total, subject.any
        if key not in self._known_sizes:
            clients = self._block.get(route, {}).get(subject.group.name, {})
            totals = (row.total(subject.measure) for row in clients.values())
            self._known_sizes[key] = Counter(
                _rounded(size) if subject.any else 1 for size in totals if size
            )
        return self._known_sizes[key].copy()

    def _unit(
        self, subject: Subject, client: str, row: EvidenceRow, elapsed: float, slower: float = 0.0
    ) -> _Unit:
        """Return the unit of a client. In an incomplete block, missing requests count as good."""
        name, measure = subject.group.name, subject.measure
        size, count = row.total(measure), row.counts.get(measure, 0)
        if measure == SLOW:
            count = int(_is_slow(row, self._history.get(name, _UNKNOWN).slow_above + slower))
        bad = float(bool(count)) if subject.any else count / size * elapsed
        usual = self._usual_of(Group(name, client), measure, self.usual(subject))
        return bad, usual, _rounded(size) if subject.any else 1

    def _usual_of(self, group: Group, measure: str, usual: float) -> float:
        if measure == DIFFERS:
            return 1e-6
        is_divided = len(self._served_by.get(group.client, ())) > 1 and measure != SLOW
        known = (self._failing if is_divided else self._failed_before).get(group)
        if known is None or measure not in known.bad:
            return usual
        bad, units = known.bad[measure], known.units
        error = 2 * sqrt(bad * max(units - bad, 0.0) / units)
        if is_divided and (bad - error) / units < usual:
            return usual  # the client is not known to be worse than others
        # An estimate that is too low would become false evidence in a long step.
        return min(max(usual, (bad + error) / units), 1.0)

    def _penalties(self, subject: Subject) -> Sequence[float]:
        if subject.measure == DIFFERS:
            return NO_SHIFT
        known = self._history.get(subject.group.name, _UNKNOWN)
        units = min(known.units, _MEMORY) + _SUPPOSED.get(subject.measure, 0.0)
        return penalties(units, known.usual(subject.measure))

    def _is_refused(self, subject: Subject, client: str) -> bool:
        group = Group(subject.group.name, client)
        refused = self._refused.get((group, subject.measure), 0)
        return refused >= max(_FEW, self._units[group] / 2) and self._served[client] < _FEW

    def _measure(self, margins: Mapping[str, float]) -> None:
        """Add the counts of a complete block to `excess`."""
        new, old = (self._block.get(route, {}) for route in ("new", "old"))
        for name, clients in new.items():
            for client, row in clients.items():
                group = Group(name, client)
                refused = [
                    measure
                    for measure in _REFUSALS & row.counts.keys()
                    if row.counts[measure] * 2 >= row.requests
                ]
                for measure in refused:
                    self._refused[group, measure] += 1
                    self._special[name, measure].add(client)
                if refused or group in self._units:
                    self._units[group] += 1
        for measure, margin in margins.items():
            usual = self._history.get(ALL, _UNKNOWN).usual(measure)
            count, total, expected = self._expected(new, measure)
            bad, among, _ = self._expected(old, measure)
            control = bad / among if among else 0.0
            if control > usual + _UNUSUAL * margin:
                continue  # both routes may have an outage
            known = self._excess.setdefault(measure, [0.0, 0.0, 0.0])
            known[0] += count - max(expected, control * total)
            known[1] += count
            known[2] += total

    def _expected(self, groups: Mapping[str, _Clients], measure: str) -> tuple[int, int, float]:
        """Return the count, the total and the usual count of a measure, without refused clients."""
        count, total, expected = 0, 0, 0.0
        usual = self._history.get(ALL, _UNKNOWN).usual(measure)
        for client, row in groups.get(ALL, {}).items():
            if not self._is_refused(Subject(Group(ALL), measure), client):
                of_client = self._usual_of(Group(ALL, client), measure, usual)
                count += row.counts.get(measure, 0)
                total += row.total(measure)
                expected += row.total(measure) * of_client
        return count, total, expected

    def _remember(self, groups: Mapping[str, _Clients]) -> None:
        for name, clients in groups.items():
            if name not in self._history and len(self._history) >= MAX_OPERATIONS:
                continue
            known = self._history.setdefault(name, _History())
            for client, row in clients.items():
                if name == ALL:
                    self._served[client] += 1
                if _is_slow(row, known.slow_above):
                    row.counts[SLOW] = 1
                known.add(row)
                if row.timed:
                    known.times.append(row.log_seconds / row.timed)
                group = Group(name, client)
                for measure in row.counts:
                    self._special[name, measure].add(client)
                if group in self._failing:
                    self._failing[group].add(row)
                elif row.counts and client and len(self._failing) < MAX_CLIENTS:
                    self._failing.setdefault(group, _History()).add(row)
            if len(known.times) >= _MIN_TIMES:
                known.slow_above = sorted(known.times)[int(len(known.times) * _SLOW_ABOVE)]


def unnamed(number: int) -> str:
    """Return the name of a group of clients. It is not the name of any client."""
    return f"{_UNNAMED}{number % _UNNAMED_GROUPS}"


def _row(rows: dict[_Key, EvidenceRow], key: _Key) -> EvidenceRow:
    found = rows.get(key)
    if found is None:
        found = rows[key] = EvidenceRow("", "")
    return found


def _units(tally: Mapping[_Unit, int]) -> list[Units]:
    return [Units(number, *unit) for unit, number in tally.items() if number > 0]


def _level(subject: Subject) -> int:
    name, client = subject.group
    return 2 if client else 0 if name in (ALL, READS, WRITES) else 1


def _is_slow(row: EvidenceRow, above: float) -> bool:
    return bool(row.timed) and row.log_seconds / row.timed > above


def _rounded(size: int) -> int:
    """Round a size down to two binary digits, so that many units are equal."""
    shift = max(size.bit_length() - 2, 0)
    return size >> shift << shift


def _read(document: object) -> dict[str, tuple[float, dict[str, float]]]:
    try:
        return msgspec.convert(document or {}, dict[str, tuple[float, dict[str, float]]])
    except msgspec.ValidationError:  # another release stored it
        return {}
