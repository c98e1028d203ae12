"""Malformed and unusual service responses, for every kind of route and request.

The cases come from public test suites for clients and proxies: those of curl, Varnish, llhttp,
nginx, Go, Envoy and HAProxy. A client gets the expected response, a problem detail or an aborted
connection, and never waits. All other clients and connections are unaffected, and each request is
recorded once.
"""

import asyncio
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from tests.gateway.kit import Program, Scripted, StartGateway, StartUpstream
from tests.gateway.live import test_faults as faults
from tests.gateway.live import test_smuggling_responses as smuggling
from tests.gateway.live.bounds import total
from tests.gateway.live.raw import chunked
from tests.gateway.talk import Client, End, Reader, Writer, ask, connect, reset, soon

OLD = b'{"name":"Bob Charlie"}'
NEW = b'{"name":{"firstName":"%s","lastName":"x"}}'
# Each way to request a case, with the body of the request. With a shadow, the shadow gets the case
# instead of the client.
WAYS = {
    "read": ("GET", "/plain", b""),
    "head": ("HEAD", "/plain", b""),
    "write": ("POST", "/plain", b"{}"),
    "large write": ("PUT", "/plain", b"x" * 90_000),
    "converted": ("GET", "/v1/person", b""),
    "converted write": ("POST", "/v1/person", b'{"name":"a b"}'),
    "shadowed": ("GET", "/v1/shadowed", b""),
}


@dataclass(frozen=True)
class Case:
    """The bytes of a service, the end of its connection, and the expected result for the client."""

    data: bytes
    then: End = "hold"
    status: int = 200
    body: bytes = b"ok"
    code: str = ""
    is_cut: bool = False

    def expected(self, way: str) -> tuple[int, bytes | str]:
        if way == "shadowed":
            return 200, OLD
        if way == "head":
            return (502, b"") if self.code and not self.is_cut else (self.status, b"")
        if self.code:
            return (0, "") if self.is_cut and "converted" not in way else (502, self.code)
        return self.status, self.body


def head(*lines: bytes, status: bytes = b"HTTP/1.1 200 OK", body: bytes = b"ok") -> bytes:
    return b"\r\n".join((status, *lines, b"", body))


