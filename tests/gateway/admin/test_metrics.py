"""The totals, as Prometheus reads them."""

from types import SimpleNamespace
from typing import cast

import pytest

from gateway.admin.metrics import exposition
from gateway.admin.operator import Operator
from gateway.core.overrides import Overrides
from tests.gateway.admin.totals import totals
from tests.gateway.config.rules import RULES, loaded


def lines() -> list[str]:
    """Return what is exposed of the totals, the comments left out."""
    operator = SimpleNamespace(
        totals=totals(),
        overrides=SimpleNamespace(in_force=Overrides(frozenset({("person", "1")}), {})),
        rules=loaded(RULES),
        workers=lambda: 3,
        reloader=SimpleNamespace(loaded=2, rejected=1),
        writer=SimpleNamespace(failing=False),
    )
    text = exposition(cast(Operator, operator)).decode()
    return [line for line in text.splitlines() if not line.startswith("#")]


@pytest.mark.parametrize(
    "line",
    [
        'gateway_requests_total{api="person",class="2xx",endpoint="/p",version="1"} 3.0',
        'gateway_requests_total{api="person",class="4xx",endpoint="/p",version="1"} 1.0',
        'gateway_conversions_total{api="person",endpoint="/p",version="1"} 2.0',
        'gateway_request_duration_seconds_bucket{api="person",le="0.001",version="1"} 3.0',
        'gateway_request_duration_seconds_bucket{api="person",le="0.0025",version="1"} 4.0',
        'gateway_request_duration_seconds_bucket{api="person",le="+Inf",version="1"} 4.0',
        'gateway_request_duration_seconds_sum{api="person",version="1"} 0.004',
        'gateway_cutover_failures_total{api="person",route="new",version="1"} 1.0',
        'gateway_differences_total{api="person",field="/name",version="1"} 3.0',
        'gateway_usage_total{api="person",version="1"} 12.0',
        'gateway_usage_clients{api="person",version="1"} 2.0',
        'gateway_usage_last_seen_timestamp_seconds{api="person",version="2"} 10.0',
        'gateway_brownout_paused{api="person",version="1"} 1.0',
        "gateway_gateway_workers 3.0",
        "gateway_state_unwritten 0.0",
        'gateway_reloads_total{result="rejected"} 1.0',
    ],
)
def test_lines(line: str) -> None:
    assert line.replace("gateway_gateway", "gateway") in lines()


def test_clients_are_no_labels() -> None:
    assert not any("acme" in line for line in lines())
