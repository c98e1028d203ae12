"""The shadow report of a version, made from the totals."""

from gateway.admin.reports import FieldReport, LatencyReport, shadow_report, shadow_table
from gateway.findings.suggested_fix import DifferenceSample
from gateway.usage.delta import CounterDelta, Delta, LatencyDelta, latency_bucket
from tests.gateway.admin.totals import DIFFERENCE, KEY, REQUEST, totals

THEN = "1970-01-01T00:00:10Z"


def test_a_report_has_fields_and_samples() -> None:
    found = shadow_report(totals(), KEY, ["POST /p"])
    assert (found.api, found.version) == KEY
    assert (found.compared, found.differing, found.shed) == (9, 3, {"load": 2})
    assert (found.validated, found.invalid) == (0, 0)
    assert found.fields == [FieldReport("/name", 3, 1, THEN), FieldReport("/id", 0, 12, THEN)]
    assert found.samples == [DifferenceSample(**DIFFERENCE, **REQUEST)]
    assert (found.old, found.new, found.uncompared) == (None, None, ["POST /p"])


def test_fields_of_requests_and_responses_are_reported_separately() -> None:
    made = totals()
    counts = [
        CounterDelta("validated", KEY, 4),
        CounterDelta("invalid", KEY, 2),
        CounterDelta("differences", (*KEY, "request /name"), 2),
    ]
    made.absorb(Delta(10.0, [], [], counts, [], []))
    found = shadow_report(made, KEY, [])
    assert (found.compared, found.differing, found.validated, found.invalid) == (9, 3, 4, 2)
    assert {(each.field, each.kind) for each in found.fields} == {
        ("/name", "answer"),
        ("/id", "answer"),
        ("request /name", "request"),
    }


def test_a_report_has_the_latency_of_a_service_with_compared_responses() -> None:
    made = totals()
    buckets = {latency_bucket(0.01): 94, latency_bucket(0.02): 4, latency_bucket(1.0): 2}
    for _ in range(2):  # from two workers
        latency = LatencyDelta(*KEY, "old", buckets)
        made.absorb(Delta(10.0, [], [], [], [], [], [latency]))
    found = shadow_report(made, KEY, [])
    assert found.old == LatencyReport(200, 10.2, 19.8, 986.1)
    assert found.new is None


def test_a_reset_shadow_has_an_empty_report() -> None:
    assert shadow_report(totals(), ("person", "2"), []).fields == []
    forgotten = totals()
    forgotten.absorb(Delta(1.0, [], [], [], [], [], [LatencyDelta(*KEY, "old", {1: 1})]))
    forgotten.reset_shadow(KEY)
    found = shadow_report(forgotten, KEY, [])
    assert (found.compared, found.fields, found.samples, found.shed) == (0, [], [], {})
    assert found.old is None
    assert found.replica is None
    alone = shadow_report(totals(), KEY, [], "gw-2")
    assert shadow_table(alone).endswith("\nThese are the counts of replica gw-2 only.")
