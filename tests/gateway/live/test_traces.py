"""Traces over sockets: a span for every step at a collector, and the context for services."""

import json
import re
import time
from contextlib import ExitStack, suppress

import pytest

from tests.gateway.collector import Collector, collecting
from tests.gateway.kit import Scripted, StartGateway, StartUpstream, held_port, rules
from tests.gateway.live.bounds import metric
from tests.gateway.talk import Reader, Writer, ask, connect, reply, soon

pytestmark = pytest.mark.slow

BODY = b'{"name":{"firstName":"Bob","lastName":"Charlie"}}'
OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (
    len(BODY),
    BODY,
)
TRACE, CALLER = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
PARENT = f"traceparent: 00-{TRACE}-{CALLER}"


def fields(request: bytes, name: str) -> list[str]:
    found = re.findall(rb"(?im)^%b: (.*?)\r$" % name.encode(), request)
    return [value.decode() for value in found]


def parent(scripted: Scripted, number: int = -1) -> list[str]:
    (value,) = fields(scripted.requests[number], "traceparent")
    return value.split("-")[1:]


@pytest.mark.parametrize("workers", ["1", "2"])
async def test_every_step_of_a_request_has_a_span(
    workers: str, gateway: StartGateway, upstream: StartUpstream
) -> None:
    service = await upstream(OK)
    with collecting() as collector:
        program = gateway(
            rules(service.port, via=True),
            GATEWAY_WORKERS=workers,
            OTEL_EXPORTER_OTLP_ENDPOINT=collector.url,
            OTEL_EXPORTER_OTLP_HEADERS="x-key=secret",
            OTEL_RESOURCE_ATTRIBUTES="deployment.environment.name=test",
        )
        before = time.time_ns()
        async with connect(program) as client:
            agent = "User-Agent: app/1"
            state = "tracestate: a=1,b=2"
            client.send(ask("GET /v1/person?secret=1", f"{PARENT}-01", state, agent))
            assert (await client.answer()).status == 200
        await soon(lambda: len(collector.spans) == 3)
    by_kind = {span["kind"]: span for span in collector.spans}
    server, conversion, asked = (by_kind[kind] for kind in ("SERVER", "INTERNAL", "CLIENT"))
    names = [span["name"] for span in (server, conversion, asked)]
    assert names == ["GET /v{version}/person", "convert response", "GET"]
    assert {span["trace"] for span in collector.spans} == {TRACE}
    assert server["parent"] == CALLER
    assert conversion["parent"] == asked["parent"] == server["id"]
    assert [span["remote"] for span in (server, conversion, asked)] == [True, False, False]
    assert {span["state"] for span in collector.spans} == {"a=1,b=2"}
    assert parent(service) == [TRACE, asked["id"], "01"]
    assert fields(service.requests[0], "tracestate") == ["a=1,b=2"]
    times = [server["began"], asked["began"], asked["ended"], conversion["ended"], server["ended"]]
    assert [before, *times] == sorted([before, *times])
    expected = {
        "http.request.method": "GET",
        "http.response.status_code": 200,
        "gateway.api.name": "person",
        "gateway.api.version": "1",
    }
    assert expected.items() <= server.items()
    assert expected.items() <= asked.items()
    assert server["http.route"] == "/v{version}/person"
    assert (server["url.path"], server["url.scheme"]) == ("/v1/person", "http")
    assert (server["server.address"], server["server.port"]) == ("api.test", 80)
    assert server["client.address"] == server["network.peer.address"] == "127.0.0.1"
    assert server["network.protocol.version"] == "1.1"
    assert server["user_agent.original"] == "app/1"
    assert asked["url.full"] == f"http://127.0.0.1:{service.port}/person"
    assert (asked["server.address"], asked["server.port"]) == ("127.0.0.1", service.port)
    assert "secret" not in json.dumps(collector.spans)
    (resource,) = collector.resources
    assert resource["service.name"] == "version-gateway"
    assert resource["deployment.environment.name"] == "test"
    ((path, headers),) = collector.paths
    assert (path, headers["x-key"]) == ("/v1/traces", "secret")
    (line,) = program.log("request")
    assert line["trace_id"] == TRACE


