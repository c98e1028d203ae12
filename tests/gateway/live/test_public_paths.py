"""Public paths that differ from those of the service: final slashes and prefixes."""

import asyncio
import json

import pytest

from tests.gateway.kit import Program, Scripted, StartGateway, StartUpstream
from tests.gateway.live import raw
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
    """Respond like Django with APPEND_SLASH: redirect to the path with a final slash."""
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
    return await upstream(django)


@pytest.fixture
def program(reloaded: StartGateway, service: Scripted) -> Program:
    return reloaded(RULES.format(port=service.port))


async def test_a_tail_capture_includes_a_final_slash(program: Program, service: Scripted) -> None:
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


async def test_a_redirect_to_the_path_with_a_slash_is_translated_to_the_public_path(
    program: Program,
) -> None:
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


PREFIXED = """\
trusted_proxies: [127.0.0.2/32]
services: {{ s: {{ targets: ["http://127.0.0.1:{port}"] }} }}
apis:
  shop:
    endpoints:
      - path: "/api/v{{version}}/{{rest*}}"
        upstream_path: "/{{rest*}}"
        version: {{ in: path }}
    versions:
      "1": {{ via: "2", lifecycle: {{ deprecated: 2020-01-01, successor: "2" }} }}
      "2": {{ service: s }}
    conversions:
      - between: ["1", "2"]
        operations: [ {{ older: "GET /things/{{id}}", newer: "GET /items/{{id}}" }} ]
        changes: [ link: {{ field: self }} ]
  whole:
    service: s
    endpoints: [ {{ path: /whole }} ]
  tenants:
    service: s
    endpoints: [ {{ path: "/t/{{tenant}}/files", upstream_path: /files }} ]
"""
PROXY = "127.0.0.2"


async def asked(program: Program, path: str, *lines: str, source: str) -> raw.Answer:
    return await asyncio.to_thread(raw.ask, program, "GET", path, *lines, source=source)


async def naming(scripted: Scripted, reader: Reader, writer: Writer) -> None:
    while True:
        request = (await scripted.take(reader)).decode()
        fields = dict(line.split(": ", 1) for line in request.split("\r\n")[1:] if ": " in line)
        wanted = fields["X-Wanted"].replace("{prefix}", fields.get("X-Forwarded-Prefix", ""))
        body = json.dumps({"self": wanted})
        lines = [
            "HTTP/1.1 200 OK",
            "Content-Type: application/json",
            f"Content-Length: {len(body)}",
            f"Location: {wanted}",
            f"Set-Cookie: a=b; Path={wanted}",
        ]
        writer.write("\r\n".join([*lines, "", body]).encode())


@pytest.fixture
async def namer(upstream: StartUpstream) -> Scripted:
    return await upstream(naming)


@pytest.fixture
def prefixed(reloaded: StartGateway, namer: Scripted) -> Program:
    return reloaded(PREFIXED.format(port=namer.port))


async def test_the_service_gets_the_stripped_prefix(prefixed: Program, namer: Scripted) -> None:
    """A trusted proxy may have stripped a prefix before. Prefix fields of clients are dropped."""
    shop = "X-Forwarded-Prefix: /shop"
    table: list[tuple[str, str, list[str], list[str]]] = [
        ("127.0.0.1", "/api/v2/things", [], ["/api/v2"]),
        ("127.0.0.1", "/api/v1/things/7", [shop], ["/api/v1"]),
        ("127.0.0.1", "/whole", [shop], []),
        (PROXY, "/api/v2/things", [shop], ["/shop/api/v2"]),
        (PROXY, "/api/v2/things", ["x-forwarded-prefix: /a, /b/"], ["/a/b/api/v2"]),
        (PROXY, "/whole", [shop], ["/shop"]),
        (PROXY, "/whole", [], []),
        (PROXY, "/api/v2/a", ["X-Forwarded-Prefix: //evil.example"], ["/api/v2"]),
        (PROXY, "/api/v2/a", ["X-Forwarded-Prefix: /\\evil.example"], ["/api/v2"]),
        (PROXY, "/api/v2/a", ["X-Forwarded-Prefix: /../x"], ["/api/v2"]),
        ("127.0.0.1", "/t/a/files", [], ["/t/a"]),
        ("127.0.0.1", "/t/\\evil.example/files", [], []),
    ]
    for source, path, lines, expected in table:
        answer = await asked(prefixed, path, "X-Wanted: /", *lines, source=source)
        assert answer.status == 200
        sent = namer.requests[-1].decode("latin-1").split("\r\n")
        found = [line[20:] for line in sent if line.lower().startswith("x-forwarded-prefix: ")]
        assert found == expected, (path, lines)


