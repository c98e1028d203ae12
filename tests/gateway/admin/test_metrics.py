"""The metrics in the Prometheus text format."""

import re
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest
from prometheus_client.parser import text_string_to_metric_families

from gateway.admin.metrics import MOST_SAMPLES, exposition
from gateway.base.overrides import Overrides
from gateway.findings.operator import Operator
from gateway.observe.failing_targets import FailingTarget
from gateway.observe.metric_table import METRICS
from gateway.usage.delta import CounterDelta, Delta, TrafficDelta
from gateway.usage.totals import Occurrences, StateRows, Totals
from tests.gateway.admin.totals import FAST, totals
from tests.gateway.kit import ROOT
from tests.gateway.rules.rules import edited, loaded

ROUTE = 'gateway_api_name="person",gateway_api_version="1"'
SERVED = f'{ROUTE},http_request_method="GET",http_response_status_code="200",http_route="/p"'
UNKNOWN = 'http_request_method="_OTHER",http_response_status_code="404"'
ABORTED = f'error_type="aborted",{ROUTE},http_request_method="GET",http_route="/p"'
SCHEME = 'url_scheme="http"'
LIFECYCLE = "lifecycle: { deprecated: 2100-01-01, sunset: 2100-01-02 }"
ASKED = (
    f'error_type="503",{ROUTE},http_request_method="GET",http_response_status_code="503",'
    'server_address="::1",server_port="8001"'
)


def pieces(counted: Totals) -> Iterator[bytes]:
    operator = SimpleNamespace(
        totals=counted,
        state=SimpleNamespace(
            in_force=Overrides(frozenset({("person", "1")}), {}), stale_since=None
        ),
        rules=loaded(edited("{ service: old }", f"{{ service: old, {LIFECYCLE} }}")),
        workers=lambda: 3,
        reloader=SimpleNamespace(loaded=2, rejected=1),
        webhooks={"pager": True, "chat": False},
        certificate_expiries=lambda: {"/tls/api.pem": 86_400.0},
        targets=lambda: [
            FailingTarget("old", "127.0.0.1:8001", "127.0.0.1:8001", 1, "ejected", 0.0, "refused"),
            FailingTarget("old", "127.0.0.1:8001", "127.0.0.1:8001", 1, "failing", 5.0, "refused"),
            FailingTarget("gone", "127.0.0.1:8003", "127.0.0.1:8003", 1, "failing", 5.0, "refused"),
        ],
    )
    return exposition(cast(Operator, operator))


def lines() -> list[str]:
    text = b"".join(pieces(totals())).decode()
    return [line for line in text.splitlines() if not line.startswith("#")]


@pytest.mark.parametrize(
    "line",
    [
        f'http_server_request_duration_seconds_bucket{{{SERVED},le="0.005",{SCHEME}}} 3.0',
        f'http_server_request_duration_seconds_bucket{{{SERVED},le="0.01",{SCHEME}}} 4.0',
        f'http_server_request_duration_seconds_bucket{{{SERVED},le="+Inf",{SCHEME}}} 4.0',
        f"http_server_request_duration_seconds_count{{{SERVED},{SCHEME}}} 4.0",
        f"http_server_request_duration_seconds_sum{{{SERVED},{SCHEME}}} 0.008",
        f"http_server_request_duration_seconds_count{{{UNKNOWN},{SCHEME}}} 4.0",
        f"http_server_request_duration_seconds_count{{{ABORTED},{SCHEME}}} 4.0",
        f"http_client_request_duration_seconds_count{{{ASKED}}} 4.0",
        'gateway_conversions_total{api="person",endpoint="/p",version="1"} 2.0',
        'gateway_cutover_failures_total{api="person",route="new",version="1"} 1.0',
        'gateway_differences_total{api="person",field="/name",version="1"} 3.0',
        'gateway_usage_total{api="person",version="1"} 12.0',
        'gateway_usage_clients{api="person",version="1"} 2.0',
        'gateway_usage_last_seen_timestamp_seconds{api="person",version="2"} 10.0',
        'gateway_version_deprecated_timestamp_seconds{api="person",version="1"} 4.1024448e+09',
        'gateway_version_sunset_timestamp_seconds{api="person",version="1"} 4.1025312e+09',
        'gateway_brownout_paused{api="person",version="1"} 1.0',
        "gateway_workers 3.0",
        "gateway_state_unwritten 0.0",
        'gateway_certificate_expiry_timestamp_seconds{file="/tls/api.pem"} 86400.0',
        'gateway_webhook_failing{webhook="pager"} 1.0',
        'gateway_webhook_failing{webhook="chat"} 0.0',
        'gateway_target_failing{service="old",target="127.0.0.1:8001"} 2.0',
        'gateway_target_failing{service="new",target="127.0.0.1:8002"} 0.0',
        'gateway_reloads_total{result="rejected"} 1.0',
    ],
)
def test_a_scrape_contains_each_metric_with_its_labels(line: str) -> None:
    assert line in lines()


