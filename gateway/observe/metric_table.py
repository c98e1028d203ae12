"""The metrics of the gateway: name, type, labels and help of each, declared once.

No label contains client names, since their number is unlimited.
"""

from typing import Literal, NamedTuple


class MetricRow(NamedTuple):
    """A metric.

    Attributes:
        name: the name in Prometheus; the name of a counter ends in `_total`.
        values: the possible values of the last label, if there are only a few.
        counted: whether serving processes count it with `Recorder.count`.
        lasting: whether the stored state preserves it across restarts.
    """

    name: str
    type: Literal["counter", "gauge", "histogram"]
    labels: tuple[str, ...]
    help: str
    values: tuple[str, ...] = ()
    counted: bool = False
    lasting: bool = False

    @property
    def kind(self) -> str:
        """The kind of the counter: its name without `gateway_` and `_total`."""
        return self.name.removeprefix("gateway_").removesuffix("_total")


_VERSION = ("api", "version")
_ROUTE = (*_VERSION, "route")
_GATE = (*_VERSION, "gate", "measure")
_OPERATION = (*_VERSION, "method", "endpoint")
_PLACE = ("gateway_api_name", "gateway_api_version")
# The last label is "true" on the series that sums up all further endings if a place has more than
# 100 different ones.
_ENDING = (
    *("http_request_method", "http_response_status_code", "error_type", "otel_metric_overflow"),
)


def _counted(name: str, labels: tuple[str, ...], about: str, *values: str) -> MetricRow:
    return MetricRow(f"gateway_{name}_total", "counter", labels, about, values, True, True)


