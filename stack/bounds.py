"""The tables of bounds, from which docs/bounds.md and docs/bounds-services.md are generated."""

# ruff: noqa: E501  rows of a table are long

import re
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple


class Bound(NamedTuple):
    """A limit on the resources that clients, services or background work can take.

    Attributes:
        what: the limited resource.
        key: the key of gateway.yaml or the variable that sets the limit; "fixed" if the limit
            cannot be configured.
        default: the default limit. A placeholder such as `{size http.limits:Limits.target}` is
            replaced with the value of a constant or with the default of a field.
        effect: what happens at the limit.
        metric: the metric or log event for reaching the limit, or why neither is needed.
    """

    what: str
    key: str
    default: str
    effect: str
    metric: str

    def row(self) -> tuple[str, ...]:
        return self._replace(default=_VALUE.sub(_value, self.default))


_VALUE = re.compile(r"\{(count|size|seconds) ([\w.]+):(\w+)(?:\.(\w+))?\}")
_UNITS = {
    "count": ((1, ""),),
    "size": ((2**20, " MiB"), (2**10, " KiB")),
    "seconds": ((3600, " h"), (120, " min"), (1, " s")),
}


def _value(found: re.Match[str]) -> str:
    kind, module, name, field = found.groups()
    number: Any = getattr(import_module(f"gateway.{module}"), name)
    if field is not None:
        fields = getattr(number, "model_fields", None)
        number = getattr(number(), field) if fields is None else fields[field].default
    size, unit = next(each for each in _UNITS[kind] if number >= each[0])
    return f"{number / (60 if unit == ' min' else size):,.12g}{unit}"


