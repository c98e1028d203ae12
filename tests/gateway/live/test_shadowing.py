"""Shadows over sockets: their counts are correct, and no client ever notices them."""

import gzip
from itertools import count
from typing import Any

import pytest

from tests.gateway.kit import Program, Script, Scripted, StartGateway, StartUpstream
from tests.gateway.live.shifting import NEW, OLD, WRONG, Lane, answer, asked, rules, shadow, told
from tests.gateway.talk import Reader, Writer, ask, connect

APIS = (f"api{number}" for number in count())


@pytest.fixture(scope="module")
def program(module_gateway: StartGateway) -> Program:
    return module_gateway(rules("none", 1, 1))


@pytest.fixture
def lane(program: Program) -> Lane:
    return Lane(program, next(APIS))


async def test_equal_responses_are_not_a_difference(lane: Lane, upstream: StartUpstream) -> None:
    old, new = await upstream(OLD), await upstream(NEW)
    lane.lead(old.port, new.port, shadow())
    got = await lane.get("X-Client: a", "If-None-Match: x", "X-Shadow: 1", query="?q=1")
    assert got.body == b'{"name": "Bob Charlie"}'
    now = await lane.found(lambda now: now["compared"])
    assert (now["compared"], now["differing"], now["fields"], now["samples"]) == (1, 0, [], [])
    first, second = asked(old)
    assert (b"X-Shadow" in first, b"X-Shadow" in second) == (False, True)
    (sent,) = asked(new)
    assert sent.startswith(b"GET /person?q=1 HTTP/1.1\r\n")
    assert b"X-Shadow: 1\r\n" in sent
    assert b"Host: api.test\r\n" in sent
    assert b"Accept-Encoding: identity\r\n" in sent
    assert b"If-None-Match" not in sent


async def test_streams_are_compared_by_document(lane: Lane, upstream: StartUpstream) -> None:
    """White space in a document is not a difference."""

    def lines(*documents: str) -> bytes:
        body = "".join(f"{one}\n" for one in documents)
        head = f"Content-Type: application/x-ndjson\r\nContent-Length: {len(body)}\r\n"
        return f"HTTP/1.1 200 OK\r\n{head}\r\n{body}".encode()

    old = await upstream(lines('{"name": "Bob Charlie"}', '{ "name": "Ada King" }'))
    parts = '{"name": {"firstName": "%s", "lastName": "%s"}}'
    new = await upstream(lines(parts % ("Bob", "Charlie"), parts % ("Ada", "Queen")))
    lane.lead(old.port, new.port, shadow())
    await lane.get()
    now = await lane.found(lambda now: now["compared"])
    assert [each["field"] for each in now["fields"]] == ["/*/name"]
    (sample,) = now["samples"]
    assert sample["old"].startswith("text of 8 #")


async def test_a_field_that_differs_is_reported_without_its_values(
    lane: Lane, upstream: StartUpstream
) -> None:
    old, new = await upstream(OLD), await upstream(WRONG)
    lane.lead(old.port, new.port, shadow())
    got = await lane.get()
    assert got.body == b'{"name": "Bob Charlie"}'
    now = await lane.found(lambda now: now["compared"])
    (field,) = now["fields"]
    assert (field["field"], field["differences"], field["noise"]) == ("/name", 1, 0)
    (sample,) = now["samples"]
    assert sample["endpoint"] == "/v{version}/person"
    assert sample["old"].startswith("text of 11 #")
    assert sample["new"].startswith("text of 10 #")


async def test_plain_samples_show_the_values(lane: Lane, upstream: StartUpstream) -> None:
    old, new = await upstream(OLD), await upstream(WRONG)
    lane.lead(old.port, new.port, shadow(", samples: plain"))
    await lane.get("X-Request-Id: r1", query="?secret=1")
    now = await lane.found(lambda now: now["compared"])
    assert now["samples"] == [
        {
            "endpoint": "/v{version}/person",
            "field": "/name",
            "old": '"Bob Charlie"',
            "new": '"Bob Marley"',
            "request_id": "r1",
            "method": "GET",
            "path": "/v1/person",
        }
    ]
    assert all(b"X-Request-Id: r1\r\n" in request for request in (*asked(old), *asked(new)))
    assert lane.program.log("request")[-1]["request_id"] == "r1"
    for latency in (now["old"], now["new"]):
        assert latency["answers"] == 1
        assert 0 < latency["p50_ms"] == latency["p95_ms"] == latency["p99_ms"]


