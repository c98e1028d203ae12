"""A service that also serves another version gets its own version in every mechanism."""

import asyncio

import pytest

from tests.gateway.kit import DEADLINE, Program, Scripted, StartUpstream, rules
from tests.gateway.live import shifting
from tests.gateway.talk import ask, connect

BODY = b'{"name":{"firstName":"Bob","lastName":"Charlie"}}'
MEDIA_TYPE = "application/vnd.t-v%d+json"
ANSWER = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/vnd.t-v2+json\r\nX-API-VERSION: 2\r\n"
    b"Content-Length: %d\r\n\r\n%b" % (len(BODY), BODY)
)

PLACES = {
    "query": ("/param?a=%20&version=1", (), "/person?a=%20&version=2", ()),
    "header": ("/header", ("x-api-version: 1",), "/person", ("x-api-version: 2",)),
    "accept": (
        "/accept",
        (f"Accept: text/html;q=0.5, {MEDIA_TYPE % 1};q=0.9",),
        "/person",
        (f"Accept: text/html;q=0.5, {MEDIA_TYPE % 2};q=0.9",),
    ),
}


@pytest.fixture
async def service(standing: Program, upstream: StartUpstream) -> Scripted:
    scripted = await upstream(ANSWER)
    standing.reload(rules(scripted.port, via=True))
    return scripted


@pytest.mark.parametrize(("target", "fields", "asked", "told"), PLACES.values(), ids=PLACES)
async def test_a_service_gets_its_own_version_in_the_request(
    standing: Program,
    service: Scripted,
    target: str,
    fields: tuple[str, ...],
    asked: str,
    told: tuple[str, ...],
) -> None:
    async with connect(standing) as client:
        client.send(ask(f"GET {target}", *fields))
        answer = await client.answer()
        assert answer.body == b'{"name":"Bob Charlie"}'
    (request,) = service.requests
    lines = request.decode().split("\r\n")
    assert lines[0] == f"GET {asked} HTTP/1.1"
    assert set(told) <= set(lines)


async def test_the_content_type_names_the_version_of_the_receiver(
    standing: Program, service: Scripted
) -> None:
    async with connect(standing) as client:
        body = b'{"name":"Bob Charlie"}'
        called = f"Content-Type: {MEDIA_TYPE % 1}"
        fields = (f"Accept: {MEDIA_TYPE % 1}", called, f"Content-Length: {len(body)}")
        client.send(ask("POST /accept", *fields, body=body))
        answer = await client.answer()
    assert (answer["content-type"], answer.body) == (MEDIA_TYPE % 1, body)
    (request,) = service.requests
    assert f"\r\nContent-Type: {MEDIA_TYPE % 2}\r\n".encode() in request
    assert request.endswith(BODY)


async def test_the_response_names_the_version_of_the_client(
    standing: Program, service: Scripted
) -> None:
    async with connect(standing) as client:
        client.send(ask("GET /header", "X-API-VERSION: 1"))
        assert (await client.answer())["x-api-version"] == "1"
        client.send(ask("GET /header", "X-API-VERSION: 2"))
        assert (await client.answer())["x-api-version"] == "2"


async def test_a_request_for_a_native_version_is_forwarded_unchanged(
    standing: Program, service: Scripted
) -> None:
    async with connect(standing) as client:
        client.send(ask("GET /param?%76ersion=2"))
        await client.answer()
    assert service.requests[0].startswith(b"GET /person?%76ersion=2 ")


@pytest.mark.parametrize(
    "beside",
    ['shadow: { via: "2" }', 'cutover: { via: "2", percent: 100, sticky_by: request }'],
    ids=["in the background", "on the new route"],
)
async def test_each_of_two_services_gets_its_own_version(
    standing: Program, upstream: StartUpstream, beside: str
) -> None:
    old = await upstream(ANSWER.replace(b"v2", b"v1").replace(b": 2", b": 1"))
    new = await upstream(ANSWER)
    path = 'path: "/v{version}/person", version: { in: path }'
    header = "path: /header, version: { in: header, name: X-API-VERSION }"
    text = shifting.rules("told", old.port, new.port, f", {beside}").replace(path, header)
    standing.reload(text)
    async with connect(standing) as client, asyncio.timeout(DEADLINE):
        while not new.requests:  # shadows may be dropped on a busy machine
            client.send(ask("GET /header", "X-API-VERSION: 1"))
            assert (await client.answer()).status == 200
            await asyncio.sleep(0.05)
    assert all(b"X-API-VERSION: 2\r\n" in request for request in new.requests)
    assert all(b"X-API-VERSION: 1\r\n" in request for request in old.requests)