TWO, CHUNKED = b"Content-Length: 2", b"Transfer-Encoding: chunked"
FORGED = head(b"Content-Length: 6", body=b"forged")
ODD: dict[str, Case] = {
    "interim answers": Case(
        b"HTTP/1.1 100 Continue\r\n\r\n" * 3 + b"HTTP/1.1 199 Odd\r\nA: b\r\n\r\n" + head(TWO)
    ),
    "an interim answer with a length": Case(head(TWO, status=b"HTTP/1.1 102 P", body=head(TWO))),
    "hints without a reason": Case(b"HTTP/1.1 103\r\nLink: </a>\r\n\r\n" + head(TWO)),
    "blank lines before it": Case(b"\r\n\r\n" + head(TWO)),
    "no reason": Case(head(TWO, status=b"HTTP/1.1 200")),
    "an empty reason": Case(head(TWO, status=b"HTTP/1.1 200 ")),
    "a reason in no ASCII": Case(head(TWO, status=b"HTTP/1.1 200 Gr\xfc\xdfe")),
    "a reason of 30,000 bytes": Case(head(TWO, status=b"HTTP/1.1 200 " + b"x" * 30_000)),
    "zeros before the length": Case(head(b"Content-Length: 0002")),
    "tabs around the length": Case(head(b"Content-Length:\t2\t")),
    "a field that only begins as the length": Case(head(b"Content-Length-X: 9", TWO)),
    "Connection names the length": Case(head(b"Connection: Content-Length", TWO)),
    "Connection is a list of nothing": Case(head(b"Connection: ,, ,", TWO)),
    "Proxy-Connection closes": Case(head(b"Proxy-Connection: close", TWO)),
    "Keep-Alive without sense": Case(head(b"Keep-Alive: timeout=-5, max=0, timeout=\xb2", TWO)),
    "an upgrade that is none": Case(head(b"Connection: upgrade", b"Upgrade: h2c", TWO)),
    "an upgrade that is none, and its bytes": Case(
        head(b"Connection: upgrade", b"Upgrade: websocket", TWO) + b"\x81\x05hello"
    ),
    "fields without a value": Case(head(b"A:", b"A:", b"B: \t ", TWO)),
    "a name of all that names may have": Case(head(b"!#$%&'*+-.^_`|~09aZ: x", TWO)),
    "2,000 fields": Case(head(*[b"X-%d: y" % number for number in range(2000)], TWO)),
    "a field of 40,000 bytes": Case(head(b"Set-Cookie: a=" + b"b" * 40_000, TWO)),
    "the coding in other letters": Case(head(b"tRANSFER-eNCODING: cHUNKED", body=chunked(b"ok"))),
    "chunks of a byte": Case(head(CHUNKED, body=chunked(b"o", b"k"))),
    "sizes with many zeros": Case(head(CHUNKED, body=b"0" * 24 + b"2\r\nok\r\n0000\r\n\r\n")),
    "no chunks but the last": Case(head(CHUNKED, body=chunked()), body=b""),
    "trailers": Case(head(CHUNKED, b"Trailer: A", body=b"2\r\nok\r\n0\r\nA: b\r\n\r\n")),
    "forgery behind a length": Case(head(TWO) + FORGED),
    "forgery behind chunks": Case(head(CHUNKED, body=chunked(b"ok")) + FORGED),
    "forgery behind nothing": Case(head(b"Content-Length: 0", body=FORGED), body=b""),
    "forgery behind a last answer": Case(head(b"Connection: close", TWO) + FORGED),
    "forgery behind keep-alive and close": Case(
        head(b"Connection: keep-alive, close", TWO) + FORGED
    ),
    "forgery behind keep-alive, then close": Case(
        head(b"Connection: keep-alive", b"Connection: close", TWO) + FORGED
    ),
    "a failure twice": Case(
        head(b"Content-Length: 0", status=b"HTTP/1.1 503 S", body=b"") * 2, status=503, body=b""
    ),
    "an answer as a body": Case(head(body=FORGED), "close", body=FORGED),
    "hints as a body": Case(
        head(b"Content-Length: 21", body=b"HTTP/1.1 103 E\r\n\r\n\r\n!"),
        body=b"HTTP/1.1 103 E\r\n\r\n\r\n!",
    ),
    "HTTP/1.0 without a length": Case(head(status=b"HTTP/1.0 200 OK"), "close"),
    "HTTP/1.0 that keeps, without a length": Case(
        head(b"Connection: keep-alive", status=b"HTTP/1.0 200 OK"), "close"
    ),
    "a client's mistake": Case(head(TWO, status=b"HTTP/1.1 418 Teapot"), status=418),
    "the last status": Case(head(TWO, status=b"HTTP/1.1 599 Odd"), status=599),
    "no content with a length": Case(head(TWO, status=b"HTTP/1.1 204 N"), status=204, body=b""),
    "no content with chunks": Case(
        head(CHUNKED, status=b"HTTP/1.1 204 N", body=chunked(b"ok")), status=204, body=b""
    ),
    "not modified with forgery": Case(
        head(TWO, status=b"HTTP/1.1 304 N", body=FORGED), status=304, body=b""
    ),
    "reset content with content": Case(head(TWO, status=b"HTTP/1.1 205 R"), status=205),
    "parts without a length": Case(
        head(b"Content-Type: multipart/byteranges; boundary=a", status=b"HTTP/1.1 206 Part"),
        "close",
        status=206,
    ),
    "an empty part": Case(
        head(b"Content-Length: 0", status=b"HTTP/1.1 206 Part", body=b""), status=206, body=b""
    ),
}
BROKEN: dict[str, Case] = {
    **{
        f"status {status}": Case(head(TWO, status=b"HTTP/1.1 %d X" % status))
        for status in (600, 666, 799, 999)
    },
    **{
        f"a status line {line!r}": Case(head(TWO, status=line))
        for line in (
            b"HTTP/11.1 200 OK",
            b"HTTP/1.1.1 200 OK",
            b"HTTP//1.1 200 OK",
            b"HTTP/1.1 200OK",
        )
    },
    "a coding in HTTP/1.0": Case(
        head(b"Transfer-Encoding: gzip", TWO, status=b"HTTP/1.0 200 OK"), "close"
    ),
    "an answer after others that is broken": Case(
        b"HTTP/1.1 100 C\r\n\r\n" + head(TWO, status=b"HTTP/1.1 1000 X")
    ),
    "a byte order mark": Case(b"\xef\xbb\xbf" + head(TWO)),
    "blanks for ever": Case(b" " * 300_000),
    "blank lines for ever": Case(b"\r\n" * 150_000),
    "hints and nothing else": Case(b"HTTP/1.1 103 E\r\nLink: </a>\r\n\r\n", "close"),
    "hints and garbage": Case(b"HTTP/1.1 103 E\r\n\r\ngarbage\r\n\r\n"),
    "a page without a head": Case(b"<!doctype html>\n<p>ok\n", "close"),
    "a length beside an extension": Case(head(b"Content-Length: 2;a=b")),
    "a length of other digits": Case(head(b"Content-Length: \xd9\xa2")),
    "20,000 empty links": Case(head(*[b"Link:"] * 20_000, TWO)),
    "2,049 fields": Case(head(*[b"X-%d: y" % number for number in range(2048)], TWO)),
    "20,000 fields of hints": Case(
        head(*[b"A:"] * 20_000, status=b"HTTP/1.1 103 E", body=b"") + head(TWO)
    ),
}
PROTOCOL = "upstream_protocol"
CASES: dict[str, Case] = {
    **{f"odd: {name}": case for name, case in ODD.items()},
    **{
        f"broken: {name}": Case(data, then, code=code)
        for name, (data, then, (_, code)) in faults.NO_RESPONSE.items()
    },
    **{
        f"broken: {name}": Case(case.data, case.then, code=PROTOCOL)
        for name, case in BROKEN.items()
    },
    **{
        f"ambiguous: {name}": Case(data + FORGED, code=PROTOCOL)
        for name, data in smuggling.AMBIGUOUS.items()
    },
    **{
        f"body: {name}": Case(data, then, code=code, is_cut=True)
        for name, (data, then, code) in faults.BROKEN_BODY.items()
        if code == PROTOCOL
    },
    **{
        f"chunks: {name}": Case(head(CHUNKED, body=body), code=PROTOCOL, is_cut=True)
        for name, body in smuggling.BAD_CHUNKS.items()
    },
}