METRICS = (
    MetricRow(
        *("http_server_request_duration_seconds", "histogram"),
        (*_PLACE, "http_route", "url_scheme", *_ENDING),
        "Seconds from a client's request to the end of the response.",
    ),
    MetricRow(
        *("http_client_request_duration_seconds", "histogram"),
        (*_PLACE, "server_address", "server_port", *_ENDING),
        "Seconds from a request to a service to the head of its response.",
    ),
    MetricRow(
        *("gateway_conversions_total", "counter", (*_VERSION, "endpoint")),
        "Requests with a converted body.",
    ),
    MetricRow(
        *("gateway_cutover_failures_total", "counter", _ROUTE),
        "Requests of a cutover that failed without fault of the client.",
        ("old", "new"),
    ),
    MetricRow(
        *("gateway_cutover_outcomes_total", "counter", (*_ROUTE, "outcome")),
        "Ended requests of a cutover, by the outcomes that gates compare.",
    ),
    MetricRow(
        *("gateway_cutover_checked_total", "counter", _ROUTE),
        "Responses of a cutover that were validated against the version's document for its gates.",
        ("old", "new"),
    ),
    MetricRow(
        *("gateway_cutover_violating_total", "counter", _ROUTE),
        "Validated responses of a cutover that violate the version's document.",
        ("old", "new"),
    ),
    MetricRow(
        *("gateway_cutover_duration_seconds", "histogram", _ROUTE),
        "Seconds from a request of a cutover to the end of the response.",
        ("old", "new"),
    ),
    MetricRow(
        *("gateway_gate_value", "gauge", (*_GATE, "route")),
        "Value that a gate compares, or compared at the rollback: a share from 0 to 1, or a mean"
        " in seconds.",
        ("old", "new"),
    ),
    MetricRow(
        *("gateway_gate_requests", "gauge", (*_GATE, "route")),
        "Requests that a gate compares.",
        ("old", "new"),
    ),
    MetricRow(
        *("gateway_gate_matching_requests", "gauge", (*_GATE, "route")),
        "Requests that a gate compares and that match its measure, such as those with a 404.",
        ("old", "new"),
    ),
    MetricRow(
        *("gateway_gate_window_seconds", "gauge", _GATE),
        "Time since which a gate counts requests, in seconds.",
    ),
    MetricRow(
        *("gateway_gate_limit", "gauge", _GATE),
        "How much more a gate allows on the new route: a share to add, or a factor.",
    ),
    MetricRow(
        *("gateway_gate_outcome", "gauge", (*_GATE, "outcome")),
        "1 for the present outcome of a gate; after a rollback, for the outcome that caused it.",
        ("passed", "exceeded", "inconclusive"),
    ),
    _counted(
        *("refusals", (*_VERSION, "code")),
        "Requests that the gateway refused or failed, by the code of the error.",
    ),
    _counted(*("rate_limited_requests", ("limit", "api")), "Requests that a rate limit refused."),
    _counted(
        *("upstream_errors", ("service", "code")),
        "Requests that a service failed to serve, by the code of the error.",
    ),
    _counted(
        *("client_bounds", ("bound",)),
        "Times that a client reached a bound and was refused or cut off. A client counts under"
        " stall_seconds if it reads too little of a response.",
        *("connections", "header_bytes", "header_seconds", "http_2", "slow", "stall_seconds"),
        *("tunnels", "tunnel_seconds"),
    ),
    _counted(
        *("client_handshake_failures", ("reason",)),
        "Client connections that ended before the first request, without a complete"
        " TLS handshake or PROXY protocol header.",
    ),
    _counted(
        *("key_fetches", ("url", "result")),
        "Requests for the keys that verify tokens, by the URL in the configuration.",
        *("fetched", "failed"),
    ),
    _counted(
        *("operations", _OPERATION),
        "Requests for versions with a shadow or a cutover, by operation.",
    ),
    _counted(
        *("operations_compared", _OPERATION),
        "Requests that a shadow compared or validated, by operation.",
    ),
    _counted("compared", _VERSION, "Responses that a shadow's response was compared with."),
    _counted("differing", _VERSION, "Compared responses that differ from the shadow's."),
    _counted("validated", _VERSION, "Requests that a shadow validated without sending them."),
    _counted("invalid", _VERSION, "Validated requests that the shadow's version would refuse."),
    _counted(
        *("noise", (*_VERSION, "field")),
        "Differences between two responses of the version's own service, by field.",
    ),
    _counted(
        *("shed", (*_VERSION, "reason")), "Comparisons that a shadow did not make, by reason."
    ),
    _counted(
        *("differences", (*_VERSION, "field")),
        "Differences between responses and those of their shadow, by field.",
    ),
    _counted("checked", _VERSION, "Converted responses that were validated."),
    _counted(
        *("violations", (*_VERSION, "field")),
        "Violations of the version's document in converted responses, by field.",
    ),
    _counted(
        *("unmapped_links", (*_VERSION, "place")),
        "Links that fit no endpoint and stayed unchanged: in the named header field, in the body of"
        " a response (body) or in a request (request).",
    ),
    _counted(
        *("dropped_digests", (*_VERSION, "field")),
        "Digests and signatures that were removed because a conversion changed the"
        " body, by header field.",
    ),
    _counted(
        *("unfit_values", (*_VERSION, "change", "message", "result")),
        "Values that a change could not convert and kept or omitted, as `unfit` declares, and"
        " fields and parameters that `additional` dropped.",
    ),
    _counted(
        *("merged_writes", (*_VERSION, "outcome")),
        "Writes to be merged into the service's document, by outcome: `repeated`: merged again"
        " after a concurrent write; `unmerged`: sent without a merge, such as to a new document.",
        *("merged", "repeated", "unmerged", "conflict", "refused"),
    ),
    _counted("task_failures", ("task",), "Failures of background tasks, which were restarted."),
    _counted(
        *("log_dropped", ("line",)),
        "Log lines that were dropped because they could not be written in time.",
        *("request", "event"),
    ),
    _counted(
        *("admin_bounds", ("bound",)),
        "Connections of the admin port that were closed in favour of a newer one, or"
        " because the client did not read the response.",
        *("bodies", "connections", "handshakes", "stall_seconds"),
    ),
    _counted(
        *("admin_refusals", ("code",)),
        "Requests to the admin port that were refused because of their sender, by"
        " the code of the error.",
    ),
    _counted(
        *("in_flight_waits", ("service",)),
        "Requests that waited because the service had as many requests as"
        " capacity.in_flight allows.",
    ),
    _counted(
        *("connection_waits", ("target",)),
        "Requests that waited while as many connections as allowed were being opened to a target.",
    ),
    _counted(
        *("local_connect_failures", ("reason",)),
        "Connections to services, health checks included, that the gateway's own machine could not"
        " open.",
        *("ports", "files", "memory"),
    ),
    _counted(
        *("retries", ("service", "cause")),
        "Requests that were retried, by the earlier failure.",
        *("connect", "reset", "timeout", "502", "503", "504"),
    ),
    _counted(
        *("unchecked", _VERSION),
        "Converted responses that were to be validated and were not: too large, too many at a time,"
        " or by a document that could not be loaded.",
    ),
    _counted(
        *("spans_dropped", ("reason",)),
        "Spans that were not exported; under rate, requests that were not traced.",
        *("rate", "worker", "queue", "collector"),
    ),
    _counted(
        *("notifications", ("outcome",)),
        "Attempts to notify a webhook; messages that newer ones pushed out count as dropped.",
        *("sent", "failed", "dropped"),
    ),
    MetricRow("gateway_usage_total", "counter", _VERSION, "Requests for a version.", lasting=True),
    MetricRow(
        *("gateway_usage_last_seen_timestamp_seconds", "gauge", _VERSION),
        "Time of the last request for a version, in seconds since 1970.",
    ),
    MetricRow(
        *("gateway_usage_clients", "gauge", _VERSION),
        "Clients with distinct names that requested a version.",
    ),
    MetricRow(
        *("gateway_version_deprecated_timestamp_seconds", "gauge", _VERSION),
        "Time from which a version is deprecated, in seconds since 1970; absent without such a"
        " time.",
    ),
    MetricRow(
        *("gateway_version_sunset_timestamp_seconds", "gauge", _VERSION),
        "Time at which a version ends, in seconds since 1970; absent without such a time.",
    ),
    MetricRow(
        *("gateway_brownout_paused", "gauge", _VERSION),
        "1 while an operator has paused the brownouts of a version, else 0.",
    ),
    MetricRow(
        *("gateway_cutover_percent", "gauge", _VERSION),
        "Percentage of a version's clients that another version serves.",
    ),
    MetricRow("gateway_workers", "gauge", (), "Processes that serve requests."),
    MetricRow(
        *("gateway_target_failing", "gauge", ("service", "target")),
        "Addresses of a target that fail, summed over the processes: they are ejected, they fail as"
        " the last ones of their service, or health checks find them down.",
    ),
    MetricRow(
        *("gateway_reloads_total", "counter", ("result",)),
        "Edited configurations, by the result of loading them.",
        ("loaded", "rejected"),
    ),
    MetricRow(
        *("gateway_certificate_expiry_timestamp_seconds", "gauge", ("file",)),
        "Time at which a certificate in a file that the configuration names expires, in seconds"
        " since 1970.",
    ),
    MetricRow(
        *("gateway_key_set_timestamp_seconds", "gauge", ("url",)),
        "Time at which a process last fetched the keys that verify tokens, in seconds since 1970.",
    ),
    MetricRow(
        *("gateway_webhook_failing", "gauge", ("webhook",)),
        "1 while a webhook accepts no messages, else 0; only on the replica that sends them.",
    ),
    MetricRow(
        *("gateway_state_unwritten", "gauge", ()),
        "1 while the state cannot be written to its store, else 0.",
    ),
    MetricRow(
        *("gateway_state_stale_since_timestamp_seconds", "gauge", ()),
        "Time since which the store of the state is unreachable, in seconds since 1970; 0 while it"
        " is reachable.",
    ),
)
