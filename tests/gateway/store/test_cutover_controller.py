"""Cutovers on the evidence of a shadow that begins anew."""

import json
import time

import msgspec
import pytest

from gateway.rollout.gates import GateEvidence
from gateway.rollout.route_outcomes import OUTCOMES
from gateway.routing.snapshot import Snapshot
from gateway.store.active_overrides import ActiveOverrides
from gateway.store.cutover_controller import CutoverController
from gateway.store.state_writer import StateWriter
from gateway.usage.delta import CounterDelta, CutoverDelta, Delta, OperationDelta
from gateway.usage.state_changes import StateChanges
from tests.gateway.rules.rules import edited, loaded

SERVED = ("person", "1")
RULES_OF_SHIFT = edited(
    "{ service: old }",
    '{ service: old, shadow: { via: "2" }, cutover: { via: "2", percent: 5,'
    " sticky_by: request, gates: { differences: 1%, minimum: 10 } } }",
)


def report(compared: int, differing: int) -> Delta:
    counts = [
        CounterDelta("compared", SERVED, compared),
        CounterDelta("differing", SERVED, differing),
    ]
    return Delta(1.0, [], [], counts, [], [])


async def test_what_was_found_before_speaks_no_more() -> None:
    snapshot: Snapshot = loaded(RULES_OF_SHIFT)
    writer = StateWriter(None)
    cutovers = CutoverController(writer, ActiveOverrides(writer), lambda: snapshot)
    writer.totals.absorb(report(100, 0))
    for now in (10.0, 20.0):
        await cutovers.decide(now)
    writer.totals.absorb(report(50, 0))
    writer.totals.reset_shadow(SERVED)
    cutovers.reset_shadow(SERVED)
    writer.totals.absorb(report(20, 0))
    await cutovers.decide(30.0)
    writer.totals.absorb(report(20, 20))
    await cutovers.decide(31.0)
    standing = cutovers._states[SERVED]
    assert standing.percent == 0
    assert "20 of 40" in standing.why


RULES_OF_STEPS = edited(
    "{ service: old }",
    '{ service: old, cutover: { via: "2", steps: [5, 50], every: 1m, sticky_by: request,'
    " gates: { errors: 10%, window: 30s, minimum: 10, then: roll_back } } }",
)


