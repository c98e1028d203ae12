"""The recorder counts requests, and delivers the counts as a delta every second."""

import asyncio
from collections.abc import Callable, Sequence
from time import perf_counter

import pytest

from gateway.base.errors import Blame, FaultCode
from gateway.proxy.exchange import Exchange, ResponseCopy
from gateway.proxy.record import OutcomeCounts, Recorder, RequestEnding, version_label
from gateway.rollout.cutover import CutoverRoute
from gateway.rollout.evidence import EvidenceRow
from gateway.routing.plan import Plan, plan
from gateway.usage.delta import BOUNDS, CounterDelta, Delta, SampleDelta, UsageDelta
from gateway.versions.version import Version
from tests.gateway.proxy import wires
from tests.gateway.talk import soon
from tests.gateway.world import PATH, head, person, snapshot

RULES = snapshot([person("/v{version}/person", PATH)])


def recorded(*exchanges: tuple[Exchange, int]) -> Delta:
    reports: list[Delta] = []
    loop = asyncio.new_event_loop()
    recorder = Recorder(loop, reports.append, lambda _: None)
    for exchange, status in exchanges:
        exchange.status, exchange.ended = status, perf_counter()
        recorder.record(exchange)
    recorder.flush()
    recorder.flush()  # without new counts, no delta is delivered
    loop.close()
    (report,) = reports
    return report


def planned(client: str = "", code: FaultCode | None = None) -> Exchange:
    chosen = plan(RULES, head("/v1/person"))
    assert isinstance(chosen, Plan)
    exchange = wires.exchange()
    exchange.client = client
    exchange.plan, exchange.endpoint, exchange.version = chosen, chosen.endpoint, Version(1, "1")
    exchange.code = None if code is None else code.value
    return exchange


def test_requests_are_counted_by_client_and_by_outcome() -> None:
    upstream = next(code for code in FaultCode if code.blame is Blame.UPSTREAM)
    report = recorded(
        (planned("acme"), 200),
        (planned("acme"), 503),
        (planned("acme", upstream), 504),
        (planned(), 304),
    )
    place = ("person", "1", "GET /v{version}/person")
    assert report.usages == [
        UsageDelta(*place, "acme", 3, 0, 2, 1),
        UsageDelta(*place, "", 1, 0, 0, 1),
    ]
    assert [(each.method, each.status, each.error) for each in report.traffic] == [
        ("GET", 200, ""),
        ("GET", 503, "503"),
        ("GET", 504, upstream.value),
        ("GET", 304, ""),
    ]
    assert all(sum(each.buckets) == 1 for each in report.traffic)
    assert report.counts == [CounterDelta("upstream_errors", ("person_v1", upstream.value), 1)]


def test_refused_rejected_and_failed_requests_are_no_uses() -> None:
    """A request may be refused after planning, for example because its body cannot be converted."""
    report = recorded(
        (planned("acme", FaultCode.UNCONVERTIBLE_REQUEST), 400),
        (planned("acme", FaultCode.BODY_TOO_LARGE), 413),
        (planned("acme", FaultCode.CONVERSION_FAILED), 502),
        (planned("acme", FaultCode.ACCESS_DENIED), 403),
        (planned("acme"), 404),
        (planned("acme"), 409),
    )
    place = ("person", "1", "GET /v{version}/person")
    assert report.usages == [UsageDelta(*place, "acme", 6, 2, 1, 1, 2)]


def test_all_unknown_methods_are_counted_as_one_method() -> None:
    inventions = [planned() for _ in range(3)]
    for number, exchange in enumerate(inventions):
        exchange.method = f"INVENTED{number}"
    report = recorded(*((exchange, 200) for exchange in inventions))
    (traffic,) = report.traffic
    assert (traffic.method, sum(traffic.buckets)) == ("_OTHER", 3)