CLIENTS: Mapping[str, Sequence[Bound]] = {
    "Connections and requests": (
        Bound(
            "TLS handshakes under way in a worker",
            "fixed",
            "{count http.client.client_server:_MOST_HANDSHAKES}",
            "a new one closes the oldest",
            "`gateway_client_handshake_failures_total`",
        ),
        Bound(
            "time for a TLS handshake, and for a header of the PROXY protocol",
            "`limits.header_seconds`",
            "{seconds http.limits:Limits.header_seconds}",
            "cut",
            "`gateway_client_handshake_failures_total`",
        ),
        Bound(
            "bytes of a header of the PROXY protocol",
            "fixed",
            "{size http.client.proxy_protocol:_LONGEST}",
            "cut",
            "`gateway_client_handshake_failures_total`",
        ),
        Bound(
            "connections to a worker",
            "`limits.connections`, and half of the file descriptors without those of the "
            "admin port and 64 more",
            "{count http.limits:Limits.connections}",
            "503 `overloaded` with Retry-After, then closed",
            "`gateway_refusals_total`",
        ),
        Bound(
            "token buckets of rate limits",
            "fixed",
            "{count access.token_buckets:SLOTS}",
            "a new bucket replaces the bucket that is full first",
            "none: the replaced bucket is full, so no request is refused",
        ),
        Bound(
            "connections that wait to be accepted",
            "per worker",
            "{count process.listening:BACKLOG}",
            "the kernel delays them",
            "none: the kernel counts them as `ListenOverflows`",
        ),
        Bound(
            "connections accepted in a turn",
            "fixed",
            "{count process.listening:_A_TURN}",
            "further ones wait for the next turn",
            "none: nothing is lost",
        ),
        Bound(
            "time without a request",
            "`limits.idle_seconds`",
            "{seconds http.limits:Limits.idle_seconds}",
            "closed",
            "none: nothing is lost",
        ),
        Bound(
            "time for header fields",
            "`limits.header_seconds`",
            "{seconds http.limits:Limits.header_seconds}",
            "408 `request_timeout`, then closed",
            "`gateway_client_bounds_total`, `gateway_refusals_total`",
        ),
        Bound(
            "path and query",
            "`limits.target`",
            "{size http.limits:Limits.target}",
            "414 `uri_too_long`",
            "`gateway_refusals_total`",
        ),
        Bound(
            "bytes of the header fields",
            "`limits.header_bytes`",
            "{size http.limits:Limits.header_bytes}",
            "431 `headers_too_large`",
            "`gateway_client_bounds_total`, `gateway_refusals_total`",
        ),
        Bound(
            "number of header fields",
            "`limits.header_fields`",
            "{count http.limits:Limits.header_fields}",
            "431 `headers_too_large`",
            "`gateway_refusals_total`",
        ),
        Bound(
            "bytes of `If-Match`, `If-None-Match` and `If-Range`, if responses are converted",
            "fixed",
            "{size proxy.message_rewriting:_MOST_CONDITIONS} in all",
            "431 `headers_too_large`",
            "`gateway_refusals_total`",
        ),
        Bound(
            "characters read of Accept-Encoding, if responses are converted",
            "fixed",
            "{count http.content_coding:LONGEST_ACCEPT_ENCODING}",
            "the response has no content coding",
            "none: nothing is lost",
        ),
        Bound(
            "header fields in a preflight, if their names differ between versions",
            "`limits.header_fields`",
            "{count http.limits:Limits.header_fields}",
            "431 `headers_too_large`",
            "`gateway_refusals_total`",
        ),
        Bound(
            "versions tried for a preflight, which names none",
            "fixed",
            "{count routing.options:_MOST_PLANS} different ones",
            "the version of the default or pin, or the newest, responds",
            "none: the response has the error",
        ),
        Bound(
            "pipelined requests of a connection",
            "fixed",
            "32",
            "the gateway stops reading until some have a response",
            "none: nothing is lost",
        ),
        Bound(
            "unprocessed bytes of a connection",
            "fixed, for each of `limits.connections`",
            "one read, up to 250 KiB",
            "the gateway stops reading",
            "none: nothing is lost",
        ),
        Bound(
            "unread rest of a request body; bytes after the last response until the client closes",
            "fixed",
            "{seconds http.client.connection:_LINGER} each; a shutdown does not wait for a client that sends nothing",
            "closed",
            "none: the request already had its response",
        ),
        Bound(
            "work of a service for a client that has left",
            "fixed",
            "none; {seconds http.client.connection:LOOK_AFTER} while the client is not read, because of pipelined requests or a "
            "waiting upload",
            "the connection to the service is cut",
            "the log: `request`, with aborted",
        ),
        Bound(
            "draining at a shutdown",
            "`GATEWAY_GRACE`",
            "10 s",
            "cut",
            "the log: `request`, with aborted",
        ),
    ),
    "Request and response bodies": (
        Bound(
            "bytes of a request body",
            "`limits.body`, `max_body`",
            "no bound: streamed",
            "413 `body_too_large`",
            "`gateway_refusals_total`",
        ),
        Bound(
            "time for a part of a request body",
            "`limits.stall_seconds`, `limits.min_rate`",
            "{seconds http.limits:Limits.stall_seconds} for 14,400 bytes",
            "408 `request_timeout`",
            "`gateway_refusals_total`",
        ),
        Bound(
            "time in which the client reads a part of a response",
            "`limits.stall_seconds`, `limits.min_rate`",
            "{seconds http.limits:Limits.stall_seconds} for 14,400 bytes",
            "cut",
            "`gateway_client_bounds_total`",
        ),
        Bound(
            "a body that arrives with its head and is sent or converted as a whole",
            "fixed",
            "{size http.client.message:_SMALL} for each service request",
            "streamed",
            "none: nothing is lost",
        ),
        Bound(
            "small request bodies that are read before a busy service is called",
            "fixed",
            "{size http.upstream.body_ahead:_ONE} each, {size http.upstream.body_ahead:_ALL} in all",
            "streamed, with a place of the service; the slowest upload gets 503 `overloaded`",
            "`gateway_refusals_total`",
        ),
        Bound(
            "places of a service, beyond half of them, for other request bodies while they arrive",
            "fixed",
            "a quarter of `capacity.in_flight`",
            "waits `capacity.patience`; then 503 `overloaded` with Retry-After",
            "`gateway_in_flight_waits_total`, `gateway_refusals_total`",
        ),
        Bound(
            "places and memory that a slow client or service holds (less than 64 KiB in 5 "
            "s, or nothing read in 1 s): places of a service and of arriving bodies beyond "
            "a quarter of each, bytes of large bodies to convert",
            "fixed",
            "none, while others wait for them",
            "the slowest one is cut, or gets 503 `overloaded` while its body arrives",
            "`gateway_client_bounds_total`, `gateway_refusals_total`",
        ),
        Bound(
            "bytes and chunks of a body parsed in a turn",
            "fixed",
            "32 KiB, {count http.client.connection:_CHUNKS_A_TURN} chunks",
            "the parser continues in the next turn",
            "none: nothing is lost",
        ),
        Bound(
            "writes to clients and services that are sent at the end of a turn",
            "fixed",
            "{count http.transport:_MOST}, of up to {size http.transport:_LARGE} each",
            "they are sent at once",
            "none: nothing is lost",
        ),
    ),
    "Conversions": (
        Bound(
            "bytes of a converted body, encoded and decoded; of each line or event of a stream",
            "`limits.convert`",
            "{size http.limits:Limits.convert}",
            "413 `body_too_large`; 502 `conversion_failed` of a response; a started stream is cut",
            "`gateway_refusals_total`, `gateway_upstream_errors_total`",
        ),
        Bound(
            "elements of a converted body, line or event above 64 KiB; fields of a form "
            "above 16 KiB; lines of an event; elements and lines of a compressed stream",
            "`limits.elements`",
            "{count http.limits:Limits.elements}",
            "as above",
            "as above",
        ),
        Bound(
            "target, header fields and body that a conversion makes",
            "as for incoming ones",
            "as for incoming ones",
            "414, 431, 413 or 400; 502 `conversion_failed` of a response; a started stream is cut",
            "as above",
        ),
        Bound(
            "values of one parameter; pieces of one text",
            "fixed",
            "10,000; 1,000,000",
            "as above",
            "as above",
        ),
        Bound(
            "time of slow Python functions for a body",
            "`timeout` of the change",
            "no bound",
            "400 `unconvertible_request` or 502 `conversion_failed`",
            "`gateway_refusals_total`",
        ),
        Bound(
            "bodies in Python functions with a `timeout`, or waiting 5 s for them",
            "fixed, for each process",
            "{count proxy.timed_conversion:_MOST}",
            "503 `overloaded` with Retry-After",
            "`gateway_refusals_total`",
        ),
        Bound(
            "processes that run these functions, of about 10 MB and their imports",
            "fixed, for each process",
            "{count base.function_process:_MAX_PROCESSES}",
            "killed after the timeout and replaced",
            "`gateway_refusals_total`",
        ),
        Bound(
            "bytes of all converted bodies, from the first byte until they are sent, "
            "without those that arrived with their head",
            "fixed, or `limits.convert` if that is more",
            "{size proxy.conversion_budget:_ALL}; {size proxy.conversion_budget:_SPARE} more for "
            "networks that hold up to {size proxy.conversion_budget:_LITTLE}, and "
            "{size proxy.conversion_budget:_SMALL} for bodies up to {size proxy.conversion_budget:AT_ONCE}",
            "waits 5 s, the network with the fewest bytes first; then 503 `overloaded` with "
            "Retry-After",
            "`gateway_refusals_total`",
        ),
        Bound(
            "parallel conversions of bodies above 64 KiB, in separate threads",
            "fixed",
            "1 light body (up to 1 MiB decoded with 50,000 elements, or 256 KiB of a "
            "stream); 1 heavier body",
            "waits in turns for 5 s, or 20 s for a heavy one; then 503 `overloaded`; a "
            "conversion whose client left is stopped",
            "`gateway_refusals_total`",
        ),
        Bound(
            "content codings; members of one",
            "fixed",
            "{count http.content_coding:_MOST_CODINGS}; {count http.content_coding:_MOST_MEMBERS}",
            "415 `unsupported_media_type`; 502 of a response",
            "as above",
        ),
        Bound(
            "depth of a JSON body",
            "the parser's",
            "about 1,000 with Python 3.11, 10,000 with 3.13",
            "400 `unconvertible_request`; 502 of a response",
            "as above",
        ),
        Bound(
            "bytes, values and levels of a YAML body",
            "fixed",
            "{size conversion.formats.yaml_body:_MOST_BYTES}; "
            "{count conversion.formats.yaml_body:_MOST_VALUES}; "
            "{count conversion.formats.yaml_body:_DEEPEST}",
            "400 `unconvertible_request`; 502 of a response",
            "as above",
        ),
        Bound(
            "names and indexes of a path in a JSON Patch",
            "fixed",
            "{count conversion.formats.json_patch:_DEEPEST}",
            "400 `unconvertible_request`",
            "`gateway_refusals_total`",
        ),
        Bound(
            "conversions on the event loop",
            "fixed",
            "bodies up to 64 KiB decoded; bodies above 16 KiB only with up to 500 halves of "
            "surrogate pairs; forms and patches up to 16 KiB; parts of a stream up to 500 "
            "lines",
            "larger ones are converted in threads",
            "none: nothing is lost",
        ),
        Bound(
            "time for conversions of bodies above 1 KiB in a turn",
            "fixed",
            "1 ms, and the whole last one: up to 20 ms for 20,000 elements in 64 KiB",
            "waits in turns; after 5 s 503 `overloaded`",
            "`gateway_refusals_total`",
        ),
        Bound(
            "computing time of a conversion thread until the event loop has a turn",
            "fixed",
            "0.5 ms, or a piece as below",
            "waits at most four times as long as it computed. Beside a busy loop, one "
            "conversion gets a fifth of the time; a light and a heavy one get a third.",
            "none: nothing is lost",
        ),
        Bound(
            "time for which a conversion thread blocks the event loop",
            "fixed",
            "0.1 ms, or a piece: 64 KiB to parse or decode, 64 elements to write; one text, "
            "name or number is not split: 9 ms for 10 MB, or 40 ms in an event of a stream",
            "requests run between the pieces",
            "none: nothing is lost",
        ),
    ),
    "Tunnels (WebSocket)": (
        Bound(
            "tunnels of a worker",
            "`limits.tunnels`",
            "{count http.limits:Limits.tunnels}",
            "503 `overloaded` with Retry-After",
            "`gateway_client_bounds_total`",
        ),
        Bound(
            "time without a byte",
            "`limits.tunnel_seconds`",
            "{seconds http.limits:Limits.tunnel_seconds}",
            "cut",
            "`gateway_client_bounds_total`",
        ),
        Bound(
            "waiting bytes of a tunnel",
            "fixed",
            "one read, up to 250 KiB, in each direction",
            "the sender waits",
            "none: nothing is lost",
        ),
        Bound(
            "waiting bytes of all tunnels",
            "fixed",
            "{size http.bounds:TUNNEL_BYTES}; the allocator may take as much again",
            "the tunnel with the oldest waiting bytes is cut",
            "`gateway_client_bounds_total`",
        ),
    ),
    "Counts, metrics and logs": (
        Bound(
            "the name of a client",
            "fixed",
            "{count base.client_names:LONGEST} characters",
            "replaced by a hash",
            "none: `usage` shows the hash",
        ),
        Bound(
            "a token",
            "fixed",
            "{count access.jwt:_MAX_LENGTH} characters",
            "names no client",
            "none: `usage` shows requests without a client",
        ),
        Bound(
            "clients with their own row, per version",
            "fixed",
            "{count usage.totals:ROWS_AFTER_CUT}",
            "added up in `(others)`",
            "`gateway_usage_clients`",
        ),
        Bound(
            "operations and clients that the gates of a version judge separately",
            "fixed",
            "{count rollout.evidence:MAX_OPERATIONS} operations, "
            "{count rollout.evidence:MAX_CLIENTS} clients",
            "further operations: judged together; further clients: judged in groups",
            "none: all requests still count",
        ),
        Bound(
            "clients and operations that are counted separately for the gates, between two deltas",
            "fixed, for each process",
            "{count proxy.cutover_counts:_MOST_ROWS}",
            "further clients: counted in groups",
            "none: all requests still count",
        ),
        Bound(
            "counts of clients and operations that wait for the gates",
            "fixed, for each version and route",
            "{count usage.totals:_MOST_ROWS}",
            "the oldest ones are not judged",
            "none: the totals still contain them",
        ),
        Bound(
            "clients, endings and labels counted between two deltas",
            "fixed",
            "{count proxy.record:_MOST_MET}",
            "the delta is sent early",
            "none: nothing is lost",
        ),
        Bound(
            "cached tokens, client names, hosts, Accept fields; names in another case",
            "fixed",
            "{count base.headers:_MOST_NAMES} of each, 4,096 names, short ones only",
            "the oldest is dropped",
            "none: it costs only time",
        ),
        Bound(
            "cached paths",
            "fixed",
            "8 MiB in all, short ones only",
            "the older half is dropped",
            "none: it costs only time",
        ),
        Bound(
            "series of requests by method, status and error",
            "fixed",
            "{count usage.totals:MAX_ENDINGS} for each version at an endpoint, and at a target",
            "added up in one, `otel_metric_overflow`",
            "`http_server_request_duration_seconds`",
        ),
        Bound(
            "a label `field`",
            "fixed",
            "{count rollout.differences:_LONGEST_FIELD} characters; "
            "{count rollout.differences:_MOST_FIELDS} fields a response; "
            "{count usage.totals:MAX_NAMES} in all",
            "`more fields`; `(others)`",
            "`gateway_differences_total`",
        ),
        Bound(
            "samples of one delta",
            "fixed",
            "{count proxy.record:_MOST_SAMPLES}",
            "dropped",
            "none: they are only examples",
        ),
        Bound(
            "ended requests that are recorded at the end of a turn",
            "fixed",
            "{count proxy.record:_MOST_QUEUED}",
            "recorded at once",
            "none: nothing is lost",
        ),
        Bound(
            "time of a scrape, of `/usage`, of a CSV file and of a view of the page",
            "fixed",
            "one piece of all of them in a turn: 500, 200 or 100 lines, or 1 ms of a view; "
            "`/usage` reads one version at a time and sorts its rows at once",
            "requests run between the pieces; client addresses take turns",
            "none: nothing is lost",
        ),
        Bound(
            "log lines that no reader or a full disk does not accept",
            "fixed",
            "the size of the pipe and {size observe.log:_MOST_WAITING} a process, with "
            "{size observe.log:_RESERVED} more for events",
            "dropped; `log_dropped` in the log",
            "`gateway_log_dropped_total`",
        ),
        Bound(
            "bytes of a log line in a pipe",
            "the system's atomic write",
            "4 KiB",
            "its longest fields are shortened",
            "none: the line shows it",
        ),
    ),
    "Processes": (
        Bound(
            "time without a heartbeat of one of several workers; a heartbeat is due every second",
            "fixed",
            "2 s; 5 s; 5 min before it serves",
            "after 2 s the other workers accept its connections; after 5 s it is killed and "
            "replaced; for a single process, use probes of `/healthz`",
            "the log: `worker_hangs`, `worker_died`",
        ),
        Bound(
            "restarts of a worker or a long-lived task that failed within 5 s of its start",
            "fixed",
            "after 0.2 s and 0.1 s, doubled each time up to 10 s",
            "other workers accept its connections",
            "`gateway_task_failures_total`, the log: `worker_died`, `worker_not_started`, "
            "`task_failed`",
        ),
    ),
}