class Clocks:
    """The clocks of a machine, as a test sets them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.date = 1_000_000_000.0
        self.passed = 500.0
        monkeypatch.setattr("time.time", lambda: self.date)
        monkeypatch.setattr("time.monotonic", lambda: self.passed)

    def go_on(self, seconds: float) -> None:
        self.date += seconds
        self.passed += seconds


def outcomes(requests: int, failures: int) -> Delta:
    ends = [0] * len(OUTCOMES)
    ends[OUTCOMES.index("2xx")] = requests - failures
    ends[OUTCOMES.index("5xx")] = failures
    seconds, squares = 0.1 * requests, 0.01 * requests
    new = CutoverDelta(
        *(*SERVED, "new", -1, requests, 0, ends, seconds, squares, [requests], seconds)
    )
    return Delta(1.0, [], [], [], [new], [])


@pytest.mark.parametrize("judges", [False, True])
@pytest.mark.parametrize("moved", [-40_000_000.0, -3600.0, 3600.0, 40_000_000.0])
async def test_a_clock_that_is_set_moves_no_window_and_no_step(
    monkeypatch: pytest.MonkeyPatch, moved: float, *, judges: bool
) -> None:
    """The judge of a fleet reads the states anew each time."""
    clocks = Clocks(monkeypatch)
    snapshot: Snapshot = loaded(RULES_OF_STEPS)
    writer = StateWriter(None)
    cutovers = CutoverController(writer, ActiveOverrides(writer), lambda: snapshot)

    async def decide(seconds: int) -> float:
        for _ in range(seconds):
            clocks.go_on(1)
            if judges:
                cutovers.resume(writer, ActiveOverrides(writer))
            await cutovers.decide(clocks.passed)
        return cutovers._states[SERVED].percent

    await decide(10)
    clocks.date += moved
    writer.totals.absorb(outcomes(20, 0))
    assert await decide(40) == 5
    writer.totals.absorb(outcomes(20, 0))
    assert await decide(20) == 50
    current = cutovers.current(SERVED)
    assert 0 <= clocks.date - current.state.since < 20
    assert current.evidence.served_new.requests == 0
    writer.totals.absorb(outcomes(9, 0))
    assert await decide(60) == 50
    current = cutovers.current(SERVED)
    assert (current.evidence.new.requests, current.evidence.served_new.requests) == (0, 9)
    clocks.date -= moved
    await decide(5)
    writer.totals.absorb(outcomes(971, 495))
    assert await decide(2) == 0
    assert "495 of" in cutovers._states[SERVED].why


@pytest.mark.parametrize("moved", [-3600.0, 3600.0])
async def test_a_clock_that_was_set_moves_no_step_of_the_next_judge(
    monkeypatch: pytest.MonkeyPatch, moved: float
) -> None:
    clocks = Clocks(monkeypatch)
    snapshot: Snapshot = loaded(RULES_OF_STEPS)
    writer = StateWriter(None)
    first = CutoverController(writer, ActiveOverrides(writer), lambda: snapshot)
    await first.decide(clocks.passed)
    clocks.go_on(10)
    clocks.date += moved
    await first.decide(clocks.passed)
    following = CutoverController(writer, ActiveOverrides(writer), lambda: snapshot)
    percents = []
    for _ in range(60):
        clocks.go_on(1)
        writer.totals.absorb(outcomes(1, 0))
        await following.decide(clocks.passed)
        percents.append(following._states[SERVED].percent)
    assert percents.index(50.0) == 49


async def test_a_date_in_the_future_freezes_no_step(monkeypatch: pytest.MonkeyPatch) -> None:
    clocks = Clocks(monkeypatch)
    snapshot: Snapshot = loaded(RULES_OF_STEPS)
    writer = StateWriter(None)
    clocks.date += 40_000_000
    ahead = CutoverController(writer, ActiveOverrides(writer), lambda: snapshot)
    await ahead.decide(clocks.passed)
    clocks.date -= 40_000_000
    restarted = CutoverController(writer, ActiveOverrides(writer), lambda: snapshot)
    for _ in range(70):
        clocks.go_on(1)
        writer.totals.absorb(outcomes(1, 0))
        await restarted.decide(clocks.passed)
    assert restarted._states[SERVED].percent == 50


def old_outcomes(requests: int, refused: int) -> Delta:
    ends = [0] * len(OUTCOMES)
    ends[OUTCOMES.index("2xx")], ends[OUTCOMES.index("404")] = requests - refused, refused
    old = CutoverDelta(*SERVED, "old", -1, requests, 0, ends, 0.0, 0.0, [requests], 0.0)
    return Delta(1.0, [], [], [], [old], [])


async def test_a_percentage_can_be_set_before_anything_is_decided() -> None:
    snapshot: Snapshot = loaded(RULES_OF_STEPS)
    writer = StateWriter(None)
    cutovers = CutoverController(writer, ActiveOverrides(writer), lambda: snapshot)
    await cutovers.set(SERVED, 25.0)
    assert cutovers.current(SERVED).state.percent == 25


async def test_a_restart_forgets_neither_the_state_nor_the_old_way() -> None:
    """At 100% nothing of it would be seen again, and nothing could be compared."""
    snapshot: Snapshot = loaded(RULES_OF_STEPS)
    writer = StateWriter(None)
    cutovers = CutoverController(writer, ActiveOverrides(writer), lambda: snapshot)
    await cutovers.decide(10.0)
    writer.totals.absorb(old_outcomes(40, 30))
    await cutovers.decide(11.0)
    await cutovers.set(SERVED, 100.0)
    kept = msgspec.json.decode(msgspec.json.encode(writer.documents))
    again = StateWriter(None, StateChanges(documents=kept))
    restarted = CutoverController(again, ActiveOverrides(again), lambda: snapshot)
    await restarted.decide(12.0)
    found = restarted.current(SERVED)
    assert (found.state.percent, found.state.why) == (100, "an operator has set it")
    assert (found.evidence.old.requests, found.evidence.old.count("404")) == (40, 30)


async def test_what_it_was_rolled_back_for_outlives_a_restart() -> None:
    snapshot: Snapshot = loaded(RULES_OF_STEPS)
    writer = StateWriter(None)
    cutovers = CutoverController(writer, ActiveOverrides(writer), lambda: snapshot)
    await cutovers.decide(10.0)
    await cutovers.decide(15.0)
    writer.totals.absorb(outcomes(40, 30))
    await cutovers.decide(16.0)
    back = cutovers.current(SERVED)
    assert cutovers.results(SERVED) == back.results
    (gate,) = (each for each in back.results if each.outcome == "exceeded")
    assert (gate.new_count, gate.new_requests, gate.text) == (30, 40, back.state.why)
    kept = msgspec.json.decode(msgspec.json.encode(writer.documents))
    for results, expected in (
        (kept["cutovers"][0]["results"], back.results),
        ([{"gate": "of another release"}], ()),
    ):
        kept["cutovers"][0]["results"] = results
        again = StateWriter(None, StateChanges(documents=kept))
        restarted = CutoverController(again, ActiveOverrides(again), lambda: snapshot)
        assert restarted._states[SERVED].decided_by == "rolled_back"
        assert restarted._states[SERVED].results == expected
    await cutovers.clear(SERVED)
    assert {each.new_requests for each in cutovers.current(SERVED).results} == {0}


async def test_what_ends_after_a_rollback_is_no_news(events: list[str]) -> None:
    """Of the requests that hung, others end when all clients are back; once cleared, it is news."""
    snapshot: Snapshot = loaded(RULES_OF_STEPS)
    writer = StateWriter(None)
    cutovers = CutoverController(writer, ActiveOverrides(writer), lambda: snapshot)

    async def logged(now: float) -> int:
        await cutovers.decide(now)
        writer.totals.absorb(outcomes(40, 30))
        await cutovers.decide(now + 1)
        return events.count("gate_exceeded")

    await cutovers.decide(10.0)
    assert await logged(15.0) == 1
    assert await logged(25.0) == 1
    await cutovers.clear(SERVED)
    assert await logged(cutovers._states[SERVED].since + 10) == 2


KEPT = {"served": SERVED, "percent": 5, "word": "rules", "why": "so", "since": 1}


@pytest.mark.parametrize(
    ("kept", "states"),
    [
        ([{"served": ["person", "1"], "percent": "much"}], 0),
        # An earlier gateway kept nothing of the old route, a later one may tell more apart.
        ([KEPT], 1),
        ([KEPT | {"latest_old": [9, 0, [9], 0.0, 0.0]}], 1),
        ([KEPT | {"latest_old": [9, 0, [9] * len(OUTCOMES), 0.0, 0.0, *[1] * 20]}], 1),
        ([KEPT | {"latest_old": {"requests": 9}, "word": "new", "more": 1}], 1),
        ([{"served": ["users", "1"], "percent": "much"}, KEPT], 1),
    ],
)
async def test_what_cannot_be_read_is_left(kept: object, states: int) -> None:
    snapshot: Snapshot = loaded(RULES_OF_STEPS)
    writer = StateWriter(None, StateChanges(documents={"cutovers": kept}))
    cutovers = CutoverController(writer, ActiveOverrides(writer), lambda: snapshot)
    assert len(cutovers._states) == states
    assert cutovers.current(SERVED).evidence.old.requests == 0


class FormerState(msgspec.Struct):
    """A state as the release before reads it, which refuses longer arrays."""

    percent: float
    latest_old: tuple[int, int, tuple[int, ...], float, float]


async def test_the_release_before_reads_the_states() -> None:
    snapshot: Snapshot = loaded(RULES_OF_STEPS)
    writer = StateWriter(None)
    cutovers = CutoverController(writer, ActiveOverrides(writer), lambda: snapshot)
    await cutovers.set(SERVED, 25.0)
    (kept,) = msgspec.convert(writer.documents["cutovers"], list[FormerState])
    assert kept.percent == 25


async def test_what_a_later_release_decided_stands() -> None:
    snapshot: Snapshot = loaded(RULES_OF_STEPS)
    kept = [KEPT | {"word": "something new", "percent": 0}]
    writer = StateWriter(None, StateChanges(documents={"cutovers": kept}))
    cutovers = CutoverController(writer, ActiveOverrides(writer), lambda: snapshot)
    await cutovers.decide(time.monotonic() + 3600)
    assert cutovers.current(SERVED).state.percent == 0


async def test_another_controller_knows_what_operation_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One that judges no batch itself shows it all the same."""
    clocks = Clocks(monkeypatch)
    snapshot: Snapshot = loaded(RULES_OF_STEPS)
    writer = StateWriter(None)
    judge, other = (
        CutoverController(writer, ActiveOverrides(writer), lambda: snapshot) for _ in range(2)
    )
    for second in range(6):
        await judge.decide(time.monotonic())
        clocks.go_on(1)
        for route, failures in (("old", 0), ("new", int(second == 5))):
            (counted,) = outcomes(9, failures).outcomes
            asked = {"POST /p": OperationDelta(9, 0, counted.ends)}
            counted = msgspec.structs.replace(counted, route=route, operations=asked)
            writer.totals.absorb(Delta(1.0, [], [], [], [counted], []))
    other.recall(json.loads(json.dumps(judge.published())))
    (all_of_them, one) = other.current(SERVED).evidence.failing
    assert (all_of_them.operation, one.operation, one.measure) == ("", "POST /p", "5xx")
    assert (one.new[0], one.old[0], one.usual) == (1, 0, (0, 54))


async def test_another_controller_goes_by_the_evidence() -> None:
    """One of another release publishes other evidence, and none is better than no answer."""
    snapshot: Snapshot = loaded(RULES_OF_STEPS)
    writer = StateWriter(None)
    judge, other = (
        CutoverController(writer, ActiveOverrides(writer), lambda: snapshot) for _ in range(2)
    )
    await judge.decide(time.monotonic())
    writer.totals.absorb(outcomes(20, 5))
    published = json.loads(json.dumps(judge.published()))
    other.recall(published)
    evidence = other.current(SERVED).evidence
    assert (evidence.served_new.requests, evidence.served_new.failures) == (20, 5)
    (cutover,) = published
    cutover["evidence"][0].append(0)
    other.recall(published)
    assert other.current(SERVED).evidence == GateEvidence()
