"""One conformance suite, two engines: the gateway alone, and Envoy by `export envoy` before it.

Each case is one request. Both answers must have the same status, the same fields that matter, the
same body, and come from the same service, which was asked for the same target.
"""

import json
import shutil
import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random
from threading import Thread
from typing import Any

import pytest

from tests.fleet.envoy import export, start_envoy
from tests.gateway.kit import DEADLINE, free_port, start_program, wait_for

RULES = """\
bypass: true
workers: 1
version_header: X-Served
services:
  one: { targets: ["http://127.0.0.1:ONE"] }
  two: { targets: ["http://localhost:TWO"] }  # which is ::1 as well
  down: { targets: ["http://127.0.0.1:1"] }
apis:
  person:
    upstream_path: /person
    endpoints:
      - { path: "/v{version}/person", version: { in: path }, methods: [GET, PUT] }
      - { path: /query, version: { in: query, name: version }, methods: [GET, POST] }
      - { path: /header, version: { in: header, name: X-API-VERSION }, methods: [GET, DELETE] }
      - { path: /accept, version: { in: accept, media_type: "a/b-v{version}+json" } }
      - { path: /typed, version: { in: content_type, media_type: "a/b-v{version}+json" } }
      - { path: /host, version: { in: host, name: "v{version}.example.com" }, methods: [GET] }
      - path: /agree
        version: [{ in: header, name: X-API-VERSION }, { in: query, name: version }]
        methods: [GET]
    versions:
      "1": { via: "2" }
      "2": { service: two }
      "3": { service: one }
      "4": { service: one, lifecycle: { deprecated: 2025-01-01, sunset: 2098-12-31 } }
      "5": { lifecycle: { sunset: 2020-01-01 } }
    conversions:
      - { between: ["1", "2"], changes: [{ rename: { field: title, to: service } }] }
      - { between: ["2", "3"], changes: [{ rename: { field: service, to: name } }] }
      - { between: ["3", "4"], changes: [{ rename: { field: name, to: called } }] }
      - { between: ["4", "5"], changes: [{ rename: { field: called, to: caption } }] }
  plain:
    version_header: X-Plain
    endpoints:
      - { path: /plain/query, version: { in: query, name: v }, methods: [GET] }
      - { path: /plain/header, version: { in: header, name: X-V }, methods: [GET] }
      - { path: "/plain/{id}/v{version}", version: { in: path }, methods: [GET] }
      - { path: "/plain/{rest*}", version: { in: header, name: X-V }, methods: [GET] }
    versions: { "1": { service: one }, "2": { service: two } }
  bare:
    service: one
    endpoints:
      - { path: /bare, methods: [GET, POST] }
      - { path: "/bare/{id}", methods: [GET] }
      - { path: /bare/me, methods: [PUT] }
      - { path: /any }
  broken:
    service: down
    endpoints: [{ path: /down, upstream_path: /gone, methods: [GET] }]
"""
COMPARED = (
    *("allow", "cache-control", "content-type", "deprecation", "location", "retry-after"),
    *("sunset", "link", "vary", "x-plain", "x-served", "x-service", "x-target"),
)


