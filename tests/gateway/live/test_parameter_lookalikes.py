"""A service never gets a query parameter that it may mistake for the version parameter."""

import json

import pytest

from tests.gateway.kit import Program, StartGateway, StartUpstream
from tests.gateway.talk import ask, connect

RULES = """
services: {{ s: {{ targets: ["http://127.0.0.1:{port}"] }} }}
apis:
  t:
    default_version: "2"
    endpoints:
      - {{ path: /version, version: {{ in: query, name: version }} }}
      - {{ path: /api_version, version: {{ in: query, name: api_version }} }}
      - {{ path: /api-version, version: {{ in: query, name: api-version }} }}
      - {{ path: /api.version, version: {{ in: query, name: api.version }} }}
      - {{ path: "/version_list", version: {{ in: query, name: "version[]" }} }}
      - {{ path: /both, version: [ {{ in: header, name: V }}, {{ in: query, name: version }} ] }}
      - {{ path: /header, version: {{ in: header, name: V }} }}
    versions:
      "1": {{ service: s, lifecycle: {{ sunset: 2020-01-31 }} }}
      "2": {{ service: s }}
"""
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"

REFUSED = {
    "/version?version=2&+version=1": "+version",
    "/version?version%00x=1&version=2": "version%00x",
    "/version?a=1;version=1": ";version",
    "/version?version=2&a=b;version": ";version",
    "/version?version=2&ver%C5%BFion=1": "ver%C5%BFion",
    "/api_version?api_version=2&api.version=1": "api.version",
    "/api.version?api.version=2&api_version=1": "api_version",
    "/version_list?version[]=2&version=1": "version",
    "/both?+version=1": "+version",
}
PASSED = [
    "/version?version=2&versions=1&app_version=1&subversion=1&filter[version]=1&a=%3Bversion=1",
    *("/version?%76ersion=2&q=+%zz", "/api-version?api-version=2&api_version=1"),
    *("/api.version?api.version=2", "/version_list?version%5B%5D=2", "/version_list?version[]=2"),
    "/header?Version=1&+version=1",
]


@pytest.fixture
async def gateway_and_asked(
    reloaded: StartGateway, upstream: StartUpstream
) -> tuple[Program, list[bytes]]:
    service = await upstream(ANSWER)
    return reloaded(RULES.format(port=service.port)), service.requests


async def test_a_lookalike_of_the_version_parameter_is_refused_with_its_name(
    gateway_and_asked: tuple[Program, list[bytes]],
) -> None:
    gateway, asked = gateway_and_asked
    async with connect(gateway) as client:
        for target, name in REFUSED.items():
            client.send(ask(f"GET {target}"))
            answer = await client.answer()
            problem = json.loads(answer.body)
            assert (answer.status, problem["code"]) == (400, "version_malformed"), target
            assert problem["detail"].startswith(f"The query has '{name}', which some servers read")
            assert ("write ';' as %3B" in problem["detail"]) == (";" in name)
    assert asked == []


async def test_other_parameters_are_forwarded_byte_for_byte(
    gateway_and_asked: tuple[Program, list[bytes]],
) -> None:
    gateway, asked = gateway_and_asked
    async with connect(gateway) as client:
        for target in PASSED:
            client.send(ask(f"GET {target}", *(["V: 2"] if target.startswith("/header") else [])))
            assert (await client.answer()).status == 200, target
    assert [request.split(b" ")[1].decode() for request in asked] == PASSED
