"""The totals, as Prometheus reads them."""

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from types import SimpleNamespace
from typing import cast

import pytest
from prometheus_client.parser import text_string_to_metric_families

from gateway.admin.metrics import MOST, exposition
from gateway.admin.operator import Operator
from gateway.core.overrides import Overrides
from gateway.state.state_changes import StateChanges
from gateway.state.totals import Occurrences, Totals
from gateway.telemetry.delta import COUNTERS, CounterDelta, Delta, TrafficDelta
from gateway.telemetry.target_watch import FailingTarget
from tests.gateway.admin.totals import FAST, totals
from tests.gateway.config.rules import RULES, loaded
from tests.gateway.kit import ROOT

ROUTE = 'gateway_api_name="person",gateway_api_version="1"'
SERVED = f'{ROUTE},http_request_method="GET",http_response_status_code="200",http_route="/p"'
UNKNOWN = 'http_request_method="_OTHER",http_response_status_code="404"'
ABORTED = f'error_type="aborted",{ROUTE},http_request_method="GET",http_route="/p"'
SCHEME = 'url_scheme="http"'
ASKED = (
    f'error_type="503",{ROUTE},http_request_method="GET",http_response_status_code="503",'
    'server_address="::1",server_port="8001"'
)


def pieces(counted: Totals) -> Iterator[bytes]:
    """Return what is exposed of totals."""
    operator = SimpleNamespace(
        totals=counted,
        state=SimpleNamespace(
            in_force=Overrides(frozenset({("person", "1")}), {}), stale_since=None
        ),
        rules=loaded(RULES),
        workers=lambda: 3,
        reloader=SimpleNamespace(loaded=2, rejected=1),
        webhooks={"pager": True, "chat": False},
        targets=lambda: [
            FailingTarget("old", "127.0.0.1:8001", "ejected", 0.0, "refused"),
            FailingTarget("old", "127.0.0.1:8001", "failing", 5.0, "refused"),
            FailingTarget("gone", "127.0.0.1:8003", "failing", 5.0, "refused"),
        ],
    )
    return exposition(cast(Operator, operator))


def lines() -> list[str]:
    """Return what is exposed of the totals, the comments left out."""
    text = b"".join(pieces(totals())).decode()
    return [line for line in text.splitlines() if not line.startswith("#")]


@pytest.mark.parametrize(
    "line",
    [
        f'http_server_request_duration_seconds_bucket{{{SERVED},{SCHEME},le="0.005"}} 3',
        f'http_server_request_duration_seconds_bucket{{{SERVED},{SCHEME},le="0.01"}} 4',
        f'http_server_request_duration_seconds_bucket{{{SERVED},{SCHEME},le="+Inf"}} 4',
        f"http_server_request_duration_seconds_count{{{SERVED},{SCHEME}}} 4",
        f"http_server_request_duration_seconds_sum{{{SERVED},{SCHEME}}} 0.008",
        f"http_server_request_duration_seconds_count{{{UNKNOWN},{SCHEME}}} 4",
        f"http_server_request_duration_seconds_count{{{ABORTED},{SCHEME}}} 4",
        f"http_client_request_duration_seconds_count{{{ASKED}}} 4",
        'gateway_conversions_total{api="person",endpoint="/p",version="1"} 2',
        'gateway_cutover_failures_total{api="person",route="new",version="1"} 1',
        'gateway_differences_total{api="person",field="/name",version="1"} 3',
        'gateway_usage_total{api="person",version="1"} 12',
        'gateway_usage_clients{api="person",version="1"} 2',
        'gateway_usage_last_seen_timestamp_seconds{api="person",version="2"} 10.0',
        'gateway_brownout_paused{api="person",version="1"} 1',
        "gateway_gateway_workers 3",
        "gateway_state_unwritten 0",
        'gateway_webhook_failing{webhook="pager"} 1',
        'gateway_webhook_failing{webhook="chat"} 0',
        'gateway_target_failing{service="old",target="127.0.0.1:8001"} 2',
        'gateway_target_failing{service="new",target="127.0.0.1:8002"} 0',
        'gateway_reloads_total{result="rejected"} 1',
    ],
)
def test_lines(line: str) -> None:
    assert line.replace("gateway_gateway", "gateway") in lines()


def test_a_large_scrape_comes_in_small_pieces() -> None:
    """So that the event loop has a turn between them; each series comes once, and whole."""
    many = Totals(StateChanges())
    for number in range(3000):
        place = "person", str(number), "/p"
        traffic = TrafficDelta(*place, "GET", 200, "", FAST, 0.008, 1)
        many.absorb(Delta(1.0, [], [traffic], [CounterDelta("shed", place, 1)], [], []))
    turns = [piece.count(b"\n") for piece in pieces(many)]
    assert max(turns) < 2 * MOST
    # While pieces are taken, more is counted.
    text = b""
    for piece in pieces(many):
        text += piece
        traffic = TrafficDelta("person", str(len(text)), "/p", "GET", 200, "", FAST, 0.008, 1)
        many.absorb(Delta(1.0, [], [traffic], [], [], []))
    families = {each.name: each for each in text_string_to_metric_families(text.decode())}
    assert text.count(b"# TYPE http_server_request_duration_seconds ") == 1
    served = families["http_server_request_duration_seconds"].samples
    counts = [each for each in served if each.name.endswith("_count")]
    assert len(counts) == len(served) / 17 == 3000
    assert {each.labels["gateway_api_version"] for each in counts} == {*map(str, range(3000))}
    assert sum(each.value for each in families["gateway_shed"].samples) == 3000


def test_the_documents_have_every_counter() -> None:
    table = (ROOT / "docs/operate.md").read_text()
    assert [kind for kind in COUNTERS if f"\n| `gateway_{kind}_total` |" not in table] == []


def test_the_documents_say_which_counts_begin_anew() -> None:
    counted = totals()
    for kind, labels in COUNTERS.items():
        counted.count(kind, ("a",) * len(labels), Occurrences(1, 1.0, 1.0))
    changes = counted.changes()
    before, after = (
        {
            f"{family.name}_total" if family.type == "counter" else family.name
            for family in text_string_to_metric_families(b"".join(pieces(each)).decode())
            if family.type != "gauge" and family.samples
        }
        for each in (counted, Totals(changes))
    )
    told = (ROOT / "docs/operate.md").read_text().partition("All counts outlive restarts ")[2]
    patterns = re.findall("`([a-z_*]+)`", told.partition(" begin anew")[0])
    anew = {name for name in before if any(fnmatchcase(name, each) for each in patterns)}
    # The reloads of these totals are made up; a process counts its own.
    assert anew - {"gateway_reloads_total"} == before - after
    assert "gateway_reloads_total" in anew


def test_targets_are_those_of_the_rules() -> None:
    assert not any("127.0.0.1:8003" in line for line in lines())


def test_clients_are_no_labels() -> None:
    assert not any("acme" in line for line in lines())


def test_no_name_but_that_of_a_series_of_a_histogram_ends_like_one() -> None:
    """As `promtool check metrics` asks; readers take such a name for a part of a histogram."""
    heads = [line.split() for line in b"".join(pieces(totals())).decode().splitlines()]
    names = [head[2] for head in heads if head[:2] == ["#", "TYPE"]]
    assert [name for name in names if name.endswith(("_count", "_sum", "_bucket"))] == []
