"""The table of bounds; `make generate` writes docs/bounds.md and docs/bounds-services.md."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Bound(NamedTuple):
    """A limit on what clients, services or background work can make the gateway hold or spend.

    Attributes:
        what: the resource.
        key: the key of gateway.yaml or the variable that sets it; "fixed" if nothing does.
        default: the limit without that key.
        effect: what happens at the limit.
        metric: the metric or log event that shows it, or why neither is needed.
    """

    what: str
    key: str
    default: str
    effect: str
    metric: str


CLIENTS: Mapping[str, Sequence[Bound]] = {
    "Connections and requests": (
        Bound(
            "connections to a worker",
            "`limits.connections`, and half of the file descriptors without those of the "
            "admin port and 64 more",
            "10,000",
            "503 `overloaded` with Retry-After, then closed",
            "`gateway_refusals_total`",
        ),
        Bound(
            "connections that wait to be accepted",
            "per worker",
            "1,024",
            "the kernel delays them",
            "none: the kernel counts them as `ListenOverflows`",
        ),
        Bound(
            "connections accepted in a turn",
            "fixed",
            "8",
            "further ones wait for the next turn",
            "none: nothing is lost",
        ),
        Bound(
            "time without a request",
            "`limits.idle_seconds`",
            "75 s",
            "closed",
            "none: nothing is lost",
        ),
        Bound(
            "time for header fields",
            "`limits.header_seconds`",
            "10 s",
            "408 `request_timeout`, then closed",
            "`gateway_client_bounds_total`, `gateway_refusals_total`",
        ),
        Bound(
            "path and query",
            "`limits.target`",
            "8 KiB",
            "414 `uri_too_long`",
            "`gateway_refusals_total`",
        ),
        Bound(
            "bytes of the header fields",
            "`limits.header_bytes`",
            "64 KiB",
            "431 `headers_too_large`",
            "`gateway_client_bounds_total`, `gateway_refusals_total`",
        ),
        Bound(
            "number of header fields",
            "`limits.header_fields`",
            "128",
            "431 `headers_too_large`",
            "`gateway_refusals_total`",
        ),
        Bound(
            "bytes of `If-Match`, `If-None-Match` and `If-Range`, if responses are converted",
            "fixed",
            "8 KiB in all",
            "431 `headers_too_large`",
            "`gateway_refusals_total`",
        ),
        Bound(
            "characters read of Accept-Encoding, if responses are converted",
            "fixed",
            "1,024",
            "the response has no content coding",
            "none: nothing is lost",
        ),
        Bound(
            "header fields in a preflight, if their names differ between versions",
            "`limits.header_fields`",
            "128",
            "431 `headers_too_large`",
            "`gateway_refusals_total`",
        ),
        Bound(
            "versions tried for a preflight, which names none",
            "fixed",
            "8 different ones",
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
            "5 s each; a shutdown does not wait for a client that sends nothing",
            "closed",
            "none: the request already had its response",
        ),
        Bound(
            "work of a service for a client that has left",
            "fixed",
            "none; 1 s while the client is not read, because of pipelined requests or a "
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
            "60 s for 14,400 bytes",
            "408 `request_timeout`",
            "`gateway_refusals_total`",
        ),
        Bound(
            "time in which the client reads a part of a response",
            "`limits.stall_seconds`, `limits.min_rate`",
            "60 s for 14,400 bytes",
            "cut",
            "`gateway_client_bounds_total`",
        ),
        Bound(
            "a body that arrives with its head and is sent or converted as a whole",
            "fixed",
            "16 KiB for each service request",
            "streamed",
            "none: nothing is lost",
        ),
        Bound(
            "small request bodies that are read before a busy service is called",
            "fixed",
            "64 KiB each, 16 MiB in all",
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
            "32 KiB, 128 chunks",
            "the parser continues in the next turn",
            "none: nothing is lost",
        ),
        Bound(
            "writes to clients and services that are sent at the end of a turn",
            "fixed",
            "64, of up to 64 KiB each",
            "they are sent at once",
            "none: nothing is lost",
        ),
    ),
    "Conversions": (
        Bound(
            "bytes of a converted body, encoded and decoded; of each line or event of a stream",
            "`limits.convert`",
            "16 MiB",
            "413 `body_too_large`; 502 `conversion_failed` of a response; a started stream is cut",
            "`gateway_refusals_total`, `gateway_upstream_errors_total`",
        ),
        Bound(
            "elements of a converted body, line or event above 64 KiB; fields of a form "
            "above 16 KiB; lines of an event; elements and lines of a compressed stream",
            "`limits.elements`",
            "1,000,000",
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
            "16",
            "503 `overloaded` with Retry-After",
            "`gateway_refusals_total`",
        ),
        Bound(
            "processes that run these functions, of about 10 MB and their imports",
            "fixed, for each process",
            "4",
            "killed after the timeout and replaced",
            "`gateway_refusals_total`",
        ),
        Bound(
            "bytes of all converted bodies, from the first byte until they are sent, "
            "without those that arrived with their head",
            "fixed, or `limits.convert` if that is more",
            "64 MiB; 16 MiB more for networks that hold up to 8 MiB, and 16 MiB for bodies "
            "up to 64 KiB",
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
            "8; 256",
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
            "names and indexes of a path in a JSON Patch",
            "fixed",
            "64",
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
            "1,000",
            "503 `overloaded` with Retry-After",
            "`gateway_client_bounds_total`",
        ),
        Bound(
            "time without a byte",
            "`limits.tunnel_seconds`",
            "1 h",
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
            "32 MiB; the allocator may take as much again",
            "the tunnel with the oldest waiting bytes is cut",
            "`gateway_client_bounds_total`",
        ),
    ),
    "Counts, metrics and logs": (
        Bound(
            "the name of a client",
            "fixed",
            "64 characters",
            "replaced by a hash",
            "none: `usage` shows the hash",
        ),
        Bound(
            "a token",
            "fixed",
            "8,192 characters",
            "names no client",
            "none: `usage` shows requests without a client",
        ),
        Bound(
            "clients with their own row, per version",
            "fixed",
            "2,048",
            "added up in `(others)`",
            "`gateway_usage_clients`",
        ),
        Bound(
            "operations that the gates of a version judge separately",
            "fixed",
            "64",
            "judged together",
            "none: all requests still count",
        ),
        Bound(
            "operations with a sample of a hundredth of the clients, between two deltas",
            "fixed, for each process",
            "256",
            "not judged by operation",
            "none: all requests still count",
        ),
        Bound(
            "clients, endings and labels counted between two deltas",
            "fixed",
            "4,096",
            "the delta is sent early",
            "none: nothing is lost",
        ),
        Bound(
            "cached tokens, client names, hosts, Accept fields; names in another case",
            "fixed",
            "1,024 of each, 4,096 names, short ones only",
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
            "100 for each version at an endpoint, and at a target",
            "added up in one, `otel_metric_overflow`",
            "`http_server_request_duration_seconds`",
        ),
        Bound(
            "a label `field`",
            "fixed",
            "200 characters; 32 fields a response; 256 in all",
            "`more fields`; `(others)`",
            "`gateway_differences_total`",
        ),
        Bound(
            "samples of one delta",
            "fixed",
            "16",
            "dropped",
            "none: they are only examples",
        ),
        Bound(
            "ended requests that are recorded at the end of a turn",
            "fixed",
            "64",
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
            "the size of the pipe and 1 MiB a process, with 64 KiB more for events",
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
"""The bounds of clients, by section of docs/bounds.md."""

OTHERS: Mapping[str, Sequence[Bound]] = {
    "Services": (
        Bound(
            "requests in flight to a service",
            "`capacity.in_flight`",
            "1,000",
            "the next one waits",
            "`gateway_in_flight_waits_total`",
        ),
        Bound(
            "requests that wait for a service",
            "`capacity.queue`, `capacity.patience`",
            "1,000, 5 s",
            "503 `overloaded` with Retry-After for the last request of the network with the "
            "most waiting requests, or with the most waits for a connection; networks take "
            "turns",
            "`gateway_refusals_total`",
        ),
        Bound(
            "time to connect",
            "`timeouts.connect`",
            "5 s",
            "the next target; finally 504 `upstream_timeout`",
            "`gateway_upstream_errors_total`",
        ),
        Bound(
            "time to the head of a response",
            "`timeouts.first_byte`",
            "30 s",
            "504 `upstream_timeout`",
            "`gateway_upstream_errors_total`",
        ),
        Bound(
            "time between two bytes; time in which the service reads nothing of a request "
            "body or a tunnel",
            "`timeouts.between_bytes`",
            "60 s",
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
            "16",
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
            "5 in a row: 5 s, doubled up to 60 s",
            "it gets none while other targets are well",
            "`gateway_target_failing`, the log: `target_ejected`",
        ),
        Bound(
            "bytes of a response head; of its trailers",
            "fixed",
            "256 KiB, and up to 4 KiB more of a head; 256 KiB",
            "502 `upstream_protocol`, or cut if the response has begun",
            "`gateway_upstream_errors_total`",
        ),
        Bound(
            "fields of a response head, of its trailers",
            "fixed",
            "2,048 each",
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
            "2,000",
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
            "512 KiB, 32 MiB in all, and the last read of each, about 300 KiB at most",
            "the service waits and keeps its place in `in_flight`, until the slow client is cut",
            "`gateway_in_flight_waits_total`, if other requests wait",
        ),
        Bound(
            "bytes of all responses that slow clients have not read and the system does not buffer",
            "fixed",
            "96 MiB; the process may take three times as much, since pieces are kept whole",
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
            "4 s",
            "closed, some a quarter earlier",
            "none: nothing is lost",
        ),
    ),
    "Shadows and validation": (
        Bound(
            "parallel shadows, waiting ones, time of waiting",
            "fixed",
            "16, 128, 2 s",
            "not compared",
            "`gateway_shed_total`",
        ),
        Bound(
            "time of one shadow, from its first request to the end of the comparison",
            "fixed",
            "60 s",
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
            "16 MiB",
            "not compared",
            "`gateway_shed_total`",
        ),
        Bound(
            "bytes of one body stored for a shadow",
            "`shadow.body`",
            "64 KiB",
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
            "150 buckets a version and service",
            "counted in the last bucket",
            "none: it costs only precision",
        ),
        Bound(
            "responses validated for the gates of a cutover",
            "fixed, for each process",
            "50 reads and 50 writes a second, on both routes together; 1 MiB a second of all",
            "not validated",
            "none: they are samples",
        ),
        Bound(
            "bytes of streamed responses copied for validation",
            "fixed",
            "256 KiB each, 4 MiB in all",
            "not validated",
            "none: they are samples",
        ),
        Bound(
            "responses that wait for validation",
            "fixed",
            "64; 1 MiB; 256 KiB each",
            "not validated",
            "`gateway_unchecked_total`",
        ),
        Bound(
            "an OpenAPI document that a serving process loads: its bytes; the schemas of "
            "all its messages, each with a copy of the schemas that it uses",
            "fixed",
            "1 MiB of JSON, 128 KiB of YAML; 20,000",
            "it is not loaded; nothing is validated; `check` warns",
            "`gateway_unchecked_total`, the log: `check_failed`",
        ),
        Bound(
            "an OpenAPI document that `verify` or `check` loads: its bytes, values, depth",
            "fixed",
            "16 MiB, 1,000,000, 500",
            "refused",
            "none: the command prints it",
        ),
        Bound(
            "points of the curve of a gate",
            "fixed",
            "60",
            "the oldest is dropped",
            "none: it costs only history",
        ),
    ),
    "Traces and notifications": (
        Bound(
            "requests that are traced because of their callers",
            "fixed",
            "500 a second and worker",
            "not traced; the trace context still passes",
            "`gateway_spans_dropped_total`",
        ),
        Bound(
            "spans that wait for the supervisor; for the collector",
            "fixed",
            "4 MiB; 8,192",
            "dropped",
            "`gateway_spans_dropped_total`",
        ),
        Bound(
            "time for the head of the collector's response, with interim responses (1xx); its body",
            "fixed",
            "10 s; it is not read",
            "its connection is cut and its spans are dropped",
            "`gateway_spans_dropped_total`",
        ),
        Bound(
            "stored notifications, attempts to send one",
            "fixed",
            "100, and 8 over 28 h",
            "the oldest are dropped; given up",
            "`gateway_notifications_total`",
        ),
        Bound(
            "time for the response of a webhook; its bytes, with interim responses (1xx)",
            "fixed",
            "15 s, 64 KiB",
            "the attempt has failed",
            "`gateway_notifications_total`, the log: `notify_failed`",
        ),
        Bound(
            "parallel messages to one webhook",
            "fixed",
            "10, the first of them alone; other webhooks and the search for events wait 2 s "
            "for them",
            "further ones are sent next",
            "none: nothing is lost",
        ),
    ),
    "The admin port": (
        Bound(
            "connections, TLS handshakes",
            "fixed, and a sixteenth of the file descriptors",
            "256 each",
            "a new one closes the oldest connection of the address with the most",
            "`gateway_admin_bounds_total`",
        ),
        Bound(
            "time for a TLS handshake, for a first request; from a response to the next request",
            "fixed",
            "10 s each; 30 s",
            "closed",
            "none: no request had begun",
        ),
        Bound(
            "a body that anyone may send; a body that needs a right",
            "fixed",
            "16 KiB; 1 MiB; without the right nothing is read",
            "413; 401 or 403 before the body",
            "`gateway_admin_refusals_total`",
        ),
        Bound(
            "bodies above 16 KiB without a response; time for a body",
            "fixed",
            "4; 10 s",
            "a new one cuts the oldest of the address with the most; 408",
            "`gateway_admin_bounds_total`, `gateway_admin_refusals_total`",
        ),
        Bound(
            "bytes parsed in a turn of the event loop; unparsed bytes of a connection",
            "fixed",
            "2 KiB of all connections; 16 KiB, and as much in the system",
            "the parser continues in the next turn",
            "none: nothing is lost",
        ),
        Bound(
            "time in which the client reads nothing of a response",
            "fixed",
            "60 s",
            "closed",
            "`gateway_admin_bounds_total`",
        ),
        Bound(
            "wrong tokens of one address",
            "fixed",
            "20, then one every 3 s; 1,024 addresses",
            "429 with Retry-After; right tokens work",
            "`gateway_admin_refusals_total`",
        ),
        Bound(
            "parallel readers of the sums of a fleet, time of waiting",
            "fixed",
            "2, 10 s",
            "503 `state_busy` with Retry-After",
            "none: the response shows it",
        ),
        Bound(
            "event streams of the page",
            "fixed",
            "32",
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
            "1, 256 KiB",
            "the next waits; a mistake",
            "none: the draft shows it",
        ),
        Bound(
            "time and memory for the check of a draft, in its own process",
            "fixed",
            "10 s, 512 MiB",
            "its process is killed; a mistake",
            "none: the draft shows it",
        ),
    ),
    "Configuration and state": (
        Bound(
            "time of a look at the configuration file, outside the event loop",
            "fixed",
            "10 s",
            "reported; the configuration in force stays, and the file is read when the disk "
            "responds; no second look starts",
            "the log: `config_rejected`, `gateway_reloads_total`",
        ),
        Bound(
            "time to load an edited configuration",
            "fixed",
            "2 min",
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
            "16 MiB",
            "dropped, and counting starts again",
            "the log: `delta_lost`",
        ),
    ),
}
"""The bounds of services and of background work, by section of docs/bounds-services.md."""
