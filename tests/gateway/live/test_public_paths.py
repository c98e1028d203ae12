"""Public paths that differ from those of the service: slashes at the end, and prefixes."""

import pytest

from tests.gateway.kit import Program, Scripted, StartGateway, StartUpstream
from tests.gateway.talk import Reader, Writer, get

RULES = """\
services:
  s: {{ targets: ["http://127.0.0.1:{port}"] }}
  t: {{ targets: ["http://127.0.0.1:{port}"] }}
apis:
  shop:
    endpoints:
      - path: "/api/v{{version}}/{{rest*}}"
        upstream_path: "/{{rest*}}"
        version: {{ in: path }}
      - path: "/exact/v{{version}}/things"
        upstream_path: /things
        version: {{ in: path }}
    versions: {{ "1": {{ via: "2" }}, "2": {{ service: s }} }}
    conversions:
      - between: ["1", "2"]
        operations: [ {{ older: "GET /things/{{id}}", newer: "GET /items/{{id}}" }} ]
        changes: [ rename: {{ field: total, to: amount }} ]
      - between: ["1", "2"]
        operations: [ {{ newer: "/hidden/{{rest*}}", refuse: {{}} }} ]
  slashed:
    service: t
    endpoints: [ {{ path: "/slashed/{{rest*}}", upstream_path: "/{{rest}}/" }} ]
"""


async def django(scripted: Scripted, reader: Reader, writer: Writer) -> None:
    """Answer as Django with APPEND_SLASH: redirect to the path with a slash, which is served."""
    while True:
        path = (await scripted.take(reader)).split(b" ")[1]
        if path.endswith(b"/"):
            fields = b"200 OK\r\nContent-Type: application/json\r\nContent-Length: 11"
            writer.write(b"HTTP/1.1 " + fields + b'\r\n\r\n{"total":1}')
        else:
            fields = b"301 Moved Permanently\r\nContent-Length: 0\r\nLocation: " + path + b"/"
            writer.write(b"HTTP/1.1 " + fields + b"\r\n\r\n")


@pytest.fixture
async def service(upstream: StartUpstream) -> Scripted:
    """Start a service that asks for a slash at the end of each path."""
    return await upstream(django)


@pytest.fixture
def program(reloaded: StartGateway, service: Scripted) -> Program:
    """Start a gateway with RULES."""
    return reloaded(RULES.format(port=service.port))


async def test_a_rest_takes_a_slash_at_its_end(program: Program, service: Scripted) -> None:
    served = {
        "/api/v2/orders/": "/orders/",
        "/api/v2/orders/5/items/": "/orders/5/items/",
        "/api/v2/": "/",
        "/slashed/orders": "/orders/",
        "/slashed/orders/": "/orders/",
        "/slashed/": "/",
        "/api/v1/other/": "/other/",
        "/api/v1/things/7/": "/items/7/",
    }
    for path, asked in served.items():
        answer = await get(program, f"GET {path}")
        assert service.requests[-1].startswith(f"GET {asked} HTTP/1.1\r\n".encode())
        assert answer.status == 200
        name = b"amount" if asked == "/items/7/" else b"total"
        assert answer.body == b'{"%b":1}' % name


async def test_a_redirect_to_the_path_with_a_slash_leads_back(program: Program) -> None:
    for path in ("/api/v2/orders", "/api/v1/things/7"):
        answer = await get(program, f"GET {path}")
        assert (answer.status, answer["location"]) == (301, f"{path}/")
        assert (await get(program, f"GET {path}/")).status == 200


async def test_other_slashes_and_dot_segments_are_not_found(
    program: Program, service: Scripted
) -> None:
    for path in (
        *("/api/v2", "/api/v2//", "/api/v2/orders//", "/api/v2//orders/", "/api/v2/./"),
        *("/exact/v2/things/", "/api/v2/a/../", "/api/v2/%2e%2e/", "/api/v2/orders/..%2f/"),
        *("/api/v3/orders/", "/api/v1/hidden/7/", "/api/v1/hidden/"),
    ):
        assert (await get(program, f"GET {path}")).status == 404
    assert service.requests == []
