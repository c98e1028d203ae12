"""Clusters of Envoy: the services that are reached straight, and the gateway."""

from collections.abc import Iterable

from gateway.core.answers.url_parts import is_address
from gateway.core.service import CLIENT_HOST, TARGET_HOST, Ejection, Service, Target
from gateway.export.manifest import Object

GATEWAY = "version-gateway"
_HTTP = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
# Connections are not the measure, requests are.
_MANY = 1_000_000


def type_url(name: str) -> str:
    """Return the URL of a message type of Envoy."""
    return f"type.googleapis.com/{name}"


def seconds(value: float) -> str:
    """Return a time as JSON has it (protobuf, Duration)."""
    return f"{value:.3f}".rstrip("0").rstrip(".") + "s"


def cluster_name(service: Service) -> str:
    """Return the name of the cluster of a service, which cannot be that of the gateway."""
    return f"service {service.name}"


def service_cluster(service: Service) -> Object:
    """Return the cluster of a service, as far as Envoy has what the rules say of it."""
    capacity = service.capacity
    waits = service.timeouts.connect
    cluster = _cluster(cluster_name(service), service.targets, waits, service.ejection)
    cluster["circuit_breakers"] = {
        "thresholds": [
            {
                "max_requests": capacity.in_flight,
                "max_pending_requests": capacity.queue,
                "max_connections": _MANY,
                "max_retries": 0,
            }
        ]
    }
    if (health := service.health) is not None:
        host = service.host
        if host in (CLIENT_HOST, TARGET_HOST):
            host = service.targets[0].authority  # without it, Envoy sends the name of the cluster
        cluster["health_checks"] = [
            {
                "timeout": seconds(health.timeout),
                "interval": seconds(health.interval),
                "unhealthy_threshold": health.down_after,
                "healthy_threshold": health.up_after,
                "http_health_check": {
                    "host": host,
                    "path": health.path,
                    "expected_statuses": [{"start": 200, "end": 300}],
                },
            }
        ]
    return cluster


def gateway_cluster(targets: Iterable[Target]) -> Object:
    """Return the cluster of the gateway, which bounds and judges requests itself."""
    cluster = _cluster(GATEWAY, tuple(targets), 5.0, Ejection())
    # What reached no gateway may be sent to another one (see the routes), as often as it takes.
    cluster["circuit_breakers"] = {
        "thresholds": [
            {
                "max_requests": _MANY,
                "max_pending_requests": _MANY,
                "max_connections": _MANY,
                "max_retries": _MANY,
            }
        ]
    }
    # One that is suspended takes connections, and answers nothing. OPTIONS * asks the gateway
    # itself (RFC 9110, section 9.3.7).
    cluster["health_checks"] = [
        {
            "timeout": seconds(2),
            "interval": seconds(5),
            "no_traffic_interval": seconds(5),
            "unhealthy_threshold": 2,
            "healthy_threshold": 1,
            "http_health_check": {
                "path": "*",
                "method": "OPTIONS",
                "expected_statuses": [{"start": 204, "end": 205}],
            },
        }
    ]
    # Where all of them are slow, better all than none.
    cluster["common_lb_config"] = {"healthy_panic_threshold": {"value": 1}}
    return cluster


def _ejection(ejection: Ejection, targets: int) -> Object:
    """Return when a target that cannot be reached gets no requests for a while."""
    return {
        "split_external_local_origin_errors": True,
        "consecutive_local_origin_failure": ejection.failures,
        "enforcing_consecutive_local_origin_failure": 100,
        "enforcing_consecutive_5xx": 0,
        "enforcing_consecutive_gateway_failure": 0,
        "enforcing_success_rate": 0,
        "enforcing_local_origin_success_rate": 0,
        "base_ejection_time": seconds(ejection.seconds),
        "max_ejection_time": seconds(ejection.longest),
        "max_ejection_percent": 100 - 100 // targets,  # never the last target of a service
    }


def _cluster(name: str, targets: tuple[Target, ...], connect: float, ejection: Ejection) -> Object:
    endpoints = [
        {
            "endpoint": {
                "address": {"socket_address": {"address": target.host, "port_value": target.port}}
            }
        }
        for target in targets
    ]
    static = all(is_address(target.host) for target in targets)
    cluster = {
        "name": name,
        "type": "STATIC" if static else "STRICT_DNS",
        # By itself, Envoy asks IPv6 alone where a name has both, though nobody may listen there.
        "dns_lookup_family": "V4_PREFERRED",
        "connect_timeout": seconds(connect),
        "common_lb_config": {"healthy_panic_threshold": {"value": 0}},
        "typed_extension_protocol_options": {
            _HTTP: {
                "@type": type_url(_HTTP),
                "explicit_http_config": {"http_protocol_options": {}},
            }
        },
        "load_assignment": {
            "cluster_name": name,
            "endpoints": [{"lb_endpoints": endpoints}],
        },
    }
    # To choose from one address, and to watch a target that is never ejected, would only cost.
    if not static or len(targets) > 1:
        cluster["lb_policy"] = "LEAST_REQUEST"
    if len(targets) > 1:
        cluster["outlier_detection"] = _ejection(ejection, len(targets))
    return cluster
