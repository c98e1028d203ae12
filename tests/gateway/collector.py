"""A collector that receives spans by OTLP over HTTP, as protobuf, and stores them."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

KINDS = {1: "INTERNAL", 2: "SERVER", 3: "CLIENT"}


class Collector:
    """A collector and the spans that it has received.

    Attributes:
        resources: the attributes of the programs that sent spans.
        paths: the path of each request, with its header fields.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.resources: list[dict[str, Any]] = []
        self.spans: list[dict[str, Any]] = []
        self.paths: list[tuple[str, dict[str, str]]] = []

    def named(self, name: str) -> list[dict[str, Any]]:
        return [span for span in self.spans if span["name"] == name]

    def take(self, body: bytes) -> None:
        for group in ExportTraceServiceRequest.FromString(body).resource_spans:
            self.resources.append(_attributes(group.resource.attributes))
            for scope in group.scope_spans:
                self.spans += [_span(span) for span in scope.spans]


@contextmanager
def collecting(port: int = 0) -> Iterator[Collector]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:  # the name that http.server calls
            body = self.rfile.read(int(self.headers["Content-Length"]))
            collector.paths.append((self.path, dict(self.headers)))
            collector.take(body)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # as its base has it
            pass

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    collector = Collector(f"http://127.0.0.1:{server.server_address[1]}")
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield collector
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _span(span: Any) -> dict[str, Any]:
    return {
        "trace": span.trace_id.hex(),
        "id": span.span_id.hex(),
        "parent": span.parent_span_id.hex(),
        "remote": bool(span.flags & 512),
        "state": span.trace_state,
        "name": span.name,
        "kind": KINDS[span.kind],
        "began": span.start_time_unix_nano,
        "ended": span.end_time_unix_nano,
        "failed": span.status.code == 2,
        "links": [(link.trace_id.hex(), link.span_id.hex()) for link in span.links],
        **_attributes(span.attributes),
    }


def _attributes(pairs: Any) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in pairs}