async def test_failed_requests_have_spans(gateway: StartGateway, upstream: StartUpstream) -> None:
    with collecting() as collector, ExitStack() as held:
        program = gateway(
            rules(held_port(held)) + f'tracing: {{ endpoint: "{collector.url}", ratio: 1 }}\n'
        )
        async with connect(program) as client:
            client.send(ask("GET /v1/person"))
            assert (await client.answer()).status == 502
            client.send(ask("GET /v9/person"))
            assert (await client.answer()).status == 404
            client.send(ask("PROPFIND /nowhere"))
            assert (await client.answer()).status == 404
        await soon(lambda: len(collector.spans) == 4)
    server, asked = collector.named("GET /v{version}/person")[0], collector.named("GET")[0]
    assert server["failed"]
    assert asked["failed"]
    assert server["error.type"] == asked["error.type"] == "upstream_unreachable"
    refused = collector.named("GET /v{version}/person")[1]
    assert (refused["failed"], refused["http.response.status_code"]) == (False, 404)
    (unknown,) = collector.named("HTTP")
    assert unknown["http.request.method"] == "_OTHER"
    assert unknown["http.request.method_original"] == "PROPFIND"
    assert len({span["trace"] for span in collector.spans}) == 3


async def test_a_failed_conversion_has_a_failed_span(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    """Each failed conversion has a separate failed span, also in a stream that has begun."""
    line = BODY + b"\n"
    bad = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1\r\n\r\n{"
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nContent-Length: %d\r\n\r\n"
    answers = [bad, *(head % len(body) + body for body in (line + line, line + b'{"name":7}\n'))]

    async def answer(scripted: Scripted, reader: Reader, writer: Writer) -> None:
        await reply(answers.pop(0), "close")(scripted, reader, writer)

    service = await upstream(answer)
    with collecting() as collector:
        text = rules(service.port, via=True)
        program = gateway(f'{text}tracing: {{ endpoint: "{collector.url}" }}\n')
        fields = ("Content-Type: application/json", "Content-Length: 1", "Connection: close")
        asked = ask("GET /v1/person", "Connection: close")
        for request in (ask("POST /v1/person", *fields, body=b"["), asked, asked, asked):
            async with connect(program) as client:
                client.send(request)
                with suppress(ConnectionResetError):  # the stream that cannot be converted
                    await client.rest()
        await soon(lambda: len(collector.spans) == 11)
    found = [
        (span["name"], span["failed"], span.get("error.type"), span["gateway.api.version"])
        for span in collector.spans
        if span["kind"] == "INTERNAL"
    ]
    assert sorted(found, key=str) == [
        ("convert request", True, "unconvertible_request", "1"),
        ("convert response", False, None, "1"),
        ("convert response", True, "conversion_failed", "1"),
        ("convert response", True, "conversion_failed", "1"),
    ]


async def test_a_shadow_has_a_separate_trace(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    """The trace is linked to the client's request, whose own trace does not include the shadow."""
    service = await upstream(OK)
    text = rules(service.port).replace(
        '"1": { service: s }', '"1": { service: s, shadow: { via: "2" } }'
    )
    with collecting() as collector:
        program = gateway(f'{text}tracing: {{ endpoint: "{collector.url}" }}\n')
        async with connect(program) as client:
            client.send(ask("GET /v1/person", f"{PARENT}-01"))
            await client.answer()
        # The request to the other version, and the one to the version's own service that detects
        # noise.
        await soon(lambda: len(collector.named("shadow GET")) == 2)
    (server,) = collector.named("GET /v{version}/person")
    shadows = collector.named("shadow GET")
    for shadow in shadows:
        assert (shadow["kind"], shadow["parent"]) == ("CLIENT", "")
        assert shadow["links"] == [(TRACE, server["id"])]
        assert shadow["http.response.status_code"] == 200
    traces = {shadow["trace"]: shadow["id"] for shadow in shadows}
    assert len(traces) == 2
    assert TRACE not in traces
    sent = {parent(service, number)[0]: parent(service, number)[1:] for number in (1, 2)}
    assert sent == {trace: [span, "01"] for trace, span in traces.items()}


async def test_a_shadow_of_an_unsampled_request_has_its_own_trace(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    service = await upstream(OK)
    text = rules(service.port).replace(
        '"1": { service: s }', '"1": { service: s, shadow: { via: "2" } }'
    )
    program = gateway(f"{text}tracing: {{ ratio: 1 }}\n")
    async with connect(program) as client:
        client.send(ask("GET /v1/person", f"{PARENT}-00", "tracestate: a=1"))
        await client.answer()
    await soon(lambda: len(service.requests) == 3)
    contexts = [parent(service, number) for number in range(3)]
    assert contexts[0] == [TRACE, CALLER, "00"]
    assert [flags for _, _, flags in contexts] == ["00"] * 3
    assert len({trace for trace, _, _ in contexts}) == 3
    states = [fields(request, "tracestate") for request in service.requests]
    assert states == [["a=1"], [], []]


async def test_an_unsampled_request_exports_no_span_and_keeps_its_trace(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    service = await upstream(OK)
    with collecting() as collector:
        text = f'{rules(service.port)}tracing: {{ endpoint: "{collector.url}", ratio: 0 }}\n'
        program = gateway(text)
        async with connect(program) as client:
            for given in (
                (),
                (f"{PARENT}-00", "tracestate: a=1", "Tracestate: b=2"),
                (f"{PARENT}-01-more", "tracestate: a=1"),
                (f"{PARENT}-01", f"{PARENT}-01", "tracestate: a=1"),
                (f"{PARENT}-01",),
            ):
                client.send(ask("GET /v2/person", *given))
                assert (await client.answer()).status == 200
        await soon(lambda: len(collector.spans) == 2)
    made, passed, invalid, doubled, sampled = (parent(service, number) for number in range(5))
    assert (made[2], invalid[2], doubled[2], sampled[2]) == ("00", "00", "00", "01")
    assert passed == [TRACE, CALLER, "00"]
    assert len({made[0], invalid[0], doubled[0], TRACE}) == 4
    states = [fields(request, "tracestate") for request in service.requests]
    assert states == [[], ["a=1", "b=2"], [], [], []]
    logged = [line["trace_id"] for line in program.log("request")]
    assert logged == [made[0], TRACE, invalid[0], doubled[0], TRACE]
    assert {span["trace"] for span in collector.spans} == {TRACE}


async def test_the_trace_context_is_forwarded_without_tracing(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    service = await upstream(OK)
    program = gateway(rules(service.port))
    async with connect(program) as client:
        client.send(ask("GET /v2/person", f"{PARENT}-01", "tracestate: a=1"))
        assert (await client.answer()).status == 200
        client.send(ask("GET /v2/person"))
        assert (await client.answer()).status == 200
    assert parent(service, 0) == [TRACE, CALLER, "01"]
    assert fields(service.requests[0], "tracestate") == ["a=1"]
    assert b"traceparent" not in service.requests[1].lower()
    assert not any("trace_id" in line for line in program.log("request"))


async def test_a_collector_outage_drops_spans_but_delays_no_request(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    with ExitStack() as held:
        service, port = await upstream(OK), held_port(held)
        program = gateway(
            f'{rules(service.port)}tracing: {{ endpoint: "http://127.0.0.1:{port}" }}\n'
        )
        async with connect(program) as client:
            client.send(ask("GET /v2/person"))
            assert (await client.answer()).status == 200
            await soon(
                lambda: metric(program, 'gateway_spans_dropped_total{reason="collector"}') == 2
            )
            assert not program.log("log")

            def came(collector: Collector) -> bool:
                return bool(collector.named("GET /v{version}/person"))

            with collecting(port) as collector:
                client.send(ask("GET /v2/person"))
                assert (await client.answer()).status == 200
                await soon(lambda: came(collector))
