"""Shadows, over real sockets: what is counted, and that no client ever notices."""

import gzip
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import count
from typing import Any

import pytest

from tests.gateway.kit import Program, Scripted, StartUpstream, start_program
from tests.gateway.live.shifting import NEW, OLD, WRONG, Lane, answer, rules, shadow, told
from tests.gateway.talk import Reader, Writer, ask, connect

APIS = (f"api{number}" for number in count())


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    """Start one gateway for all tests."""
    folder = tmp_path_factory.mktemp("shadow")
    config = folder / "gateway.yaml"
    config.write_text(rules("none", 1, 1))
    with ExitStack() as stack:
        program = start_program(stack, folder, "gateway")
        program.config = config
        yield program


@pytest.fixture
def lane(program: Program) -> Lane:
    """Return the gateway, with an API of the test's own."""
    return Lane(program, next(APIS))


async def test_answers_that_agree(lane: Lane, upstream: StartUpstream) -> None:
    """The own service is asked twice, the other one once; both know that nobody waits."""
    old, new = await upstream(OLD), await upstream(NEW)
    lane.lead(old.port, new.port, shadow())
    got = await lane.get("X-Client: a", "If-None-Match: x", "X-Shadow: 1", query="?q=1")
    assert got.body == b'{"name": "Bob Charlie"}'
    now = await lane.found(lambda now: now["compared"])
    assert (now["compared"], now["differing"], now["fields"], now["samples"]) == (1, 0, [], [])
    first, second = old.requests
    assert (b"X-Shadow" in first, b"X-Shadow" in second) == (False, True)
    (asked,) = new.requests
    assert asked.startswith(b"GET /person?q=1 HTTP/1.1\r\n")
    assert b"X-Shadow: 1\r\n" in asked
    assert b"Host: api.test\r\n" in asked
    assert b"Accept-Encoding: identity\r\n" in asked
    assert b"If-None-Match" not in asked


async def test_a_field_that_differs(lane: Lane, upstream: StartUpstream) -> None:
    """Samples show types, sizes and marks, not values."""
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


async def test_plain_samples(lane: Lane, upstream: StartUpstream) -> None:
    old, new = await upstream(OLD), await upstream(WRONG)
    lane.lead(old.port, new.port, shadow(", samples: plain"))
    await lane.get()
    now = await lane.found(lambda now: now["compared"])
    assert now["samples"] == [
        {
            "endpoint": "/v{version}/person",
            "field": "/name",
            "old": '"Bob Charlie"',
            "new": '"Bob Marley"',
        }
    ]


async def test_noise_is_subtracted(lane: Lane, upstream: StartUpstream) -> None:
    """What the own service never says twice is no difference; what differs beside it is one."""
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


async def test_what_is_ignored_and_what_is_chosen(lane: Lane, upstream: StartUpstream) -> None:
    old = await upstream(answer({"items": [{"a": 1, "b": 1.0}]}, "X-Kind: one"))
    new = await upstream(answer({"items": [{"a": 2, "b": 1}]}, "X-Kind: two", "X-Other: 3"))
    more = ", ignore: [/items/*/a], headers: [x-kind]"
    lane.lead(old.port, new.port, shadow(more))
    await lane.get()
    now = await lane.found(lambda now: now["compared"])
    assert [each["field"] for each in now["fields"]] == ["/items/*/b", "header x-kind"]


BROKEN = [
    pytest.param(answer({}, status="500 Oh"), id="fails"),
    pytest.param(answer(b"no json"), id="says no JSON"),
    pytest.param(answer({"name": 5}), id="says what cannot be converted"),
    pytest.param(b"nonsense\r\n\r\n", id="breaks HTTP"),
    pytest.param(None, id="is not there"),
]


@pytest.mark.parametrize("does", BROKEN)
async def test_a_broken_service(lane: Lane, upstream: StartUpstream, does: bytes | None) -> None:
    """It is a difference of the status, and no client sees it; nobody is ejected for it."""
    old = await upstream(OLD)
    port = 1 if does is None else (await upstream(does)).port
    lane.lead(old.port, port, shadow())
    for number in (1, 2):
        assert (await lane.get()).body == b'{"name": "Bob Charlie"}'
        now = await lane.found(lambda now: now["compared"] >= number)  # noqa: B023
        found = [(each["field"], each["differences"]) for each in now["fields"]]
        assert found == [("status", number)]
    (sample,) = now["samples"]
    assert (sample["field"], sample["old"]) == ("status", "200")
    assert sample["new"] in ("500", "502")


async def test_a_service_that_never_answers(lane: Lane, upstream: StartUpstream) -> None:
    """Comparisons queue up to a bound and are given up; answers go on, on one connection too."""
    old = await upstream(OLD)

    async def silent(scripted: Any, reader: Any, _: Any) -> None:
        await reader.read()

    new = await upstream(silent)
    lane.lead(old.port, new.port, shadow(), more=", timeouts: { first_byte: 0.2 }")
    for _ in range(40):
        assert (await lane.get()).status == 200
    now = await lane.found(lambda now: now["compared"] + sum(now["shed"].values()) == 40)
    assert now["differing"] == now["compared"] > 0


async def test_bodies_go_along_where_that_is_told(lane: Lane, upstream: StartUpstream) -> None:
    """What is not safe is asked once of each; the other service gets the body converted."""
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
    assert [request.split(b" ")[0] for request in old.requests] == [b"GET", b"POST"]
    (asked,) = new.requests
    assert asked.endswith(b'{"name":{"firstName":"Bob","lastName":"Charlie"}}')


async def test_who_leaves_early_is_not_compared(lane: Lane, upstream: StartUpstream) -> None:
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
    assert (now["compared"], now["shed"], new.requests) == (0, {"unfinished": 1}, [])


async def test_a_part_is_not_compared(lane: Lane, upstream: StartUpstream) -> None:
    old = await upstream(b"HTTP/1.1 304 Not Modified\r\n\r\n")
    new = await upstream(NEW)
    lane.lead(old.port, new.port, shadow())
    assert (await lane.get()).status == 304
    now = await lane.found(lambda now: now["shed"])
    assert (now["compared"], now["shed"], new.requests) == (0, {"partial": 1}, [])


async def test_large_bodies_pass_and_are_not_compared(lane: Lane, upstream: StartUpstream) -> None:
    large = answer({"name": "x" * 300_000})
    old, new = await upstream(large), await upstream(NEW)
    lane.lead(old.port, new.port, shadow())
    got = await lane.get()
    assert len(got.body) > 300_000
    now = await lane.found(lambda now: now["shed"])
    assert (now["compared"], now["shed"], new.requests) == (0, {"large": 1}, [])


async def test_compressed_answers_are_compared(lane: Lane, upstream: StartUpstream) -> None:
    body = gzip.compress(b'{"name": "Bob Charlie"}')
    old = await upstream(answer(body, "Content-Encoding: gzip"))
    new = await upstream(WRONG)
    lane.lead(old.port, new.port, shadow())
    got = await lane.get("Accept-Encoding: gzip")
    assert got.body == body
    now = await lane.found(lambda now: now["compared"])
    assert [each["field"] for each in now["fields"]] == ["/name"]