def rules(port: int) -> str:
    changes = "[ join: { fields: [name.firstName, name.lastName], into: name } ]"
    shadow = '{ service: s, shadow: { via: "2" } }'
    apis = "".join(
        f"""
  {api}:
    upstream_path: /person
    endpoints: [ {{ path: "/v{{version}}/{api}", version: {{ in: path }} }} ]
    versions: {{ "1": {first}, "2": {{ service: s }} }}
    conversions: [ {{ between: ["1", "2"], changes: {changes} }} ]"""
        for api, first in (("person", '{ via: "2" }'), ("shadowed", shadow))
    )
    return f"""
services: {{ s: {{ targets: ["http://127.0.0.1:{port}"], ejection: {{ failures: 1000 }} }} }}
apis:
  plain: {{ service: s, endpoints: [ {{ path: /plain }} ] }}{apis}
"""


async def serve(scripted: Scripted, reader: Reader, writer: Writer) -> None:
    while True:
        request = await scripted.take(reader)
        line = request.partition(b"\r\n")[0].decode()
        name, is_shadow = re.search(r"case=(\d+)", line), b"\r\nX-Shadow: 1\r\n" in request
        if name is None or ("live=1" in line and not is_shadow):
            mark = re.search(r"mark=(\w+)", line)
            body = OLD if mark is None else NEW % mark[1].encode()
            fields = b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
            writer.write(b"HTTP/1.1 200 OK\r\n" + fields + body)
            continue
        case = list(CASES.values())[int(name[1])]
        writer.write(case.data)
        await writer.drain()
        if case.then != "hold":
            if case.then == "reset":
                reset(writer)
            return