def test_a_large_scrape_is_sent_in_small_pieces() -> None:
    many = Totals(StateRows())
    for number in range(300):
        place = "person", str(number), "/p"
        traffic = TrafficDelta(*place, "GET", 200, "", FAST, 0.008, 1)
        many.absorb(Delta(1.0, [], [traffic], [CounterDelta("shed", place, 1)], [], []))
    turns = [piece.count(b"\n") for piece in pieces(many)]
    assert max(turns) < 2 * MOST_SAMPLES
    # Count more requests between the pieces.
    text = b""
    for piece in pieces(many):
        text += piece
        traffic = TrafficDelta("person", str(len(text)), "/p", "GET", 200, "", FAST, 0.008, 1)
        many.absorb(Delta(1.0, [], [traffic], [], [], []))
    found = {each.name: each for each in text_string_to_metric_families(text.decode())}
    assert text.count(b"# TYPE http_server_request_duration_seconds ") == 1
    served = found["http_server_request_duration_seconds"].samples
    counts = [each for each in served if each.name.endswith("_count")]
    assert len(counts) == len(served) / 17 == 300
    assert {each.labels["gateway_api_version"] for each in counts} == {*map(str, range(300))}
    assert sum(each.value for each in found["gateway_shed"].samples) == 300


def families(counted: Totals) -> dict[str, Any]:
    found = text_string_to_metric_families(b"".join(pieces(counted)).decode())
    return {f"{each.name}_total" if each.type == "counter" else each.name: each for each in found}


def counted_everything() -> Totals:
    counted = totals()
    for row in METRICS:
        if row.counted:
            counted.count(row.kind, ("a",) * len(row.labels), Occurrences(1, 1.0, 1.0))
    return counted


def test_a_scrape_has_the_metrics_of_the_table_in_its_order() -> None:
    found = families(counted_everything())
    assert [*found] == [row.name for row in METRICS]
    for row in METRICS:
        family = found[row.name]
        assert (family.type, family.documentation) == (row.type, row.help)
        labels = {label for sample in family.samples for label in sample.labels}
        assert labels - {"le"} <= set(row.labels)


def test_lasting_metrics_survive_a_restart() -> None:
    counted = counted_everything()
    restarted = families(Totals(counted.changes()))
    for row in METRICS:
        # The number of reloads is constant in these tests. It does not come from the totals.
        if row.type != "gauge" and row.name != "gateway_reloads_total":
            assert bool(restarted[row.name].samples) == row.lasting, row.name


def test_every_counter_that_processes_increment_is_in_the_table() -> None:
    counted = {row.kind for row in METRICS if row.counted}
    code = "".join(path.read_text() for path in (ROOT / "gateway").rglob("*.py"))
    # Calls that increment a counter have further arguments after the kind. This excludes other
    # methods called `count`.
    named = set(re.findall(r'(?:\bcount\(|CounterDelta\(|\.count,)\s*"(\w+)"(?:,|\)$)', code))
    assert len(named) > 20
    assert named <= counted


def test_targets_of_unknown_services_have_no_series() -> None:
    assert not any("127.0.0.1:8003" in line for line in lines())


def test_client_names_do_not_appear_in_labels() -> None:
    assert not any("acme" in line for line in lines())


def test_metric_names_do_not_end_like_histogram_series() -> None:
    """`promtool check metrics` requires this: such names look like parts of a histogram."""
    assert not any(row.name.endswith(("_count", "_sum", "_bucket")) for row in METRICS)