async def test_fields_that_vary_on_the_own_service_are_noise(
    lane: Lane, upstream: StartUpstream
) -> None:
    numbers = count()

    def say(_: bytes) -> bytes:
        return answer({"name": "Bob Charlie", "serial": next(numbers), "age": 7})

    old = await upstream(told(say))
    new = await upstream(answer({"name": {"firstName": "Bob", "lastName": "Charlie"}, "age": 8}))
    lane.lead(old.port, new.port, shadow())
    await lane.get()
    now = await lane.found(lambda now: now["compared"])
    fields = {each["field"]: (each["differences"], each["noise"]) for each in now["fields"]}
    assert fields == {"/age": (1, 0), "/serial": (0, 1)}
    assert now["differing"] == 1


async def test_ignored_fields_are_not_compared_and_chosen_headers_are(
    lane: Lane, upstream: StartUpstream
) -> None:
    old = await upstream(answer({"items": [{"a": 1, "b": 1.0}]}, "X-Kind: one"))
    new = await upstream(answer({"items": [{"a": 2, "b": 1}]}, "X-Kind: two", "X-Other: 3"))
    more = ", ignore: [/items/*/a], headers: [x-kind]"
    lane.lead(old.port, new.port, shadow(more))
    await lane.get()
    now = await lane.found(lambda now: now["compared"])
    assert [each["field"] for each in now["fields"]] == ["/items/*/b", "header x-kind"]


async def test_urls_of_services_are_mapped_before_they_are_compared(
    lane: Lane, upstream: StartUpstream
) -> None:
    """A URL of the public host that lacks the version's path would lead the client elsewhere."""

    def linking(public: str) -> Script:
        async def script(scripted: Scripted, reader: Reader, writer: Writer) -> None:
            own = f"http://127.0.0.1:{scripted.port}/person"
            links = {"self": own, "next": f"{own}?page=2", "public": f"http://api.test{public}"}
            while True:
                await scripted.take(reader)
                writer.write(answer(links))

        return script

    old, new = await upstream(linking("/v1/person")), await upstream(linking("/person"))
    lane.lead(old.port, new.port, shadow())
    await lane.get()
    now = await lane.found(lambda now: now["compared"])
    assert [each["field"] for each in now["fields"]] == ["/public"]


async def test_fields_that_the_newer_service_adds_can_be_ignored(
    lane: Lane, upstream: StartUpstream
) -> None:
    old = await upstream(answer({"items": [{"a": 1}]}))
    new = await upstream(answer({"items": [{"a": 1, "b": 2}], "total": 1}))
    lane.lead(old.port, new.port, shadow(", ignore_added: true"))
    await lane.get()
    now = await lane.found(lambda now: now["compared"])
    assert (now["compared"], now["fields"]) == (1, [])


BROKEN = [
    pytest.param(answer({}, status="500 Oh"), "500", id="fails"),
    pytest.param(answer(b"{no json"), "502 conversion_failed: The b", id="says no JSON"),
    pytest.param(answer({"name": 5}), "502 conversion_failed: The b", id="converts not"),
]


@pytest.mark.parametrize(("does", "would_get"), BROKEN)
async def test_a_failure_of_the_shadow_is_a_difference_of_the_status(
    lane: Lane, upstream: StartUpstream, does: bytes, would_get: str
) -> None:
    old, new = await upstream(OLD), await upstream(does)
    lane.lead(old.port, new.port, shadow())
    for number in (1, 2):
        assert (await lane.get()).body == b'{"name": "Bob Charlie"}'
        now = await lane.found(lambda now: now["compared"] >= number)  # noqa: B023
        found = [(each["field"], each["differences"]) for each in now["fields"]]
        assert found == [("status", number)]
    (sample,) = now["samples"]
    assert (sample["field"], sample["old"]) == ("status", "200")
    assert sample["new"].startswith(would_get)