class Backend(BaseHTTPRequestHandler):
    """Answers with the name of its service, and with what it was asked."""

    protocol_version = "HTTP/1.1"
    name = ""

    def answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = json.dumps({"service": self.name, "asked": self.command}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Service", self.name)
        self.send_header("X-Target", f"{self.command} {self.path}")
        self.send_header("Vary", "Accept-Language")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_OPTIONS = do_PATCH = answer  # noqa: N815

    def log_message(self, *_: Any) -> None:
        """Log nothing."""


@dataclass(frozen=True)
class Case:
    """A request, as text."""

    method: str
    target: str
    fields: tuple[str, ...] = ()
    host: str = "api.example.com"
    body: str = ""

    def __str__(self) -> str:
        host = "" if self.host == "api.example.com" else self.host
        return " ".join(filter(None, (self.method, self.target, *self.fields, host, self.body)))

    @property
    def content(self) -> bytes:
        lines = [f"{self.method} {self.target} HTTP/1.1", f"Host: {self.host}", *self.fields]
        if self.body:
            lines.append(f"Content-Length: {len(self.body)}")
        text = "\r\n".join([*lines, "Connection: close", "", ""]) + self.body
        return text.encode("latin-1")


def cases() -> Iterator[Case]:
    """Yield the requests."""
    values = ("1", "2", "3", "4", "5", "9", "02", "2 ", "v2", "2.0", "%32", "")
    for value in values:
        label = value.replace(" ", "%20")
        yield Case("GET", f"/v{label}/person")
        yield Case("GET", f"/query?version={label}")
        yield Case("GET", "/header", (f"X-API-VERSION: {value}",))
        yield Case("GET", "/accept", (f"Accept: a/b-v{value}+json",))
        yield Case("POST", "/typed", (f"Content-Type: a/b-v{value}+json",), body="{}")
        yield Case("GET", "/host", host=f"v{label}.example.com".replace("%", "x"))
        yield Case("GET", f"/agree?version={label}", (f"X-API-VERSION: {value}",))
    for method in ("HEAD", "OPTIONS", "POST", "PUT", "DELETE", "PATCH"):
        body = "{}" if method in ("POST", "PUT", "PATCH") else ""
        for version in ("1", "2", "3", "9", ""):
            yield Case(method, f"/v{version}/person", body=body)
            yield Case(method, f"/query?version={version}", body=body)
            yield Case(method, "/header", (f"X-API-VERSION: {version}",), body=body)
        yield Case(method, "/header", body=body)
        yield Case(method, "/query", body=body)
        yield Case(method, "/bare", body=body)
        yield Case(method, "/bare/7", body=body)
        yield Case(method, "/bare/me", body=body)
        yield Case(method, "/any", body=body)
        yield Case(method, "/plain/header", ("X-V: 2",), body=body)
        yield Case(method, "/nowhere", body=body)
    for query in (
        *(
            "",
            "?",
            "?a=1",
            "?version",
            "?Version=2",
            "?version=2&version=2",
            "?version=2&version=3",
        ),
        *("?a=1&version=2&b=%20", "?version=2&a=%26version=3", "?version=2&%76ersion=3"),
        *("?%76ersion=2", "?version=2&version", "?version+=2&version=3", "?versions=3&version=2"),
        *("?version=3&ver=2&versio=1", "?&version=2&", "?version=2;version=3", "?version==2"),
    ):
        yield Case("GET", f"/query{query}")
        yield Case("GET", f"/plain/query{query.replace('version', 'v')}")
    for fields in (
        ("X-API-VERSION: 2", "X-API-VERSION: 2"),
        ("X-API-VERSION: 2", "X-API-VERSION: 3"),
        ("X-API-VERSION: 2, 2",),
        ("x-api-version:  2  ",),
        ("X-API-VERSION: 2", "X-HTTP-Method-Override: DELETE"),
        ("X-API-VERSION: 2", "X-HTTP-Method-Override: GET"),
        ("X-API-VERSION: 2", "Expect: something"),
        ("X-API-VERSION: 2", "Connection: X-API-VERSION"),
        ("X_API_VERSION: 2",),
        ("Accept: a/b-v3+json;q=0.5, a/b-v2+json",),
    ):
        yield Case("GET", "/header", fields)
        yield Case("GET", "/accept", fields)
    for path in (
        *(
            "/plain/7/v1",
            "/plain/7/v2",
            "/plain/7/v3",
            "/plain/%37/v1",
            "/plain/../v1",
            "/plain//v1",
        ),
        *("/plain/.../v1", "/plain/..;/v1", "/plain/a.b/v2", "/bare/%2e%2e", "/bare/..", "/bare/."),
        *("/bare/a%2Fb", "/bare/a;b", "/bare/me", "/bare/", "//bare", "/bare/x/y", "/Bare", "/"),
        *("/v2/person/", "/v2//person", "/v2/./person", "/v%32/person", "/bare/a\\b", "/bare/(x)"),
    ):
        yield Case("GET", path)
    for path in ("a", "a/b", "a/../b", "a/b%2e", "a//b", "", "7/v1", "header", "..."):
        for version in ("1", "2", "3"):
            yield Case("GET", f"/plain/{path}", (f"X-V: {version}",))
    for host in ("v2.example.com:80", "V2.EXAMPLE.COM", "v2.example.com.", "v2.example.org", "v1"):
        yield Case("GET", "/host", host=host)
        yield Case("HEAD", "/host", host=host)
    yield Case("GET", "/down")
    yield Case("HEAD", "/down")


CASES = list(dict.fromkeys(cases()))

# The deviations of docs/fleet.md that these cases meet: the status of the gateway, and of Envoy.
DEVIATIONS = {
    # The field that the gateway refuses to hop over is dropped before Envoy routes.
    "GET /header X-API-VERSION: 2 Connection: X-API-VERSION": (400, 400),
    # The detail has the name of the field as Envoy writes it, in lower case.
    "GET /header X-API-VERSION: 2 X-HTTP-Method-Override: DELETE": (400, 400),
}


@dataclass(frozen=True)
class Engines:
    """The ports of the gateway, and of Envoy before it, and what Envoy logs."""

    gateway: int
    envoy: int
    log: Path


def start_backend(stack: ExitStack, name: str) -> int:
    server = ThreadingHTTPServer(("127.0.0.1", 0), type(name, (Backend,), {"name": name}))
    Thread(target=server.serve_forever, daemon=True).start()
    stack.callback(server.server_close)
    stack.callback(server.shutdown)
    return int(server.server_address[1])


@pytest.fixture(scope="module")
def engines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engines]:
    folder = tmp_path_factory.mktemp("engines")
    with ExitStack() as stack:
        rules = RULES
        for name in ("one", "two"):
            rules = rules.replace(f":{name.upper()}", f":{start_backend(stack, name)}")
        (folder / "gateway.yaml").write_text(rules)
        gateway = start_program(stack, folder, "gateway", GATEWAY_CONFIG="gateway.yaml")
        port = free_port()
        where = (f"--listen=127.0.0.1:{port}", f"--gateway=127.0.0.1:{gateway.port}")
        export(folder, *where, f"--log={folder}/access.log")
        start_envoy(stack, folder, port)
        yield Engines(gateway.port, port, folder / "access.log")