def test_requests_to_services_are_counted_by_target() -> None:
    answered, failed, unsent = (planned() for _ in range(3))
    for exchange in (answered, failed):
        exchange.target = "h:1"
        exchange.began -= 2.0
        exchange.sent = exchange.began + 0.5
    answered.answered = answered.sent + 0.07
    answered.service_status = 404
    failed.code = FaultCode.UPSTREAM_TIMEOUT.value
    report = recorded((answered, 200), (failed, 504), (unsent, 503))
    found = [(each.target, each.status, each.error) for each in report.upstream]
    assert found == [("h:1", 404, "404"), ("h:1", 0, "upstream_timeout")]
    quick, slow = report.upstream
    assert quick.buckets[BOUNDS.index(0.075)] == 1
    assert quick.seconds == pytest.approx(0.07)
    assert slow.buckets[BOUNDS.index(2.5)] == 1
    assert slow.seconds >= 1.5
    assert all(each.buckets[BOUNDS.index(2.5)] == 1 for each in report.traffic[:2])


@pytest.mark.parametrize("route", [None, *CutoverRoute])
def test_comparisons_of_a_shadow_are_evidence_only_in_a_cutover(route: CutoverRoute | None) -> None:
    reports: list[Delta] = []
    loop = asyncio.new_event_loop()
    recorder = Recorder(loop, reports.append, lambda _: None)
    exchange = planned("acme")
    exchange.cutover_route = route
    recorder.compare(exchange, differs=True)
    recorder.flush()
    loop.close()
    found = [(each.route, each.rows) for report in reports for each in report.outcomes]
    row = EvidenceRow("acme", "GET /v{version}/person", counts={"differs": 1}, compared=1)
    assert found == ([] if route is None else [("shadow", [row])])


def test_a_request_without_an_endpoint_is_counted_only_by_its_code() -> None:
    code = next(code for code in FaultCode if "not_found" in code.value)
    exchange = wires.exchange()
    exchange.client = "acme"
    exchange.code = code.value
    report = recorded((exchange, 404))
    assert report.usages == []
    (traffic,) = report.traffic
    assert (traffic.endpoint, traffic.status, traffic.error) == ("", 404, "")
    assert report.counts == [CounterDelta("refusals", ("", "", code.value), 1)]


async def test_a_delta_is_delivered_after_a_second() -> None:
    reports: list[Delta] = []
    recorder = Recorder(asyncio.get_running_loop(), reports.append, lambda _: None)
    recorder.count("compared", "person", "1")
    recorder.count("compared", "person", "1", times=2)
    assert reports == []
    await soon(lambda: bool(reports))
    (report,) = reports
    assert report.counts == [CounterDelta("compared", ("person", "1"), 3)]