@pytest.mark.parametrize("does", [b"nonsense\r\n\r\n", None], ids=["breaks HTTP", "is not there"])
async def test_an_outage_of_the_other_service_is_not_a_difference(
    lane: Lane, upstream: StartUpstream, does: bytes | None
) -> None:
    old = await upstream(OLD)
    port = 1 if does is None else (await upstream(does)).port
    lane.lead(old.port, port, shadow())
    assert (await lane.get()).body == b'{"name": "Bob Charlie"}'
    now = await lane.found(lambda now: now["shed"])
    assert (now["shed"], now["compared"], now["fields"]) == ({"unavailable": 1}, 0, [])


async def test_a_shadow_service_that_never_responds_delays_no_client(
    lane: Lane, upstream: StartUpstream
) -> None:
    old = await upstream(OLD)

    async def silent(scripted: Any, reader: Any, _: Any) -> None:
        await reader.read()

    new = await upstream(silent)
    lane.lead(old.port, new.port, shadow(), of_new=", timeouts: { first_byte: 0.2 }")
    for _ in range(40):
        assert (await lane.get()).status == 200
    now = await lane.found(lambda now: sum(now["shed"].values()) == 40)
    assert now["shed"]["unavailable"] > 0
    assert now["compared"] == 0


async def test_a_busy_gateway_sends_no_shadow_requests(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    """With a load limit of 0, the gateway is busy as soon as its load has been measured."""
    old, new = await upstream(OLD), await upstream(NEW)
    lane = Lane(
        gateway(rules("person", old.port, new.port, shadow()), GATEWAY_SHADOW_LOAD="0"), "person"
    )
    await lane.get()
    before = await lane.found(lambda now: now["compared"] or now["shed"])
    assert (await lane.get()).body == b'{"name": "Bob Charlie"}'
    now = await lane.found(lambda now: now["shed"] != before["shed"])
    assert (now["compared"], now["shed"].keys()) == (before["compared"], {"load"})


async def test_unsafe_requests_are_shadowed_with_bodies_if_configured(
    lane: Lane, upstream: StartUpstream
) -> None:
    """Each service gets an unsafe request once; the other service gets the converted body."""
    old, new = await upstream(OLD), await upstream(NEW)
    lane.lead(old.port, new.port, shadow(", methods: [POST]"))
    await lane.get()
    async with connect(lane.program) as client:
        body = b'{"name": "Bob Charlie"}'
        fields = ("Content-Type: application/json", f"Content-Length: {len(body)}")
        client.send(ask("POST /v1/person", *fields, body=body))
        assert (await client.answer()).body == b'{"name": "Bob Charlie"}'
    now = await lane.found(lambda now: now["compared"])
    assert (now["compared"], now["differing"]) == (1, 0)
    assert [request.split(b" ")[0] for request in asked(old)] == [b"GET", b"POST"]
    (sent,) = asked(new)
    assert sent.endswith(b'{"name":{"firstName":"Bob","lastName":"Charlie"}}')


async def test_a_response_that_the_client_aborts_is_not_compared(
    lane: Lane, upstream: StartUpstream
) -> None:
    async def slow(scripted: Scripted, reader: Reader, writer: Writer) -> None:
        await scripted.take(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
        await reader.read()

    old, new = await upstream(slow), await upstream(NEW)
    lane.lead(old.port, new.port, shadow())
    async with connect(lane.program) as client:
        client.send(ask("GET /v1/person"))
        await client.head()
    now = await lane.found(lambda now: now["shed"])
    assert (now["compared"], now["shed"], asked(new)) == (0, {"unfinished": 1}, [])


async def test_a_304_is_not_compared(lane: Lane, upstream: StartUpstream) -> None:
    old = await upstream(b"HTTP/1.1 304 Not Modified\r\n\r\n")
    new = await upstream(NEW)
    lane.lead(old.port, new.port, shadow())
    assert (await lane.get()).status == 304
    now = await lane.found(lambda now: now["shed"])
    assert (now["compared"], now["shed"], asked(new)) == (0, {"partial": 1}, [])


async def test_large_bodies_are_forwarded_and_not_compared(
    lane: Lane, upstream: StartUpstream
) -> None:
    large = answer({"name": "x" * 300_000})
    old, new = await upstream(large), await upstream(NEW)
    lane.lead(old.port, new.port, shadow())
    got = await lane.get()
    assert len(got.body) > 300_000
    now = await lane.found(lambda now: now["shed"])
    assert (now["compared"], now["shed"], asked(new)) == (0, {"large": 1}, [])


async def test_compressed_answers_are_compared(lane: Lane, upstream: StartUpstream) -> None:
    body = gzip.compress(b'{"name": "Bob Charlie"}')
    old = await upstream(answer(body, "Content-Encoding: gzip"))
    new = await upstream(WRONG)
    lane.lead(old.port, new.port, shadow())
    got = await lane.get("Accept-Encoding: gzip")
    assert got.body == body
    now = await lane.found(lambda now: now["compared"])
    assert [each["field"] for each in now["fields"]] == ["/name"]


WRITE = {
    "requestBody": {
        "content": {
            "application/json": {
                "schema": {
                    "properties": {"name": {"properties": {"lastName": {"maxLength": 7}}}},
                    "required": ["name"],
                }
            }
        }
    },
    "responses": {},
}
DOCUMENT = {"openapi": "3.1.0", "paths": {"/person": {"get": {"responses": {}}, "put": WRITE}}}


def documented(request: bytes) -> bytes:
    """Respond with the OpenAPI document of version 2, or like its service."""
    return answer(DOCUMENT) if b" /openapi.json " in request else NEW


async def put(lane: Lane, body: bytes, *, method: str = "PUT") -> None:
    fields = ("Content-Type: application/json", f"Content-Length: {len(body)}")
    async with connect(lane.program) as client:
        client.send(ask(f"{method} /v1/person", *fields, body=body))
        assert (await client.answer()).body == b'{"name": "Bob Charlie"}'


async def test_shadowed_writes_are_validated_but_not_sent(
    lane: Lane, upstream: StartUpstream
) -> None:
    old, new = await upstream(OLD), await upstream(told(documented))
    lane.lead(old.port, new.port, shadow(", validate: true"))
    await put(lane, b'{"name": "Bob Charlie"}')
    now = await lane.found(lambda now: now["validated"] == 1 or now["shed"])
    assert (now["validated"], now["invalid"], now["compared"]) == (1, 0, 0)
    for body in (b'{"name": "Bob Charlemagne"}', b"{}", b'{"name": 5}'):
        await put(lane, body)
    await put(lane, b"{}", method="PATCH")
    now = await lane.found(lambda now: now["validated"] == 5)
    assert (now["invalid"], now["differing"], asked(new)) == (4, 0, [])
    assert {each["field"]: (each["differences"], each["kind"]) for each in now["fields"]} == {
        "request /name/lastName": (1, "request"),
        "request /name": (1, "request"),
        "request conversion": (1, "request"),
        "request operation": (1, "request"),
    }
    assert {(each["old"], each["new"]) for each in now["samples"]} >= {
        ("200", "refused: maxLength"),
        ("200", "refused: required"),
    }
    assert b"Charlemagne" not in lane.program.output.read_bytes()
    # The old service has no document, so the operations that were seen count: all were compared.
    assert now["uncompared"] == []
    await lane.get()
    now = await lane.found(lambda now: now["compared"] == 1)
    assert (now["validated"], now["uncompared"]) == (5, [])


async def test_operations_that_were_never_compared_are_listed(
    lane: Lane, upstream: StartUpstream
) -> None:
    old, new = await upstream(told(documented)), await upstream(NEW)
    lane.lead(old.port, new.port, shadow(', percent: 100, dry_run: { query: try, value: "1" }'))
    missing = [f"{method} /v{{version}}/person" for method in ("GET", "PUT")]
    assert (await lane.found(lambda now: now["uncompared"]))["uncompared"] == missing
    await lane.get()
    now = await lane.found(lambda now: now["compared"] == 1)
    assert now["uncompared"] == missing[1:]
    async with connect(lane.program) as client:
        body = b'{"name": "Bob Charlie"}'
        fields = ("Content-Type: application/json", f"Content-Length: {len(body)}")
        client.send(ask("PUT /v1/person?try=0", *fields, body=body))
        await client.answer()
    now = await lane.found(lambda now: now["compared"] == 2)
    assert now["uncompared"] == []
    assert [request.split(b" HTTP")[0] for request in asked(new)] == [
        b"GET /person",
        b"PUT /person?try=1",
    ]
