"""The text tables of shadow reports and cutover reports."""

from dataclasses import replace

import msgspec

from gateway.admin.reports import (
    CutoverReport,
    FieldReport,
    LatencyReport,
    RouteReport,
    ShadowReport,
)
from gateway.admin.reports import cutover_table as cutover_table
from gateway.admin.reports import shadow_table as shadow_table
from gateway.findings.suggested_fix import DifferenceSample
from gateway.rollout.cutovers import DecidedBy
from gateway.rollout.gates import GateOutcome, GateResult

THEN = "2026-11-21T15:13:33Z"


def test_a_shadow_table_without_comparisons_is_one_line() -> None:
    found = ShadowReport("person", "1", 0, 0, 0, 0, {}, [], [])
    assert shadow_table(found) == "person 1: 0 responses compared, 0 differ"


def test_a_shadow_table_lists_the_latest_sample_first() -> None:
    fields = [FieldReport("/name", 3, 0, THEN), FieldReport("/id", 0, 12, THEN)]
    samples = [
        DifferenceSample("/p", "/name", old, '"Bob"', request_id, "GET", "/v1/p")
        for old, request_id in (('"Bo"', "r1"), ('"B"', "r2"))
    ]
    found = ShadowReport("person", "1", 9, 3, 0, 0, {"load": 2, "queue": 1}, fields, samples)
    assert shadow_table(found).splitlines() == [
        "person 1: 9 responses compared, 3 differ; not compared: 2 load, 1 queue",
        "FIELD  DIFFERENCES  NOISE  LAST",
        "/name            3      0  2026-11-21T15:13:33Z",
        "/id              0     12  2026-11-21T15:13:33Z",
        "SAMPLE  CLIENT GOT  WOULD GET  REQUEST    ID",
        '/name   "B"         "Bob"      GET /v1/p  r2',
        '/name   "Bo"        "Bob"      GET /v1/p  r1',
    ]


def test_a_shadow_table_has_requests_latencies_and_missing_operations() -> None:
    fields = [FieldReport("request /name", 2, 0, THEN, "request")]
    old, new = LatencyReport(9, 1.25, 20, 1000), LatencyReport(9, 2, 3, 4.06)
    missing = [f"POST /{number}" for number in range(7)]
    found = ShadowReport("person", "1", 9, 0, 4, 2, {"load": 1}, fields, [], old, new, missing)
    assert shadow_table(found).splitlines() == [
        (
            "person 1: 9 responses compared, 0 differ; 4 requests validated, 2 would be refused;"
            " not compared: 1 load"
        ),
        "  old route  p50 1.2 ms, p95 20.0 ms, p99 1000.0 ms",
        "  new route  p50 2.0 ms, p95 3.0 ms, p99 4.1 ms",
        "  missing    never compared: POST /0, POST /1, POST /2, POST /3, POST /4, and 2 more",
        "FIELD          DIFFERENCES  NOISE  LAST",
        "request /name            2      0  2026-11-21T15:13:33Z",
    ]


def gate(gate: str, measure: str, *values: float | None, outcome: str) -> GateResult:
    new, old, limit = values
    assert limit is not None
    return GateResult(
        gate, measure, GateOutcome(outcome), new, old, limit, 6, 60, 1, 90, 300.0, "text"
    )


def test_a_cutover_table_has_state_and_routes() -> None:
    old, new = RouteReport(0, 0, 0, {}, None), RouteReport(60, 1, 0, {}, 1.119)
    found = CutoverReport(
        *("person", "1", "2", 0.0, DecidedBy.ROLLED_BACK, "errors", THEN, "stays", old, new, 7, 1),
        gates=[],
        then=None,
    )
    plain = [
        "Version 1 of person: 0% goes via 2",
        "  since      2026-11-21T15:13:33Z: errors (rolled back)",
        "  next       stays",
        "  old route  0 requests, 0 failed",
        "  new route  60 requests, 1 failed, 1.119 ms on average",
        "  shadow     7 responses compared, 1 differs",
    ]
    assert cutover_table(found).splitlines() == plain
    found.gates = [
        gate("errors", "5xx", 0.1, 1 / 90, 0.01, outcome="exceeded"),
        gate("errors", "404", 0.1, None, 0.01, outcome="inconclusive"),
        gate("latency", "mean", 0.0123, 0.004, 1.5, outcome="passed"),
        gate("latency", "mean", None, 0.004, 1.5, outcome="inconclusive"),
        gate("differences", "share", 0.1, None, 0.01, outcome="passed"),
    ]
    unseen = gate("errors", "403", 0.0, 0.0, 0.01, outcome="passed")
    unseen = replace(unseen, new_count=0, old_count=0)
    found.gates.append(unseen)
    # The admin API and the stored state have the names of these values, not their numbers.
    (first, *_) = msgspec.to_builtins(found)["gates"]
    assert (first["measure"], first["outcome"]) == ("5xx", "exceeded")
    found.then = "roll_back"
    assert cutover_table(found).splitlines() == [
        *plain,
        "  gates, over the last 300 s",
        "    gate               old route      new route  limit  outcome",
        "    errors 5xx   1.11% (1 of 90)  10% (6 of 60)    +1%  exceeded",
        "    errors 404                 -  10% (6 of 60)    +1%  inconclusive",
        "    latency          4.0 ms (90)   12.3 ms (60)   1.5x  passed",
        "    latency          4.0 ms (90)              -   1.5x  inconclusive",
        "    differences                -  10% (6 of 60)     1%  passed",
    ]
    found.gates_at = THEN
    assert "  gates, over the 300 s before 2026-11-21T15:13:33Z" in cutover_table(found)
    found.gates_at = found.then = None
    assert "  gates (dry run: without effect), over the last 300 s" in cutover_table(found)
    found.state, found.percent = DecidedBy.OPERATOR, 12.5
    found.uncompared = ["POST /p"]
    head, since, *others = cutover_table(found).splitlines()
    assert "  missing    never compared: POST /p" in others
    assert head == "Version 1 of person: 12.5% goes via 2"
    assert since == "  since      2026-11-21T15:13:33Z: errors"