async def test_a_delta_with_many_labels_is_delivered_early_and_its_samples_are_limited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No label is dropped, because a verdict needs all of them. Samples are only examples."""
    monkeypatch.setattr("gateway.proxy.record._INTERVAL", 60.0)  # the timer must not deliver first
    reports: list[Delta] = []
    recorder = Recorder(asyncio.get_running_loop(), reports.append, lambda _: None)
    met = 0
    for several in range(250):  # iterations of the event loop
        for number in range(20 * several, 20 * several + 20):
            recorder.count("differences", "person", "1", f"/{number}")
            assert number > 4000 or recorder.takes_samples is (number < 16)
            recorder.sample("differences", "person", "1", number, {"path": "/"})
            recorder.count("differences", "person", "1", "/0")
            met += 1
        await asyncio.sleep(0)
    assert len(reports) == 1
    recorder.flush()
    first, rest = reports
    assert 4096 <= len(first.counts) < 4096 + 20
    labels = {each.labels[-1] for each in (*first.counts, *rest.counts)}
    assert len(labels) == met == 5000
    assert sum(each.count for each in (*first.counts, *rest.counts)) == 2 * met
    assert first.samples == [
        SampleDelta("differences", "person", "1", n, {"path": "/"}) for n in range(16)
    ]


def test_response_times_of_both_services_are_counted_in_buckets() -> None:
    reports: list[Delta] = []
    loop = asyncio.new_event_loop()
    recorder = Recorder(loop, reports.append, lambda _: None)
    for old in (0.001, 0.001, 1.0):
        recorder.latency("person", "1", old, 0.5)
    recorder.flush()
    recorder.latency("person", "1", 0.001, 0.5)
    recorder.flush()
    loop.close()
    before, after = (
        {(each.route, *found) for each in report.latencies for found in each.buckets.items()}
        for report in reports
    )
    assert before == {("old", 25, 2), ("old", 97, 1), ("new", 90, 3)}
    assert after == {("old", 25, 1), ("new", 90, 1)}


@pytest.mark.parametrize(("version", "label"), [(None, ""), (Version(1, "1"), "1")])
def test_a_version_label_is_empty_without_a_version(version: Version | None, label: str) -> None:
    assert version_label(version) == label


GOOD = RequestEnding("GET", "GET", 200, None, False, "h:1", 200, "http", False)


@pytest.mark.parametrize(
    ("changed", "error", "service_error"),
    [
        ({}, "", ""),
        ({"status": 404, "service_status": 404}, "", "404"),
        ({"status": 400, "code": "version_missing", "service_status": 0}, "", ""),
        ({"status": 503, "service_status": 503}, "503", "503"),
        ({"status": 503, "code": "brownout", "service_status": 0}, "brownout", ""),
        ({"status": 502, "code": "conversion_failed"}, "conversion_failed", ""),
        *(
            ({"status": status, "code": code, "service_status": 0}, code, code)
            for status, code in ((502, "upstream_unreachable"), (504, "upstream_timeout"))
        ),
        # Both the service's response and the response to the client broke off after the head.
        ({"code": "upstream_protocol", "aborted": True}, *["upstream_protocol"] * 2),
        ({"aborted": True}, "aborted", ""),
        ({"status": 0, "aborted": True, "service_status": 0}, "aborted", ""),
        ({"status": 0, "service_status": 0}, "aborted", ""),
    ],
)
def test_the_outcome_of_a_request_determines_its_error_types(
    changed: dict[str, object], error: str, service_error: str
) -> None:
    ending = GOOD._replace(**changed)  # type: ignore[arg-type]  # the values have the right types
    assert (ending.error, ending.service_error) == (error, service_error)


def test_an_outcome_without_a_target_has_no_counts_for_a_service() -> None:
    key = "person", "1", "/p"
    assert OutcomeCounts(key, GOOD).upstream is not None
    assert OutcomeCounts(key, GOOD._replace(target=None)).upstream is None


def recorder(observe: Callable[[Sequence[Exchange]], None]) -> Recorder:
    return Recorder(asyncio.get_running_loop(), lambda _: None, observe)


def copied_exchange() -> Exchange:
    exchange = wires.exchange()
    exchange.copy = ResponseCopy([], b"", False)
    return exchange


class Records:
    def __init__(self) -> None:
        self.seen: list[Exchange] = []
        self.recorder = recorder(self.seen.extend)

    def add(self, count: int) -> list[Exchange]:
        added = [copied_exchange() for _ in range(count)]
        for exchange in added:
            self.recorder.add(exchange)
        return added


async def test_requests_are_recorded_at_the_end_of_the_iteration() -> None:
    records = Records()
    first = records.add(3)
    assert records.seen == []
    await asyncio.sleep(0)
    assert records.seen == first
    second = records.add(1)
    await asyncio.sleep(0)
    assert records.seen == first + second


async def test_queued_requests_are_recorded_early_when_64_are_waiting() -> None:
    records = Records()
    added = records.add(130)
    assert records.seen == added[:128]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert records.seen == added


async def test_record_added_records_queued_requests_at_once() -> None:
    records = Records()
    added = records.add(5)
    records.recorder.record_added()
    assert records.seen == added
    records.recorder.record_added()
    await asyncio.sleep(0)
    assert records.seen == added


async def test_a_request_that_ends_while_others_are_recorded_waits_for_the_next_iteration() -> None:
    late = copied_exchange()
    seen: list[Exchange] = []

    def record(exchanges: Sequence[Exchange]) -> None:
        seen.extend(exchanges)
        if late not in exchanges:
            records.add(late)

    records = recorder(record)
    early = copied_exchange()
    records.add(early)
    await asyncio.sleep(0)
    assert seen == [early]
    await asyncio.sleep(0)
    assert seen == [early, late]
