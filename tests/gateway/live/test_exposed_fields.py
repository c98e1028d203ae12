"""Scripts in browsers can read what the gateway adds to a service's responses."""

import pytest

from tests.gateway.kit import StartGateway, StartUpstream
from tests.gateway.talk import get

RULES = """
services: {{ s: {{ targets: ["http://127.0.0.1:{port}"] }} }}
version_header: X-Served
apis:
  h:
    endpoints: [ {{ path: "/v{{version}}/o", version: {{ in: path }} }} ]
    versions:
      "1":
        via: "2"
        lifecycle: {{ deprecated: 2025-01-01, sunset: 2099-01-01, successor: "2" }}
      "2": {{ service: s }}
    conversions: [ {{ between: ["1", "2"], changes: [] }} ]
  plain: {{ service: s, endpoints: [ {{ path: /plain }} ] }}
"""
ANY = "Access-Control-Allow-Origin: *"
ONE = "Access-Control-Allow-Origin: https://app.example"
CREDENTIALS = "Access-Control-Allow-Credentials: true"
EXPOSE = "Access-Control-Expose-Headers"
EXPOSED = EXPOSE.lower()
OWN = ["x-served", "deprecation", "sunset", "link"]


@pytest.mark.parametrize(
    ("fields", "path", "names"),
    [
        ((ANY,), "/v1/o", OWN),
        ((ONE, f"{EXPOSE}: X-Total, LINK"), "/v1/o", ["x-total", "link", *OWN[:-1]]),
        ((ANY, f"{EXPOSE}: A", f"{EXPOSE}: B"), "/v2/o", ["a", "b", "x-served"]),
        ((ANY, f"{EXPOSE}: *"), "/v1/o", ["*"]),
        ((ONE, CREDENTIALS, f"{EXPOSE}: *"), "/v1/o", ["*", *OWN]),
        ((), "/v1/o", []),
        ((f"{EXPOSE}: X-Total",), "/v1/o", ["x-total"]),
        ((ANY,), "/plain", []),
    ],
)
async def test_fields_of_the_gateway_are_exposed_where_the_service_allows_an_origin(
    reloaded: StartGateway,
    upstream: StartUpstream,
    fields: tuple[str, ...],
    path: str,
    names: list[str],
) -> None:
    head = "\r\n".join(("HTTP/1.1 200 OK", "Content-Length: 2", *fields, "", "ok"))
    service = await upstream(head.encode())
    program = reloaded(RULES.format(port=service.port))
    answer = await get(program, f"GET {path}", "Origin: https://app.example")
    found = [name.strip().lower() for name in ",".join(answer.all(EXPOSED)).split(",")]
    assert sorted(filter(None, found)) == sorted(names)
