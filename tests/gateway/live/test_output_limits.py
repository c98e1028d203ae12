"""Converted messages never lead to another host, and are within the limits on received messages."""

import json

import pytest

from tests.gateway.kit import StartGateway, StartUpstream
from tests.gateway.talk import OK, ask, connect, get


@pytest.mark.parametrize("sign", ["\\", "\t/", "\t\\", "\\\\", "\t\t/"])
async def test_no_path_of_a_service_becomes_another_host(
    reloaded: StartGateway, upstream: StartUpstream, sign: str
) -> None:
    """Browsers read a backslash as a slash and skip tabs, so two such characters begin a host."""
    path = f"/base/{sign}evil.test/x"
    head = f"HTTP/1.1 200 OK\r\nLocation: {path}\r\nContent-Location: {path}\r\nLink: <{path}>\r\n"
    service = await upstream(f"{head}Content-Length: 0\r\n\r\n".encode())
    gateway = reloaded(f"""
services: {{ s: {{ targets: ["http://127.0.0.1:{service.port}"] }} }}
apis:
  files: {{ service: s, endpoints: [ {{ path: "/{{rest*}}", upstream_path: "/base/{{rest*}}" }} ] }}
""")
    answer = await get(gateway, "GET /a")
    assert answer["location"] == answer["content-location"] == f"/./{sign}evil.test/x"
    assert answer["link"] == f"</./{sign}evil.test/x>"


LISTS = """
limits: {{ convert: 100000, elements: 20000 }}
services: {{ s: {{ targets: ["http://127.0.0.1:{port}"] }} }}
apis:
  up:  # requests are split on the way to the service
    endpoints: [ {{ path: "/up/v{{version}}", version: {{ in: path }} }} ]
    versions: {{ "1": {{ via: "2" }}, "2": {{ service: s }} }}
    conversions:
      - between: ["1", "2"]
{changes}
  down:  # answers are split on the way to the client
    endpoints: [ {{ path: "/down/v{{version}}", version: {{ in: path }} }} ]
    versions: {{ "1": {{ service: s }}, "2": {{ via: "1" }} }}
    conversions:
      - between: ["1", "2"]
{changes}
"""
CHANGES = """
        headers: [ join_list: { field: X-List, separator: "," } ]
        query: [ join_list: { field: ids, separator: "," } ]
        changes:
          - join_list: { field: tags, separator: ";" }
          - from_header: { field: long, header: X-Long }
"""


@pytest.mark.parametrize(
    ("line", "field", "body", "wanted"),
    [
        ("GET /up/v1", "X-List: " + "," * 60_000, b"", (400, "unconvertible_request")),
        ("GET /up/v1", "X-List: " + "," * 200, b"", (431, "headers_too_large")),
        ("GET /up/v1?ids=" + "," * 7_000, "X: y", b"", (414, "uri_too_long")),
        (
            "POST /up/v1",
            "Content-Type: application/json",
            b'{"tags": "%b"}' % (b";" * 50_000),
            (413, "body_too_large"),
        ),
        (
            "POST /up/v1",
            "Content-Type: application/json",
            b'{"long": "%b"}' % (b"x" * 70_000),
            (431, "headers_too_large"),
        ),
    ],
)
async def test_a_converted_request_is_within_the_limits_on_requests(
    reloaded: StartGateway,
    upstream: StartUpstream,
    line: str,
    field: str,
    body: bytes,
    wanted: tuple[int, str],
) -> None:
    service = await upstream(OK)
    gateway = reloaded(LISTS.format(port=service.port, changes=CHANGES.strip("\n")))
    async with connect(gateway) as client:
        client.send(ask(line, field, f"Content-Length: {len(body)}", body=body))
        answer = await client.answer()
    assert (answer.status, json.loads(answer.body)["code"]) == wanted
    assert service.requests == []


@pytest.mark.parametrize(
    ("field", "body"),
    [
        ("X-List: " + "," * 60_000, b"{}"),
        ("X-List: " + "," * 3_000, b"{}"),
        ("X: y", b'{"tags": "%b"}' % (b";" * 50_000)),
        ("X: y", b'{"tags": "%b"}' % (b"a;" * 21_000)),
    ],
)
async def test_a_converted_response_is_within_the_limits_on_responses(
    reloaded: StartGateway, upstream: StartUpstream, field: str, body: bytes
) -> None:
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n{field}\r\n"
    service = await upstream(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    gateway = reloaded(LISTS.format(port=service.port, changes=CHANGES.strip("\n")))
    answer = await get(gateway, "GET /down/v2")
    assert (answer.status, json.loads(answer.body)["code"]) == (502, "conversion_failed")


async def test_messages_within_the_limits_are_converted(
    reloaded: StartGateway, upstream: StartUpstream
) -> None:
    service = await upstream(OK)
    gateway = reloaded(LISTS.format(port=service.port, changes=CHANGES.strip("\n")))
    await get(gateway, "GET /up/v1?ids=1,2", "X-List: a,b")
    (request,) = service.requests
    assert request.startswith(b"GET /up/v2?ids=1&ids=2 HTTP/1.1\r\n")
    assert request.count(b"X-List: ") == 2