def ask(port: int, case: Case) -> tuple[int, dict[str, str], Any]:
    """Return the status, the fields that matter and the body of the answer to a request."""
    with socket.create_connection(("127.0.0.1", port), DEADLINE) as connection:
        connection.sendall(case.content)
        response = HTTPResponse(connection, method=case.method)
        response.begin()
        fields = {}
        for name in COMPARED:
            values = response.headers.get_all(name)
            if values is not None:
                members = {member.strip().lower() for member in ",".join(values).split(",")}
                fields[name] = ", ".join(sorted(members)) if name == "vary" else ",".join(values)
        body = response.read()
        try:
            return response.status, fields, json.loads(body)
        except ValueError:
            return response.status, fields, body


def test_there_are_enough() -> None:
    assert len(CASES) >= 150
    assert set(DEVIATIONS) <= set(map(str, CASES))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_both_answer_alike(case: Case, engines: Engines) -> None:
    alone, through = ask(engines.gateway, case), ask(engines.envoy, case)
    deviation = DEVIATIONS.get(str(case))
    if deviation is not None:
        assert (alone[0], through[0]) == deviation
        return
    assert through == alone


def random_cases(count: int) -> Iterator[Case]:
    """Yield requests that are put together by chance, the same in each run."""
    chance = Random(7)
    values = ("1", "2", "3", "4", "5", "9", "", "2,2", "02", "%32", "+2", "2%20")
    names = ("version", "v", "Version", "%76ersion", "ver", "versionx", "a", "version+")
    paths = (
        *("/v{}/person", "/query", "/header", "/host", "/agree", "/plain/query", "/accept"),
        *("/plain/header", "/plain/7/v{}", "/plain/{}/x", "/bare/{}", "/any"),
    )
    parts = ("1", "2", "3", "..", "%2e", "a;b", "a", "", "me", "2/..", "v2", "(a)", "a%2fb", "a.")
    fields = ("X-API-VERSION: ", "x-api-version:", "X-V: ", "x_v: ", "X_API_VERSION: ", "Accept: ")
    read = ("1", "2", "3", "2, 2", "2;q=1", "\t2\t", "a/b-v2+json", "a/b-v3+json;q=0.5")
    hosts = ("api.example.com", "v2.example.com", "V3.example.com:8", "v2.example.com.", "v2.")
    methods = ("GET", "GET", "GET", "HEAD", "POST", "OPTIONS", "DELETE")
    for _ in range(count):
        pairs = [
            chance.choice((f"{chance.choice(names)}={chance.choice(values)}", chance.choice(names)))
            for _ in range(chance.randint(0, 3))
        ]
        query = "?" + "&".join(pairs) if pairs else ""
        lines = (chance.choice(fields) + chance.choice(read) for _ in range(chance.randint(0, 3)))
        path = chance.choice(paths).format(chance.choice(parts))
        yield Case(chance.choice(methods), path + query, tuple(lines), chance.choice(hosts))


