"""The Content-Type of responses if Accept or Content-Type selects the version, over sockets."""

import json

import pytest

from tests.gateway.kit import Program, Scripted, StartGateway, StartUpstream
from tests.gateway.talk import Answer, Reader, Writer, ask, connect, get

RULES = """\
services: {{ s: {{ targets: ["http://127.0.0.1:{port}"] }} }}
apis:
  repos:
    media_types:
      text/plain: pass
      application/vnd.github.v3.raw: pass
      application/vnd.github.v3.raw+json: pass
    endpoints:
      - path: /plain
        version: {{ in: accept, media_type: "application/vnd.github.v{{version}}+json" }}
      - path: /repos
        version:
          - {{ in: accept, media_type: "application/vnd.github.v{{version}}+json" }}
          - {{ in: accept, media_type: "application/vnd.github.v{{version}}.raw+json" }}
          - {{ in: accept, media_type: "application/vnd.github.v{{version}}.diff" }}
      - path: /vendor
        version:
          - in: accept
            media_type: "application/vnd.github.v{{version}}+json"
            response_type: vendor
          - in: accept
            media_type: "application/vnd.github.v{{version}}.raw+json"
            response_type: vendor
          - {{ in: accept, media_type: "application/vnd.github.v{{version}}.full+json" }}
      - path: /sent
        version:
          - {{ in: content_type, media_type: "application/vnd.github.v{{version}}+json" }}
          - {{ in: content_type, media_type: "application/vnd.github.v{{version}}.raw+json" }}
    versions:
      "2": {{ via: "3" }}
      "3": {{ service: s }}
    conversions: [ {{ between: ["2", "3"], changes: [ rename: {{ field: total, to: amount }} ] }} ]
"""
V = "application/vnd.github.v{}+json".format
RAW = "application/vnd.github.v{}.raw+json".format
TOTAL, AMOUNT = b'{"total":1}', b'{"amount":1}'


@pytest.fixture
async def service(upstream: StartUpstream) -> Scripted:
    async def script(scripted: Scripted, reader: Reader, writer: Writer) -> None:
        while True:
            target = (await scripted.take(reader)).split(b" ")[1]
            kind = target.partition(b"?")[2]
            fields = b"Content-Type: " + kind + b"\r\nContent-Length: 11\r\n\r\n"
            writer.write(b"HTTP/1.1 200 OK\r\n" + fields + TOTAL)

    return await upstream(script)


@pytest.fixture
def program(reloaded: StartGateway, service: Scripted) -> Program:
    return reloaded(RULES.format(port=service.port))


async def test_a_response_keeps_the_content_type_of_the_service(program: Program) -> None:
    """The type names the version of the client instead of version 3, which the service uses."""
    table = [
        # The path, Accept, the service's Content-Type, and the Content-Type and body of the
        # response.
        ("/plain", V(3), "application/json;charset=utf-8", "application/json;charset=utf-8", TOTAL),
        ("/plain", V(3), V(3), V(3), TOTAL),
        ("/plain", V(2), "application/json", "application/json", AMOUNT),
        ("/plain", V(2), "application/hal+json", "application/hal+json", AMOUNT),
        ("/plain", V(2), V(3), V(2), AMOUNT),
        ("/plain", V(2), f"{V(3)};charset=utf-8", f"{V(2)};charset=utf-8", AMOUNT),
        ("/plain", V(2), RAW(3), RAW(2), TOTAL),
        ("/plain", V(2), "application/vnd.github.v3.raw", "application/vnd.github.v2.raw", TOTAL),
        ("/plain", V(2), "text/plain", "text/plain", TOTAL),
        ("/repos", RAW(2), "text/plain", "text/plain", TOTAL),
        ("/repos", RAW(2), RAW(3), RAW(2), TOTAL),
        ("/repos", RAW(2), "application/json", "application/json", AMOUNT),
        ("/repos", V(2), V(3), V(2), AMOUNT),
    ]
    for path, accept, kind, expected, body in table:
        got = await get(program, f"GET {path}?{kind}", f"Accept: {accept}")
        assert (got.status, got["content-type"], got.body) == (200, expected, body), (path, accept)


async def test_a_vendor_content_type_matches_the_accepted_type(program: Program) -> None:
    full = "application/vnd.github.v2.full+json"
    table = [
        (V(3), "application/json", V(3)),
        (V(2), "application/json", V(2)),
        (RAW(2), "application/json", RAW(2)),
        (RAW(2), V(3), RAW(2)),
        (f"{V(2)};q=0.5, {RAW(2)}", "application/json", RAW(2)),
        (full, "application/json", "application/json"),
        (full, full.replace("v2", "v3"), full),
        (RAW(2), "text/plain", "text/plain"),
    ]
    for accept, kind, expected in table:
        got = await get(program, f"GET /vendor?{kind}", f"Accept: {accept}")
        assert (got.status, got["content-type"]) == (200, expected), (accept, kind)


async def test_media_type_patterns_of_an_endpoint_are_weighed_together(
    program: Program, service: Scripted
) -> None:
    """The highest weight wins across all patterns; the service gets its own version."""
    diff = "application/vnd.github.v{}.diff".format
    table = [
        (V(2), 2, V(3)),
        (RAW(2), 2, RAW(3)),
        (diff(2), 2, diff(3)),
        (f"{RAW(2)};q=0.4, {V(3)};q=0.5", 3, f"{RAW(2)};q=0.4, {V(3)};q=0.5"),
        (f"{RAW(2)}, {V(3)};q=0.5", 2, f"{RAW(3)}, {V(3)};q=0.5"),
        (f"{V(2)};q=0, {RAW(3)}", 3, f"{V(2)};q=0, {RAW(3)}"),
    ]
    for accept, version, sent in table:
        got = await get(program, "GET /repos?application/json", f"Accept: {accept}")
        assert (got.status, got.body) == (200, TOTAL if version == 3 else AMOUNT), accept
        assert f"\r\nAccept: {sent}\r\n".encode() in service.requests[-1]
    for path, accept in (("/repos", RAW(4)), ("/plain", RAW(3)), ("/repos", V("3.html"))):
        refused = await get(program, f"GET {path}", f"Accept: {accept}")
        assert refused.status == 406
    assert (
        "as application/vnd.github.v<version>+json or application/vnd.github.v<version>.raw"
        in (json.loads((await get(program, "GET /repos")).body)["detail"])
    )


async def test_media_types_of_request_bodies_work_side_by_side(
    program: Program, service: Scripted
) -> None:
    async def post(kind: str) -> Answer:
        async with connect(program) as client:
            fields = f"Content-Type: {kind}", f"Content-Length: {len(AMOUNT)}"
            client.send(ask(f"POST /sent?{kind.replace('v2', 'v3')}", *fields, body=AMOUNT))
            return await client.answer()

    for kind, body in ((V, AMOUNT), (RAW, TOTAL)):
        got = await post(kind(2))
        assert (got.status, got["content-type"], got.body) == (200, kind(2), body)
        assert f"\r\nContent-Type: {kind(3)}\r\n".encode() in service.requests[-1]
    assert (await post(V("2.html"))).status == 415