async def test_links_have_the_prefix_and_the_port_of_the_trusted_proxy(prefixed: Program) -> None:
    proxied = ["X-Forwarded-Prefix: /shop", "X-Forwarded-Host: shop.example"]
    tls = ["X-Forwarded-Proto: https", "X-Forwarded-Port: 8443"]
    origin = "https://shop.example:8443"
    table: list[tuple[str, str, list[str], str, str]] = [
        ("127.0.0.1", "/api/v2/things", [], "/items/7", "/api/v2/items/7"),
        ("127.0.0.1", "/api/v2/things", [], "{prefix}/items/7", "/api/v2/items/7"),
        ("127.0.0.1", "/api/v1/things/7", [], "{prefix}/items/7", "/api/v1/things/7"),
        ("127.0.0.1", "/api/v1/things/7", [*proxied, *tls], "/items/7", "/api/v1/things/7"),
        (PROXY, "/api/v2/things", proxied, "/items/7", "/shop/api/v2/items/7"),
        (PROXY, "/api/v2/things", proxied, "{prefix}/items/7", "/shop/api/v2/items/7"),
        (PROXY, "/api/v1/things/7", proxied, "/items/7", "/shop/api/v1/things/7"),
        (PROXY, "/api/v1/things/7", proxied, "{prefix}/items/7", "/shop/api/v1/things/7"),
        (PROXY, "/api/v2/things", proxied, "{prefix}", "/shop/api/v2/"),
        (PROXY, "/whole", proxied, "/whole", "/shop/whole"),
        (PROXY, "/whole", proxied, "{prefix}/whole", "/shop/whole"),
    ]
    for source, path, lines, wanted, expected in table:
        answer = await asked(prefixed, path, f"X-Wanted: {wanted}", *lines, source=source)
        assert answer.one("Location").decode() == expected, (path, wanted)
        if wanted != "{prefix}":
            assert answer.one("Set-Cookie").decode() == f"a=b; Path={expected}"
        if path.startswith("/api/v1/"):
            assert answer.json == {"self": expected}
            successor = expected.replace("/v1/things", "/v2/items")
            links = [link.decode() for link in answer.all("Link")]
            assert f'<{successor}>; rel="successor-version"' in links
    for host in ("https://shop.example", origin):
        wanted = f"X-Wanted: {host}/items/7"
        answer = await asked(prefixed, "/api/v2/a", wanted, *proxied, *tls, source=PROXY)
        assert answer.one("Location").decode() == f"{origin}/shop/api/v2/items/7"
    for port in ("443", "80", "x", "0", "123456"):
        lines = [*proxied, "X-Forwarded-Proto: https", f"X-Forwarded-Port: {port}"]
        wanted = "X-Wanted: http://shop.example/items/7"
        answer = await asked(prefixed, "/api/v2/a", wanted, *lines, source=PROXY)
        assert answer.one("Location") == b"http://shop.example/shop/api/v2/items/7"


async def test_a_port_in_the_forwarded_host_precedes_the_forwarded_port(prefixed: Program) -> None:
    https = "X-Forwarded-Proto: https"
    table = {
        ("X-Forwarded-Host: shop.example:9443", "X-Forwarded-Port: 8443"): ":9443",
        ("X-Forwarded-Host: shop.example:9443", "X-Forwarded-Port: 443"): ":9443",
        ("X-Forwarded-Host: shop.example", "X-Forwarded-Port: 8443"): ":8443",
        ("X-Forwarded-Host: shop.example", "X-Forwarded-Port: 443"): "",
        ("X-Forwarded-Host: shop.example:443",): "",
        ('Forwarded: host="shop.example:9443"', "X-Forwarded-Port: 8443"): ":9443",
    }
    for lines, port in table.items():
        origin = f"https://shop.example{port}"
        fields = ("X-Forwarded-Prefix: /shop", https, *lines, f"X-Wanted: {origin}/items/7")
        answer = await asked(prefixed, "/api/v2/a", *fields, source=PROXY)
        assert answer.one("Location").decode() == f"{origin}/shop/api/v2/items/7", lines


async def test_a_final_slash_does_not_bypass_the_sunset_of_a_more_exact_path(
    reloaded: StartGateway, service: Scripted
) -> None:
    program = reloaded(f"""\
services: {{ s: {{ targets: ["http://127.0.0.1:{service.port}"] }} }}
apis:
  users:
    endpoints:
      - {{ path: "/users/{{id}}", version: {{ in: header, name: V }}, methods: [GET] }}
    versions:
      "1": {{ service: s, lifecycle: {{ deprecated: 2020-01-01, sunset: 2021-01-01 }} }}
  rest: {{ service: s, endpoints: [ {{ path: "/{{rest*}}" }} ] }}
""")
    statuses = {
        path: (await get(program, f"GET {path}", "V: 1")).status
        for path in ("/users/1", "/users/1/", "/other/")
    }
    assert statuses == {"/users/1": 410, "/users/1/": 404, "/other/": 200}
