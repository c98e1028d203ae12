"""The evidence of a cutover: which requests count in which group, and against what."""

from collections.abc import Mapping

import pytest

from gateway.rollout.evidence import (
    ALL,
    BLOCK,
    DIFFERS,
    MAX_CLIENTS,
    MAX_OPERATIONS,
    READS,
    SHADOW,
    SLOW,
    WRITES,
    CutoverEvidence,
    EvidenceRow,
    Group,
    unnamed,
)

MARGINS = dict.fromkeys(("5xx", "404", "answers", DIFFERS), 0.01) | {SLOW: 0.4}
CLIENTS = [f"c{number}" for number in range(20)]
READ = "GET /orders"


def row(client: str, operation: str = READ, requests: int = 1, **counts: int) -> EvidenceRow:
    named = {name.removeprefix("_"): count for name, count in counts.items()}
    return EvidenceRow(client, operation, requests, named, timed=requests)


class Watched:
    """Evidence whose blocks are filled by a test."""

    def __init__(self, history: object = None) -> None:
        self.evidence, self.now, self.step = CutoverEvidence(history), 0.0, 1
        self.turn(0)

    def block(self, *rows: EvidenceRow, **routes: list[EvidenceRow]) -> None:
        """Add rows on the new route, and on other routes by name; then end the block."""
        self.evidence.add("new", rows)
        for route, others in routes.items():
            self.evidence.add(route, others)
        self.turn(BLOCK)

    def turn(self, seconds: float, *, settled: bool = False) -> None:
        self.now += seconds
        self.evidence.advance(self.now, self.step, MARGINS, timed=True, settled=settled)

    def strongest(self) -> Mapping[tuple[str, str], float]:
        """Return the larger of the logarithms for each group that may be suspected, above 0."""
        found: dict[tuple[str, str], float] = {}
        for subject, value in self.evidence.values.items():
            if value > 0:
                found[subject.group] = max(value, found.get(subject.group, 0.0))
        return found


def usual(watched: Watched, blocks: int = 5, clients: list[str] = CLIENTS) -> None:
    for _ in range(blocks):
        watched.block(old=[row(client) for client in clients])
    watched.step += 1
    watched.turn(0)


OLD = [row(client) for client in CLIENTS[10:]]


@pytest.mark.parametrize(
    ("failing", "groups"),
    [
        ([row(client, _5xx=1) for client in CLIENTS[:10]], {(ALL, ""), (READS, ""), (READ, "")}),
        (
            [row("c0", "POST /orders", _5xx=1), *(row(each) for each in CLIENTS[:10])],
            {(WRITES, ""), ("POST /orders", ""), (WRITES, "c0")},
        ),
        ([row("c0", _5xx=1), *(row(each) for each in CLIENTS[1:10])], {(READS, "c0")}),
        ([row(each) for each in CLIENTS[:10]], set()),
    ],
    ids=["all", "an operation", "a client", "none"],
)
def test_a_fault_is_found_in_the_groups_that_it_affects(
    failing: list[EvidenceRow], groups: set[tuple[str, str]]
) -> None:
    watched = Watched()
    usual(watched)
    for _ in range(6):
        watched.block(*failing, old=OLD)
    assert groups <= watched.strongest().keys()
    assert bool(groups) == bool(watched.strongest())


def test_an_outage_of_both_routes_is_no_evidence() -> None:
    watched = Watched()
    usual(watched)
    for _ in range(10):
        watched.block(
            *(row(each, _5xx=1) for each in CLIENTS[:10]),
            old=[row(each, _5xx=1) for each in CLIENTS[10:]],
        )
    assert not watched.strongest()


@pytest.mark.parametrize(("served", "is_found"), [(True, False), (False, True)])
def test_a_client_that_failed_on_the_old_route_is_no_evidence(
    *, served: bool, is_found: bool
) -> None:
    watched = Watched()
    failing = [row("c0", _5xx=1)] if served else []
    for _ in range(5):
        watched.block(old=[*(row(each) for each in CLIENTS[1:]), *failing])
    watched.step += 1
    watched.turn(0)
    for _ in range(8):
        watched.block(row("c0", _5xx=1), *(row(each) for each in CLIENTS[1:10]), old=OLD)
    assert ((READS, "c0") in watched.strongest()) == is_found


@pytest.mark.parametrize("measure", ["5xx", "404"])
def test_a_new_client_that_is_always_refused_is_no_evidence(measure: str) -> None:
    """Such clients are common, unlike clients that always cause failures of the service."""
    watched = Watched()
    usual(watched, clients=CLIENTS[10:])
    failing = row("scanner")
    failing.counts[measure] = 1
    for _ in range(8):
        watched.block(failing, *(row(each) for each in CLIENTS[:9]), old=OLD)
    assert ((READS, "scanner") in watched.strongest()) == (measure == "5xx")