def test_both_answer_alike_whatever_is_asked(engines: Engines) -> None:
    for case in random_cases(400):
        assert ask(engines.envoy, case) == ask(engines.gateway, case), case


def test_a_gateway_that_is_suspended_gets_no_more_requests(
    engines: Engines, tmp_path: Path
) -> None:
    """It takes connections still, so that nothing but its silence tells."""
    shutil.copy(engines.log.with_name("gateway.yaml"), tmp_path)
    with ExitStack() as stack:
        gateways = [
            start_program(stack, tmp_path, "gateway", GATEWAY_CONFIG="gateway.yaml")
            for _ in range(2)
        ]
        port = free_port()
        where = (f"--gateway=127.0.0.1:{gateway.port}" for gateway in gateways)
        export(tmp_path, f"--listen=127.0.0.1:{port}", *where, f"--log={tmp_path}/access.log")
        start_envoy(stack, tmp_path, port)
        suspended = gateways[1].process
        stack.callback(suspended.send_signal, signal.SIGCONT)
        suspended.send_signal(signal.SIGSTOP)

        def all_are_answered() -> bool:
            for _ in range(20):
                connection = HTTPConnection("127.0.0.1", port, timeout=1)
                with closing(connection), suppress(TimeoutError):
                    connection.request("GET", "/v1/person")  # which the gateway converts
                    if connection.getresponse().status == 200:
                        continue
                return False
            return True

        wait_for(all_are_answered, 60)


def test_the_log_has_what_goes_straight(engines: Engines) -> None:
    """A line of another route is of the gateway, which has counted it, or of a fixed answer."""
    mark = ("X-Request-Id: {}", "X-Envoy-Original-Path: /forged")
    for name, target in (("straight", "/v2/person"), ("converted", "/v1/person")):
        ask(engines.envoy, Case("GET", target, tuple(field.format(name) for field in mark)))

    def lines() -> dict[str, Any]:
        entries = [json.loads(line) for line in engines.log.read_text().splitlines()]
        return {entry["request_id"]: entry for entry in entries}

    found = wait_for(lambda: lines() if {"straight", "converted"} <= lines().keys() else None)
    straight = found["straight"]
    assert {name: straight[name] for name in ("route", "status", "path")} == {
        "route": "straight person 2 /v{version}/person",
        "status": 200,
        "path": "/v2/person",
    }
    converted = found["converted"]
    route = "the rest of person at /v{version}/person"
    assert (converted["route"], converted["path"]) == (route, "/v1/person")