@dataclass
class Visit:
    program: Program
    numbers: Iterator[int] = field(default_factory=count)
    statuses: dict[str, int] = field(default_factory=dict)
    places: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(12))

    async def ask(self, client: Client, line: str, body: bytes = b"") -> tuple[int, Any]:
        """Return the status and the body or error code; status 0 for a cut connection."""
        request_id = f"r{next(self.numbers)}"
        fields = ["Content-Type: application/json", f"Content-Length: {len(body)}"] if body else []
        client.send(ask(line, f"X-Request-Id: {request_id}", *fields, body=body))
        try:
            while (got := await client.answer(bodiless=line.startswith("HEAD"))).status < 200:
                pass
        except (ConnectionResetError, asyncio.IncompleteReadError):
            self.statuses[request_id] = 0
            return 0, ""
        self.statuses[request_id] = got.status
        assert got["x-request-id"] == request_id
        if got.all("content-type") == ["application/problem+json"] and got.body:
            return got.status, json.loads(got.body)["code"]
        return got.status, got.body

    async def check_isolation(self, client: Client) -> None:
        """Send another request; its response must not contain anything of earlier responses."""
        mark = f"m{next(self.numbers)}"
        got = await self.ask(client, f"GET /v1/person?mark={mark}")
        assert got == (200, b'{"name":"%b x"}' % mark.encode())

    async def case(self, number: int, way: str) -> None:
        """Request a case, then something else on the same connection and on another one."""
        async with self.places:
            method, path, body = WAYS[way]
            query = f"case={number}" + ("&live=1" if way == "shadowed" else "")
            async with connect(self.program) as client:
                got = await self.ask(client, f"{method} {path}?{query}", body)
                case = list(CASES.values())[number]
                # Data that cannot be JSON is streamed, and ends where the response was cut off.
                cut = "converted" in way and case.is_cut and got == (0, "")
                assert cut or got == case.expected(way)
                if got[0]:
                    await self.check_isolation(client)
            async with connect(self.program) as other:
                await self.check_isolation(other)


async def test_every_malformed_response_becomes_a_response_a_problem_detail_or_an_abort(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    scripted = await upstream(serve)
    program = gateway(rules(scripted.port))
    visit = Visit(program)
    asked = [(number, way) for number in range(len(CASES)) for way in WAYS]
    came = await asyncio.gather(*(visit.case(*each) for each in asked), return_exceptions=True)
    wrong = [
        f"{list(CASES)[number]}, {way}: {error!r}"
        for (number, way), error in zip(asked, came, strict=True)
        if error is not None
    ]
    assert wrong == []

    def recorded() -> list[dict[str, Any]]:
        lines = program.log("request")
        return lines if len(lines) >= len(visit.statuses) else []

    lines = await soon(recorded)
    assert sorted(line["request_id"] for line in lines) == sorted(visit.statuses)
    for line in lines:
        assert visit.statuses[line["request_id"]] in (line["status"], 0)
        assert bool(line.get("aborted")) is (visit.statuses[line["request_id"]] == 0)

    name = "http_server_request_duration_seconds_count"
    await soon(lambda: total(program, name) == len(visit.statuses))
    assert program.log("log") == []
    assert program.process.poll() is None