def test_without_the_old_route_requests_are_compared_with_its_history() -> None:
    watched = Watched()
    usual(watched)
    for _ in range(4):
        watched.block(*(row(each, _5xx=1) for each in CLIENTS))
    assert (ALL, "") in watched.strongest()


def test_slow_operations_are_compared_with_the_durations_on_the_old_route() -> None:
    def timed(client: str, operation: str, log_seconds: float) -> EvidenceRow:
        return EvidenceRow(client, operation, 1, {}, timed=1, log_seconds=log_seconds)

    watched = Watched()
    operations = ("GET /slow", "GET /same")
    fast = [timed(each, name, -4 + int(each[1:]) / 50) for each in CLIENTS for name in operations]
    usual(watched)
    for _ in range(3):
        watched.block(old=fast)
    for _ in range(4):
        new = [
            timed(each, name, -3.7 + (name == operations[0]))
            for each in CLIENTS
            for name in operations
        ]
        watched.block(*new, old=fast)
    assert watched.strongest().keys() == {("GET /slow", "")}


@pytest.mark.parametrize("failing", [3, 300])
def test_a_fault_that_ended_is_no_longer_suspected_after_some_good_blocks(failing: int) -> None:
    watched = Watched()
    usual(watched)
    for _ in range(failing):
        watched.block(*(row(each, _5xx=1) for each in CLIENTS[:10]), old=OLD)
    suspected = [watched.evidence.is_suspected]
    for _ in range(120):
        watched.block(*(row(each) for each in CLIENTS[:10]), old=OLD)
        suspected.append(watched.evidence.is_suspected)
    assert suspected[0]
    assert not suspected[-1]


def test_differences_are_compared_with_their_limit() -> None:
    def compared(differs: int) -> list[EvidenceRow]:
        return [EvidenceRow(each, READ, 0, {DIFFERS: differs}, compared=1) for each in CLIENTS]

    watched = Watched()
    for _ in range(3):
        watched.block(shadow=compared(0))
    assert not watched.strongest()
    for _ in range(3):
        watched.block(shadow=compared(1))
    assert watched.strongest().keys() == {(ALL, ""), (READ, "")}
    watched.evidence.reset_shadow()
    assert not watched.strongest()
    assert SHADOW not in watched.evidence.sums


def test_a_new_step_begins_without_evidence_but_with_the_history() -> None:
    watched = Watched()
    usual(watched)
    for _ in range(4):
        watched.block(*(row(each, _5xx=1) for each in CLIENTS[:10]), old=OLD)
    known = watched.evidence.stored()
    watched.step += 1
    watched.turn(0)
    assert not watched.strongest()
    assert watched.evidence.stored() == known


def test_a_stored_history_is_read_and_one_of_another_release_is_ignored() -> None:
    watched = Watched()
    watched.block(old=[row("c0", _404=1), row("c1")])
    stored = watched.evidence.stored()
    assert stored == {name: [2.0, {"404": 1.0}] for name in (ALL, READS, READ)}
    assert Watched(stored).evidence.stored() == stored
    assert Watched({"": [1.0]}).evidence.stored() == {}


def test_the_history_follows_the_new_route_after_the_last_step() -> None:
    watched = Watched()
    usual(watched)
    for _ in range(30):
        watched.evidence.add("new", [row(each) for each in CLIENTS])
        watched.turn(BLOCK, settled=True)
    history = watched.evidence.stored()
    assert history[READ] == [700.0, {}]  # type: ignore[index]
    for _ in range(30):
        watched.evidence.add("new", [row(each, _5xx=1) for each in CLIENTS])
        watched.turn(BLOCK, settled=True)
    history = watched.evidence.stored()
    assert history[READ][1]["5xx"] <= 20  # type: ignore[index]  # a fault does not become usual


def test_clients_and_operations_beyond_the_maximum_are_counted_together() -> None:
    watched = Watched()
    many = [row(f"m{number}", _5xx=1) for number in range(MAX_CLIENTS + 500)]
    paths = [row("c0", f"GET /{number}", _5xx=1) for number in range(MAX_OPERATIONS + 50)]
    watched.block(*many, *paths)
    groups = {subject.group for subject in watched.evidence.values}
    assert sum(bool(group.client) for group in groups) <= MAX_CLIENTS
    assert len({group.name for group in groups}) <= MAX_OPERATIONS + 2
    assert watched.evidence.sums["new"][Group(ALL)].requests == len(many) + len(paths)


def test_unnamed_clients_are_not_judged_alone() -> None:
    watched = Watched()
    usual(watched)
    for _ in range(6):
        watched.block(row(unnamed(1), _5xx=1), *(row(each) for each in CLIENTS[:10]), old=OLD)
    assert not any(group.client for group, *_ in watched.evidence.values)
