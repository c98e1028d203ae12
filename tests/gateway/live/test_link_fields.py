"""`link` in `headers`: URLs in declared header fields lead to the client's version."""

import pytest

from tests.gateway.kit import StartGateway, StartUpstream
from tests.gateway.talk import get

RULES = """
services: {{ s: {{ targets: ["http://127.0.0.1:{port}"] }} }}
apis:
  arm:
    version_format: date
    endpoints: [ {{ path: "/{{rest*}}", version: {{ in: query, name: api-version }} }} ]
    versions:
      2024-01-01: {{ via: 2025-01-01 }}
      2025-01-01: {{ via: 2026-01-01 }}
      2026-01-01: {{ service: s }}
    conversions:
      - between: [2024-01-01, 2025-01-01]
        changes: [ to_header: {{ field: wait, header: Retry-After }} ]
        headers: [ link: {{ field: Azure-AsyncOperation }} ]
      - between: [2025-01-01, 2026-01-01]
        headers:
          - link: {{ field: Azure-AsyncOperation }}
          - link: {{ field: Destination }}
"""
POLL = "/operations/7?t=a%2Fb&api-version="


@pytest.mark.parametrize("body", [b"", b'{"a":1}'], ids=["no body", "JSON"])
@pytest.mark.parametrize("version", ["2024-01-01", "2025-01-01", "2026-01-01"])
async def test_a_url_in_a_field_of_a_response_has_the_version_of_the_client(
    reloaded: StartGateway, upstream: StartUpstream, version: str, body: bytes
) -> None:
    service = await upstream(
        b"HTTP/1.1 202 Accepted\r\nContent-Type: application/json\r\n"
        b"Azure-AsyncOperation: " + POLL.encode() + b"2026-01-01\r\n"
        b"Content-Length: %d\r\n\r\n" % len(body) + body
    )
    program = reloaded(RULES.format(port=service.port))
    answer = await get(program, f"DELETE /things/1?api-version={version}")
    assert answer["azure-asyncoperation"] == f"{POLL}{version}"
    assert answer.body == body


async def test_a_url_of_another_host_stays(reloaded: StartGateway, upstream: StartUpstream) -> None:
    other = b"https://other.example/operations/7?api-version=2026-01-01"
    service = await upstream(
        b"HTTP/1.1 202 Accepted\r\nAzure-AsyncOperation: "
        + other
        + b"\r\nContent-Length: 0\r\n\r\n"
    )
    program = reloaded(RULES.format(port=service.port))
    answer = await get(program, "DELETE /things/1?api-version=2025-01-01")
    assert answer["azure-asyncoperation"] == other.decode()


async def test_a_url_in_a_field_of_a_request_has_the_version_of_the_service(
    reloaded: StartGateway, upstream: StartUpstream
) -> None:
    service = await upstream(b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n")
    program = reloaded(RULES.format(port=service.port))
    moved = "Destination: http://api.test/files/b?api-version=2025-01-01"
    answer = await get(program, "MOVE /files/a?api-version=2025-01-01", moved)
    assert answer.status == 201
    (asked,) = service.requests
    assert b"\r\nDestination: http://api.test/files/b?api-version=2026-01-01\r\n" in asked
