"""Clusters of Envoy: what the rules say of services, as far as Envoy has it."""

import pytest

from gateway.core.service import Capacity, Ejection, Health, Service, Target, Timeouts
from gateway.export.envoy_clusters import GATEWAY, gateway_cluster, seconds, service_cluster

SERVICE = Service(
    "a",
    (Target("127.0.0.1", 1), Target("::1", 2)),
    timeouts=Timeouts(connect=1.5),
    ejection=Ejection(3, 4, 50),
    capacity=Capacity(in_flight=7, queue=8),
    health=Health("/up", 1, 0.5, 4, 6),
)


def test_a_service() -> None:
    found = service_cluster(SERVICE)
    assert found["name"] == "service a"
    assert found["type"] == "STATIC"
    assert found["connect_timeout"] == "1.5s"
    (threshold,) = found["circuit_breakers"]["thresholds"]
    assert (threshold["max_requests"], threshold["max_pending_requests"]) == (7, 8)
    assert found["lb_policy"] == "LEAST_REQUEST"
    assert found["outlier_detection"]["consecutive_local_origin_failure"] == 3
    assert found["outlier_detection"]["max_ejection_percent"] == 50
    (check,) = found["health_checks"]
    assert check == {
        "timeout": "0.5s",
        "interval": "1s",
        "unhealthy_threshold": 4,
        "healthy_threshold": 6,
        "http_health_check": {
            "host": "127.0.0.1:1",
            "path": "/up",
            "expected_statuses": [{"start": 200, "end": 300}],
        },
    }


def test_names_are_looked_up() -> None:
    found = service_cluster(Service("a", (Target("host", 80),)))
    assert found["type"] == "STRICT_DNS"
    assert found["dns_lookup_family"] == "V4_PREFERRED"
    assert "health_checks" not in found
    assert found["lb_policy"] == "LEAST_REQUEST"  # it may have several addresses


def test_nothing_chooses_from_one_address() -> None:
    found = service_cluster(Service("a", (Target("127.0.0.1", 80),)))
    assert "lb_policy" not in found
    assert "outlier_detection" not in found  # which would never eject the last target


def test_the_gateway_bounds_itself() -> None:
    """What reached no gateway may be sent to another one, but no answer makes a gateway ill."""
    found = gateway_cluster([Target("g", 8080), Target("h", 8080)])
    assert found["name"] == GATEWAY
    assert len(set(found["circuit_breakers"]["thresholds"][0].values())) == 1
    ejection = found["outlier_detection"]
    assert ejection["enforcing_consecutive_local_origin_failure"] == 100
    assert ejection["enforcing_consecutive_5xx"] == 0
    assert ejection["max_ejection_percent"] == 50


def test_a_gateway_that_says_nothing_is_ill() -> None:
    """But where all of them are, they get requests all the same."""
    found = gateway_cluster([Target("g", 8080)])
    (check,) = found["health_checks"]
    assert check["http_health_check"]["method"] == "OPTIONS"
    assert check["http_health_check"]["path"] == "*"
    assert check["no_traffic_interval"] == check["interval"]
    assert found["common_lb_config"] == {"healthy_panic_threshold": {"value": 1}}


@pytest.mark.parametrize(("value", "text"), [(1, "1s"), (0.25, "0.25s"), (30.0, "30s")])
def test_seconds(value: float, text: str) -> None:
    assert seconds(value) == text
