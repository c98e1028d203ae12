"""The recorder counts requests, and hands a report on when it is due."""

import asyncio

import pytest

from gateway.core.errors import FAULT_KINDS, Blame, FaultCode
from gateway.core.plan import Plan, plan
from gateway.core.versions.version import Version
from gateway.proxy.client.exchange import Exchange
from gateway.telemetry.delta import CounterDelta, Delta, SampleDelta, UsageDelta
from gateway.telemetry.recorder import Recorder, version_label
from tests.gateway.core.world import PATH, head, person, snapshot
from tests.gateway.proxy import wires
from tests.gateway.talk import soon

RULES = snapshot([person("/v{version}/person", PATH)])


def recorded(*exchanges: tuple[Exchange, int]) -> Delta:
    """Return the report of these exchanges, each with the status of its response."""
    reports: list[Delta] = []
    loop = asyncio.new_event_loop()
    recorder = Recorder(loop, reports.append)
    for exchange, status in exchanges:
        exchange.status = status
        recorder.record(exchange)
    recorder.flush()
    recorder.flush()  # nothing was counted since: no report
    loop.close()
    (report,) = reports
    return report


def planned(client: str = "", code: FaultCode | None = None) -> Exchange:
    chosen = plan(RULES, head("/v1/person"))
    assert isinstance(chosen, Plan)
    exchange = wires.exchange()
    exchange.client = client
    exchange.plan, exchange.endpoint, exchange.version = chosen, chosen.endpoint, Version(1)
    exchange.code = None if code is None else code.value
    return exchange


def test_who_asked_for_what_and_to_what_end() -> None:
    upstream = next(code for code in FaultCode if FAULT_KINDS[code].blame is Blame.UPSTREAM)
    report = recorded(
        (planned("acme"), 200),
        (planned("acme"), 503),
        (planned("acme", upstream), 504),
        (planned(), 304),
    )
    place = ("person", "1", "/v{version}/person")
    assert report.usages == [
        UsageDelta(*place, "acme", 3, 0, 2, 3),
        UsageDelta(*place, "", 1, 0, 0, 1),
    ]
    (traffic,) = report.traffic
    assert traffic.statuses == [0, 0, 1, 1, 0, 2]
    assert sum(traffic.buckets) == 4
    assert report.counts == [CounterDelta("upstream_errors", ("person_v1", upstream.value), 1)]


def test_a_path_of_no_endpoint_is_counted_by_its_code_alone() -> None:
    code = next(code for code in FaultCode if "not_found" in code.value)
    exchange = wires.exchange()
    exchange.client = "acme"
    exchange.code = code.value
    report = recorded((exchange, 404))
    assert report.usages == []
    assert report.traffic[0].statuses == [0, 0, 0, 0, 1, 0]
    assert report.counts == [CounterDelta("refusals", ("", "", code.value), 1)]


async def test_a_report_is_handed_on_when_it_is_due() -> None:
    reports: list[Delta] = []
    recorder = Recorder(asyncio.get_running_loop(), reports.append)
    recorder.count("compared", "person", "1")
    recorder.count("compared", "person", "1", times=2)
    recorder.outcome("person", "1", "new", 0.004, failed=True)
    assert reports == []
    await soon(lambda: bool(reports))
    (report,) = reports
    assert report.counts == [CounterDelta("compared", ("person", "1"), 3)]
    (outcome,) = report.outcomes
    assert (outcome.requests, outcome.failures, outcome.seconds) == (1, 1, 0.004)


def test_labels_and_samples_are_bounded() -> None:
    reports: list[Delta] = []
    loop = asyncio.new_event_loop()
    recorder = Recorder(loop, reports.append)
    for number in range(5000):
        recorder.count("differences", "person", "1", f"/{number}")
        recorder.sample("differences", "person", "1", number)
    recorder.count("differences", "person", "1", "/0")
    recorder.flush()
    loop.close()
    (report,) = reports
    assert len(report.counts) == 4096
    assert report.counts[0].count == 2
    assert report.samples == [SampleDelta("differences", "person", "1", n) for n in range(16)]


@pytest.mark.parametrize(("version", "label"), [(None, ""), (Version(1), "1")])
def test_labels(version: Version | None, label: str) -> None:
    assert version_label(version) == label
