"""Incomplete request heads are limited in bytes and time, on each request of a connection."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from tests.gateway.kit import Scripted, StartGateway, StartUpstream, rules
from tests.gateway.live.bounds import bound
from tests.gateway.talk import OK, Client, ask, connect, soon

SMALL = "limits: { header_bytes: 4096, target: 512, header_seconds: 0.6, idle_seconds: 60 }\n"
FIELD = b"X-A: " + b"a" * 1000 + b"\r\n"


@pytest.fixture
async def service(upstream: StartUpstream) -> Scripted:
    return await upstream(OK)


@pytest.fixture
async def client(reloaded: StartGateway, service: Scripted) -> AsyncIterator[Client]:
    async with connect(reloaded(SMALL + rules(service.port))) as client:
        yield client


@pytest.mark.parametrize("after", [0, 1, 3], ids=["first", "second", "fourth"])
async def test_a_head_is_refused_before_it_is_complete(
    gateway: StartGateway, service: Scripted, after: int
) -> None:
    """Five fields exceed the limit: the refusal does not wait for the end of the head."""
    program = gateway(SMALL + rules(service.port))
    async with connect(program) as client:
        for _ in range(after):
            client.send(ask())
            assert (await client.answer()).status == 200
        client.send(b"GET /plain HTTP/1.1\r\nHost: a\r\n" + FIELD * 5)
        answer = await client.answer()
        assert (answer.status, json.loads(answer.body)["code"]) == (431, "headers_too_large")
        assert answer["connection"] == "close"
        assert await client.rest() == b""
    assert len(service.requests) == after
    await soon(lambda: bound(program, "header_bytes") == 1)


async def test_a_pipelined_head_that_is_too_large_is_refused_in_order(
    client: Client, service: Scripted
) -> None:
    client.send(ask() * 3 + b"GET /plain HTTP/1.1\r\nHost: a\r\n" + FIELD * 30)
    statuses = [(await client.answer()).status for _ in range(4)]
    assert statuses == [200, 200, 200, 431]
    assert len(service.requests) == 3


@pytest.mark.parametrize("fields", [FIELD * 5, b"X-A: " + b"a" * 5000 + b"\r\n"], ids=["5", "1"])
async def test_complete_and_incomplete_heads_have_the_same_limits(
    gateway: StartGateway, service: Scripted, fields: bytes
) -> None:
    program = gateway(SMALL + rules(service.port))
    async with connect(program) as client:
        client.send(b"GET /plain HTTP/1.1\r\nHost: a\r\n" + fields + b"\r\n")
        answer = await client.answer()
        assert (answer.status, json.loads(answer.body)["code"]) == (431, "headers_too_large")
    await soon(lambda: bound(program, "header_bytes") == 1)


async def test_pipelined_heads_have_the_same_limits(client: Client, service: Scripted) -> None:
    heavy = b"GET /plain HTTP/1.1\r\nHost: a\r\n" + b"X-A: " + b"a" * 2000 + b"\r\n"
    client.send(ask() * 2 + heavy + b"X-B: " + b"b" * 2200 + b"\r\n\r\n" + ask())
    statuses = [(await client.answer()).status for _ in range(3)]
    assert statuses == [200, 200, 431]
    assert len(service.requests) == 2


async def test_every_request_head_has_its_own_time_limit(client: Client) -> None:
    """The start of the second arrives with the first; `header_seconds` applies to it."""
    client.send(ask() + b"GET /plain HTTP/1.1\r\n")
    assert (await client.answer()).status == 200
    assert (await client.answer()).status == 408
    assert await client.rest() == b""


async def test_a_body_in_one_piece_does_not_start_the_next_head(client: Client) -> None:
    client.send(ask("POST /plain", "Content-Length: 3000", body=b"x" * 3000))
    assert (await client.answer()).status == 200
    await asyncio.sleep(1.2)
    client.send(ask())
    assert (await client.answer()).status == 200


async def test_trailer_fields_are_bounded(client: Client) -> None:
    """Fields are sent after the content, because bytes in the same read are not counted."""
    client.send(ask("POST /plain", "Transfer-Encoding: chunked", body=b"1\r\nx\r\n0\r\n"))
    answer = asyncio.ensure_future(client.answer())
    for _ in range(200):
        client.send(FIELD)
        await asyncio.sleep(0.02)
        if answer.done():
            break
    assert (await answer).status == 400
