"""Envoy: a whole configuration, which listens in front of the services and of the gateway."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from gateway.core.clients import AddressName
from gateway.core.errors import FAULT_KINDS, FaultCode
from gateway.core.headers import FORWARDING, OURS
from gateway.core.service import Target
from gateway.core.snapshot import Snapshot
from gateway.export.bypass import Bypass
from gateway.export.envoy_clusters import gateway_cluster, seconds, service_cluster, type_url
from gateway.export.envoy_routes import matched, routes
from gateway.export.manifest import Manifest, Object

_MANAGER = "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"
_ROUTER = "envoy.extensions.filters.http.router.v3.Router"
_MUTATION = "envoy.extensions.http.early_header_mutation.header_mutation.v3.HeaderMutation"
_FILE_LOG = "envoy.extensions.access_loggers.file.v3.FileAccessLog"
# Patterns of queries are longer than Envoy takes by default; they are matched in linear time.
_RUNTIME = {"re2.max_program_size.error_level": 10_000, "re2.max_program_size.warn_level": 10_000}
# The fields that Envoy sets itself, and those that frame the message.
_ENVOYS = {b"content-length", b"host", b"x-request-id", b"x-forwarded-for", b"x-forwarded-proto"}
# What Envoy notes of its own errors (Envoy, access log operators, RESPONSE_FLAGS), the fault of the
# gateway that is the same, its detail, and after how many seconds to try again.
_FAULTS = (
    (("UF",), FaultCode.UPSTREAM_UNREACHABLE, "The backend could not be reached.", 0),
    (
        ("UC", "UPE", "UR"),
        FaultCode.UPSTREAM_PROTOCOL,
        "The backend's response is not valid HTTP, or it broke off.",
        0,
    ),
    (("UT", "SI", "DT"), FaultCode.UPSTREAM_TIMEOUT, "The backend did not answer in time.", 0),
    (
        ("UH",),
        FaultCode.UPSTREAM_UNAVAILABLE,
        "No backend is well enough to be asked; try again.",
        5,
    ),
    (
        ("UO",),
        FaultCode.OVERLOADED,
        "The backend has as many requests as it can take; try again.",
        1,
    ),
)


@dataclass(frozen=True, slots=True)
class EnvoyPlace:
    """Where Envoy listens, where it finds the gateway, and where it logs.

    Attributes:
        listen: The address to listen on.
        gateways: The addresses of the gateway.
        log: The path of the access log.
    """

    listen: Target
    gateways: tuple[Target, ...]
    log: str


def envoy(planned: Bypass, place: EnvoyPlace) -> Manifest:
    """Return the configuration, with what goes where and why as its comments."""
    planned = matched(planned)
    used = {one.route.service.name: one.route.service for one in planned.straight}
    listener = {
        "name": "clients",
        "address": _address(place.listen),
        "filter_chains": [
            {
                "filters": [
                    {
                        "name": "envoy.filters.network.http_connection_manager",
                        "typed_config": _manager(planned, place),
                    }
                ]
            }
        ],
    }
    content = {
        "layered_runtime": {"layers": [{"name": "patterns", "static_layer": _RUNTIME}]},
        "static_resources": {
            "listeners": [listener],
            "clusters": [
                gateway_cluster(place.gateways),
                *(service_cluster(used[name]) for name in sorted(used)),
            ],
        },
    }
    return Manifest("envoy", tuple(planned.lines), content)


def _address(target: Target) -> Object:
    return {"socket_address": {"address": target.host, "port_value": target.port}}


def _manager(planned: Bypass, place: EnvoyPlace) -> Object:
    limits = planned.snapshot.limits
    return {
        "@type": type_url(_MANAGER),
        "stat_prefix": "clients",
        "use_remote_address": True,
        # No client may set the fields by which Envoy is controlled, wherever it is.
        "internal_address_config": {},
        # The gateway compares paths as they came.
        "normalize_path": False,
        "merge_slashes": False,
        "path_with_escaped_slashes_action": "KEEP_UNCHANGED",
        "server_header_transformation": "PASS_THROUGH",
        "preserve_external_request_id": True,
        "always_set_request_id_in_response": True,
        "max_request_headers_kb": min(8192, (limits.header_bytes + limits.target) // 1024 + 1),
        "request_headers_timeout": seconds(limits.header_seconds),
        "stream_idle_timeout": seconds(limits.stall_seconds),
        "common_http_protocol_options": {
            "idle_timeout": seconds(limits.idle_seconds),
            "max_headers_count": limits.header_fields,
            "headers_with_underscores_action": "ALLOW",
        },
        "upgrade_configs": [{"upgrade_type": "websocket"}],
        "early_header_mutation_extensions": [
            {
                "name": "envoy.http.early_header_mutation.header_mutation",
                "typed_config": {
                    "@type": type_url(_MUTATION),
                    "mutations": [{"remove_on_match": {"key_matcher": _removed(planned.snapshot)}}],
                },
            }
        ],
        "access_log": [
            {
                "name": "envoy.access_loggers.file",
                "typed_config": {
                    "@type": type_url(_FILE_LOG),
                    "path": place.log,
                    "log_format": {"json_format": _log_format(planned)},
                },
            }
        ],
        "local_reply_config": {"mappers": [_mapper(*fault) for fault in _FAULTS]},
        "route_config": {
            "name": "versions",
            "request_headers_to_add": [
                {
                    "header": {"key": "X-Forwarded-Host", "value": "%REQ(:AUTHORITY)%"},
                    "append_action": "OVERWRITE_IF_EXISTS_OR_ADD",
                }
            ],
            "response_headers_to_remove": ["x-envoy-upstream-service-time"],
            "virtual_hosts": [
                {"name": "versions", "domains": ["*"], "routes": list(routes(planned))}
            ],
        },
        "http_filters": [
            {
                "name": "envoy.filters.http.router",
                "typed_config": {"@type": type_url(_ROUTER)},
            }
        ],
    }


def _removed(snapshot: Snapshot) -> Object:
    """Return a match of the fields that a client could forge to look like another to a service.

    They are some sixty, in every spelling. Envoy looks at the fields that a request has, once; to
    remove names from a list, it would look for each of them.
    """
    spelt = (snapshot.withheld | FORWARDING | OURS) - _ENVOYS - {b"x-forwarded-host"}
    # Envoy sets the last one when it has rewritten a path, and the log reads it.
    names = sorted(name.decode() for name in (*spelt, b"x-envoy-original-path"))
    return {"safe_regex": {"regex": "|".join(map(re.escape, names))}}


def _log_format(planned: Bypass) -> Object:
    """Return the members of a line of the log, of which `route` has what is counted by it.

    A member for the API, the endpoint and the version each, from the metadata of the route, would
    take Envoy 3 % more of a processor.
    """
    naming = planned.snapshot.naming
    members: Object = {
        "time": "%START_TIME%",
        "request_id": "%REQ(X-REQUEST-ID)%",
        "method": "%REQ(:METHOD)%",
        "path": "%PATH(NQ:ORIG_OR_PATH)%",
        "status": "%RESPONSE_CODE%",
        "flags": "%RESPONSE_FLAGS%",
        "milliseconds": "%DURATION%",
        "route": "%ROUTE_NAME%",
    }
    if naming is not None and any(isinstance(one, AddressName) for one in naming.sources):
        members["address"] = "%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%"
    if planned.logged:
        members["fields"] = {name.lower(): f"%REQ({name})%" for name in planned.logged}
    return members


def _mapper(flags: Iterable[str], code: FaultCode, detail: str, again: int) -> Object:
    kind = FAULT_KINDS[code]
    fields = [("Cache-Control", "no-store"), *([("Retry-After", str(again))] if again else [])]
    return {
        "filter": {"response_flag_filter": {"flags": list(flags)}},
        "status_code": kind.status,
        "headers_to_add": [
            {
                "header": {"key": name, "value": value},
                "append_action": "OVERWRITE_IF_EXISTS_OR_ADD",
            }
            for name, value in fields
        ],
        "body_format_override": {
            "content_type": "application/problem+json",
            "json_format": {
                "type": f"urn:problem:{code}",
                "title": kind.title,
                "status": kind.status,
                "detail": detail,
                "instance": "%PATH(NQ:ORIG_OR_PATH)%",
                "code": str(code),
            },
        },
    }