OTHERS: Mapping[str, Sequence[Bound]] = {
    "Services": (
        Bound(
            "requests in flight to a service",
            "`capacity.in_flight`",
            "{count http.upstream.service:Capacity.in_flight}",
            "the next one waits",
            "`gateway_in_flight_waits_total`",
        ),
        Bound(
            "requests that wait for a service",
            "`capacity.queue`, `capacity.patience`",
            "{count http.upstream.service:Capacity.queue}, "
            "{seconds http.upstream.service:Capacity.patience}",
            "503 `overloaded` with Retry-After for the last request of the network with the "
            "most waiting requests, or with the most waits for a connection; networks take "
            "turns",
            "`gateway_refusals_total`",
        ),
        Bound(
            "time to connect",
            "`timeouts.connect`",
            "{seconds http.upstream.service:Timeouts.connect}",
            "the next target; finally 504 `upstream_timeout`",
            "`gateway_upstream_errors_total`",
        ),
        Bound(
            "time to the head of a response",
            "`timeouts.first_byte`",
            "{seconds http.upstream.service:Timeouts.first_byte}",
            "504 `upstream_timeout`",
            "`gateway_upstream_errors_total`",
        ),
        Bound(
            "time between two bytes; time in which the service reads nothing of a request "
            "body or a tunnel",
            "`timeouts.between_bytes`",
            "{seconds http.upstream.service:Timeouts.between_bytes}",
            "504, or cut if the response has begun",
            "`gateway_upstream_errors_total`",
        ),
        Bound(
            "time of a whole exchange",
            "`timeouts.whole`",
            "no bound",
            "as above",
            "`gateway_upstream_errors_total`",
        ),
        Bound(
            "connections that are opened to a target in parallel",
            "fixed",
            "{count http.upstream.target_connections:_MOST_OPENING}",
            "further requests wait for a free or new connection; networks take turns",
            "`gateway_connection_waits_total`",
        ),
        Bound(
            "local ports, files and memory for connections to services",
            "those of the system",
            "none",
            "the next target; finally 503 `gateway_exhausted` with Retry-After; the target "
            "does not count as failing",
            "`gateway_local_connect_failures_total`, `gateway_refusals_total`",
        ),
        Bound(
            "attempts at other targets",
            "fixed",
            "20% of the requests, and 10 in reserve",
            "the client gets the first failure",
            "`gateway_upstream_errors_total`",
        ),
        Bound(
            "requests to a failing target",
            "`ejection.failures`, `ejection.seconds`, `ejection.longest`",
            "{count http.upstream.service:Ejection.failures} in a row: "
            "{seconds http.upstream.service:Ejection.seconds}, doubled up to "
            "{seconds http.upstream.service:Ejection.longest}",
            "it gets none while other targets are healthy",
            "`gateway_target_failing`, the log: `target_ejected`",
        ),
        Bound(
            "bytes of a response head; of its trailers",
            "fixed",
            "{size http.upstream.connection:MAX_HEAD}, and up to {size http.transport:SLICE} more "
            "of a head; {size http.upstream.connection:MAX_HEAD}",
            "502 `upstream_protocol`, or cut if the response has begun",
            "`gateway_upstream_errors_total`",
        ),
        Bound(
            "fields of a response head, of its trailers",
            "fixed",
            "{count http.upstream.connection:MOST_FIELDS} each",
            "502 `upstream_protocol`, or cut if the response has begun",
            "`gateway_upstream_errors_total`",
        ),
        Bound(
            "bytes of a response head, or of a body without a length, parsed in a turn of "
            "the event loop",
            "fixed",
            "4 KiB of a head, of trailers or beyond 128 chunks; up to 64 KiB of large chunks",
            "the parser continues in the next turn",
            "none: nothing is lost",
        ),
        Bound(
            "links in the header fields of a response, with the parameters of links and cookies",
            "fixed",
            "{count proxy.links:_MOST_PARTS}",
            "502 `upstream_protocol`",
            "`gateway_upstream_errors_total`",
        ),
        Bound(
            "time to wait for the rest of a body up to 64 KiB, to send it in one write",
            "fixed",
            "5 ms",
            "the available part is sent",
            "none: nothing is lost",
        ),
        Bound(
            "bytes of a response that the client has not read",
            "fixed",
            "{size proxy.response_buffer:_ONE}, {size proxy.response_buffer:_ALL} in all, and the last read of each, about 300 KiB at most",
            "the service waits and keeps its place in `in_flight`, until the slow client is cut",
            "`gateway_in_flight_waits_total`, if other requests wait",
        ),
        Bound(
            "bytes of all responses that slow clients have not read and the system does not buffer",
            "fixed",
            "{size http.client.connection:_ALL_WAITING}; the process may take three times as much, since pieces are kept whole",
            "the client that has read nothing for the longest time is cut",
            "`gateway_client_bounds_total`",
        ),
        Bound(
            "bytes of a response that the gateway has not read",
            "fixed",
            "256 KiB",
            "the service waits",
            "none: nothing is lost",
        ),
        Bound(
            "an idle connection",
            "`Keep-Alive: timeout` of the service, less a second, 30 s at most",
            "{seconds http.upstream.connection:_USUAL}",
            "closed; some connections up to a quarter earlier",
            "none: nothing is lost",
        ),
    ),
    "Shadows and validation": (
        Bound(
            "parallel shadows, waiting ones, time to wait",
            "fixed",
            "{count proxy.shadows:_AT_ONCE}, {count proxy.shadows:_LINE}, "
            "{seconds proxy.shadows:_PATIENCE}",
            "not compared",
            "`gateway_shed_total`",
        ),
        Bound(
            "time of one shadow, from its first request to the end of the comparison",
            "fixed",
            "{seconds proxy.shadows:_LONGEST}",
            "its requests are cut; not compared",
            "`gateway_shed_total`",
        ),
        Bound(
            "shadows that begin in a turn of the event loop",
            "fixed",
            "1",
            "the next begins in the next turn",
            "none: nothing is lost",
        ),
        Bound(
            "bytes stored for shadows",
            "fixed",
            "{size proxy.shadows:_MEMORY}",
            "not compared",
            "`gateway_shed_total`",
        ),
        Bound(
            "bytes of one body stored for a shadow",
            "`shadow.body`",
            "{size rollout.shadow:Shadow.body}",
            "not compared",
            "`gateway_shed_total`",
        ),
        Bound(
            "processor time of a worker",
            "`GATEWAY_SHADOW_LOAD`",
            "0.8 of a processor, or 16 waiting shadows",
            "no shadows begin; then few, with a slow increase",
            "`gateway_shed_total`",
        ),
        Bound(
            "places of a service for shadows",
            "fixed",
            "half of `capacity.in_flight`",
            "no shadows begin",
            "`gateway_shed_total`",
        ),
        Bound(
            "durations of shadows",
            "fixed",
            "{count usage.delta:LATENCY_BUCKETS} buckets a version and service",
            "counted in the last bucket",
            "none: it costs only precision",
        ),
        Bound(
            "responses validated for the gates of a cutover",
            "fixed, for each process",
            "{count verify.live.sampling:_ANSWERS_A_SECOND} reads and as many writes a second, on "
            "both routes together; {size verify.live.sampling:_BYTES_A_SECOND} a second in total",
            "not validated",
            "none: they are samples",
        ),
        Bound(
            "bytes of streamed responses copied for validation",
            "fixed",
            "{size proxy.response_buffer:_ONE_COPIED} each, "
            "{size proxy.response_buffer:_ALL_COPIED} in all",
            "not validated",
            "none: they are samples",
        ),
        Bound(
            "messages of a process that wait for validation",
            "fixed",
            "{count verify.live.document_jobs:_MOST}; {size verify.live.document_jobs:_MOST_BYTES};"
            " a response {size verify.live.sampling:_LARGEST}, a request"
            " {size verify.live.document_jobs:_LARGEST}",
            "a write replaces a read if more reads wait; not validated",
            "`gateway_unchecked_total`; for shadows `gateway_shed_total`",
        ),
        Bound(
            "memory of the [document process](processes.md#the-document-process)",
            "fixed",
            "{size verify.live.document_jobs:MOST_MEMORY}",
            "it ends and is started again; after two attempts, the document is not used for an hour",
            "the log: `document_process_ended`, `check_failed`",
        ),
        Bound(
            "processor time of the document process for one message or document",
            "fixed",
            "{seconds verify.live.document_jobs:LONGEST}",
            "the same",
            "the log: `document_process_ended`, `check_failed`",
        ),
        Bound(
            "an OpenAPI document: its bytes, values, depth",
            "fixed",
            "{size base.files:MAX_BYTES}, {count verify.openapi.document_source:_MOST}, "
            "{count verify.openapi.document_source:_DEEPEST}",
            "not used; commands refuse it",
            "the log: `check_failed`",
        ),
        Bound(
            "points of the curve of a gate",
            "fixed",
            "{count findings.gate_curves:POINTS}",
            "the oldest is dropped",
            "none: it costs only history",
        ),
    ),
    "Traces and notifications": (
        Bound(
            "requests that are traced because of their callers",
            "fixed",
            "{count proxy.request_trace:_MOST} a second and worker",
            "not traced; the trace context still passes",
            "`gateway_spans_dropped_total`",
        ),
        Bound(
            "spans that wait for the supervisor; for the collector",
            "fixed",
            "{size process.channel:_MAX_BEFORE_SPANS}; {count observe.tracing:MOST}",
            "dropped",
            "`gateway_spans_dropped_total`",
        ),
        Bound(
            "time for the head of the collector's response, with interim responses (1xx); its body",
            "fixed",
            "{seconds observe.otlp_sender:_LONGEST}; it is not read",
            "its connection is cut and its spans are dropped",
            "`gateway_spans_dropped_total`",
        ),
        Bound(
            "stored notifications, attempts to send one",
            "fixed",
            "{count findings.notifications:_MAX_ITEMS}, and 8 over 28 h",
            "the oldest are dropped; the delivery has failed",
            "`gateway_notifications_total`",
        ),
        Bound(
            "time for the response of a webhook; its bytes, with interim responses (1xx)",
            "fixed",
            "{seconds findings.webhook_client:_SECONDS}, {size findings.webhook_client:_BYTES}",
            "the attempt has failed",
            "`gateway_notifications_total`, the log: `notify_failed`",
        ),
        Bound(
            "parallel messages to one webhook",
            "fixed",
            "{count findings.notifier:_BATCH}, the first of them alone; other webhooks and the search for events wait 2 s "
            "for them",
            "further ones are sent next",
            "none: nothing is lost",
        ),
    ),
    "The admin port": (
        Bound(
            "connections, TLS handshakes",
            "fixed, and a sixteenth of the file descriptors",
            "{count base.descriptors:_MOST_ADMIN} each",
            "a new one closes the oldest connection of the address with the most",
            "`gateway_admin_bounds_total`",
        ),
        Bound(
            "time for a TLS handshake, for a first request; from a response to the next request",
            "fixed",
            "{seconds admin.access.connections:REQUEST_SECONDS} each; "
            "{seconds admin.access.connections:IDLE_SECONDS}",
            "closed",
            "none: no request had begun",
        ),
        Bound(
            "a body that anyone may send; a body that needs a right",
            "fixed",
            "{size admin.access.middlewares:_SMALL}; 1 MiB; without the right nothing is read",
            "413; 401 or 403 before the body",
            "`gateway_admin_refusals_total`",
        ),
        Bound(
            "bodies above 16 KiB without a response; time for a body",
            "fixed",
            "{count admin.access.middlewares:_LARGE_BODIES}; "
            "{seconds admin.access.connections:REQUEST_SECONDS}",
            "a new one closes the oldest of the address with the most; 408",
            "`gateway_admin_bounds_total`, `gateway_admin_refusals_total`",
        ),
        Bound(
            "bytes parsed in a turn of the event loop; unparsed bytes of a connection",
            "fixed",
            "{size admin.access.connections:_BYTES_A_TURN} of all connections; 16 KiB, and as much in the system",
            "the parser continues in the next turn",
            "none: nothing is lost",
        ),
        Bound(
            "time in which the client reads nothing of a response",
            "fixed",
            "{seconds admin.access.connections:STALL_SECONDS}",
            "closed",
            "`gateway_admin_bounds_total`",
        ),
        Bound(
            "wrong tokens of one address",
            "fixed",
            "{count admin.access.authentication:_ATTEMPTS}, then one every 3 s; "
            "{count admin.access.authentication:_MOST_ADDRESSES} addresses",
            "429 with Retry-After; valid tokens still work",
            "`gateway_admin_refusals_total`",
        ),
        Bound(
            "parallel readers of the sums of a fleet, time to wait",
            "fixed",
            "{count store.state:_READERS}, {seconds store.state:_PATIENCE}",
            "503 `state_busy` with Retry-After",
            "none: the response shows it",
        ),
        Bound(
            "event streams of the page",
            "fixed",
            "{count admin.page.live_updates:MOST_STREAMS}",
            "a new one ends the oldest of the address with the most; a page that lost its "
            "stream retries after 30 s",
            "none: the page shows it",
        ),
        Bound(
            "time of a view of the page on the event loop",
            "fixed: its content",
            "about 15 ms with 200 versions and 2,048 rows of a version",
            "the supervisor has its own loop: with several workers, no client waits",
            "none: nothing is lost",
        ),
        Bound(
            "drafts checked in parallel, bytes of one",
            "fixed",
            "1, {size rules.draft:MAX_BYTES}",
            "the next waits; a mistake",
            "none: the draft shows it",
        ),
        Bound(
            "time and memory for the check of a draft, in its own process",
            "fixed",
            "{seconds rules.draft:SECONDS}, {size rules.draft:_MEMORY}",
            "its process is killed; a mistake",
            "none: the draft shows it",
        ),
    ),
    "Configuration and state": (
        Bound(
            "time of a check of the configuration file, outside the event loop",
            "fixed",
            "{seconds process.reloader:_LONGEST_LOOK}",
            "reported; the configuration in force stays, and the file is read when the disk "
            "responds; no second check starts",
            "the log: `config_rejected`, `gateway_reloads_total`",
        ),
        Bound(
            "time to load an edited configuration",
            "fixed",
            "{seconds process.reloader:_LONGEST_LOAD}",
            "rejected; the configuration in force stays",
            "the log: `config_rejected`, `gateway_reloads_total`",
        ),
        Bound(
            "minutes and days of the history, per version",
            "fixed",
            "1,440 and 400; in memory 50,000 and 8,000 of all versions",
            "the oldest are deleted",
            "none: only age decides",
        ),
        Bound(
            "counts that wait for the supervisor",
            "fixed",
            "{size process.channel:_MAX_WAITING}",
            "dropped, and counting starts again",
            "the log: `delta_lost`",
        ),
    ),
}
