"""The version in the host name, over sockets."""

import json

import pytest

from tests.gateway.kit import Program, Scripted, StartGateway, StartUpstream
from tests.gateway.talk import Answer, ask, connect

BODY = b'{"name":{"firstName":"Bob","lastName":"Charlie"}}'
JSON = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (
    len(BODY),
    BODY,
)
RULES = """\
services: {{ s: {{ targets: ["http://127.0.0.1:{port}"]{policy} }} }}
apis:
  person:
    endpoints:
      - path: /person
        methods: [GET, POST]
        version: {{ in: host, name: "v{{version}}.api.test" }}
      - path: "/any/v{{version}}"
        version: [ {{ in: path }}, {{ in: host, name: "v{{version}}.api.test" }} ]
    versions:
      "1": {{ via: "2", lifecycle: {{ deprecated: 2020-01-01, successor: "2" }} }}
      "2": {{ service: s }}
    conversions:
      - between: ["1", "2"]
        changes: [ {{ join: {{ fields: [name.firstName, name.lastName], into: name }} }} ]
"""


async def get(to: Program, host: str, line: str = "GET /person") -> Answer:
    async with connect(to) as client:
        client.send(ask(line).replace(b"Host: api.test", f"Host: {host}".encode()))
        return await client.answer(bodiless=line.startswith("HEAD"))


@pytest.fixture
async def service(upstream: StartUpstream) -> Scripted:
    return await upstream(JSON)


@pytest.fixture
def program(reloaded: StartGateway, service: Scripted) -> Program:
    return reloaded(RULES.format(port=service.port, policy=""))


async def test_each_host_selects_its_version(program: Program, service: Scripted) -> None:
    new = await get(program, "v2.api.test")
    assert (new.status, new.body, new.all("vary")) == (200, BODY, [])
    assert b"\r\nHost: v2.api.test\r\n" in service.requests[-1]
    old = await get(program, "V1.api.test:8080")
    assert (old.status, old.body) == (200, b'{"name":"Bob Charlie"}')
    assert old["link"] == '<//v2.api.test:8080/person>; rel="successor-version"'
    # The service gets the host of its own version; the client's host is in a forwarding field.
    assert b"\r\nHost: v2.api.test:8080\r\n" in service.requests[-1]
    assert b"\r\nX-Forwarded-Host: V1.api.test:8080\r\n" in service.requests[-1]


async def test_an_absolute_target_names_the_host(program: Program) -> None:
    answer = await get(program, "v2.api.test", "GET http://v1.api.test/person")
    assert answer.body == b'{"name":"Bob Charlie"}'


@pytest.mark.parametrize(
    ("policy", "host"),
    [
        (", host: target", "127.0.0.1:{port}"),
        (", host: v9.api.test", "v9.api.test"),
        (", host: client", "v2.api.test"),
    ],
)
async def test_the_host_policy_of_the_service_overrides_the_version_host(
    reloaded: StartGateway, service: Scripted, policy: str, host: str
) -> None:
    program = reloaded(RULES.format(port=service.port, policy=policy))
    assert (await get(program, "v1.api.test")).status == 200
    assert f"\r\nHost: {host.format(port=service.port)}\r\n".encode() in service.requests[-1]


@pytest.mark.parametrize(
    ("host", "code"),
    [
        ("api.test", "version_missing"),
        ("v3.api.test", "version_unknown"),
        ("vx.api.test", "version_malformed"),
        ("x.v1.api.test", "version_missing"),
    ],
)
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
async def test_a_host_without_a_served_version_is_404(
    program: Program, host: str, code: str, method: str
) -> None:
    answer = await get(program, host, f"{method} /person")
    assert answer.status == 404
    if method != "HEAD":
        problem = json.loads(answer.body)
        assert (problem["code"], problem["supportedVersions"]) == (code, ["1", "2"])


async def test_head_and_options_select_the_version_by_host(program: Program) -> None:
    assert (await get(program, "v1.api.test", "HEAD /person")).status == 200
    options = await get(program, "v1.api.test", "OPTIONS /person")
    assert (options.status, options["allow"]) == (204, "GET, HEAD, POST, OPTIONS")
    assert (await get(program, "v2.api.test", "DELETE /person")).status == 405


async def test_host_and_path_must_name_the_same_version(
    program: Program, service: Scripted
) -> None:
    old = await get(program, "v1.api.test", "GET /any/v1")
    assert (old.status, old.body) == (200, b'{"name":"Bob Charlie"}')
    assert old["link"] == '<//v2.api.test/any/v2>; rel="successor-version"'
    assert service.requests[-1].startswith(b"GET /any/v2 ")
    assert b"\r\nHost: v2.api.test\r\n" in service.requests[-1]
    conflict = await get(program, "v1.api.test", "GET /any/v2")
    assert (conflict.status, json.loads(conflict.body)["code"]) == (400, "version_conflict")
